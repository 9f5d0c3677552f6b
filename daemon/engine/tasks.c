/* SPDX-License-Identifier: MIT */
/* tasks.c - the tasks of an array that did not complete: people hear of each when it has ended,
 * not only when all others have, and once. What somebody cancelled is not run again. */
#include <stdlib.h>
#include <string.h>

#include "common/base/compare.h"
#include "common/base/mem.h"
#include "common/run/array_tasks.h"
#include "daemon/engine/decide/canceller.h"
#include "daemon/engine/state.h"

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
	return is_among_int64(run->failed_tasks, run->failed_count, task);
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
	bool is_last = run->failed_count + 1 == ARRAY_TOLD_SINGLY;

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
	for (size_t i = 0; i < count && run->failed_count < ARRAY_TOLD_SINGLY; i++) {
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

/* --- those that were cancelled ---------------------------------------------------------------- */

/* An order, or what lbd does by itself, cancels jobs, too. */
static bool may_be_anothers(const struct engine *e, const struct run *run)
{
	struct switched switched = { 0 };

	e->world->switched(e->world->self, run, &switched);
	return run->wanted == ORDER_RUN && run->state != RUN_STOPPING &&
	       switched.order == ORDER_RUN && run->attempt.signalled == 0 &&
	       run->attempt.cancel.state == CALL_NONE;
}

/* [task, had nodes, start, end, controller's start], or of one that had not begun only [task];
 * accounting tells the uid, too. */
static bool is_users(const struct run *run, const json_t *task)
{
	const json_t *uid = json_array_get(task, 5);
	struct cancelled c = {
		.has_uid = uid != NULL,
		.uid = (uint32_t)json_integer_value(uid),
		.node_uid = run->scheduler ? run->scheduler->node_uid : 0,
		.claimed = true,
		.had_nodes = json_is_true(json_array_get(task, 1)),
		.start_time = json_integer_value(json_array_get(task, 2)),
		.end_time = json_integer_value(json_array_get(task, 3)),
		.controller_start = json_integer_value(json_array_get(task, 4)),
		.submit_time = run->attempt.job.submit_time,
	};

	return canceller_is_user(&c);
}

/* "2, 4-6" */
static void list_tasks(struct buf *out, const int64_t *tasks, size_t count)
{
	size_t to;

	for (size_t from = 0; from < count; from = to) {
		for (to = from + 1; to < count && tasks[to] == tasks[to - 1] + 1; to++)
			;
		buf_addf(out, "%s%lld", from ? ", " : "", (long long)tasks[from]);
		if (to > from + 1)
			buf_addf(out, "-%lld", (long long)tasks[to - 1]);
	}
}

static void tell_cancelled(struct engine *e, struct run *run, const int64_t *tasks, size_t count)
{
	enum { TOLD_BYTES = 300 };
	struct buf list;

	buf_init(&list, TOLD_BYTES);
	list_tasks(&list, tasks, count);
	engine_event(e, run, "task_cancelled", "lbd",
		     "cancelled in Slurm: task%s %s; lbctl restart is what runs %s again",
		     count > 1 ? "s" : "", list.data, count > 1 ? "them" : "it");
	buf_fini(&list);
	e->written |= WROTE_LINES;
}

/* Ascending. */
static void note(struct engine *e, struct run *run, int64_t *tasks, size_t count)
{
	size_t news = 0;

	if (count > 0 && e->world->tasks_cancelled && may_be_anothers(e, run))
		news = e->world->tasks_cancelled(e->world->self, run, tasks, count);
	if (news == 0)
		return;
	tell_cancelled(e, run, tasks, news);
	run->attempt.has_exit = false; /* it was made anew */
	run->next_look_ms = 0;
	engine_wake(e, run);
}

void engine_note_cancelled(struct engine *e, struct run *run, const json_t *tasks)
{
	int64_t *cancelled = xcalloc(json_array_size(tasks) + 1, sizeof(cancelled[0]));
	const json_t *task;
	size_t count = 0, i;

	json_array_foreach(tasks, i, task)
		if (is_users(run, task))
			cancelled[count++] = json_integer_value(json_array_get(task, 0));
	qsort(cancelled, count, sizeof(cancelled[0]), compare_int64);
	note(e, run, cancelled, count);
	free(cancelled);
}

/* Slurm itself cancels those whose dependency failed. */
static bool may_depend(const struct engine *e, const struct run *run)
{
	return e->world->depends && e->world->depends(e->world->self, run);
}

void engine_note_unknown(struct engine *e, struct run *run, const json_t *known)
{
	size_t known_count = json_array_size(known), count = 0, unknown = 0, i;
	int64_t *had = xcalloc(known_count + 1, sizeof(had[0])), *tasks = NULL;
	const json_t *task;

	json_array_foreach(known, i, task)
		had[i] = json_integer_value(task);
	qsort(had, known_count, sizeof(had[0]), compare_int64);
	if (known_count > 0 && e->world->tasks_unbegun && !may_depend(e, run))
		tasks = e->world->tasks_unbegun(e->world->self, run, &count);
	for (i = 0; i < count; i++)
		if (!is_among_int64(had, known_count, tasks[i]))
			tasks[unknown++] = tasks[i];
	/* else it has not heard yet of some that began */
	if ((int64_t)(known_count + unknown) == run->target_step)
		note(e, run, tasks, unknown);
	free(tasks);
	free(had);
}
