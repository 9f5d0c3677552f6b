/* SPDX-License-Identifier: MIT */
/* team.c - writes an export, and reads those of others as if an enemy had written them. */
#include "common/team/team.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/accounts.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/shell_words.h"
#include "common/base/text.h"
#include "common/run/run_state.h"
#include "common/run/spent.h"
#include "common/team/members.h"

/* A run takes some 2 KiB of memory, whatever little it took of a hostile file. */
enum { TOTAL_BYTES = 16 * 1024 * 1024, TOTAL_RUNS = 32 * 1024, TEXT_BYTES = 128 };
/* So do two stretches of its goodput; one is no longer than some centuries. */
enum { TOTAL_WINDOWS = 64 * 1024, WEEK_BYTES = 16, GPUS_MAX = 1000 * 1000 };
#define SPENT_MS_MAX (INT64_C(1) << 44)

bool team_user_is_fine(const char *user)
{
	size_t len = strlen(user);

	return len > 0 && len <= TEAM_USER_BYTES && user[0] != '.' && user[0] != '-' &&
	       strspn(user,
		      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-@+") == len;
}

void team_user_of(const char *account, unsigned uid, char *out, size_t size)
{
	if (account && team_user_is_fine(account))
		snprintf(out, size, "%s", account);
	else
		snprintf(out, size, "%u", uid);
}

/* --- the folder ------------------------------------------------------------------------------- */

static int check_folder(const struct stat *st, const char *folder, const char *team,
			struct err *err)
{
	char word[SHELL_WORD_BYTES];
	const char *place = shell_word(folder, word);
	gid_t group;

	if (st->st_mode & S_IWOTH)
		return err_set(err, ERR_REFUSED,
			       "%s: everybody can write to it, so what is in it does "
			       "not count; mend it with: chmod 3770 %s",
			       folder, place);
	if (team && (!group_id(team, &group) || st->st_gid != group))
		return err_set(err, ERR_REFUSED,
			       "%s: it does not belong to the group %s; mend it with: "
			       "chgrp %s %s && chmod 3770 %s",
			       folder, team, team, place, place);
	if ((st->st_mode & S_IWGRP) && !(st->st_mode & S_ISVTX))
		return err_set(err, ERR_REFUSED,
			       "%s is not sticky: anybody of the team could remove or "
			       "replace what others tell; mend it with: chmod 3770 %s",
			       folder, place);
	return 0;
}

int team_open(const char *folder, const char *team, struct err *err)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char word[SHELL_WORD_BYTES];
	const char *place = shell_word(folder, word);
	struct stat st;

	if (fd < 0 && errno == ENOENT)
		return err_set(err, ERR_NOT_FOUND,
			       "%s is missing: make it with: mkdir -m 3770 %s && chgrp %s %s",
			       folder, place, team ? team : "TEAM", place);
	if (fd < 0 && errno == EACCES)
		return err_set(err, ERR_REFUSED,
			       "%s: you may not look into it; are you in the team?", folder);
	if (fd < 0 || fstat(fd, &st) < 0)
		err_errno(err, "%s", folder);
	else if (check_folder(&st, folder, team, err) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* --- writing ---------------------------------------------------------------------------------- */

static int write_text(int fd, gid_t gid, const char *text, size_t len)
{
	if (fchown(fd, (uid_t)-1, gid) < 0 || fchmod(fd, 0640) < 0)
		return -1;
	return file_write_all(fd, text, len);
}

/* Always the same hidden name, so that what a crash left is taken away by the next one; where
 * somebody else has taken it, one that nobody can guess. */
static int open_hidden(int folder, const char *user, char **hidden)
{
	int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, fd;

	*hidden = xasprintf(".%s.new", user);
	unlinkat(folder, *hidden, 0);
	fd = openat(folder, *hidden, flags, 0600);
	if (fd >= 0 || errno != EEXIST)
		return fd;
	free(*hidden);
	*hidden = xasprintf(".%s.%016llx.new", user, (unsigned long long)random_u64());
	return openat(folder, *hidden, flags, 0600);
}

int team_write(int folder, const char *shown, const char *user, const char *text, size_t len,
	       struct err *err)
{
	char *file = xasprintf("%s.json", user), *hidden;
	int fd = open_hidden(folder, user, &hidden), rc = -1;
	struct stat st;

	if (fd >= 0 && fstat(folder, &st) == 0 && write_text(fd, st.st_gid, text, len) == 0 &&
	    renameat(folder, hidden, folder, file) == 0)
		rc = 0;
	else if (errno == EPERM || errno == EACCES || errno == EISDIR)
		err_set(err, ERR_REFUSED,
			"%s/%s cannot be written (%s): is the folder yours to write to, "
			"and %s in it nobody else's?",
			shown, file, strerror(errno), file);
	else
		err_errno(err, "%s/%s", shown, file);
	if (fd >= 0)
		close(fd);
	if (fd >= 0 && rc < 0)
		unlinkat(folder, hidden, 0);
	free(hidden);
	free(file);
	return rc;
}

/* --- reading: one run ------------------------------------------------------------------------- */

static const struct {
	const char *name;
	enum { FIELD_TEXT, FIELD_WHOLE, FIELD_REAL } type;
} run_fields[] = {
	{ "state", FIELD_TEXT },        { "owner", FIELD_TEXT },   { "group", FIELD_TEXT },
	{ "cause", FIELD_TEXT },        { "wanted", FIELD_TEXT },  { "step", FIELD_WHOLE },
	{ "target_step", FIELD_WHOLE }, { "loss", FIELD_REAL },    { "tokens_per_s", FIELD_REAL },
	{ "mfu", FIELD_REAL },          { "created", FIELD_REAL }, { "ended", FIELD_REAL },
};

static json_t *take_field(const json_t *value, int type)
{
	const char *text = json_string_value(value);
	char *copy;
	json_t *taken;

	if (type == FIELD_WHOLE && json_is_integer(value))
		return json_integer(json_integer_value(value));
	if (type == FIELD_REAL && json_is_number(value) && isfinite(json_number_value(value)))
		return json_real(json_number_value(value));
	if (type != FIELD_TEXT || !text)
		return json_null();
	copy = xstrndup(text, TEXT_BYTES);
	text_clean(copy);
	taken = json_string(copy);
	free(copy);
	return taken;
}

static int64_t within(int64_t value, int64_t most)
{
	return value < 0 ? 0 : value > most ? most : value;
}

static json_t *take_window(const json_t *window)
{
	const json_t *ms = json_object_get(window, "ms");
	json_t *taken = json_object(), *taken_ms = json_object();
	char *week = xstrndup(js_str(window, "week", ""), WEEK_BYTES);

	text_clean(week);
	js_set_str(taken, "week", week);
	free(week);
	for (int i = 0; i < SPENT_COUNT; i++) {
		const char *name = spent_name((enum spent)i);

		js_set_int(taken_ms, name, within(js_int(ms, name, 0), SPENT_MS_MAX));
	}
	json_object_set_new(taken, "ms", taken_ms);
	js_set_int(taken, "interruptions",
		   within(js_int(window, "interruptions", 0), SPENT_MS_MAX));
	return taken;
}

/* Null where none is told, or `left` has no room for it. */
static json_t *take_goodput(const json_t *goodput, size_t *left)
{
	const json_t *weeks = json_object_get(goodput, "weeks"), *window;
	const json_t *recent = json_object_get(goodput, "last7d");
	size_t count = json_array_size(weeks) + 1, i;
	json_t *taken, *list;

	if (!json_is_array(weeks) || count > TEAM_WEEKS + 2 || count > *left)
		return json_null();
	*left -= count;
	taken = json_object();
	list = json_array();
	js_set_int(taken, "gpus", within(js_int(goodput, "gpus", 0), GPUS_MAX));
	json_array_foreach(weeks, i, window) {
		json_array_append_new(list, take_window(window));
	}
	json_object_set_new(taken, "weeks", list);
	if (json_is_object(recent))
		json_object_set_new(taken, "last7d", take_window(recent));
	return taken;
}

/* A new object with the known fields; NULL when this is no run. */
static json_t *take_run(const json_t *run, size_t *windows_left)
{
	const char *name = js_str(run, "name", NULL), *state = js_str(run, "state", "");
	json_t *taken;

	if (!name || name_check(name, NULL) < 0 || run_state_from_name(state) == RUN_STATE_COUNT)
		return NULL;
	taken = json_object();
	json_object_set_new(taken, "name", json_string(name));
	for (size_t i = 0; i < sizeof(run_fields) / sizeof(run_fields[0]); i++)
		json_object_set_new(taken, run_fields[i].name,
				    take_field(json_object_get(run, run_fields[i].name),
					       run_fields[i].type));
	json_object_set_new(taken, "goodput",
			    take_goodput(json_object_get(run, "goodput"), windows_left));
	return taken;
}

/* --- reading: one export ---------------------------------------------------------------------- */

/* A path that may be shown and opened. */
static char *take_path(const char *path)
{
	size_t len = path ? strlen(path) : 0;

	if (len == 0 || len >= PATH_MAX || path[0] != '/')
		return NULL;
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)path[i] < 0x20 || path[i] == 0x7f)
			return NULL;
	return xstrdup(path);
}

