/* SPDX-License-Identifier: MIT */
/* array_end.c - the ends of an array's tasks make that of the attempt. */
#include "common/run/array_end.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/compare.h"
#include "common/base/files.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/text.h"
#include "common/run/array_tasks.h"
#include "common/run/attempt.h"

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
	int64_t task;    /* whose that is */
	int64_t time_ms; /* of the last */
	int64_t ended, failed;
	bool is_unclear; /* of one nobody knows yet why it ended */
};

static void add(struct sum *sum, int64_t task, const struct attempt_exit *e)
{
	sum->ended++;
	if (e->time_ms > sum->time_ms)
		sum->time_ms = e->time_ms;
	if (e->cause == CAUSE_COMPLETED)
		return;
	sum->is_unclear |= e->cause == CAUSE_LOST;
	if (sum->failed++ > 0 && weight_of(e) <= weight_of(&sum->worst))
		return;
	sum->worst = *e;
	sum->task = task;
}

/* Those that were not to run in this attempt. */
static int64_t count_done(const char *attempt)
{
	DIR *folder = opendir(attempt);
	const struct dirent *entry;
	int64_t count = 0;

	while (folder && (entry = readdir(folder)))
		count += text_begins_with(entry->d_name, "done-");
	if (folder)
		closedir(folder);
	return count;
}

struct tasks {
	int64_t *items; /* sorted; owned */
	size_t count;
};

static bool was_left_out(const char *attempt, int64_t task)
{
	char *mark = path_join("%s/done-%lld", attempt, (long long)task);
	bool was = file_exists(mark);

	free(mark);
	return was;
}

size_t array_unbegun(const char *attempt, int64_t *tasks, size_t count)
{
	struct tasks begun;
	size_t unbegun = 0;

	begun.items = array_task_folders(attempt, &begun.count);
	for (size_t i = 0; i < count; i++)
		if (!is_among_int64(begun.items, begun.count, tasks[i]) &&
		    !was_left_out(attempt, tasks[i]))
			tasks[unbegun++] = tasks[i];
	free(begun.items);
	return unbegun;
}

static size_t count_unbegun(const char *attempt, const struct tasks *of)
{
	int64_t *tasks = xcalloc(of->count + 1, sizeof(tasks[0]));
	size_t count;

	for (size_t i = 0; i < of->count; i++)
		tasks[i] = of->items[i];
	count = array_unbegun(attempt, tasks, of->count);
	free(tasks);
	return count;
}

static void add_tasks(struct sum *sum, const char *attempt, const struct tasks *begun,
		      const struct tasks *cancelled)
{
	for (size_t i = 0; i < begun->count; i++) {
		int64_t task = begun->items[i];
		char *folder = path_join("%s/task-%lld", attempt, (long long)task);
		struct attempt_exit e;

		if (was_left_out(attempt, task))
			; /* begun once more when it was done: it is counted already */
		else if (is_among_int64(cancelled->items, cancelled->count, task))
			sum->ended++;
		else if (attempt_exit_read(folder, &e, NULL) == 0)
			add(sum, task, &e);
		free(folder);
	}
}

static void describe(const struct sum *sum, int64_t all, size_t cancelled, char *out, size_t size)
{
	int64_t others = sum->failed - 1;

	if (sum->failed == 0 && cancelled > 0)
		snprintf(out, size,
			 "%zu of %lld tasks were cancelled in Slurm; lbctl restart runs them",
			 cancelled, (long long)all);
	else if (sum->failed == 0)
		snprintf(out, size, "all %lld tasks completed", (long long)all);
	else if (others == 0)
		snprintf(out, size, "task %lld: %.220s", (long long)sum->task, sum->worst.text);
	else
		snprintf(out, size, "task %lld: %.220s; %lld more did not complete",
			 (long long)sum->task, sum->worst.text, (long long)others);
}

static void write_end(const struct sum *sum, const char *attempt, int64_t all, size_t cancelled,
		      const char *token)
{
	struct attempt_exit e = sum->worst;

	if (sum->failed == 0 && cancelled > 0) {
		e.cause = CAUSE_KILLED;
		e.exit_code = -1;
	}
	describe(sum, all, cancelled, e.text, sizeof(e.text));
	snprintf(e.token, sizeof(e.token), "%s", token);
	e.last_seq = 0;
	if (sum->time_ms > 0)
		e.time_ms = sum->time_ms;
	e.is_unclear = sum->is_unclear;
	attempt_exit_write(attempt, &e, NULL);
}

void array_end_write(const char *attempt, int64_t all, const char *token)
{
	char *run_dir = path_join("%s/../..", attempt);
	struct sum sum = {
		.worst = { .cause = CAUSE_COMPLETED, .time_ms = clock_wall_ms() },
		.ended = count_done(attempt),
	};
	struct tasks begun, cancelled;

	cancelled.items = array_tasks_cancelled(run_dir, &cancelled.count);
	begun.items = array_task_folders(attempt, &begun.count);
	/* of those that were cancelled before they began nothing else tells */
	sum.ended += (int64_t)count_unbegun(attempt, &cancelled);
	/* ends are files, of which an array may have thousands: read once all have begun */
	if (sum.ended + (int64_t)begun.count >= all)
		add_tasks(&sum, attempt, &begun, &cancelled);
	if (all > 0 && sum.ended >= all)
		write_end(&sum, attempt, all, cancelled.count, token);
	free(begun.items);
	free(cancelled.items);
	free(run_dir);
}
