/* SPDX-License-Identifier: MIT */
/* test_command.c - what a command of Slurm's says as it fails, whatever stands in front of it, and
 * what that amounts to. */
#include "tests/unit/unit.h"

#include <sys/stat.h>

#include "slurm/pipe/sbatch.h"
#include "slurm/pipe/words.h"

/* As a site's wrapper may greet; more than an answer holds, or than is read. */
#define GREETING(lines) \
	"i=0; while [ $i -lt " lines \
	" ]; do echo \"Welcome to this cluster, today is day $i\" >&2; " \
	"i=$((i + 1)); done\n"
#define SAYS(words) "echo 'sbatch: error: " words "' >&2\nexit 1\n"
#define FAILED "Batch job submission failed: "
#define LIMIT SAYS("AssocMaxSubmitJobLimit\nsbatch: error: " FAILED LIMIT_TEXT)
#define LIMIT_TEXT \
	"Job violates accounting/QOS policy (job submit limit, user'\"'\"'s size and/or time limits)"

static void run(const char *script, const char *says, struct said *said)
{
	char shell[] = "/bin/sh", option[] = "-c", path[] = "PATH=/usr/bin:/bin", text[1000];
	char *const words[] = { shell, option, text, NULL }, *const env[] = { path, NULL };

	snprintf(text, sizeof(text), "%s", script);
	command_run_once(words, env, NULL, says, said);
}

static void test_end_of_errors(void **state)
{
	static const char *const lines[] = { "2", "20", "900" };
	struct said said;

	(void)state;
	for (size_t i = 0; i < COUNT(lines); i++) {
		char script[1000];

		snprintf(script, sizeof(script), GREETING("%s") SAYS("no"), lines[i]);
		run(script, NULL, &said);
		assert_int_equal(said.status, 1);
		assert_string_equal(said.errors + strlen(said.errors) - 4, "; no");
		said_clear(&said);
	}
	run("seq 1 9000 | sed 's/.*/x/' >&2; echo sbatch: fatal: end >&2; exit 2", NULL, &said);
	assert_int_equal(said.status, 2);
	assert_string_equal(said.errors + strlen(said.errors) - 5, "; end");
	said_clear(&said);
}

static void test_ended_as_it_sleeps(void **state)
{
	struct said said;

	(void)state;
	run(GREETING("300") "echo sleeping and retrying >&2; sleep 10", "sleeping and retrying",
	    &said);
	assert_true(said.status < 0);
	assert_contains(said.errors, "sleeping and retrying");
	said_clear(&said);
}

static void test_sbatch(void **state)
{
	static const struct {
		const char *script;
		enum scheduler_result result;
		const char *text;
	} rows[] = {
		{ SAYS(FAILED "Invalid qos specification"), SCHEDULER_REFUSED, "Invalid qos" },
		{ GREETING("20") LIMIT, SCHEDULER_REFUSED, "accounting/QOS policy" },
		{ GREETING("20") LIMIT, SCHEDULER_REFUSED, "AssocMaxSubmitJobLimit; " },
		/* a wrapper may have more to say behind it */
		{ "(" LIMIT ")\n" GREETING("20") "exit 1\n", SCHEDULER_REFUSED,
		  "AssocMaxSubmitJobLimit; " FAILED },
		{ GREETING("900") SAYS(FAILED "Socket timed out on send/recv operation"),
		  SCHEDULER_UNCLEAR, "Socket timed out" },
		{ SAYS(FAILED "Incompatible versions of client and server code"), SCHEDULER_UNCLEAR,
		  "Incompatible" },
		{ SAYS(FAILED "MaxJobCount limit reached"), SCHEDULER_DOWN, "MaxJobCount" },
		{ SAYS(FAILED "Authentication credential expired"), SCHEDULER_UNCLEAR, "expired" },
		{ SAYS(FAILED "Received zero length message"), SCHEDULER_UNCLEAR, "zero" },
		/* a filter's own words: of no job */
		{ SAYS("Invalid job id specified"), SCHEDULER_REFUSED, "Invalid job id" },
		{ "exit 1", SCHEDULER_UNCLEAR, "without a word" },
	};
	json_t *request = json_object();

	(void)state;
	setenv("PATH", ".:/usr/bin:/bin", 1);
	write_text("scontrol", "#!/bin/sh\nexit 1\n");
	assert_int_equal(chmod("scontrol", 0700), 0);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct answer a = { .text = "" };
		char script[1000];

		snprintf(script, sizeof(script), "#!/bin/sh\n%s", rows[i].script);
		write_text("sbatch", script);
		assert_int_equal(chmod("sbatch", 0700), 0);
		assert_int_equal(sbatch_test(request, &a), -1);
		assert_int_equal(a.result, rows[i].result);
		assert_contains(a.text, rows[i].text);
	}
	json_decref(request);
}

