/* SPDX-License-Identifier: MIT */
/* test_team.c - the common folder of a team: what is written comes back; what is not what it seems
 * does not count, and is told; of what counts only the known is taken. (Files of other users:
 * team-export.t.) */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/accounts.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/team/switches.h"
#include "common/team/team.h"
#include "ctl/base/program.h"

#define NOW_MS INT64_C(1800000000000)
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static char folder[64], me[65], my_file[160];
static char refused_file[128], refused_why[256];
static int refused;

static int set_up(void **state)
{
	struct account account;

	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/test_team.XXXXXX");
	assert_non_null(mkdtemp(folder));
	assert_int_equal(chmod(folder, 03770), 0);
	assert_true(account_of(geteuid(), &account));
	snprintf(me, sizeof(me), "%s", account.name);
	account_clear(&account);
	snprintf(my_file, sizeof(my_file), "%s/%s.json", folder, me);
	return 0;
}

static int tear_down(void **state)
{
	struct err err = { 0 };

	(void)state;
	return folder_remove(folder, &err);
}

static void on_refused(const char *file, const char *why, void *arg)
{
	(void)arg;
	refused++;
	snprintf(refused_file, sizeof(refused_file), "%s", file);
	snprintf(refused_why, sizeof(refused_why), "%s", why);
}

static struct team read_all(void)
{
	struct err err = { 0 };
	struct team team;

	refused = 0;
	refused_why[0] = '\0';
	if (team_read(folder, NOW_MS, &team, on_refused, NULL, &err) < 0)
		fail_msg("%s", err.text);
	return team;
}