static int64_t take_time(double seconds, int64_t now_ms)
{
	if (!(seconds > 0))
		return 0;
	return seconds * 1000 < (double)now_ms ? (int64_t)(seconds * 1000) : now_ms;
}

static const char *take_export(const json_t *root, int64_t now_ms, size_t *windows_left,
			       struct team_export *out)
{
	const json_t *runs = json_object_get(root, "runs"), *run;
	size_t i;

	if (js_int(root, "format", 0) != TEAM_FORMAT)
		return "it is of another version than this lbctl";
	if (!json_is_array(runs))
		return "it lists no runs";
	out->written_ms = take_time(js_real(root, "written", 0), now_ms);
	out->left_out = js_int(root, "left_out", 0);
	out->switches = take_path(js_str(root, "switches", NULL));
	out->runs = json_array();
	json_array_foreach(runs, i, run) {
		json_t *taken = i < TEAM_RUNS_MAX ? take_run(run, windows_left) : NULL;

		if (taken)
			json_array_append_new(out->runs, taken);
	}
	return NULL;
}

struct reading {
	int folder;
	char team[64]; /* the folder's group; "" = it has no name */
	int64_t now_ms;
	size_t bytes, runs; /* so far, of all */
	size_t windows_left;
	struct team *out;
	void (*refused)(const char *file, const char *why, void *arg);
	void *arg;
};

