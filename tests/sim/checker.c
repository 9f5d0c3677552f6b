/* SPDX-License-Identifier: MIT */
/* checker.c - the promises, each as a rule over the history. It knows nothing of how lbd works.
 *
 * The fencing window: an lbrun looks for newer claims every 2 s, so one that was frozen and thaws
 * may let its trainer go on for that long beside the new one; otherwise there is no overlap. */
#include "tests/sim/checker_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "tests/sim/run_numbers.h"

enum {
	FENCE_MS = 3 * 1000,    /* two trainers of one run at most for so long */
	STOPPED_MS = 60 * 1000, /* a run that is over has no trainer after this */
	AVOIDED_MS = 2 * 3600 *
		     1000,         /* a node that failed is kept away from for longer than this */
	RECORD_MS = 5 * 1000,      /* until lbd has seen the record of a job that is over */
	ENDING_MS = 45 * 1000,     /* as long it may wait for one */
	LAST_WORDS_MS = 10 * 1000, /* lbrun waits for a full disk so long at least */
	LONG_MS = 10 * 60 * 1000,  /* Slurm itself cancels no job that has run for so long */
	LEAVE_MS = 30 * 60 * 1000, /* for two checkpoints and the end of a job */
	HISTORY_LINES = 100,
	STORY_LINES = 3, /* broken promises told in full */
};

void broken(struct check *c, int run, int64_t at_ms, const char *promise)
{
	if (c->broken++ >= STORY_LINES)
		return;
	fprintf(c->out, "seed %llu: run r%02d", (unsigned long long)c->end->seed, run_of(run));
	if (task_of(run) >= 0)
		fprintf(c->out, ", task %d", task_of(run));
	fprintf(c->out, ": %s\n", promise);
	history_print(c->history, run, at_ms, HISTORY_LINES, c->out);
}

struct attempt_view *attempt_of(struct view *v, int64_t number)
{
	if (number >= v->count) {
		int64_t count = 2 * number + 8;

		v->attempts = xrealloc(v->attempts, (size_t)count * sizeof(*v->attempts));
		memset(v->attempts + v->count, 0,
		       (size_t)(count - v->count) * sizeof(*v->attempts));
		v->count = count;
	}
	return &v->attempts[number];
}

static int64_t uptime(const struct check *c, int64_t now_ms)
{
	return c->up_ms + (c->is_up ? now_ms - c->up_since_ms : 0);
}

/* --- trainers --------------------------------------------------------------------------------- */

static void on_trainer(struct check *c, struct view *v, const struct fact *f, int change)
{
	struct attempt_view *a = attempt_of(v, f->attempt);
	const struct view *run = owner_of(c, f->run);

	v->trainers += change;
	if (v->trainers > 1 && v->both_ms == 0)
		v->both_ms = f->at_ms;
	if (v->trainers <= 1 && v->both_ms != 0) {
		/* one that was frozen needs a moment to see that it has lost the run */
		if (f->at_ms - v->both_ms > (f->at_ms - v->thawed_ms <= FENCE_MS ? FENCE_MS : 0))
			broken(c, f->run, f->at_ms, "two trainers at the same time");
		v->both_ms = 0;
	}
	if (change > 0 && run->final_ms && f->kind == FACT_TRAINER_STARTED)
		broken(c, f->run, f->at_ms, "a trainer was started although the run is over");
	if (v->must_not_run && f->kind == FACT_TRAINER_STARTED)
		broken(c, f->run, f->at_ms, "a run began although what it depends on failed");
	if (change > 0 && run->state == RUN_HELD && f->kind == FACT_TRAINER_STARTED)
		broken(c, f->run, f->at_ms, "a trainer was started although the run is held");
	if (f->kind == FACT_TRAINER_THAWED) {
		v->thawed_ms = f->at_ms;
		a->hung_ms = a->hung_ms ? f->at_ms : 0;
	}
	if (f->kind == FACT_TRAINER_GONE && run->final_ms &&
	    f->at_ms - run->final_ms > STOPPED_MS && f->at_ms - v->thawed_ms > STOPPED_MS)
		broken(c, f->run, f->at_ms, "a trainer went on although the run was over");
}