static void put(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

/* The folder holds one file; it does not count. */
static void assert_refused(const char *why)
{
	struct team team = read_all();

	assert_int_equal(team.count, 0);
	assert_int_equal(refused, 1);
	if (!strstr(refused_why, why))
		fail_msg("\"%s\" is not in \"%s\"", why, refused_why);
	team_clear(&team);
}

static void names(void **state)
{
	char long_name[TEAM_USER_BYTES + 2];

	(void)state;
	memset(long_name, 'a', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	char name[TEAM_USER_BYTES + 1];

	team_user_of("ada", 5, name, sizeof(name));
	assert_string_equal(name, "ada");
	team_user_of("AD\\ada", 5, name, sizeof(name));
	assert_string_equal(name, "5");
	team_user_of(NULL, 4294967294U, name, sizeof(name));
	assert_string_equal(name, "4294967294");
	assert_true(team_user_is_fine("ada"));
	assert_true(team_user_is_fine("ada.lovelace+x@site-1_2"));
	assert_false(team_user_is_fine(""));
	assert_false(team_user_is_fine(".ada"));
	assert_false(team_user_is_fine("-ada"));
	assert_false(team_user_is_fine("../ada"));
	assert_false(team_user_is_fine("a/b"));
	assert_false(team_user_is_fine("a b"));
	assert_false(team_user_is_fine(long_name));
	assert_true(team_user_is_fine(long_name + 1));
}

static void which_folders_can_be_trusted(void **state)
{
	static const struct {
		mode_t mode;
		const char *why; /* NULL: it can */
	} cases[] = {
		{ 03770, NULL },
		{ 0700, NULL },
		{ 0750, NULL },
		{ 01770, NULL },
		{ 03777, "everybody can write to it" },
		{ 0702, "everybody can write to it" },
		{ 02770, "is not sticky" },
		{ 0770, "is not sticky" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err err = { 0 };
		int fd;

		assert_int_equal(chmod(folder, cases[i].mode), 0);
		fd = team_open(folder, NULL, &err);
		if ((fd >= 0) != (cases[i].why == NULL) ||
		    (cases[i].why && (err.code != ERR_REFUSED || !strstr(err.text, cases[i].why) ||
				      !strstr(err.text, "chmod 3770"))))
			fail_msg("%04o: %d \"%s\"", (unsigned)cases[i].mode, fd, err.text);
		if (fd >= 0)
			close(fd);
	}
}

static void a_folder_of_another_group(void **state)
{
	struct err err = { 0 };
	struct stat st;
	char *group;
	int fd;

	(void)state;
	assert_int_equal(stat(folder, &st), 0);
	group = group_name(st.st_gid);
	fd = team_open(folder, group, &err);
	free(group);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(team_open(folder, "no-such-group", &err), -1);
	assert_int_equal(err.code, ERR_REFUSED);
	assert_non_null(strstr(err.text, "chgrp no-such-group"));
}

static void a_folder_that_is_missing(void **state)
{
	struct err err = { 0 };

	(void)state;
	assert_int_equal(team_open("/tmp/test_team.missing/x", NULL, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	assert_non_null(strstr(err.text, "mkdir -m 3770"));
}

/* Behind "with: " stands what a shell takes as it is: from a folder of its own, in which nothing
 * comes to lie by it. */
static void what_is_told_to_mend_it_does(void **state)
{
	static const mode_t modes[] = { 0, 03777, 02770 };
	const struct switch_rules of_others = { geteuid(), "no-such-group" };
	char *group = group_name(getegid()), *beside = path_join("%s/beside", folder);
	char *place = path_join("%s/it's a team", folder), *command;
	struct err why = { 0 };

	(void)state;
	assert_int_equal(mkdir(beside, 0700), 0);
	for (size_t i = 0; i < COUNT(modes); i++) {
		struct err err = { 0 };
		const char *shell[] = { "sh", "-ec", NULL, NULL };
		int fd;

		if (modes[i])
			assert_int_equal(chmod(place, modes[i]), 0);
		assert_int_equal(team_open(place, group, &err), -1);
		command = xasprintf("cd '%s' && %s", beside, strstr(err.text, "with: ") + 6);
		shell[2] = command;
		err_clear(&err);
		if (program_run(shell, -1, &err) != 0)
			fail_msg("%s", command);
		fd = team_open(place, group, &err);
		if (fd < 0)
			fail_msg("%s", err.text);
		close(fd);
		free(command);
	}
	assert_int_equal(rmdir(beside), 0);
	command = xasprintf("chgrp no-such-group '%s/it'\\''s a team' && chmod 3770 '%s/it'\\''s",
			    folder, folder);
	assert_int_equal(chmod(place, 03770), 0);
	assert_int_equal(switches_open(place, &of_others, &why), -1);
	if (!strstr(why.text, command))
		fail_msg("%s", why.text);
	free(command);
	free(place);
	free(beside);
	free(group);
}

static const char good[] =
	"{\"format\":1,\"user\":\"x\",\"switches\":\"/home/x/switches\",\"written\":1799999990.5,"
	"\"left_out\":3,\"runs\":[{\"name\":\"first\",\"state\":\"running\",\"owner\":\"x\",\"step\":7,"
	"\"loss\":2.5,\"secret\":\"no\"}]}\n";

static void what_is_written_is_read(void **state)
{
	struct err err = { 0 };
	struct team team;
	struct stat st, of_folder;
	const json_t *run;
	int fd = team_open(folder, NULL, &err);
	mode_t mask = umask(077);

	(void)state;
	for (int i = 0; i < 2; i++) /* the second replaces the first */
		assert_int_equal(team_write(fd, folder, me, good, strlen(good), &err), 0);
	umask(mask);
	close(fd);
	assert_int_equal(stat(my_file, &st), 0);
	assert_int_equal(stat(folder, &of_folder), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_int_equal(st.st_gid, of_folder.st_gid);
	team = read_all();
	assert_int_equal(refused, 0);
	assert_int_equal(team.count, 1);
	assert_string_equal(team.exports[0].user, me);
	assert_int_equal(team.exports[0].uid, geteuid());
	assert_int_equal(team.exports[0].written_ms, NOW_MS - 9500);
	assert_int_equal(team.exports[0].left_out, 3);
	assert_string_equal(team.exports[0].switches, "/home/x/switches");
	assert_int_equal(json_array_size(team.exports[0].runs), 1);
	run = json_array_get(team.exports[0].runs, 0);
	assert_string_equal(js_str(run, "name", ""), "first");
	assert_int_equal(js_int(run, "step", -1), 7);
	assert_null(json_object_get(run, "secret"));
	assert_true(json_is_null(json_object_get(run, "cause")));
	team_clear(&team);
	assert_null(team.exports);
}

/* What a crash left of an earlier attempt is no obstacle; what is in the way of the name itself
 * is. */
static void what_is_in_the_way(void **state)
{
	struct err err = { 0 };
	char hidden[160];
	int fd = team_open(folder, NULL, &err);

	(void)state;
	snprintf(hidden, sizeof(hidden), "%s/.%s.new", folder, me);
	put(hidden, "half of it");
	assert_int_equal(team_write(fd, folder, me, good, strlen(good), &err), 0);
	assert_int_equal(access(hidden, F_OK), -1);
	assert_int_equal(unlink(my_file), 0);
	assert_int_equal(mkdir(my_file, 0700), 0);
	assert_int_equal(team_write(fd, folder, me, good, strlen(good), &err), -1);
	assert_int_equal(err.code, ERR_REFUSED);
	assert_int_equal(access(hidden, F_OK), -1);
	close(fd);
}

static void what_is_no_export(void **state)
{
	static const struct {
		const char *text, *why;
	} texts[] = {
		{ "", "it makes no sense" },
		{ "[", "it makes no sense" },
		{ "{\"format\":2,\"runs\":[]}", "another version" },
		{ "{\"runs\":[]}", "another version" },
		{ "{\"format\":1}", "lists no runs" },
		{ "{\"format\":1,\"runs\":{}}", "lists no runs" },
	};
	char other[128], elsewhere[128];

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		put(my_file, texts[i].text);
		assert_refused(texts[i].why);
	}
	put(my_file, good);
	assert_int_equal(truncate(my_file, TEAM_EXPORT_BYTES + 1), 0);
	assert_refused("too large");
	put(my_file, good);
	snprintf(other, sizeof(other), "%s/.other", folder);
	assert_int_equal(link(my_file, other), 0);
	assert_refused("several names");
	unlink(other);
	unlink(my_file);
	snprintf(elsewhere, sizeof(elsewhere), "%s/.elsewhere", folder);
	put(elsewhere, good);
	assert_int_equal(symlink(elsewhere, my_file), 0);
	assert_refused("symbolic link");
	unlink(my_file);
	assert_int_equal(mkfifo(my_file, 0600), 0);
	assert_refused("ordinary file");
	unlink(my_file);
	assert_int_equal(mkdir(my_file, 0700), 0);
	assert_refused("ordinary file");
	rmdir(my_file);
	snprintf(other, sizeof(other), "%s/someone-else.json", folder);
	put(other, good);
	assert_refused("another user than its name says");
	assert_string_equal(refused_file, "someone-else.json");
	unlink(other);
	snprintf(other, sizeof(other), "%s/-x\x1b.json", folder);
	put(other, good);
	assert_refused("no user's");
	assert_null(strchr(refused_file, '\x1b'));
}

static void only_the_known_is_taken(void **state)
{
	struct team team;
	const json_t *run;

	(void)state;
	put(my_file,
	    "{\"format\":1,\"switches\":\"relative\",\"written\":1e300,\"left_out\":\"x\",\"runs\":["
	    "null,7,\"x\",[],{},{\"name\":\"../x\",\"state\":\"running\"},{\"name\":\"x\",\"state\":\"gone\"},"
	    "{\"name\":\"fine\",\"state\":\"held\",\"owner\":\"a\\u001b[31m\\nb\",\"step\":\"1\","
	    "\"loss\":[],\"created\":1e308,\"group\":{\"a\":1}}]}");
	team = read_all();
	assert_int_equal(team.count, 1);
	assert_null(team.exports[0].switches);
	assert_int_equal(team.exports[0].written_ms, NOW_MS); /* never later than now */
	assert_int_equal(json_array_size(team.exports[0].runs), 1);
	run = json_array_get(team.exports[0].runs, 0);
	assert_string_equal(js_str(run, "name", ""), "fine");
	assert_null(strpbrk(js_str(run, "owner", ""), "\x1b\n"));
	assert_true(json_is_null(json_object_get(run, "step")));
	assert_true(json_is_null(json_object_get(run, "loss")));
	assert_true(json_is_null(json_object_get(run, "group")));
	team_clear(&team);
}

static void so_many_runs_and_no_more(void **state)
{
	struct buf text;
	struct team team;

	(void)state;
	buf_init(&text, TEAM_EXPORT_BYTES);
	buf_addf(&text, "{\"format\":1,\"runs\":[");
	for (int i = 0; i < TEAM_RUNS_MAX + 100; i++)
		buf_addf(&text, "%s{\"name\":\"r%d\",\"state\":\"held\"}", i ? "," : "", i);
	buf_addf(&text, "]}");
	put(my_file, text.data);
	buf_fini(&text);
	team = read_all();
	assert_int_equal(team.count, 1);
	assert_int_equal(json_array_size(team.exports[0].runs), TEAM_RUNS_MAX);
	team_clear(&team);
}

/* Until it is killed: an lbd that tells of itself without a pause. */
static pid_t start_replacing(const char *text)
{
	struct err err = { 0 };
	pid_t pid = fork();
	int fd;

	assert_true(pid >= 0);
	if (pid > 0)
		return pid;
	fd = open(folder, O_RDONLY | O_DIRECTORY);
	while (team_write(fd, folder, me, text, strlen(text), &err) == 0)
		continue;
	_exit(1);
}

static void an_export_is_replaced_while_it_is_read(void **state)
{
	const char *text = "{\"format\":1,\"runs\":[{\"name\":\"one\",\"state\":\"held\"}]}";
	int status, doubted = 0, reads = 0;
	pid_t pid;

	(void)state;
	put(my_file, text);
	pid = start_replacing(text);
	while (reads < 20000 && doubted == 0) {
		struct team team = read_all();

		doubted += refused;
		reads += team.count == 1;
		team_clear(&team);
	}
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	if (doubted > 0)
		fail_msg("after %d good ones a read was refused: %s", reads, refused_why);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		TEST(which_folders_can_be_trusted),
		TEST(a_folder_of_another_group),
		cmocka_unit_test(a_folder_that_is_missing),
		TEST(what_is_told_to_mend_it_does),
		TEST(what_is_written_is_read),
		TEST(what_is_in_the_way),
		TEST(what_is_no_export),
		TEST(only_the_known_is_taken),
		TEST(so_many_runs_and_no_more),
		TEST(an_export_is_replaced_while_it_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
