/* SPDX-License-Identifier: MIT */
/* write.c - what each decision means for the ledger and for the run in memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/run/hosts.h"
#include "daemon/engine/state.h"
#include "daemon/engine/decide/relaunch.h"

static void move_run(struct engine *e, struct run *run, enum run_state to, enum cause cause,
		     const char *text)
{
	struct err err = { 0 };

	if (run->state == to)
		return;
	engine_wrote(e,
		     ledger_run_move(e->ledger, run->id, run->state, to, cause, text ? text : "",
				     engine_wall(e), &err),
		     &err);
	run->state = to;
}

static void watch_anew(struct run *run, int64_t now_ms)
{
	run->attempt.watching_since_ms = now_ms;
	run->next_look_ms = now_ms;
}

/* The switch's own words, as of this turn. */
static void write_obey(struct engine *e, struct run *run, enum run_order order)
{
	static const char *const kinds[ORDER_COUNT] = {
		[ORDER_RUN] = "release", [ORDER_HOLD] = "hold",         [ORDER_STOP] = "stop",
		[ORDER_KILL] = "kill",   [ORDER_KILL_NOW] = "kill_now",
	};
	struct switched s = { 0 };
	struct err err = { 0 };

	e->world->switched(e->world->self, run, &s);
	engine_wrote(e,
		     ledger_run_set_wanted(e->ledger, run->id, order, s.by ? s.by : "lbd",
					   s.text ? s.text : "", engine_wall(e), &err),
		     &err);
	if (s.file)
		engine_wrote(e, ledger_run_set_switch(e->ledger, run->id, s.file, &err), &err);
	engine_event(e, run, kinds[order], s.by ? s.by : "lbd",
		     s.file ? "switch %s%s%s" : "the switch that held it is gone%s%s%s",
		     s.file ? s.file : "", s.text && s.text[0] ? ": " : "", s.text ? s.text : "");
	engine_order(e, run->name, order, s.by ? s.by : "lbd", s.text ? s.text : "");
	run->by_switch = s.file ? xstrdup(s.file) : NULL; /* engine_order has forgotten the last */
}

/* The prequeued attempt has been in the queue for long: it goes on from where it stands. */
static bool take_prequeued(struct engine *e, struct run *run)
{
	if (!engine_take_prequeued(e, run))
		return false;
	move_run(e, run, RUN_SUBMITTING, CAUSE_NONE, "");
	watch_anew(run, engine_now(e));
	return true;
}

static void write_new_attempt(struct engine *e, struct run *run)
{
	struct attempt *a = &run->attempt;
	int64_t number = run->has_attempt ? a->number + 1 : 1;
	bool was_moved = run->has_attempt && a->goes_on;
	struct err err = { 0 };

	if (take_prequeued(e, run)) {
		a->was_moved = was_moved;
		return;
	}
	attempt_clear(a);
	a->was_moved = was_moved;
	a->number = number;
	a->state = ATTEMPT_INTENT;
	a->fresh = true;
	a->exit_code = -1;
	a->asks_fewer = run->is_short;
	run->is_short = false;
	e->world->token(e->world->self, a->job.token);
	run->has_attempt = true;
	engine_wrote(e,
		     ledger_attempt_insert(e->ledger, run->id, number, a->job.token, engine_wall(e),
					   &a->id, &err),
		     &err);
	engine_exclude_nodes(e, run);
	move_run(e, run, RUN_SUBMITTING, CAUSE_NONE, "");
	watch_anew(run, engine_now(e));
}

static void write_adopt(struct engine *e, struct run *run, const struct job_ref *job)
{
	struct attempt *a = &run->attempt;
	struct err err = { 0 };
	bool is_told;

	engine_wrote(e,
		     ledger_attempt_set_job(e->ledger, a->id, job->job_id, job->submit_time, &err),
		     &err);
	a->job.job_id = job->job_id;
	a->job.submit_time = job->submit_time;
	a->state = ATTEMPT_HELD;
	run->was_taken = true;
	/* what Slurm, or the site, says of a job that it takes */
	is_told = a->submit.state == CALL_OK && a->call_text[0];
	engine_event(e, run, "submitted", "lbd", "job %u%s%s", job->job_id, is_told ? ": " : "",
		     is_told ? a->call_text : "");
	watch_anew(run, engine_now(e));
}

