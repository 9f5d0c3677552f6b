/* SPDX-License-Identifier: MIT */
/* test_crontab.c - what may stand in a crontab, and what is said of the rest. */
#include "tests/unit/unit.h"

#include "common/base/shell_words.h"
#include "common/base/strv.h"
#include "daemon/calendar/cron_check.h"
#include "daemon/calendar/crontab.h"

static const struct cron_settings defaults = { CATCH_UP_ONE, OVERLAP_SKIP, 0, 0 };

struct bad {
	char text[4096];
	int count;
};

static void on_bad(void *arg, const struct err *why)
{
	struct bad *bad = arg;

	bad->count++;
	snprintf(bad->text + strlen(bad->text), sizeof(bad->text) - strlen(bad->text), "%s\n",
		 why->text);
}

static void test_words(void **state)
{
	/* clang-format off */
	static const struct {
		const char *text, *joined; /* words joined by |; NULL: refused */
	} cases[] = {
		{ "", "" },
		{ "  a  b\tc ", "a|b|c" },
		{ "a 'b c' \"d 'e\"", "a|b c|d 'e" },
		{ "a\\ b 'x\\y' \"q\\\"r\\z\"", "a b|x\\y|q\"r\\z" },
		{ "pre'fix'ed \"\" ''", "prefixed||" },
		{ "date +%F", "date|+%F" },
		{ "'a|b;$c'", "a|b;$c" },
		{ "a | b", NULL }, { "a > b", NULL }, { "a && b", NULL }, { "echo $HOME", NULL },
		{ "echo \"$HOME\"", NULL }, { "echo `id`", NULL }, { "a; b", NULL }, { "'open", NULL },
		{ "\"open", NULL }, { "end\\", NULL },
	};
	/* clang-format on */

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct err err = { 0 };
		char **words = shell_words(cases[i].text, &err), joined[256] = "";

		if ((words == NULL) != (cases[i].joined == NULL))
			fail_msg("%s: %s", cases[i].text, err.text);
		for (size_t k = 0; words && words[k]; k++)
			snprintf(joined + strlen(joined), sizeof(joined) - strlen(joined), "%s%s",
				 k ? "|" : "", words[k]);
		if (words)
			assert_string_equal(joined, cases[i].joined);
		strv_free(words);
	}
}

/* A word that a person is told to type is read as what it was. */
static void test_word_to_type(void **state)
{
	static const char *const cases[][2] = {
		{ "/home/ada/lb-1", "/home/ada/lb-1" },
		{ "", "''" },
		{ "two words", "'two words'" },
		{ "it's $HOME;`x`", "'it'\\''s $HOME;`x`'" },
		{ "c*.stop", "'c*.stop'" },
		{ "~/x", "'~/x'" },
	};
	char word[SHELL_WORD_BYTES], far[300], quotes[SHELL_WORD_BYTES];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct err err = { 0 };
		char **words = shell_words(shell_word(cases[i][0], word), &err);

		assert_string_equal(shell_word(cases[i][0], word), cases[i][1]);
		assert_non_null(words);
		assert_string_equal(words[0], cases[i][0]);
		assert_null(words[1]);
		strv_free(words);
	}
	assert_string_equal(shell_word("/a/path/of/eighty/bytes/stands/as/it/is"
				       "/in/a/message/that/has/it/four/times/too/",
				       word),
			    "/a/path/of/eighty/bytes/stands/as/it/is"
			    "/in/a/message/that/has/it/four/times/too/");
	memset(far, 'x', sizeof(far));
	far[sizeof(far) - 1] = '\0';
	assert_int_equal(shell_word(far, word)[0], '\'');
	memset(quotes, '\'', sizeof(quotes));
	quotes[sizeof(quotes) - 1] = '\0';
	assert_true(strlen(shell_word(quotes, word)) < SHELL_WORD_BYTES);
	assert_null(shell_words(word, NULL)); /* cut, and so left open */
}