/* Whatever other cluster its submitter works with, and however it was let in there. */
static void test_cluster_of_sbatch(void **state)
{
	static const char *const confs[] = { "/ours", "" };
	json_t *request = json_pack("{s:[s, s, s]}", "env", "SLURM_CONF=/theirs",
				    "SLURM_CONF_SERVER=theirs", "SLURM_JWT=expired");

	(void)state;
	write_text("sbatch", "#!/bin/sh\necho \"conf=$SLURM_CONF server=$SLURM_CONF_SERVER "
			     "jwt=$SLURM_JWT.\" >&2\nexit 1\n");
	for (size_t i = 0; i < COUNT(confs); i++) {
		struct answer a = { .text = "" };
		char want[100];

		snprintf(want, sizeof(want), "conf=%s server= jwt=%s.", confs[i], confs[i]);
		if (confs[i][0]) {
			setenv("SLURM_CONF", confs[i], 1);
			setenv("SLURM_JWT", confs[i], 1);
		} else {
			unsetenv("SLURM_CONF");
			unsetenv("SLURM_JWT");
		}
		assert_int_equal(sbatch_test(request, &a), -1);
		assert_contains(a.text, want);
	}
	json_decref(request);
}

/* Others of its federation would run the job, too. */
static void test_federation(void **state)
{
	json_t *request = json_object();
	struct answer a = { .text = "" };

	(void)state;
	write_text("sbatch", "#!/bin/sh\necho \"got $*\" >&2\nexit 1\n");
	assert_int_equal(sbatch_test(request, &a), -1);
	assert_null(strstr(a.text, "--clusters"));
	write_text("scontrol", "#!/bin/sh\n"
			       "echo 'Federation: both'\n"
			       "echo 'Self:       mini:127.0.0.1:6817 ID:1 FedState:ACTIVE'\n"
			       "echo 'Sibling:    maxi:127.0.0.1:6827 ID:2 FedState:ACTIVE'\n");
	assert_int_equal(sbatch_test(request, &a), -1);
	assert_contains(a.text, " --clusters=mini ");
	json_decref(request);
}

/* Whatever greets in front, people are told what it failed of. */
static void test_told_is_the_end(void **state)
{
	struct answer a = { .text = "" };
	struct said said = { .status = 1 };

	(void)state;
	snprintf(said.errors, sizeof(said.errors), "%600s; Access/permission denied", "Welcome");
	assert_int_equal(said_failed(&a, &said, true, "scancel"), -1);
	assert_int_equal(a.result, SCHEDULER_REFUSED);
	assert_contains(a.text, "Access/permission denied");
}

/* Of a command about a job the same words say that it is gone. */
static void test_gone(void **state)
{
	struct answer a = { .text = "" };
	struct said said = { .status = 1, .errors = "Invalid job id specified" };

	(void)state;
	assert_int_equal(said_failed(&a, &said, true, "scancel"), -1);
	assert_int_equal(a.result, SCHEDULER_GONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_end_of_errors),   cmocka_unit_test(test_ended_as_it_sleeps),
		cmocka_unit_test(test_sbatch),          cmocka_unit_test(test_cluster_of_sbatch),
		cmocka_unit_test(test_federation),      cmocka_unit_test(test_gone),
		cmocka_unit_test(test_told_is_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
