/* SPDX-License-Identifier: MIT */
/* test_lbrun_own_call.c - which calls of scontrol and sbatch mean their own job. */
#include "tests/unit/unit.h"

#include "common/base/shell_words.h"
#include "common/base/strv.h"
#include "worker/lbrun/trainer/own_call.h"

static const char text[] = "#!/bin/bash\nsbatch $0\n";

/* The script as it runs, where it lay, changed since, a copy of it and another one. */
static int write_scripts(void **state)
{
	(void)state;
	write_text("slurm_script", text);
	write_text("train.slurm", "#!/bin/bash\n# changed\nsbatch $0\n");
	write_text("copy.slurm", text);
	write_text("eval.slurm", "#!/bin/bash\n");
	return 0;
}

static void submissions_of_this_script(void **state)
{
	char *const with[] = { TEXT("a"), TEXT("b c"), NULL };
	const struct {
		const char *call;
		enum own_submission is;
		const char *task; /* of an array */
		char *const *arguments;
	} cases[] = {
		{ "sbatch slurm_script", SUBMISSION_NEXT, NULL, NULL },
		{ "sbatch ./train.slurm", SUBMISSION_NEXT, NULL, NULL },
		{ "sbatch copy.slurm", SUBMISSION_NEXT, NULL, NULL },
		{ "sbatch --parsable -d afterany:12 -t 10 slurm_script", SUBMISSION_NEXT, NULL,
		  NULL },
		{ "sbatch --dependency=singleton --export=ALL slurm_script", SUBMISSION_NEXT, NULL,
		  NULL },
		{ "sbatch slurm_script a 'b c'", SUBMISSION_NEXT, NULL, with },
		{ "sbatch --array=3 slurm_script", SUBMISSION_NEXT, "3", NULL },
		{ "sbatch -a3 slurm_script", SUBMISSION_NEXT, "3", NULL },
		/* brought back by lbd, if that comes to pass, and by nobody otherwise */
		{ "sbatch --dependency=afternotok:12 slurm_script", SUBMISSION_IF_FAILED, NULL,
		  NULL },
		{ "sbatch -dafternotok:12 slurm_script", SUBMISSION_IF_FAILED, NULL, NULL },
		/* another job */
		{ "sbatch eval.slurm", SUBMISSION_OTHER, NULL, NULL },
		{ "sbatch eval.slurm slurm_script", SUBMISSION_OTHER, NULL, NULL },
		{ "sbatch missing.slurm", SUBMISSION_OTHER, NULL, NULL },
		{ "sbatch slurm_script a", SUBMISSION_BESIDE, NULL, NULL },
		{ "sbatch slurm_script", SUBMISSION_BESIDE, NULL, with },
		{ "sbatch slurm_script a b c", SUBMISSION_BESIDE, NULL, with },
		{ "sbatch --export=N=2 slurm_script", SUBMISSION_OTHER, NULL, NULL },
		{ "sbatch --export N=2 slurm_script", SUBMISSION_OTHER, NULL, NULL },
		{ "sbatch --begin=now+1day slurm_script", SUBMISSION_OTHER, NULL, NULL },
		{ "sbatch -b now+1day slurm_script", SUBMISSION_OTHER, NULL, NULL },
		{ "sbatch --array=0-3 slurm_script", SUBMISSION_OTHER, NULL, NULL },
		{ "sbatch -a 4 slurm_script", SUBMISSION_OTHER, "3", NULL },
		/* none at all */
		{ "sbatch --test-only slurm_script", SUBMISSION_OTHER, NULL, NULL },
		{ "sbatch --wrap='sh slurm_script'", SUBMISSION_OTHER, NULL, NULL },
		{ "sbatch", SUBMISSION_OTHER, NULL, NULL },
	};
	char *const none[] = { NULL };

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct own_job job = {
			.id = "12",
			.array_task = cases[i].task,
			.script = "slurm_script",
			.lay_at = "train.slurm",
			.arguments = cases[i].arguments ? cases[i].arguments : none,
		};
		char **argv = shell_words(cases[i].call, NULL);

		assert_non_null(argv);
		if (own_submission(argv, &job) != cases[i].is)
			fail_msg("%s", cases[i].call);
		strv_free(argv);
	}
}

