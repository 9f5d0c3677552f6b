/* SPDX-License-Identifier: MIT */
/* tasks.c - the tasks of an array that did not complete: people hear of each when it has ended, not
 * only when all others have, and once. */
#include <stdlib.h>
#include <string.h>

#include "common/base/compare.h"
#include "common/base/mem.h"
#include "daemon/engine/state.h"

enum { TOLD_SINGLY = 100 }; /* in an attempt; its end says how many there are */

static const char kind[] = "task_failed";

static void remember(struct run *run, int64_t task)
{
	run->failed_tasks = xrealloc(run->failed_tasks,
				     (run->failed_count + 1) * sizeof(run->failed_tasks[0]));
	run->failed_tasks[run->failed_count++] = task;
	qsort(run->failed_tasks, run->failed_count, sizeof(int64_t), compare_int64);
}

static bool is_remembered(const struct run *run, int64_t task)
{
	return run->failed_count > 0 && bsearch(&task, run->failed_tasks, run->failed_count,
						sizeof(int64_t), compare_int64) != NULL;
}

static int recall_event(const struct ledger_event *event, void *arg)
{
	static const char before[] = "task ";
	const size_t skipped = sizeof(before) - 1;
	struct run *run = arg;

	if (event->attempt == run->attempt.number && strcmp(event->kind, kind) == 0 &&
	    strncmp(event->text, before, skipped) == 0)
		remember(run, strtoll(event->text + skipped, NULL, 10));
	return 0;
}

/* What an lbd before this one has told. */
static void begin_attempt(struct engine *e, struct run *run)
{
	struct err err = { 0 };

	run->failed_attempt = run->attempt.number;
	run->failed_count = 0;
	run->failed_changed_ns = 0;
	if (!run->attempt.fresh)
		engine_wrote(e,
			     ledger_event_each(e->ledger, run->id, 0, INT64_MAX, recall_event, run,
					       &err),
			     &err);
}

static void tell(struct engine *e, struct run *run, int64_t task, const struct attempt_exit *exit)
{
	bool is_last = run->failed_count + 1 == TOLD_SINGLY;

	engine_event(e, run, kind, "lbrun", "task %lld: %s%s%s%s", (long long)task,
		     cause_name(exit->cause), exit->text[0] ? ": " : "", exit->text,
		     is_last ? "; others that fail in this attempt are not told of one by one"
			     : "");
	e->written |= WROTE_LINES;
}

void engine_tell_failed_tasks(struct engine *e, struct run *run)
{
	struct attempt_exit exit;
	int64_t *tasks;
	size_t count;

	if (!run->spec.script || !e->world->failed_tasks)
		return;
	if (run->failed_attempt != run->attempt.number)
		begin_attempt(e, run);
	tasks = e->world->failed_tasks(e->world->self, run, &run->failed_changed_ns, &count);
	for (size_t i = 0; i < count && run->failed_count < TOLD_SINGLY; i++) {
		if (is_remembered(run, tasks[i]))
			continue;
		if (!e->world->task_ended(e->world->self, run, tasks[i], &exit)) {
			run->failed_changed_ns = 0; /* its word does not show here yet */
			continue;
		}
		tell(e, run, tasks[i], &exit);
		remember(run, tasks[i]);
	}
	free(tasks);
}
