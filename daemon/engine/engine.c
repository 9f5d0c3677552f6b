/* SPDX-License-Identifier: MIT */
/* engine.c - ask reconcile what the facts mean, write its decision; commit; act. */
#include "daemon/engine/state.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/failpoint.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "daemon/engine/decide/prequeue.h"
#include "slurm/reasons.h"

enum {
	MAX_STEPS = 16, /* decisions for one run in one turn; far above what any needs */
	LOAD_AGAIN_MS = 1000,
	SURVIVORS_AGAIN_MS = 1000,
};

/* --- the turn --------------------------------------------------------------------------------- */

struct todo {
	struct run *run;
	struct attempt *attempt; /* of the run, or its prequeued one */
	struct decision decision;
	struct todo *next;
};

static struct todo **add_todo(struct todo **tail, struct run *run, struct attempt *attempt,
			      const struct decision *d)
{
	struct todo *todo = xcalloc(1, sizeof(*todo));

	todo->run = run;
	todo->attempt = attempt;
	todo->decision = *d;
	todo->decision.text = NULL; /* acts need none, and it would point into gone facts */
	*tail = todo;
	return &todo->next;
}

static void look_for_warnings(struct engine *e, struct run *run)
{
	int64_t at_ms = engine_warn_of_absence(e, run);

	if (at_ms < run->wake_ms)
		run->wake_ms = at_ms;
}

/* Behind an attempt that needs nothing at present. */
static struct todo **step_prequeued(struct engine *e, struct run *run, struct todo **tail,
				    int64_t now_ms)
{
	run->policy.prequeue = engine_prequeues(e, run);
	if (run->prequeued == NULL && !run->policy.prequeue)
		return tail;
	for (int i = 0; i < MAX_STEPS && !e->broken; i++) {
		struct facts f, s;
		struct decision d;

		engine_gather(e, run, &run->attempt, &f);
		if (run->prequeued) {
			engine_gather(e, run, run->prequeued, &s);
			s.state = RUN_SUBMITTING;
			s.excludes = run->prequeued_excluded[0] != '\0';
		}
		d = prequeue(&f, run->prequeued ? &s : NULL, run->prequeued_not_before_ms,
			     &run->policy, now_ms);
		if (d.at_ms < run->wake_ms && d.kind == DECISION_WAIT)
			run->wake_ms = d.at_ms;
		if (d.kind == DECISION_WAIT)
			return tail;
		log_debug("%s: next attempt: decision=%s", run->name, decision_name(d.kind));
		if (engine_write_prequeued(e, run, &d))
			return add_todo(tail, run, run->prequeued, &d);
		e->written |= WROTE(d.kind);
	}
	return tail;
}

/* Files of a job that waits are looked at seldom: once more before one is given up as never
 * begun. */
static bool has_begun_meanwhile(struct engine *e, struct run *run, int64_t now_ms)
{
	if (run->attempt.claimed || run->attempt.state != ATTEMPT_QUEUED)
		return false;
	engine_look_at_files(e, run, now_ms);
	return run->attempt.claimed;
}

/* Steps one run as far as it goes before an act; that act is the end of its turn. */
static struct todo **step(struct engine *e, struct run *run, struct todo **tail)
{
	int64_t now_ms = engine_now(e);