static void write_released(struct engine *e, struct run *run)
{
	struct err err = { 0 };

	/* somebody else did it, or an earlier lbd */
	if (run->attempt.release.state != CALL_OK && !run->attempt.claimed)
		engine_prepare_early(e, run, &run->attempt);
	engine_wrote(e, ledger_attempt_released(e->ledger, run->attempt.id, engine_wall(e), &err),
		     &err);
	run->attempt.state = ATTEMPT_QUEUED;
	run->attempt.released_ms = engine_wall(e);
	move_run(e, run, RUN_QUEUED, CAUSE_NONE, "");
	watch_anew(run, engine_now(e));
}

int64_t engine_missing_nodes(const struct run *run)
{
	json_t *names = hosts_expand(run->attempt.nodes);
	int64_t count = (int64_t)json_array_size(names);

	json_decref(names);
	return count > 0 && count < run->spec.nodes ? run->spec.nodes - count : 0;
}

/* What is to be said of an attempt that began with fewer nodes than the spec names; "": nothing. */
static void fewer_text(const struct run *run, char *out, size_t size)
{
	int64_t missing = run->attempt.asks_fewer ? engine_missing_nodes(run) : 0;

	out[0] = '\0';
	if (missing > 0)
		snprintf(out, size, "%lld of %lld nodes (restart.min_nodes = %lld); %s",
			 (long long)(run->spec.nodes - missing), (long long)run->spec.nodes,
			 (long long)run->spec.min_nodes,
			 run->policy.grows_back
				 ? "it begins anew with all of them, behind a checkpoint, when "
				   "the others are free"
				 : "a later attempt asks for all of them again");
}

/* " of step 7" */
static void checkpoint_text(const struct run *run, char *out, size_t size)
{
	out[0] = '\0';
	if (run->checkpoint_step >= 0)
		snprintf(out, size, " of step %lld", (long long)run->checkpoint_step);
}

/* The act comes after the commit: if lbd dies before it, this was said, and the next checkpoint
 * brings it again. */
static void write_grow(struct engine *e, struct run *run)
{
	char step[48];

	checkpoint_text(run, step, sizeof(step));
	engine_event(e, run, "growing_back", "lbd",
		     "the missing nodes are free (%lld of %lld): attempt %lld ends behind its "
		     "checkpoint%s, the next one asks for all",
		     (long long)engine_missing_nodes(run), (long long)run->spec.nodes,
		     (long long)run->attempt.number, step);
}

static void write_leave(struct engine *e, struct run *run)
{
	const struct attempt *a = &run->attempt;
	bool has_saved = a->saved_ms >= a->save.made_ms;
	bool is_told = a->signal.state == CALL_DOWN &&
		       engine_now(e) < a->signal.reply_ms + 2 * RECHECK_MS;
	char step[48];

	if (is_told) /* and tried again: the order could not be left */
		return;
	checkpoint_text(run, step, sizeof(step));
	engine_event(e, run, "leaving", "lbd",
		     "%s: attempt %lld ends%s%s, the next one goes on elsewhere", a->leaving.text,
		     (long long)a->number, has_saved ? " behind its checkpoint" : "",
		     has_saved ? step : "");
}

