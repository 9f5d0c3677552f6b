/* SPDX-License-Identifier: MIT */
/* test_local_jobs.c - what the tasks of an array are together, and what is left of one that was
 * half written. */
#include <unistd.h>

#include "slurm/local/local_jobs.h"
#include "tests/unit/unit.h"

/* --- the fold --------------------------------------------------------------------------------- */

struct seen {
	enum job_phase phase;
	enum cause cause;
	int exit_code;
	int64_t start, end;
};

/* clang-format off */
static const struct {
	const char *what;
	size_t count;
	struct seen tasks[4], all;
} folds[] = {
	{ "all are held", 2, { { JOB_HELD, 0, -1, 0, 0 }, { JOB_HELD, 0, -1, 0, 0 } },
	  { JOB_HELD, 0, -1, 0, 0 } },
	{ "one runs, the rest waits", 3,
	  { { JOB_PENDING, 0, -1, 0, 0 }, { JOB_RUNNING, 0, -1, 5, 0 }, { JOB_PENDING, 0, -1, 0, 0 } },
	  { JOB_RUNNING, 0, -1, 5, 0 } },
	{ "one has failed, one runs", 2,
	  { { JOB_ENDED, CAUSE_ERROR, 1, 3, 4 }, { JOB_RUNNING, 0, -1, 5, 0 } },
	  { JOB_RUNNING, 0, -1, 3, 0 } },
	{ "one ends, one waits: it is not over", 2,
	  { { JOB_ENDING, CAUSE_COMPLETED, 0, 3, 4 }, { JOB_PENDING, 0, -1, 0, 0 } },
	  { JOB_PENDING, 0, -1, 3, 0 } },
	{ "one ends after one that failed", 2,
	  { { JOB_ENDED, CAUSE_CRASH, -1, 3, 4 }, { JOB_ENDING, CAUSE_COMPLETED, 0, 2, 9 } },
	  { JOB_ENDING, CAUSE_CRASH, -1, 2, 9 } },
	{ "all have completed", 2,
	  { { JOB_ENDED, CAUSE_COMPLETED, 0, 3, 8 }, { JOB_ENDED, CAUSE_COMPLETED, 0, 2, 4 } },
	  { JOB_ENDED, CAUSE_COMPLETED, 0, 2, 8 } },
	{ "one of three has failed", 3,
	  { { JOB_ENDED, CAUSE_COMPLETED, 0, 3, 8 }, { JOB_ENDED, CAUSE_ERROR, 7, 2, 4 },
	    { JOB_ENDED, CAUSE_COMPLETED, 0, 3, 8 } },
	  { JOB_ENDED, CAUSE_ERROR, 7, 2, 8 } },
};
/* clang-format on */

static void fold(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(folds); i++) {
		const struct seen *want = &folds[i].all;
		struct local_job jobs[4] = { 0 }, *list[4];
		struct job_status got;

		for (size_t t = 0; t < folds[i].count; t++) {
			const struct seen *task = &folds[i].tasks[t];

			list[t] = &jobs[t];
			jobs[t].task.array_id = 40;
			jobs[t].status = (struct job_status){
				.ref.job_id = 40 + (uint32_t)t,
				.phase = task->phase,
				.cause = task->cause,
				.exit_code = task->exit_code,
				.start_time = task->start,
				.end_time = task->end,
			};
		}
		local_jobs_fold(list, folds[i].count, &got);
		if (got.ref.job_id != 40 || got.phase != want->phase || got.cause != want->cause ||
		    got.exit_code != want->exit_code || got.start_time != want->start ||
		    got.end_time != want->end)
			fail_msg("%s: job %u, phase %d, cause %d, exit code %d, %lld to %lld",
				 folds[i].what, got.ref.job_id, got.phase, got.cause, got.exit_code,
				 (long long)got.start_time, (long long)got.end_time);
	}
}

/* --- records ---------------------------------------------------------------------------------- */