	run->dirty = false;
	if (now_ms >= run->next_look_ms)
		engine_look_at_files(e, run, now_ms);
	if (!engine_has_rules(e, run) && run->wanted == ORDER_RUN) {
		run->wake_ms = now_ms + LOAD_AGAIN_MS;
		return tail;
	}
	for (int i = 0; i < MAX_STEPS && !e->broken; i++) {
		struct facts f;
		struct decision d;

		engine_look_at_dependencies(e, run);
		engine_gather(e, run, &run->attempt, &f);
		d = reconcile(&f, &run->policy, now_ms);
		run->wake_ms = d.at_ms;
		if (d.kind == DECISION_WAIT) {
			e->has_final |= run_state_is_final(run->state);
			look_for_warnings(e, run);
			return step_prequeued(e, run, tail, now_ms);
		}
		if (d.kind == DECISION_END && has_begun_meanwhile(e, run, now_ms))
			continue;
		log_debug("%s: decision=%s", run->name, decision_name(d.kind));
		if (d.kind == DECISION_MOVE && !engine_end_survivors(e, run, d.to)) {
			run->wake_ms = now_ms + SURVIVORS_AGAIN_MS;
			return tail;
		}
		if (engine_write(e, run, &d))
			return add_todo(tail, run, &run->attempt, &d);
		e->written |= WROTE(d.kind);
		/* What is decided on this end may tell a survivor to end: never before it is sure.
		 * A final end is one with what follows from it: the ledger does not keep that it is
		 * final. */
		if (d.kind == DECISION_END && !run->attempt.has_exit && !d.is_final)
			break;
	}
	run->dirty = true; /* go on in the next turn */
	return tail;
}

static void drop_final_runs(struct engine *e)
{
	struct run **at = &e->runs;

	if (!e->has_final)
		return;
	e->has_final = false;
	while (*at) {
		struct run *run = *at;

		if (!run_state_is_final(run->state)) {
			at = &run->next;
			continue;
		}
		*at = run->next;
		e->run_count--;
		run_destroy(run);
	}
	engine_wake_dependents(e);
}

static void act_on(struct engine *e, struct todo *todo, bool do_it)
{
	while (todo) {
		struct todo *next = todo->next;

		if (do_it)
			engine_act(e, todo->run, todo->attempt, &todo->decision);
		free(todo);
		todo = next;
	}
}

static const struct {
	unsigned what;
	enum failpoint written, committed;
} commit_points[] = {
	{ WROTE(DECISION_NEW_ATTEMPT), FP_INTENT_WRITTEN, FP_INTENT_COMMITTED },
	{ WROTE(DECISION_ADOPT), FP_JOB_WRITTEN, FP_JOB_COMMITTED },
	{ WROTE(DECISION_RELEASED), FP_RELEASED_WRITTEN, FP_RELEASED_COMMITTED },
	{ WROTE(DECISION_START), FP_START_WRITTEN, FP_START_COMMITTED },
	{ WROTE(DECISION_END), FP_END_WRITTEN, FP_END_COMMITTED },
	{ WROTE(DECISION_MOVE), FP_MOVE_WRITTEN, FP_MOVE_COMMITTED },
	{ WROTE_LINES, FP_INGEST_WRITTEN, FP_INGEST_COMMITTED },
};
enum { COMMIT_POINTS = sizeof(commit_points) / sizeof(commit_points[0]) };

static int commit_written(struct engine *e, struct err *err)
{
	unsigned written = e->written;
	int rc = 0;

	e->written = 0;
	for (size_t i = 0; i < COMMIT_POINTS && rc == 0; i++)
		if (written & commit_points[i].what)
			rc = failpoint(commit_points[i].written, err);
	if (rc < 0 || ledger_commit_first(e->ledger, err) < 0)
		return -1;
	for (size_t i = 0; i < COMMIT_POINTS; i++)
		if (written & commit_points[i].what)
			failpoint(commit_points[i].committed, NULL);
	return 0;
}

static int commit(struct engine *e, struct err *err)
{
	if (e->broken) {
		err_set(err, ERR_IO, "the ledger could not be written; see lbd's log");
	} else if (commit_written(e, err) == 0) {
		e->ledger_down_since_ms = 0;
		return 0;
	}
	if (e->ledger_down_since_ms == 0)
		e->ledger_down_since_ms = engine_wall(e);
	snprintf(e->ledger_text, sizeof(e->ledger_text), "%s", err->text);
	e->written = 0;
	engine_wrote(e, -1, err);
	ledger_rollback(e->ledger);
	e->broken = false;
	e->load_again_ms = engine_now(e) + LOAD_AGAIN_MS;
	return -1;
}