static void test_good_file(void **state)
{
	static const char text[] = "# nightly things\r\n"
				   "\n"
				   "30\t4 *  * \t1-5 backup.slurm --all 'two words'\n"
				   "CRON_TZ = \"Europe/Berlin\"\n"
				   "catch_up=all\n"
				   "MAILTO=\"\"\n"
				   "TIMEOUT=2h\n"
				   "  NAME=checker\n"
				   "@hourly\tlbctl ls   \n"
				   "OVERLAP=replace\n"
				   "JITTER=90\n"
				   "SBATCH=-N1\n"
				   "0 0 * * * --time=10 '--comment=a b' /home/u/prune.sh -v";
	struct cron_entries list = { 0 };
	struct bad bad = { 0 };

	(void)state;
	crontab_read(text, "crontab", NULL, &defaults, &list, on_bad, &bad);
	assert_string_equal(bad.text, "");
	assert_int_equal(list.count, 3);
	assert_string_equal(list.items[0].name, "backup");
	assert_string_equal(list.items[0].when, "30 4 * * 1-5");
	assert_string_equal(list.items[0].source, "crontab:3");
	assert_string_equal(list.items[0].zone, "");
	assert_string_equal(list.items[0].argv[2], "two words");
	assert_null(list.items[0].argv[3]);
	assert_int_equal(list.items[0].settings.catch_up, CATCH_UP_ONE);
	assert_string_equal(list.items[1].name, "checker");
	assert_string_equal(list.items[1].zone, "Europe/Berlin");
	assert_int_equal(list.items[1].settings.catch_up, CATCH_UP_ALL);
	assert_int_equal(list.items[1].settings.timeout_ms, 2 * 3600 * 1000);
	assert_int_equal(list.items[1].settings.overlap, OVERLAP_SKIP);
	assert_string_equal(list.items[2].name, "prune");
	assert_string_equal(list.items[2].options[0], "-N1");
	assert_string_equal(list.items[2].options[2], "--comment=a b");
	assert_null(list.items[2].options[3]);
	assert_string_equal(list.items[2].argv[1], "-v");
	assert_null(list.items[0].options);
	assert_int_equal(list.items[2].settings.overlap, OVERLAP_REPLACE);
	assert_int_equal(list.items[2].settings.jitter_ms, 90 * 1000);
	assert_non_null(cron_entries_find(&list, "prune"));
	assert_null(cron_entries_find(&list, "gone"));
	cron_entries_clear(&list);
}

/* The one behind an entry with a mistake does not go on as that. */
static void test_name_of_a_bad_line(void **state)
{
	struct cron_entries list = { 0 };
	struct bad bad = { 0 };

	(void)state;
	crontab_read("NAME=one\n\n# soon\n61 * * * * a.sh\n@daily b.sh\n", "crontab", NULL,
		     &defaults, &list, on_bad, &bad);
	assert_int_equal(list.count, 1);
	assert_string_equal(list.items[0].name, "b");
	cron_entries_clear(&list);
}

