/* SPDX-License-Identifier: MIT */
/* warn.c - what warnings.h makes of a run becomes an event: once in an attempt, once in an
 * absence, also when lbd starts anew in between. */

#include "common/base/clock.h"
#include "daemon/engine/state.h"

/* Was this told since then? The ledger knows, whichever lbd it was. */
static bool was_told(struct engine *e, const struct run *run, const char *kind, int64_t since_ms)
{
	struct err err = { 0 };
	int64_t told_ms = 0;

	engine_wrote(e, ledger_event_newest_ms(e->ledger, run->id, kind, &told_ms, &err), &err);
	return told_ms >= since_ms;
}

/* --- the time limit --------------------------------------------------------------------------- */

void engine_warn_of_limit(struct engine *e, struct run *run)
{
	static const char kind[] = "eta_past_limit";
	struct attempt *a = &run->attempt;
	int64_t start_ms = a->last_seen.start_time * 1000, end_ms = a->last_seen.limit_time * 1000;
	int64_t left_ms = pace_left_ms(&a->pace, run->target_step, end_ms - start_ms);
	int64_t until_ms = end_ms - a->pace.last_ms;
	char needs[CLOCK_TEXT_MAX], has[CLOCK_TEXT_MAX];

	if (a->is_limit_reported || end_ms == 0 || start_ms == 0 || left_ms <= 0 ||
	    left_ms <= until_ms)
		return;
	a->is_limit_reported = true;
	if (!was_told(e, run, kind, start_ms))
		engine_event(e, run, kind, "lbd",
			     "at its pace it needs %s more, its job ends in %s",
			     duration_text(left_ms, needs),
			     duration_text(until_ms > 0 ? until_ms : 0, has));
}

enum { LOOK_AGAIN_MS = 1000 };

/* --- absence ---------------------------------------------------------------------------------- */

void engine_warn_after(struct engine *e, int64_t absent_ms)
{
	e->absent_ms = absent_ms;
}

/* Of an array that has begun none runs, and all that are left wait, or are held. */
static bool has_paused(const struct run *run)
{
	const struct attempt *a = &run->attempt;

	return run_is_array(run) && a->seen_poll_ms > a->claim_seen_ms &&
	       a->last_seen.phase < JOB_RUNNING;
}

/* Not one that waits for another run to end: that may take days. */
static bool should_run(const struct run *run)
{
	return run->wanted == ORDER_RUN && !run_state_is_final(run->state) &&
	       (run->state != RUN_RUNNING || has_paused(run)) && run->state != RUN_HELD &&
	       run->state != RUN_STOPPING && run->dependencies != DEPENDENCIES_PENDING;
}

static const char *refusal(const struct attempt *a)
{
	return a->submit.state > CALL_OK || a->release.state > CALL_OK ? a->call_text : "";
}

static void tell_absence(struct engine *e, struct run *run)
{
	const struct attempt *a = &run->attempt;
	const struct poller *p = engine_poller(e, run);
	bool is_seen = run->has_attempt && a->seen_poll_ms && a->seen_poll_ms == p->done_begun_ms;
	struct absence absence = {
		.state = run->state,
		.down = p->down_since_ms ? p->text : "",
		.seen = is_seen && a->state != ATTEMPT_ENDED ? &a->last_seen : NULL,
		.refused = run->has_attempt ? refusal(a) : "",
		.last_end = run->has_attempt ? a->end_text : "",
	};
	char why[300], long_[CLOCK_TEXT_MAX];

	if (run->scheduler == NULL)
		absence.down = "Slurm is not available to this lbd";
	absence_explain(&absence, why, sizeof(why));
	engine_event(e, run, "not_running", "lbd", "it has not run for %s: %s",
		     duration_text(engine_wall(e) - run->absent_since_ms, long_), why);
}

/* Of a job that this process has just released what was seen before says that it is held: by nobody
 * else. */
static bool waits_for_poll(struct engine *e, const struct run *run)
{
	const struct attempt *a = &run->attempt;
	const struct call *release = &a->release;

	return run->scheduler && run->has_attempt && !engine_poller(e, run)->down_since_ms &&
	       a->last_seen.phase == JOB_HELD &&
	       (release->state == CALL_OPEN ||
		(release->state == CALL_OK && a->seen_poll_ms <= release->reply_ms));
}

int64_t engine_warn_of_absence(struct engine *e, struct run *run)
{
	int64_t due_ms = run->absent_since_ms + e->absent_ms, wall_ms = engine_wall(e);

	if (!should_run(run)) {
		run->absent_since_ms = 0;
		run->is_absence_reported = false;
		return INT64_MAX;
	}
	if (run->absent_since_ms == 0) {
		run->absent_since_ms = wall_ms;
		due_ms = wall_ms + e->absent_ms;
	}
	if (e->absent_ms == 0 || run->is_absence_reported)
		return INT64_MAX;
	if (wall_ms < due_ms)
		return engine_now(e) + due_ms - wall_ms;
	if (waits_for_poll(e, run))
		return engine_now(e) + LOOK_AGAIN_MS;
	run->is_absence_reported = true;
	if (!was_told(e, run, "not_running", run->absent_since_ms))
		tell_absence(e, run);
	return INT64_MAX;
}
