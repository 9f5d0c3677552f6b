/* SPDX-License-Identifier: MIT */
/* checker_arrays.c - of an array: what is done is not done again, what somebody cancelled is not
 * run again, and it is over when all of its tasks are. */
#include "tests/sim/checker_internal.h"
#include "tests/sim/run_numbers.h"

enum { PROVEN_MS = 4 * 60 * 1000 }; /* Slurm itself cancels nothing that has run for so long */

struct view *owner_of(struct check *c, int run)
{
	return &c->views[run_of(run)];
}

static struct view *task_view(struct check *c, const struct fact *f, int task)
{
	return &c->views[task_number(f->run, task)];
}

/* lbd was there, and so was Slurm, from before until it had asked twice: it has heard. */
static bool was_heard(const struct check *c, const struct view *run, const struct view *task,
		      int64_t now_ms)
{
	int64_t around_ms = 2 * c->end->idle_ms + SLACK_MS;

	return c->is_up && c->up_since_ms < task->cancelled_ms - around_ms &&
	       c->trouble_ms < task->cancelled_ms - around_ms && c->full_ms == 0 &&
	       c->full_change_ms < task->cancelled_ms && run->wanted == ORDER_RUN &&
	       now_ms > task->cancelled_ms + around_ms;
}

static void on_attempt_ended(struct check *c, const struct fact *f)
{
	const struct view *run = owner_of(c, f->run);

	for (int i = 0; i < TASKS; i++) {
		struct view *task = task_view(c, f, i);
		bool is_new = task->cancelled_ms > 0 && task->cancelled_attempt == f->attempt;

		if (is_new && was_heard(c, run, task, f->at_ms))
			task->is_cancelled = true;
		/* lbd gives up what the scheduler has lost, too */
		if (f->a == CAUSE_KILLED && !run->may_be_ended && !is_new &&
		    attempt_of(task, f->attempt)->is_training &&
		    !attempt_of(task, f->attempt)->is_over)
			broken(c, f->run, f->at_ms,
			       "a task was ended for others that were cancelled");
	}
}

static void on_run_moved(struct check *c, const struct fact *f)
{
	bool is_done = true;

	for (int i = 0; i < TASKS; i++) {
		struct view *task = task_view(c, f, i);

		is_done &= task->is_done;
		if (f->a == RUN_CREATED && owner_of(c, f->run)->final_ms > 0) {
			task->is_cancelled = false;
			task->cancelled_ms = 0;
		}
	}
	if (f->a == RUN_COMPLETED && !is_done)
		broken(c, f->run, f->at_ms, "an array is called completed, but not all tasks are");
	owner_of(c, f->run)->completed |= is_done;
}

static void on_task_fact(struct check *c, struct view *v, const struct fact *f)
{
	struct view *run = owner_of(c, f->run);

	switch ((enum fact_kind)f->kind) {
	case FACT_TASK_DONE:
		v->is_done = true;
		v->is_cancelled = false;
		v->cancelled_ms = 0; /* too late */
		run->bad = 0;
		break;
	case FACT_TASK_CANCELLED:
		run->may_be_killed = true;
		/* of one that waits behind another lbd makes a new job */
		if (f->attempt == run->attempt && (f->a == 0 || f->b > PROVEN_MS)) {
			v->cancelled_ms = f->at_ms;
			v->cancelled_attempt = f->attempt;
		}
		break;
	case FACT_JOB_OVER:
		attempt_of(v, f->attempt)->is_over = true;
		break;
	case FACT_TRAINER_STARTED:
		attempt_of(v, f->attempt)->is_over = false;
		if (v->is_done)
			broken(c, f->run, f->at_ms, "a task that was done was run again");
		if (v->is_cancelled)
			broken(c, f->run, f->at_ms, "a task that was cancelled was run again");
		break;
	case FACT_TRAINER_ENDED:
		run->may_fail |= f->b / 1000 % 10 == 1;
		break;
	default:
		break;
	}
}

void check_array(struct check *c, struct view *v, const struct fact *f)
{
	if (task_of(f->run) >= 0) {
		on_task_fact(c, v, f);
		return;
	}
	if (f->kind == FACT_INTENT)
		v->attempt = f->attempt;
	if (f->kind == FACT_ARRAY)
		v->is_array = true;
	if (!v->is_array)
		return;
	if (f->kind == FACT_ENDED)
		on_attempt_ended(c, f);
	else if (f->kind == FACT_MOVED)
		on_run_moved(c, f);
	else if (f->kind == FACT_JOB_CANCELLED || (f->kind == FACT_WANTED && f->a > ORDER_RUN))
		v->may_be_ended = true;
}