static bool is_healed(struct engine *e)
{
	struct err err = { 0 };

	if (e->load_again_ms == 0)
		return true;
	if (engine_now(e) < e->load_again_ms)
		return false;
	if (engine_load(e, &err) == 0)
		return true;
	log_error("ledger: cannot read it again: %s", err.text);
	e->load_again_ms = engine_now(e) + LOAD_AGAIN_MS;
	return false;
}

static int64_t next_wake(const struct engine *e)
{
	int64_t at_ms = INT64_MAX;

	for (const struct run *run = e->runs; run; run = run->next) {
		int64_t run_ms = run->wake_ms;

		if (run->next_look_ms < run_ms)
			run_ms = run->next_look_ms;
		if (run->dirty)
			run_ms = 0;
		if (run_ms < at_ms)
			at_ms = run_ms;
	}
	return at_ms;
}

/* Steps every run that has news or is due; commits; acts. */
static int turn(struct engine *e, struct err *err)
{
	struct todo *todo = NULL, **tail = &todo;
	int64_t now_ms = engine_now(e);
	int rc;

	engine_ingest_begin(e);
	for (struct run *run = e->runs; run && !e->broken; run = run->next)
		if (run->dirty || now_ms >= run->wake_ms || now_ms >= run->next_look_ms)
			tail = step(e, run, tail);
	engine_ingest_end(e, engine_now(e) - now_ms);
	rc = commit(e, err); /* takes as long for less */
	act_on(e, todo, rc == 0);
	ledger_tell_changes(e->ledger); /* files that only repeat the ledger need not be first */
	if (rc == 0)
		drop_final_runs(e);
	return rc;
}

int64_t engine_turn(struct engine *e)
{
	struct err err = { 0 };
	int64_t poll_ms, wake_ms;

	if (!is_healed(e) || turn(e, &err) < 0)
		return e->load_again_ms;
	poll_ms = engine_poll_due(e);
	wake_ms = next_wake(e);
	return poll_ms < wake_ms ? poll_ms : wake_ms;
}

int engine_settle(struct engine *e, struct err *err)
{
	int rc;

	if (e->load_again_ms != 0) {
		ledger_rollback(e->ledger); /* nobody else's commit may carry in what is refused */
		return err_set(err, ERR_IO,
			       "the ledger cannot be written at present; see lbd's log");
	}
	rc = turn(e, err);
	if (rc < 0 && engine_load(e, NULL) < 0)
		log_error("ledger: cannot read it again");
	if (e->news)
		e->news(e->news_arg);
	return rc;
}

void engine_on_news(struct engine *e, void (*news)(void *arg), void *arg)
{
	e->news = news;
	e->news_arg = arg;
}

void engine_health(struct engine *e, struct engine_health *out)
{
	memset(out, 0, sizeof(*out));
	out->live_runs = e->run_count;
	out->slurm_down_since_ms = e->slurm.down_since_ms;
	out->good_poll_ms = e->slurm.scheduler ? e->slurm.done_begun_ms : e->local.done_begun_ms;
	out->calls_per_minute = engine_calls_per_minute(e);
	snprintf(out->slurm_text, sizeof(out->slurm_text), "%s", e->slurm.text);
	out->ledger_down_since_ms = e->ledger_down_since_ms;
	snprintf(out->ledger_text, sizeof(out->ledger_text), "%s", e->ledger_text);
}

/* --- life ------------------------------------------------------------------------------------- */

static void destroy_runs(struct engine *e)
{
	while (e->runs) {
		struct run *run = e->runs;

		e->runs = run->next;
		run_destroy(run);
	}
	e->run_count = 0;
}

struct engine *engine_create(struct ledger *ledger, struct scheduler *slurm,
			     struct scheduler *local, const struct world *world,
			     const struct poll_times *times)
{
	struct engine *e = xcalloc(1, sizeof(*e));

	e->ledger = ledger;
	e->world = world;
	e->times = *times;
	e->nodes = (struct node_rules){ .half_life_ms = 1, .threshold = 1 };
	e->slurm = (struct poller){ .engine = e, .scheduler = slurm };
	e->local = (struct poller){ .engine = e, .scheduler = local };
	return e;
}