static char setting[] = "A=b";
static char *const env[] = { setting, NULL };

static struct local_job *add(struct local_jobs *jobs, const char *array)
{
	struct err err = { 0 };
	json_t *fields = json_pack("{s:s,s:s*}", "work_dir", "/x", "array_inx", array);
	const struct job_request request = {
		.token = "00112233445566778899aabbccddeeff",
		.ledger_id = "00112233445566aa",
		.fields = fields,
		.script_path = "/x/job.sh",
		.output = "/x/out.log",
		.env = env,
	};
	struct local_job *job = local_jobs_add(jobs, &request, &err);

	json_decref(fields);
	return job;
}

static size_t count_jobs(const struct local_jobs *jobs)
{
	size_t count;

	free(local_jobs_sorted(jobs, &count));
	return count;
}

static void open_jobs(struct local_jobs *jobs)
{
	struct err err = { 0 };

	assert_int_equal(local_jobs_init(jobs, "jobs", &err), 0);
}

static void reopen(struct local_jobs *jobs)
{
	local_jobs_fini(jobs);
	open_jobs(jobs);
}

static void records(void **state)
{
	struct local_jobs jobs;
	struct local_job **list;
	size_t count;

	(void)state;
	open_jobs(&jobs);
	assert_int_equal(add(&jobs, NULL)->status.ref.job_id, 1);
	assert_int_equal(add(&jobs, "9, 1-3,,2,%2")->status.ref.job_id, 2);
	reopen(&jobs);
	list = local_jobs_sorted(&jobs, &count);
	assert_int_equal(count, 5);
	assert_int_equal(local_jobs_together(list, count), 1);
	assert_int_equal(local_jobs_together(list + 1, count - 1), 4);
	for (size_t i = 0; i < 4; i++) {
		static const int64_t indices[] = { 1, 2, 3, 9 };
		const struct local_task *task = &list[i + 1]->task;

		assert_int_equal(task->array_id, 2);
		assert_int_equal(task->index, indices[i]);
		assert_int_equal(task->count, 4);
		assert_int_equal(task->lowest, 1);
		assert_int_equal(task->highest, 9);
		assert_int_equal(task->step, 1);
		assert_int_equal(task->limit, 2);
	}
	assert_string_equal(list[4]->output, "/x/task-9/out.log");
	free(list);
	local_jobs_fini(&jobs);
}

/* lbd died between two records. */
static void half_written(void **state)
{
	struct local_jobs jobs;
	struct err err = { 0 };
	struct local_job *job;

	(void)state;
	open_jobs(&jobs);
	assert_int_equal(count_jobs(&jobs), 5);
	assert_int_equal(unlink("jobs/5.json"), 0);
	reopen(&jobs);
	assert_int_equal(count_jobs(&jobs), 1);
	assert_int_equal(access("jobs/2.json", F_OK), -1);
	/* It was released meanwhile: it is no part of a submission. */
	job = add(&jobs, "1-2");
	assert_int_equal(job->status.ref.job_id, 6);
	local_job_wait(job);
	assert_int_equal(local_job_save(&jobs, job, &err), 0);
	reopen(&jobs);
	assert_int_equal(count_jobs(&jobs), 3);
	assert_int_equal(local_jobs_find_id(&jobs, 7)->status.phase, JOB_PENDING);
	local_jobs_fini(&jobs);
}

static void not_an_array(void **state)
{
	static const char *const bad[] = { "", "x", "3-1", "1-3:0", "1-2000", ",", "1-3%a" };
	struct local_jobs jobs;

	(void)state;
	open_jobs(&jobs);
	for (size_t i = 0; i < COUNT(bad); i++)
		if (add(&jobs, bad[i]))
			fail_msg("\"%s\" is taken for indices", bad[i]);
	local_jobs_fini(&jobs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fold),
		cmocka_unit_test(records),
		cmocka_unit_test(half_written),
		cmocka_unit_test(not_an_array),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
