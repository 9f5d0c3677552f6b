/* SPDX-License-Identifier: MIT */
/* array_end.c - the last task of an array to end says how the attempt ended, also where all were
 * done before it. */
#include "worker/lbrun/end/array_end.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/paths.h"
#include "common/base/text.h"
#include "common/run/array_tasks.h"
#include "common/run/attempt.h"

const char *array_end_task(void)
{
	const char *task = getenv("SLURM_ARRAY_TASK_ID");

	return task && text_is_digits(task) ? task : NULL;
}

/* An order ends the run, and so does what a relaunch would meet again; what follows is what lbd
 * counts, or starts again for nothing. */
static int weight_of(const struct attempt_exit *e)
{
	static const int weights[CAUSE_COUNT] = {
		[CAUSE_KILLED] = 6,    [CAUSE_DIVERGED] = 4, [CAUSE_ERROR] = 3,
		[CAUSE_CRASH] = 3,     [CAUSE_OOM] = 3,      [CAUSE_HANG] = 3,
		[CAUSE_LOST] = 3,      [CAUSE_NONE] = 3,     [CAUSE_LAUNCH_FAIL] = 2,
		[CAUSE_NODE_FAIL] = 1, [CAUSE_TIMEOUT] = 1,  [CAUSE_PREEMPTED] = 1,
	};

	return e->is_final && weights[e->cause] < 5 ? 5 : weights[e->cause];
}

struct sum {
	struct attempt_exit worst;
	int64_t task; /* whose that is */
	int64_t ended, failed;
};

static void add(struct sum *sum, int64_t task, const struct attempt_exit *e)
{
	sum->ended++;
	if (e->cause == CAUSE_COMPLETED)
		return;
	if (sum->failed++ > 0 && weight_of(e) <= weight_of(&sum->worst))
		return;
	sum->worst = *e;
	sum->task = task;
}

/* Those that were done before this attempt. */
static int64_t count_done(const char *attempt)
{
	DIR *folder = opendir(attempt);
	const struct dirent *entry;
	int64_t count = 0;

	while (folder && (entry = readdir(folder)))
		count += strncmp(entry->d_name, "done-", strlen("done-")) == 0;
	if (folder)
		closedir(folder);
	return count;
}

static void add_tasks(struct sum *sum, const char *attempt, const int64_t *tasks, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		char *folder = path_join("%s/task-%lld", attempt, (long long)tasks[i]);
		struct attempt_exit e;

		if (attempt_exit_read(folder, &e, NULL) == 0)
			add(sum, tasks[i], &e);
		free(folder);
	}
}

/* For lbd, which tells of it while others still run. One that was ended by an order has not
 * failed. */
static void mark_own(const char *attempt)
{
	const char *task = array_end_task();
	char *folder = path_join("%s/task-%s", attempt, task ? task : "");
	struct attempt_exit e;

	if (task && attempt_exit_read(folder, &e, NULL) == 0 && e.cause != CAUSE_COMPLETED &&
	    e.cause != CAUSE_KILLED)
		array_task_failed(attempt, task);
	free(folder);
}

static void describe(const struct sum *sum, int64_t all, char *out, size_t size)
{
	int64_t others = sum->failed - 1;

	if (sum->failed == 0)
		snprintf(out, size, "all %lld tasks completed", (long long)all);
	else if (others == 0)
		snprintf(out, size, "task %lld: %.220s", (long long)sum->task, sum->worst.text);
	else
		snprintf(out, size, "task %lld: %.220s; %lld more did not complete",
			 (long long)sum->task, sum->worst.text, (long long)others);
}

void array_end_sum_up(const char *attempt, const char *token)
{
	const char *text = getenv("SLURM_ARRAY_TASK_COUNT");
	int64_t all = text ? strtoll(text, NULL, 10) : 0;
	struct sum sum = { .worst = { .cause = CAUSE_COMPLETED, .time_ms = clock_wall_ms() } };
	struct attempt_exit e;
	int64_t *tasks;
	size_t begun;

	mark_own(attempt);
	sum.ended = count_done(attempt);
	tasks = array_task_folders(attempt, &begun);
	/* ends are files, of which an array may have thousands: read once all have begun */
	if (sum.ended + (int64_t)begun >= all)
		add_tasks(&sum, attempt, tasks, begun);
	free(tasks);
	if (all <= 0 || sum.ended < all)
		return;
	e = sum.worst;
	describe(&sum, all, e.text, sizeof(e.text));
	snprintf(e.token, sizeof(e.token), "%s", token);
	e.last_seq = 0;
	attempt_exit_write(attempt, &e, NULL);
}