/* NULL when the file may be read: it is what it should be, and whose. */
static const char *what_is_wrong(const struct reading *r, const struct stat *st, const char *user)
{
	const struct member *member;
	char own[TEAM_USER_BYTES + 1];

	if (!S_ISREG(st->st_mode))
		return "only an ordinary file is an export";
	if (st->st_nlink > 1) /* none: it was replaced just now */
		return "a file with several names (hard links) is no export";
	if (st->st_size > TEAM_EXPORT_BYTES || r->bytes + (size_t)st->st_size > TOTAL_BYTES)
		return "it is too large";
	member = member_of(st->st_uid, r->team);
	team_user_of(member->name, st->st_uid, own, sizeof(own));
	if (strcmp(own, user) != 0)
		return "it belongs to another user than its name says";
	if (!member->is_member && st->st_uid != 0)
		return "its owner is not in the team";
	return NULL;
}

/* No more of it than there was when it was looked at, whatever it becomes meanwhile. */
static char *read_text(struct reading *r, int fd, size_t size, size_t *len)
{
	char *text = xmalloc(size + 1);
	ssize_t n = 1;

	*len = 0;
	while (n > 0 && *len < size) {
		n = read(fd, text + *len, size - *len);
		*len += n > 0 ? (size_t)n : 0;
	}
	r->bytes += *len;
	return text;
}

static const char *take_text(struct reading *r, int fd, const struct stat *st, const char *user)
{
	struct team_export export = { 0 };
	const char *why;
	json_t *root;
	size_t len;
	char *text = read_text(r, fd, (size_t)st->st_size, &len);

	root = js_parse(text, len, NULL);
	free(text);
	why = root ? take_export(root, r->now_ms, &r->windows_left, &export) : "it makes no sense";
	json_decref(root);
	if (why)
		return why;
	r->runs += json_array_size(export.runs);
	snprintf(export.user, sizeof(export.user), "%s", user);
	export.uid = st->st_uid;
	r->out->exports = xrealloc(r->out->exports, (r->out->count + 1) * sizeof(export));
	r->out->exports[r->out->count++] = export;
	return NULL;
}