/* lbrun looks once more right before. */
static void check_start(struct check *c, struct view *v, const struct fact *f)
{
	if (owner_of(c, f->run)->newest_claim > f->attempt)
		broken(c, f->run, f->at_ms,
		       "a trainer was started although a newer attempt has the run");
	if (attempt_of(v, f->attempt)->is_ordered)
		broken(c, f->run, f->at_ms, "a trainer was started although it was ordered to end");
}

static void on_trainer_ended(struct check *c, struct view *v, const struct fact *f)
{
	enum cause cause = (enum cause)(f->b % 100);
	bool is_own_fault = cause == CAUSE_ERROR || cause == CAUSE_CRASH || cause == CAUSE_OOM ||
			    cause == CAUSE_HANG;
	struct attempt_view *a = attempt_of(v, f->attempt);

	a->trainer_gone_ms = f->at_ms;
	a->is_training = false;
	v->completed |= cause == CAUSE_COMPLETED && !v->is_array;
	v->may_fail |= f->b / 1000 % 10 == 1;
	if (f->b / 100 % 10 == 0 && cause != CAUSE_TIMEOUT) {
		v->bad += f->b / 10000 % 10 == 0; /* what a full disk ended counts for nothing */
		v->surely_bad += is_own_fault && f->b < 100000 &&
				 a->ended_ms == 0; /* else unheard */
	}
	/* one that was ordered to stop meanwhile has its grace */
	if (a->hung_ms &&
	    f->at_ms - a->hung_ms >
		    a->hung_most_ms + SLACK_MS + (a->is_ordered ? c->end->stop_grace_ms : 0))
		broken(c, f->run, f->at_ms, "a silent trainer was left alone");
	a->hung_ms = 0;
	/* the last attempt may begin with one failure less than allowed */
	if (v->surely_bad > c->end->max_without_progress + c->end->in_place && task_of(f->run) < 0)
		broken(c, f->run, f->at_ms,
		       "more launches without progress than the budget allows");
}

/* Lines that the disk never took: lbrun waits for room before it ends. */
static void check_lost_lines(struct check *c, const struct fact *f)
{
	if (c->full_ms == 0 || f->at_ms - f->b < LAST_WORDS_MS)
		broken(c, f->run, f->at_ms, "lbrun left lines behind that the disk had room for");
}

/* --- states ----------------------------------------------------------------------------------- */

static void begin_anew(struct view *v)
{
	v->final_ms = 0;
	v->completed = v->may_be_killed = v->may_fail = v->must_not_run = v->may_be_ended = false;
	v->bad = v->surely_bad = 0;
}

static void on_moved(struct check *c, struct view *v, const struct fact *f)
{
	bool was_final = v->final_ms > 0;

	v->state = (enum run_state)f->a;
	v->backoff_ms = f->at_ms;
	v->backoff_up_ms = v->state == RUN_BACKOFF ? uptime(c, f->at_ms) : -1;
	/* the time limit is nobody's fault: the next attempt follows at once */
	v->backoff_max_ms = f->b == CAUSE_TIMEOUT ? 0 : c->end->backoff_max_ms;
	v->final_ms = run_state_is_final(v->state) ? f->at_ms : 0;
	if (v->state == RUN_CREATED && was_final)
		begin_anew(v);
	else if (v->state == RUN_CREATED) /* let go: what it had used of its budget stays */
		v->surely_bad = 0;
	if (v->state == RUN_COMPLETED && !v->completed)
		broken(c, f->run, f->at_ms, "called completed, but no trainer was done");
	if (v->state == RUN_KILLED && !v->may_be_killed)
		broken(c, f->run, f->at_ms, "called killed, but nobody asked for it");
	if (v->state == RUN_FAILED && v->bad < c->end->max_without_progress && !v->may_fail)
		broken(c, f->run, f->at_ms, "gave up before the restart budget was used");
}

static void on_intent(struct check *c, struct view *v, const struct fact *f)
{
	/* where it is to follow at once, it may still have to wait for a controller that is away */
	bool is_timed = v->backoff_max_ms > 0 || c->trouble_ms < v->backoff_ms;

	if (v->backoff_up_ms >= 0 && is_timed &&
	    uptime(c, f->at_ms) - v->backoff_up_ms > v->backoff_max_ms + SLACK_MS)
		broken(c, f->run, f->at_ms,
		       v->backoff_max_ms ? "a pause was longer than restart.backoff_max"
					 : "a run paused although only its time limit had come");
	v->backoff_up_ms = -1;
}