/* "sbatch <$0" */
static void submissions_of_its_input(void **state)
{
	char *const none[] = { NULL }, *const with[] = { TEXT("a"), NULL };
	const struct {
		const char *call, *input;
		char *const *arguments;
		enum own_submission is;
	} cases[] = {
		{ "sbatch", "slurm_script", none, SUBMISSION_NEXT },
		{ "sbatch -J again", "train.slurm", none, SUBMISSION_NEXT },
		{ "sbatch", "eval.slurm", none, SUBMISSION_OTHER },
		{ "sbatch", "slurm_script", with, SUBMISSION_BESIDE },
		{ "sbatch eval.slurm", "slurm_script", none, SUBMISSION_OTHER },
		{ "sbatch", "/dev/null", none, SUBMISSION_OTHER },
		{ "sbatch", NULL, none, SUBMISSION_OTHER },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct own_job job = {
			.script = "slurm_script",
			.lay_at = "train.slurm",
			.input = cases[i].input,
			.arguments = cases[i].arguments,
		};
		char **argv = shell_words(cases[i].call, NULL);

		assert_non_null(argv);
		if (own_submission(argv, &job) != cases[i].is)
			fail_msg("%s <%s", cases[i].call, cases[i].input);
		strv_free(argv);
	}
}

static void requeues_of_this_job(void **state)
{
	static const struct {
		const char *call;
		enum own_requeue is;
	} cases[] = {
		{ "scontrol requeue 12", REQUEUE_OWN },
		{ "scontrol -Q REQ jobid=12", REQUEUE_OWN },
		{ "scontrol requeue 10_3", REQUEUE_OWN },
		{ "scontrol requeuehold 12", REQUEUE_OWN_HELD },
		{ "scontrol RequeueHold 10_3", REQUEUE_OWN_HELD },
		{ "scontrol requeuehold State=SpecialExit 12", REQUEUE_OWN_HELD },
		{ "scontrol requeue Incomplete 12", REQUEUE_OWN },
		{ "scontrol requeue 13", REQUEUE_OTHER },
		{ "scontrol requeue 12 13", REQUEUE_OTHER },
		{ "scontrol requeue", REQUEUE_OTHER },
		{ "scontrol requeuehold 13", REQUEUE_OTHER },
		{ "scontrol requeuehold State=SpecialExit", REQUEUE_OTHER },
		{ "scontrol requeueh 12", REQUEUE_OTHER },
		{ "scontrol show job 12", REQUEUE_OTHER },
		{ "scontrol", REQUEUE_OTHER },
	};
	const struct own_job job = { .id = "12", .array_id = "10", .array_task = "3" };

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		char **argv = shell_words(cases[i].call, NULL);

		assert_non_null(argv);
		if (own_requeue(argv, &job) != cases[i].is)
			fail_msg("%s", cases[i].call);
		strv_free(argv);
	}
}

/* "scontrol requeue $SLURM_JOB_ID" where there is no such variable. */
static void requeues_without_number(void **state)
{
	static const struct {
		const char *call;
		enum own_requeue is;
	} cases[] = {
		{ "scontrol requeue", REQUEUE_OWN },
		{ "scontrol requeue ''", REQUEUE_OWN },
		{ "scontrol requeuehold State=SpecialExit ''", REQUEUE_OWN_HELD },
		{ "scontrol requeue 10_3", REQUEUE_OWN },
		{ "scontrol requeue 7", REQUEUE_OTHER },
		{ "scontrol show job", REQUEUE_OTHER },
	};
	const struct own_job job = {
		.id = "12", .array_id = "10", .array_task = "3", .is_unnumbered = true
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		char **argv = shell_words(cases[i].call, NULL);

		assert_non_null(argv);
		if (own_requeue(argv, &job) != cases[i].is)
			fail_msg("%s", cases[i].call);
		strv_free(argv);
	}
}

static void cancels(void **state)
{
	static const struct {
		const char *call;
		enum own_cancel is;
	} cases[] = {
		{ "scancel 012", CANCEL_NEXT },     { "scancel -Q 012", CANCEL_NEXT },
		{ "scancel 12", CANCEL_OWN },       { "scancel --quiet 12", CANCEL_OWN },
		{ "scancel 13", CANCEL_OTHER },     { "scancel 0012", CANCEL_OTHER },
		{ "scancel 012 13", CANCEL_OTHER }, { "scancel -s USR1 12", CANCEL_OTHER },
		{ "scancel 12.0", CANCEL_OTHER },   { "scancel -u ada", CANCEL_OTHER },
		{ "scancel", CANCEL_OTHER },
	};
	static const struct own_job job = { .id = "12" };
	char *next = own_next_number(&job);

	(void)state;
	assert_string_equal(next, "012");
	free(next);
	for (size_t i = 0; i < COUNT(cases); i++) {
		char **argv = shell_words(cases[i].call, NULL);

		assert_non_null(argv);
		if (own_cancel(argv, &job) != cases[i].is)
			fail_msg("%s", cases[i].call);
		strv_free(argv);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(submissions_of_this_script),
		cmocka_unit_test(submissions_of_its_input),
		cmocka_unit_test(requeues_of_this_job),
		cmocka_unit_test(requeues_without_number),
		cmocka_unit_test(cancels),
	};

	return cmocka_run_group_tests(tests, write_scripts, NULL);
}