static void write_start(struct engine *e, struct run *run)
{
	struct attempt *a = &run->attempt;
	struct err err = { 0 };
	char fewer[200];

	engine_note_nodes(e, run, job_nodes(&a->last_seen));
	fewer_text(run, fewer, sizeof(fewer));
	engine_wrote(
		e, ledger_attempt_started(e->ledger, a->id, attempt_nodes(a), engine_wall(e), &err),
		&err);
	a->state = ATTEMPT_RUNNING;
	a->started_ms = engine_wall(e);
	run_waited(run);
	run->has_no_eligible_node = false;
	move_run(e, run, RUN_RUNNING, CAUSE_NONE, fewer);
	engine_event(e, run, "running", "lbd", "attempt %lld runs%s%s", (long long)a->number,
		     attempt_nodes(a)[0] ? " on " : "", attempt_nodes(a));
	if (fewer[0])
		engine_event(e, run, "fewer_nodes", "lbd", "%s", fewer);
	watch_anew(run, engine_now(e));
}

/* Counts the launch that lbrun could not tell of itself. */
static void count_untold(struct engine *e, struct run *run, const struct decision *d)
{
	struct attempt *a = &run->attempt;
	bool was_in_vain = relaunch_was_in_vain(d->cause, engine_wall(e) - a->started_ms,
						engine_now(e) - a->watching_since_ms);
	struct err err = { 0 };

	if (a->state == ATTEMPT_RUNNING && !was_in_vain)
		run->in_vain = 0;
	else if (!d->has_no_eligible_node && !d->is_short) /* these: another try, and no pause */
		run->in_vain++;
	if (a->is_settled || !relaunch_counts(&run->policy, d->cause, d->blame_run))
		return;
	run->failures++;
	engine_wrote(e,
		     ledger_run_set_failures(e->ledger, run->id, run->failures,
					     run->backoff_until_ms, &err),
		     &err);
}

static void end_text(const struct run *run, const struct decision *d, char *out, size_t size)
{
	bool is_jobs_fault = d->cause == CAUSE_LAUNCH_FAIL && !run->attempt.claimed &&
			     suspects_clear_nodes(&run->suspects, CAUSE_LAUNCH_FAIL);

	snprintf(out, size, "%s%s", d->text ? d->text : "",
		 is_jobs_fault ? "; it was so on other nodes, too: the job itself is at fault, not "
				 "they"
			       : "");
}

static void write_end(struct engine *e, struct run *run, const struct decision *d)
{
	struct attempt *a = &run->attempt;
	char text[sizeof(a->end_text)];
	struct err err = { 0 };
	int64_t wall_ms = engine_wall(e);
	/* while a job completes Slurm names its nodes without those that failed */
	bool names_others = d->cause == CAUSE_NODE_FAIL && a->last_seen.phase == JOB_ENDING;
	char *failed;

	if (a->seen_poll_ms > 0 && a->last_seen.phase >= JOB_ENDING &&
	    !names_others) /* it may have been over before anybody saw it run */
		engine_note_nodes(e, run, job_nodes(&a->last_seen));
	failed = d->is_host                    ? engine_host(run)
		 : d->cause == CAUSE_NODE_FAIL ? engine_failed_nodes(run)
					       : xstrdup("");
	engine_blame_nodes(e, run, d, failed);
	end_text(run, d, text, sizeof(text));
	engine_wrote(e,
		     ledger_attempt_end(e->ledger, a->id, d->cause, d->exit_code, d->signal, text,
					wall_ms, &err),
		     &err);
	engine_wrote(e, ledger_launch_end_open(e->ledger, a->id, d->cause, wall_ms, &err), &err);
	if (d->has_no_eligible_node)
		engine_wrote(e, ledger_attempt_walled_in(e->ledger, a->id, &err), &err);
	run->has_no_eligible_node |= d->has_no_eligible_node;
	if (d->is_short)
		engine_wrote(e, ledger_attempt_short(e->ledger, a->id, &err), &err);
	run->is_short = d->is_short;
	count_untold(e, run, d);
	if (d->is_host && failed[0])
		engine_event(e, run, "node_lost", "lbd", "%s: %s", failed, text);
	engine_event(e, run, "attempt_end", "lbd", "attempt %lld: %s%s%s%s%s", (long long)a->number,
		     cause_name(d->cause), text[0] ? ": " : "", text, failed[0] ? ": " : "",
		     failed);
	free(failed);
	a->state = ATTEMPT_ENDED;
	a->cause = d->cause;
	a->exit_code = d->exit_code;
	a->blame_run = d->blame_run;
	a->is_final = d->is_final;
	snprintf(a->end_text, sizeof(a->end_text), "%s", text);
}