/* lbd had two polls to see that the job waits again, and no reason to let it. */
static bool is_left_waiting(const struct check *c, const struct view *v,
			    const struct attempt_view *a, int64_t now_ms)
{
	int64_t since_ms = a->requeued_ms;

	return since_ms > 0 && a->ended_ms == 0 && v->state == RUN_RUNNING &&
	       v->wanted == ORDER_RUN && c->is_up && c->up_since_ms < since_ms &&
	       c->trouble_ms < since_ms &&
	       now_ms - since_ms > 2 * c->end->idle_ms + ENDING_MS + SLACK_MS;
}

static void on_job_started(struct check *c, struct view *v, const struct fact *f)
{
	struct attempt_view *a = attempt_of(v, f->attempt);

	if (a->job_id != f->a || a->submit_time != f->b)
		broken(c, f->run, f->at_ms, "a job started that the ledger does not have");
	a->started_ms = f->at_ms;
	if (is_left_waiting(c, v, a, f->at_ms))
		broken(c, f->run, f->at_ms, "a requeued job was waited for in vain");
	a->requeued_ms = 0;
}

/* However many attempts got lost before this one. lbd goes by its wall clock in this: after a jump
 * it cannot know. */
static void on_placed(struct check *c, struct view *v, const struct fact *f)
{
	struct attempt_view *a = attempt_of(v, f->attempt);
	bool is_fresh = v->failed_attempt > 0 && v->failed_attempt < f->attempt &&
			f->at_ms - v->failed_ms < AVOIDED_MS && c->jumped_ms < v->failed_ms;

	a->node = (int)f->a;
	a->is_spread = f->b;
	if (a->excluded >> f->a & 1)
		broken(c, f->run, f->at_ms, "a job runs on a node that it was to keep away from");
	if (is_fresh && !a->was_refused && a->node == v->failed_node &&
	    __builtin_popcountll(a->excluded) < c->end->max_excluded)
		broken(c, f->run, f->at_ms, "a relaunch landed on the node that had just failed");
	if (f->attempt > v->failed_attempt)
		v->failed_attempt = 0;
}

/* An administrator's cancel of a job that had run for long, and lbd was there to see it. */
static bool is_ignored_cancel(const struct check *c, const struct attempt_view *a,
			      const struct fact *ended)
{
	return a->cancelled_ms > 0 && ended->a == CAUSE_LOST && c->is_up &&
	       c->up_since_ms < a->cancelled_ms && c->trouble_ms < a->cancelled_ms &&
	       ended->at_ms - a->cancelled_ms < LONG_MS / 2;
}

static void on_cancelled(struct view *v, struct attempt_view *a, const struct fact *f)
{
	v->may_be_killed = true;
	if (a->started_ms > 0 && f->at_ms - a->started_ms > LONG_MS && !v->is_array)
		a->cancelled_ms = f->at_ms;
}

/* What lbrun wrote down is what the ledger says, unless a person wanted the end, or lbrun itself
 * could not tell. */
static void on_ended(struct check *c, struct view *v, const struct fact *f)
{
	struct attempt_view *a = attempt_of(v, f->attempt);
	bool is_settled = a->said == CAUSE_NONE || a->said == CAUSE_LOST || f->a == CAUSE_KILLED ||
			  f->at_ms - a->said_ms < RECORD_MS;

	a->ended_ms = f->at_ms;
	/* gone without having begun: perhaps because the other failed */
	v->may_fail |= a->depends && !a->is_claimed;
	v->bad += a->is_training || a->trainer_gone_ms == 0;
	if (!is_settled && (enum cause)f->a != a->said)
		broken(c, f->run, f->at_ms, "the ledger has another cause than lbrun's record");
	/* of several nodes Slurm does not say which */
	if (a->has_node && !v->is_array && (a->has_blamed || !a->is_spread) &&
	    (f->a == CAUSE_NODE_FAIL || (f->a == CAUSE_LAUNCH_FAIL && a->is_refused))) {
		v->failed_attempt = f->attempt;
		v->failed_ms = f->at_ms;
		v->failed_node = a->has_blamed ? a->blamed : a->node;
	}
	if (a->doomed_ms > 0 && c->trouble_ms < a->doomed_ms) /* whether lbd was there or not */
		v->must_not_run = true;
	if (is_ignored_cancel(c, a, f))
		broken(c, f->run, f->at_ms, "an administrator's cancel was not respected");
}