void engine_remember_nodes(struct engine *e, const struct node_rules *rules)
{
	e->nodes = *rules;
}

void engine_destroy(struct engine *e)
{
	if (e == NULL)
		return;
	engine_drop_calls(e);
	destroy_runs(e);
	free(e);
}

struct loading {
	struct engine *engine;
	char (*names)[NAME_MAX_BYTES + 1];
	size_t count, cap;
};

static int remember_name(const struct ledger_run *row, void *arg)
{
	struct loading *l = arg;

	if (l->count == l->cap) {
		l->cap = l->cap ? 2 * l->cap : 64;
		l->names = xrealloc(l->names, l->cap * sizeof(*l->names));
	}
	snprintf(l->names[l->count++], sizeof(*l->names), "%s", row->name);
	return 0;
}

static int load_run(struct engine *e, const char *name, bool is_known, struct err *err)
{
	struct ledger_run row;

	if (ledger_run_find(e->ledger, name, &row, err) < 0)
		return -1;
	return engine_load_run(e, &row, is_known, err);
}

int engine_adopt(struct engine *e, const char *name, struct err *err)
{
	return engine_find(e, name) ? 0 : load_run(e, name, false, err);
}

/* Calls that are under way name no pointers: their answers find the new one, or nobody. Its
 * row is written: a spec that cannot be read at this moment is read later. */
int engine_adopt_anew(struct engine *e, const char *name, struct err *err)
{
	for (struct run **at = &e->runs; *at; at = &(*at)->next) {
		struct run *run = *at;

		if (strcmp(run->name, name) != 0)
			continue;
		*at = run->next;
		e->run_count--;
		run_destroy(run);
		break;
	}
	return load_run(e, name, true, err);
}

int engine_load(struct engine *e, struct err *err)
{
	struct loading l = { .engine = e };
	int rc;

	destroy_runs(e);
	rc = ledger_run_each(e->ledger, true, remember_name, &l, err);
	/* oldest first, so that the list ends up newest first */
	for (size_t i = l.count; rc == 0 && i-- > 0;)
		rc = load_run(e, l.names[i], true, err);
	free(l.names);
	if (rc == 0)
		e->load_again_ms = 0;
	return rc;
}

const struct run *engine_live(struct engine *e, const char *name)
{
	return engine_find(e, name);
}

void engine_each_live(struct engine *e, void (*each)(struct run *run, void *arg), void *arg)
{
	for (struct run *run = e->runs; run; run = run->next)
		each(run, arg);
}

const char *engine_run_waits_for(struct engine *e, struct run *run)
{
	const struct attempt *a = &run->attempt;
	bool is_seen = run->has_attempt && a->seen_poll_ms > 0;
	bool is_running = is_seen && a->state == ATTEMPT_RUNNING &&
			  a->seen_poll_ms > a->claim_seen_ms;
	/* of an array that has begun all tasks may wait that are left */
	bool is_waiting = ((is_seen && a->state == ATTEMPT_QUEUED) || is_running) &&
			  a->last_seen.phase <= JOB_PENDING;
	bool is_suspended = is_running && strcmp(a->last_seen.reason, SLURM_REASON_SUSPENDED) == 0;

	if (run->dependencies == DEPENDENCIES_PENDING) { /* in today's words */
		engine_look_at_dependencies(e, run);
		return run->dependencies_text;
	}
	if (run->state == RUN_SUBMITTING) /* why the scheduler did not take it */
		return run->attempt.call_text;
	return is_waiting || is_suspended ? a->last_seen.reason : "";
}

const char *engine_waits_for(struct engine *e, const char *name)
{
	struct run *run = engine_find(e, name);

	return run ? engine_run_waits_for(e, run) : "";
}