/* The verdict, and what the last attempt had to say. */
static void explain(const struct run *run, const struct decision *d, char *out, size_t size)
{
	const char *last = run->has_attempt ? run->attempt.end_text : "";
	bool says_more = d->to != RUN_COMPLETED && d->to != RUN_STOPPING && d->to != RUN_CREATED;

	if (d->to == RUN_HELD && run->wanted == ORDER_HOLD) {
		snprintf(out, size, "%s by %s%s%s", d->text, run->wanted_by,
			 run->wanted_reason[0] ? ": " : "", run->wanted_reason);
		return;
	}
	if (d->to == RUN_KILLED && run->wanted > ORDER_HOLD) {
		snprintf(out, size, "%s by %s%s%s",
			 run->wanted == ORDER_STOP ? "stopped" : "killed", run->wanted_by,
			 run->wanted_reason[0] ? ": " : "", run->wanted_reason);
		return;
	}
	snprintf(out, size, "%s%s%s", d->text, says_more && last[0] ? "; last: " : "",
		 says_more ? last : "");
}

bool engine_end_survivors(struct engine *e, struct run *run, enum run_state to)
{
	struct err err = { 0 };
	bool may_live = run->has_attempt && (run_state_is_final(to) || to == RUN_HELD);

	if (!may_live || e->world->end_all(e->world->self, run, &err) == 0) {
		run->has_survivors = false;
		return true;
	}
	if (!run->has_survivors)
		log_warn("%s: %s; it is not %s before that is done", run->name, err.text,
			 run_state_name(to));
	run->has_survivors = true;
	return false;
}

static void write_move(struct engine *e, struct run *run, const struct decision *d)
{
	struct err err = { 0 };
	char text[640];

	explain(run, d, text, sizeof(text));
	if (d->to == RUN_BACKOFF) {
		run->backoff_until_ms = engine_wall(e) + d->backoff_ms;
		run->pause_until_ms = engine_now(e) + d->backoff_ms;
		engine_wrote(e,
			     ledger_run_set_failures(e->ledger, run->id, run->failures,
						     run->backoff_until_ms, &err),
			     &err);
	}
	move_run(e, run, d->to, d->cause, text);
	if (d->to == RUN_BACKOFF)
		engine_event(e, run, "backoff", "lbd", "next attempt in %llds: %s",
			     (long long)(d->backoff_ms / 1000), text);
	if (!run_state_is_final(d->to) && d->to != RUN_HELD)
		return;
	engine_drop_prequeued(e, run);
	engine_event(e, run, run_state_name(d->to), "lbd", "%s", text);
}

bool engine_write(struct engine *e, struct run *run, const struct decision *d)
{
	switch (d->kind) {
	case DECISION_OBEY:
		write_obey(e, run, d->order);
		return false;
	case DECISION_NEW_ATTEMPT:
		write_new_attempt(e, run);
		return false;
	case DECISION_ADOPT:
		write_adopt(e, run, &d->job);
		return false;
	case DECISION_RELEASED:
		write_released(e, run);
		return false;
	case DECISION_START:
		write_start(e, run);
		return false;
	case DECISION_END:
		write_end(e, run, d);
		e->written |= WROTE(d->kind);
		return d->is_host;
	case DECISION_GROW:
		write_grow(e, run);
		return true;
	case DECISION_SAVE:
		engine_event(e, run, "save", "lbd", "%s", run->attempt.leaving.text);
		return true;
	case DECISION_LEAVE:
		write_leave(e, run);
		return true;
	case DECISION_MOVE:
		write_move(e, run, d);
		return false;
	default:
		return true;
	}
}
