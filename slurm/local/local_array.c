/* SPDX-License-Identifier: MIT */
/* local_array.c - the tasks of an array: jobs of their own to the local scheduler, one job to
 * lbd. */
#include <stdlib.h>
#include <string.h>

#include "common/base/paths.h"
#include "slurm/local/local_jobs.h"
#include "slurm/batch/sbatch_values.h"

/* What lies between two indices, where it is the same everywhere; else 1, as in Slurm. */
static int64_t step_of(const struct sbatch_indices *tasks)
{
	int64_t step = tasks->count > 1 ? tasks->items[1] - tasks->items[0] : 1;

	for (size_t i = 2; i < tasks->count; i++)
		if (tasks->items[i] - tasks->items[i - 1] != step)
			return 1;
	return step;
}

/* The output of each task is its own. */
void local_job_make_task(struct local_job *job, const struct sbatch_indices *tasks,
			 uint32_t array_id, size_t at)
{
	const char *name = strrchr(job->output, '/');
	char *output;

	job->task = (struct local_task){
		.array_id = array_id,
		.index = tasks->items[at],
		.count = (int64_t)tasks->count,
		.lowest = tasks->items[0],
		.highest = tasks->items[tasks->count - 1],
		.step = step_of(tasks),
		.limit = tasks->limit,
	};
	output = path_join("%.*s/task-%lld%s", (int)(name - job->output), job->output,
			   (long long)job->task.index, name);
	free(job->output);
	job->output = output;
}

size_t local_jobs_together(struct local_job *const *sorted, size_t count)
{
	size_t n = 1;

	while (n < count && sorted[0]->task.array_id != 0 &&
	       sorted[n]->task.array_id == sorted[0]->task.array_id)
		n++;
	return n;
}

/* One that ends comes after those that wait: with all of them the array would be over. */
static int weight_of(const struct job_status *task)
{
	static const int weights[JOB_PHASE_COUNT] = {
		[JOB_RUNNING] = 4,
		[JOB_PENDING] = 3,
		[JOB_HELD] = 2,
		[JOB_ENDING] = 1,
	};

	return weights[task->phase];
}

static bool has_failed(const struct job_status *task)
{
	return task->phase >= JOB_ENDING && task->cause != CAUSE_COMPLETED;
}

void local_jobs_fold(struct local_job *const *tasks, size_t count, struct job_status *out)
{
	const struct job_status *failed = NULL;
	const struct local_job *shown = tasks[0];
	int64_t start = 0, end = 0;

	for (size_t i = 0; i < count; i++) {
		const struct job_status *task = &tasks[i]->status;

		if (weight_of(task) > weight_of(&shown->status))
			shown = tasks[i];
		if (!failed && has_failed(task))
			failed = task;
		if (task->start_time > 0 && (start == 0 || task->start_time < start))
			start = task->start_time;
		if (task->end_time > end)
			end = task->end_time;
	}
	*out = shown->status;
	if (out->phase == JOB_RUNNING && shown->time_seconds > 0)
		out->limit_time = out->start_time + shown->time_seconds;
	if (tasks[0]->task.array_id == 0)
		return;
	out->ref.job_id = tasks[0]->task.array_id;
	out->start_time = start;
	out->end_time = out->phase >= JOB_ENDING ? end : 0;
	if (out->phase < JOB_ENDING || !failed)
		return;
	out->cause = failed->cause;
	out->exit_code = failed->exit_code;
	out->signal = failed->signal;
}