static void on_lbd(struct check *c, const struct fact *f)
{
	if (f->kind == FACT_DAEMON_UP) {
		c->is_up = true;
		c->up_since_ms = f->at_ms;
		/* a new lbd has but the wall clock to go by, and that may have been set back */
		for (int run = 0; run < c->end->runs; run++)
			if (c->views[run].backoff_up_ms >= 0)
				c->views[run].backoff_up_ms = uptime(c, f->at_ms);
	} else if (f->kind == FACT_DAEMON_DOWN) {
		c->up_ms = uptime(c, f->at_ms);
		c->is_up = false;
	} else if (f->kind == FACT_FAULT && f->a == FAULT_CLOCK_JUMP) {
		c->jumped_ms = f->at_ms;
	} else if (f->kind == FACT_FAULT && (f->a == FAULT_DISK_FULL || f->a == FAULT_DISK_FREE)) {
		c->full_ms = f->a == FAULT_DISK_FULL ? f->at_ms : 0;
		c->full_change_ms = f->at_ms;
	} else if (f->kind == FACT_FAULT && f->a <= FAULT_COLD_START) {
		c->trouble_ms = f->at_ms;
	}
}

/* Known for long enough to be asked for a checkpoint and to end, with an lbd that was there. */
static void on_overtaken(struct check *c, const struct view *v, const struct fact *f)
{
	int64_t since_ms = f->a;
	/* no order could be left while the disk was full */
	bool was_full = c->full_ms > 0 ||
			f->at_ms - c->full_change_ms < LEAVE_MS + 2 * c->end->idle_ms;
	bool is_known = !was_full && c->is_up && c->up_since_ms < since_ms &&
			c->trouble_ms < since_ms && c->jumped_ms < since_ms &&
			f->at_ms - since_ms > LEAVE_MS + 2 * c->end->idle_ms;

	if (is_known && v->state == RUN_RUNNING && v->wanted == ORDER_RUN)
		broken(c, f->run, f->at_ms, "a run stayed on a node until maintenance ended it");
}