/* Each bad line is told with its place; the good one among them holds. */
static void test_bad_lines(void **state)
{
	static const struct {
		const char *line, *part;
	} cases[] = {
		{ "61 * * * * x", "crontab:1: minute \"61\"" },
		{ "* * * * x", "crontab:1: day of week \"x\"" },
		{ "@daily", "crontab:1: nothing is to be done" },
		{ "@reboot x", "allowed are @hourly" },
		{ "@daily a | b", "there is no shell here" },
		{ "CRON_TZ=Mars/Olympus", "CRON_TZ: there is no time zone" },
		{ "OVERLAP=never", "OVERLAP: \"never\": allowed are skip, queue and replace" },
		{ "TIMEOUT=soon", "crontab:1: TIMEOUT: " },
		{ "CATCHUP=one", "CATCHUP: did you mean CATCH_UP?" },
		{ "@daily ~/backup.sh", "write the folder's whole name, like /home/ada/backup.sh" },
		{ "@daily backup.sh ~/data", "there is no shell here" },
		{ "MAILTO=me", "lbd sends no mail" },
		{ "NAME=../x", "crontab:1: NAME: bad name" },
		{ "@daily '/opt/a b.sh'", "write NAME=" },
		{ "@daily --nope x.sh", "crontab:1: --nope: there is no such option of sbatch" },
		{ "@daily --time=10", "crontab:1: nothing is to be done" },
		{ "SBATCH=--nodes=none", "crontab:1: SBATCH: --nodes: " },
		{ "@daily good.sh",
		  "crontab:2: good: there is an entry of this name already (crontab:1)" },
		{ "17 * * * * root cd / && run-parts --report /etc/cron.hourly",
		  "there is no shell here" },
		{ "25 6 * * *\troot\t/etc/cron.daily/logs --all",
		  "crontab:1: root: a user's name, as in /etc/crontab; here there is none between the "
		  "time and the command" },
		{ "@daily PORT=80 serve.sh",
		  "crontab:1: PORT=80: there is no shell here; write it as a line of its own above, "
		  "or env in front of it" },
		{ "hello", "crontab:1: minute \"hello\"" },
		{ "\x1b[2J", "crontab:1: minute \"?[2J\"" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct cron_entries list = { 0 };
		struct bad bad = { 0 };
		char text[256];

		snprintf(text, sizeof(text), "%s\n@daily good.sh\n", cases[i].line);
		crontab_read(text, "crontab", NULL, &defaults, &list, on_bad, &bad);
		assert_int_equal(bad.count, 1);
		assert_contains(bad.text, cases[i].part);
		assert_int_equal(list.count, 1);
		assert_string_equal(list.items[0].name, "good");
		cron_entries_clear(&list);
	}
}

/* A crontab of scrontab(1): options of the next entry alone, their values attached or not. */
static void test_scrontab(void **state)
{
	static const char text[] = "#SCRON -q cron\n"
				   "#SCRON -t 00:30:00 --open-mode=append # long enough\n"
				   "#SCRON -C a100&ib --comment=\"it is ada's\"\n"
				   "  #SCRON -o /home/ada/poll-%j.log\n"
				   "# every hour\n"
				   "7 * * * * --mem=1G poll.sh\n"
				   "#SCRON --nope\n"
				   "@daily wrong.sh\n"
				   "#SCRONTAB of ada\n"
				   "@daily other.sh\n";
	static const char *const want[] = { "--qos=cron",
					    "--time=00:30:00",
					    "--open-mode=append",
					    "--constraint=a100&ib",
					    "--comment=it is ada's",
					    "--output=/home/ada/poll-%j.log",
					    "--mem=1G" };
	struct cron_entries list = { 0 };
	struct bad bad = { 0 };

	(void)state;
	crontab_read(text, "crontab", NULL, &defaults, &list, on_bad, &bad);
	assert_string_equal(
		bad.text,
		"crontab:7: #SCRON: --nope: there is no such option of sbatch; did you mean "
		"--nodes?\n"
		"crontab:8: left out, as a #SCRON line above it is wrong\n");
	assert_int_equal(list.count, 2);
	for (size_t i = 0; i < COUNT(want); i++)
		assert_string_equal(list.items[0].options[i], want[i]);
	assert_null(list.items[0].options[COUNT(want)]);
	assert_null(list.items[1].options);
	cron_entries_clear(&list);
}

/* cron(8) would read a bare % as the end of a line, so people have written \%. */
static void test_percent(void **state)
{
	struct cron_entries list = { 0 };
	struct bad bad = { 0 };

	(void)state;
	crontab_read("@daily --output=%j.out a.sh +\\%F \"x-\\%Y\" 'y-\\%m' %d\n", "crontab", NULL,
		     &defaults, &list, on_bad, &bad);
	assert_string_equal(bad.text, "");
	assert_string_equal(list.items[0].options[0], "--output=%j.out");
	assert_string_equal(list.items[0].argv[1], "+%F");
	assert_string_equal(list.items[0].argv[2], "x-%Y");
	assert_string_equal(list.items[0].argv[3], "y-%m");
	assert_string_equal(list.items[0].argv[4], "%d");
	cron_entries_clear(&list);
}

/* All that people put above their lines. */
static void test_environment(void **state)
{
	static const char text[] =
		"PATH=/opt/bin:/usr/bin\nHOME=/home/ada\nSHELL=/bin/sh\nFOO = \"a b\"\n"
		"export DATA2='/d'\nLANG=C\n@daily one.sh\nFOO=later\n@daily two.sh\n";
	static const char *const want[] = { "PATH=/opt/bin:/usr/bin",
					    "HOME=/home/ada",
					    "SHELL=/bin/sh",
					    "FOO=a b",
					    "DATA2=/d",
					    "LANG=C" };
	struct cron_entries list = { 0 };
	struct bad bad = { 0 };

	(void)state;
	crontab_read(text, "crontab", NULL, &defaults, &list, on_bad, &bad);
	assert_string_equal(bad.text, "");
	assert_int_equal(list.count, 2);
	for (size_t i = 0; i < COUNT(want); i++)
		assert_string_equal(list.items[0].env[i], want[i]);
	assert_null(list.items[0].env[COUNT(want)]);
	assert_string_equal(list.items[1].env[3], "FOO=later");
	cron_entries_clear(&list);
}

static void test_never_due(void **state)
{
	static const struct {
		const char *when;
		bool is_never;
	} cases[] = {
		{ "0 3 31 2 *", true },    { "0 3 30,31 2 *", true }, { "0 3 31 4,6,9,11 *", true },
		{ "0 3 29 2 *", false },   { "0 3 31 * *", false },   { "0 3 31 2 1", false },
		{ "0 3 31 2,3 *", false }, { "@daily", false },       { "* * * * *", false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct cron_expr expr;

		assert_int_equal(cron_expr_parse(cases[i].when, &expr, NULL), 0);
		if (cron_expr_is_never(&expr) != cases[i].is_never)
			fail_msg("%s", cases[i].when);
	}
}

/* What lies elsewhere may be there for the job alone, also where the names begin alike. */
static void test_missing_file(void **state)
{
	static const struct {
		const char *line;
		bool is_told;
	} cases[] = {
		{ "@daily /nowhere/cron/a.sh\n", true },
		{ "@daily /nowhere/cron-old/a.sh\n", false },
		{ "@daily /elsewhere/a.sh\n", false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct cron_entries list = { 0 };
		struct bad bad = { 0 };
		char *problem;

		crontab_read(cases[i].line, "crontab", NULL, &defaults, &list, on_bad, &bad);
		assert_int_equal(list.count, 1);
		problem = cron_entry_problem("/nowhere/cron", &list.items[0], "/bin");
		if ((problem != NULL) != cases[i].is_told)
			fail_msg("%s: %s", cases[i].line, problem ? problem : "nothing");
		free(problem);
		cron_entries_clear(&list);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_word_to_type),
		cmocka_unit_test(test_name_of_a_bad_line),
		cmocka_unit_test(test_good_file),
		cmocka_unit_test(test_bad_lines),
		cmocka_unit_test(test_environment),
		cmocka_unit_test(test_never_due),
		cmocka_unit_test(test_missing_file),
		cmocka_unit_test(test_scrontab),
		cmocka_unit_test(test_percent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