/* What is open is judged, not its name: each lbd replaces its export all the time. */
static const char *read_export(struct reading *r, const char *file, const char *user)
{
	int fd = openat(r->folder, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	const char *why;

	if (fd < 0 && errno == ENOENT)
		return NULL; /* its owner went */
	if (fd < 0)
		return errno == ELOOP ? "a symbolic link is no export" : "it cannot be read";
	why = fstat(fd, &st) < 0 ? "it cannot be read" : what_is_wrong(r, &st, user);
	if (!why)
		why = take_text(r, fd, &st, user);
	close(fd);
	return why;
}

static void read_file(struct reading *r, const char *file)
{
	size_t len = strlen(file);
	const char *why = "its name is no user's";
	char *user, *shown;

	if (file[0] == '.' || len < 5 || strcmp(file + len - 5, ".json") != 0)
		return; /* something else; hidden ones are being written */
	user = xstrndup(file, len - 5);
	if (team_user_is_fine(user))
		why = r->out->count < TEAM_EXPORTS_MAX && r->runs < TOTAL_RUNS
			      ? read_export(r, file, user)
			      : "there are too many";
	free(user);
	if (!why || !r->refused)
		return;
	shown = xstrdup(file);
	text_clean(shown);
	r->refused(shown, why, r->arg);
	free(shown);
}

static int by_user(const void *a, const void *b)
{
	return strcmp(((const struct team_export *)a)->user, ((const struct team_export *)b)->user);
}

static void name_team(struct reading *r)
{
	struct stat st;
	char *name = fstat(r->folder, &st) == 0 ? group_name(st.st_gid) : NULL;

	if (name)
		snprintf(r->team, sizeof(r->team), "%s", name);
	free(name);
}

int team_read(const char *folder, int64_t now_ms, struct team *out,
	      void (*refused)(const char *file, const char *why, void *arg), void *arg,
	      struct err *err)
{
	struct reading r = { .now_ms = now_ms,
			     .windows_left = TOTAL_WINDOWS,
			     .out = out,
			     .refused = refused,
			     .arg = arg };
	const struct dirent *entry;
	int seen = 0;
	DIR *dir;

	*out = (struct team){ 0 };
	r.folder = team_open(folder, NULL, err);
	if (r.folder < 0)
		return -1;
	name_team(&r);
	dir = fdopendir(r.folder);
	if (!dir) {
		close(r.folder);
		return err_errno(err, "%s", folder);
	}
	while (seen++ < 4 * TEAM_EXPORTS_MAX && (entry = readdir(dir)))
		read_file(&r, entry->d_name);
	closedir(dir);
	if (out->count > 0)
		qsort(out->exports, out->count, sizeof(*out->exports), by_user);
	return 0;
}

void team_clear(struct team *team)
{
	for (size_t i = 0; i < team->count; i++) {
		free(team->exports[i].switches);
		json_decref(team->exports[i].runs);
	}
	free(team->exports);
	*team = (struct team){ 0 };
}

/* --- where things are ------------------------------------------------------------------------- */

char *team_folder(const char *home, struct err *err)
{
	const char *named = getenv("LB_TEAM");
	char *link, folder[PATH_MAX];
	ssize_t len;

	if (named && named[0])
		return xstrdup(named);
	link = path_join("%s/team", home);
	len = readlink(link, folder, sizeof(folder));
	if (len < 0)
		err_set(err, ERR_USAGE,
			"which team? %s leads to no folder (team.folder of "
			"lbd.toml makes it), and $LB_TEAM names none",
			link);
	free(link);
	return len < 0 ? NULL : xstrndup(folder, (size_t)len);
}

const struct team_export *team_export_of(const struct team *team, const char *user)
{
	for (size_t n = 0; n < team->count; n++)
		if (strcmp(team->exports[n].user, user) == 0)
			return &team->exports[n];
	return NULL;
}

char *team_run_folder(const struct team_export *export, const char *name)
{
	const char *slash = export->switches ? strrchr(export->switches, '/') : NULL;

	return slash ? path_join("%.*s/runs/%s", (int)(slash - export->switches), export->switches,
				 name)
		     : NULL;
}