static void on_fact(struct check *c, struct view *v, const struct fact *f)
{
	struct attempt_view *a = attempt_of(v, f->attempt);

	check_array(c, v, f);
	switch ((enum fact_kind)f->kind) {
	case FACT_SUBMITTED:
		v->is_acked = true;
		break;
	case FACT_FAULT:
		if (f->a == FAULT_REQUEUED)
			a->requeued_ms = f->at_ms;
		break;
	case FACT_WANTED:
		v->wanted = (enum run_order)f->a;
		v->may_be_killed |= f->a > ORDER_HOLD;
		break;
	case FACT_JOB_CANCELLED:
		on_cancelled(v, a, f);
		break;
	case FACT_JOB_DEPENDS:
		a->depends = true;
		break;
	case FACT_DEPENDENCY_FAILED:
		a->doomed_ms = f->at_ms;
		v->may_fail = true;
		break;
	case FACT_REFUSED:
		v->may_fail = a->was_refused = true;
		if (a->excluded) /* perhaps for that: the next one may go anywhere */
			v->failed_attempt = 0;
		break;
	case FACT_INTENT:
		on_intent(c, v, f);
		break;
	case FACT_ADOPTED:
		a->job_id = f->a;
		a->submit_time = f->b;
		break;
	case FACT_CHECKPOINT:
		v->surely_bad = 0;
		if (a->ended_ms == 0)
			v->bad = 0;
		break;
	case FACT_EXCLUDED:
		a->excluded = (uint64_t)f->a;
		break;
	case FACT_STARTED:
		a->has_node = f->a >= 0;
		break;
	case FACT_EXITED:
		v->refused = a->is_refused && f->a == CAUSE_LAUNCH_FAIL ? v->refused + 1 : 0;
		if (v->refused > c->end->preflight_tries)
			broken(c, f->run, f->at_ms, "a run starves by the checks of its nodes");
		a->said = (enum cause)f->a;
		a->said_ms = f->at_ms;
		break;
	case FACT_ENDED:
		on_ended(c, v, f);
		break;
	case FACT_MOVED:
		on_moved(c, v, f);
		break;
	case FACT_JOB_STARTED:
		on_job_started(c, v, f);
		break;
	case FACT_JOB_PLACED:
		on_placed(c, v, f);
		break;
	case FACT_TRAINER_HUNG:
		a->hung_ms = f->at_ms;
		a->hung_most_ms = c->end->hang_max_ms;
		break;
	case FACT_TRAINER_LEFT_OVER:
		a->hung_ms = a->is_warned ? 0 : f->at_ms;
		a->hung_most_ms = c->end->left_over_max_ms;
		break;
	case FACT_OVERTAKEN:
		on_overtaken(c, v, f);
		break;
	case FACT_ROOM:
		v->room_ms = f->a ? f->at_ms : 0;
		break;
	case FACT_ORDER_LEFT:
		if (f->b == 1 && (v->room_ms == 0 || f->at_ms - v->room_ms > SLACK_MS))
			broken(c, f->run, f->at_ms,
			       "an attempt was ended for nodes that are not free");
		a->is_ordered = f->a > ORDER_RUN;
		break;
	case FACT_CLAIMED:
		a->is_claimed = true;
		if (f->attempt > v->newest_claim)
			v->newest_claim = f->attempt;
		break;
	case FACT_NODE_REFUSED:
		a->is_refused = true;
		break;
	case FACT_NODE_BLAMED:
		a->has_blamed = true;
		a->blamed = (int)f->a;
		break;
	case FACT_TRAINER_STARTED:
		if (a->is_refused)
			broken(c, f->run, f->at_ms, "a trainer was started on a broken node");
		v->refused = 0;
		a->is_training = true;
		check_start(c, v, f);
		on_trainer(c, v, f, 1);
		break;
	case FACT_TRAINER_THAWED:
		on_trainer(c, v, f, 1);
		break;
	case FACT_TRAINER_FROZEN:
		on_trainer(c, v, f, -1);
		break;
	case FACT_RANKS_ALONE:
		on_trainer(c, v, f, 1);
		break;
	case FACT_RANKS_QUIET:
		on_trainer(c, v, f, -1);
		break;
	case FACT_WARNED: /* whatever it does: it ends at the limit */
		a->is_warned = true;
		a->hung_ms = 0;
		break;
	case FACT_TRAINER_GONE:
		on_trainer(c, v, f, -1);
		break;
	case FACT_TRAINER_ENDED:
		on_trainer_ended(c, v, f);
		break;
	case FACT_LINES_LOST:
		v->bad++; /* lbd does not hear how it ended: that may count */
		check_lost_lines(c, f);
		break;
	case FACT_SAVED:
	case FACT_DROPPED:
	case FACT_TRAINER_FROM:
	case FACT_GOT_BEYOND:
	case FACT_FROM_FAILED:
	case FACT_FROM_DOUBTFUL:
		check_checkpoint(c, v, f);
		break;
	default:
		break;
	}
}

/* --- the end ---------------------------------------------------------------------------------- */

static void check_rates(struct check *c)
{
	const struct world_end *e = c->end;

	if (e->live_jobs > 0)
		broken(c, -1, INT64_MAX, "a job is left over at the end");
	if (e->polls > e->up_ms / 1000 || e->calls > e->up_ms / 1000)
		broken(c, -1, INT64_MAX, "the scheduler is called more than once a second");
	if (e->turns > e->up_ms / 1000)
		broken(c, -1, INT64_MAX, "lbd is busy without need");
}

int history_check(const struct history *h, const struct world_end *end, FILE *out)
{
	struct check c = { .history = h, .end = end, .out = out };

	c.views = xcalloc(ALL_RUNS, sizeof(*c.views));
	for (int run = 0; run < end->runs; run++)
		c.views[run].backoff_up_ms = c.views[run].checkpoint = -1;
	for (size_t i = 0; i < h->count; i++) {
		if (h->facts[i].run >= 0)
			on_fact(&c, &c.views[h->facts[i].run], &h->facts[i]);
		else
			on_lbd(&c, &h->facts[i]);
	}
	check_ledger(&c);
	for (int run = 0; run < ALL_RUNS; run++) {
		if (c.views[run].trainers > 0)
			broken(&c, run, INT64_MAX, "a trainer lives on at the end");
		free(c.views[run].attempts);
		free(c.views[run].saved);
	}
	check_rates(&c);
	free(c.views);
	return c.broken;
}
