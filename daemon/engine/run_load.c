/* SPDX-License-Identifier: MIT */
/* run_load.c - a run's row, spec and newest attempt → memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/text.h"
#include "daemon/engine/decide/doomed.h"
#include "daemon/engine/decide/relaunch.h"
#include "daemon/engine/state.h"

void run_destroy(struct run *run)
{
	if (run == NULL)
		return;
	run_spec_clear(&run->spec);
	free(run->owner);
	free(run->dir);
	free(run->wanted_by);
	free(run->wanted_reason);
	free(run->by_switch);
	free(run->let_go_by);
	free(run->resume_from);
	free(run->excluded);
	free(run->spec_problem);
	free(run->prequeued_excluded);
	free(run->gpu_use);
	free(run->failed_tasks);
	if (run->prequeued)
		attempt_clear(run->prequeued);
	free(run->prequeued);
	attempt_clear(&run->attempt);
	free(run->suspects.items);
	free(run);
}

static void take_row(struct run *run, const struct ledger_run *row)
{
	run->id = row->id;
	snprintf(run->name, sizeof(run->name), "%s", row->name);
	run->owner = xstrdup(row->owner);
	run->owner_uid = row->owner_uid;
	run->dir = xstrdup(row->dir);
	run->state = row->state;
	run->wanted = row->wanted;
	run->wanted_by = xstrdup(row->wanted_by);
	run->wanted_reason = xstrdup(row->wanted_reason);
	run->by_switch = row->wanted_switch[0] ? xstrdup(row->wanted_switch) : NULL;
	run->resume_from = xstrdup(row->resume_from);
	run->excluded = xstrdup("");
	run->backoff_until_ms = row->backoff_until_ms;
	run->failures = row->failures;
	run->checkpoint_step = -1;
	run->target_step = row->target_step;
	run->asked_ms = row->wanted_ms > row->created_ms ? row->wanted_ms : row->created_ms;
	run->absent_since_ms = run->asked_ms;
	run->ever_trained = row->step >= 0;
	run->tasks_done = row->step > 0 ? row->step : 0;
}

static void take_policy(struct run *run, const struct scheduler *slurm)
{
	/* an attempt that ends for other nodes ends as one that is preempted: that must be no end
	 * of the run */
	bool may_move = run->scheduler && run->scheduler->ops->room &&
			(run->spec.rules[CAUSE_PREEMPTED] == SPEC_RULE_AUTO ||
			 run->spec.rules[CAUSE_PREEMPTED] == SPEC_RELAUNCH);

	run->policy = (struct policy){
		.max_without_progress = run->spec.max_without_progress,
		.backoff_first_ms = run->spec.backoff_first_ms,
		.backoff_max_ms = run->spec.backoff_max_ms,
		.rolls_back = run->spec.rollback > 0,
		.kill_grace_ms = run->spec.kill_grace_ms,
		.stop_grace_ms = run->spec.stop_grace_ms,
		.rules = run->spec.rules,
		.never_on_exit_codes = run->spec.never_on_exit_codes.items,
		.never_count = run->spec.never_on_exit_codes.count,
		.may_do_with_fewer = run->spec.min_nodes > 0 &&
				     run->spec.min_nodes < run->spec.nodes,
		.fewer_after_ms = run->spec.fewer_after_ms,
	};
	run->policy.leaves = may_move && run->spec.leave;
	run->policy.grows_back = may_move && run->policy.may_do_with_fewer && run->spec.grow_back;
	/* elsewhere nothing is gained by waiting in line, and there is one machine */
	if (run->scheduler != slurm)
		run->policy.may_do_with_fewer = run->policy.grows_back = false;
}

/* Of this run there is, or was, a checkpoint of this step. */
static void know_checkpoint(struct run *run, int64_t step)
{
	if (step > run->checkpoint_step)
		run->checkpoint_step = step;
}

/* A clock that was set back must not stretch a pause beyond the longest one. */
static void take_pause(struct run *run, int64_t now_ms, int64_t wall_ms)
{
	int64_t left_ms = run->backoff_until_ms - wall_ms;

	if (left_ms > run->policy.backoff_max_ms)
		left_ms = run->policy.backoff_max_ms;
	run->pause_until_ms = now_ms + (left_ms > 0 ? left_ms : 0);
}

static int take_attempt(const struct ledger_attempt *row, void *arg)
{
	struct run *run = arg;
	struct attempt *a = &run->attempt;

	/* rows come oldest first: the last one stays */
	attempt_clear(a);
	a->id = row->id;
	a->number = row->number;
	a->state = row->state;
	snprintf(a->job.token, sizeof(a->job.token), "%s", row->token);
	a->job.job_id = (uint32_t)row->job_id;
	a->job.submit_time = row->submit_time;
	a->cause = row->cause;
	a->released_ms = row->released_ms;
	a->started_ms = row->started_ms;
	a->was_waiting = row->was_waiting;
	run->was_taken |= row->job_id > 0;
	run_waited(run);
	a->exit_code = row->exit_code;
	a->spool_offset = row->spool_offset;
	a->spool_seq = row->spool_seq;
	a->asks_fewer = run->is_short;
	run->is_short = row->is_short;
	run->has_attempt = true;
	know_checkpoint(run, row->resumed_from_step);
	text_keep(&a->nodes, row->nodes);
	free(run->excluded);
	run->excluded = xstrdup(row->excluded);
	snprintf(a->end_text, sizeof(a->end_text), "%s", row->text);
	a->is_final = ended_for_good(a->end_text);
	if (row->started_ms > 0) {
		if (row->ended_ms > run->absent_since_ms)
			run->absent_since_ms = row->ended_ms;
		if (row->state == ATTEMPT_ENDED && row->cause != CAUSE_LAUNCH_FAIL)
			run->ever_trained = true;
		if (row->state == ATTEMPT_ENDED &&
		    relaunch_was_in_vain(row->cause, row->ended_ms - row->started_ms, 0))
			run->in_vain++;
		else if (row->state == ATTEMPT_ENDED)
			run->in_vain = 0;
		run->has_no_eligible_node = false;
	} else if (row->state == ATTEMPT_ENDED) {
		run->in_vain += !row->is_walled_in && !row->is_short;
		run->has_no_eligible_node |= row->is_walled_in;
	}
	return 0;
}

struct newest_launch {
	struct run *run;
	int64_t started_ms;
};

static int take_launch(const struct ledger_launch *row, void *arg)
{
	struct newest_launch *newest = arg;

	newest->started_ms = row->started_ms;
	newest->run->attempt.launch = row->number;
	if (row->ended_ms > 0)
		attempt_outlived(&newest->run->attempt, row->number);
	know_checkpoint(newest->run, row->resumed_from_step);
	newest->run->attempt.is_settled = row->ended_ms > 0 && row->cause != CAUSE_LOST;
	return 0;
}

/* What tells whether the newest launch counts: its end, or a checkpoint that it made. */
static int take_progress(struct engine *e, struct run *run, struct err *err)
{
	struct newest_launch newest = { .run = run };
	struct ledger_checkpoint c;

	if (ledger_launch_each(e->ledger, run->attempt.id, take_launch, &newest, err) < 0)
		return -1;
	if (ledger_checkpoint_newest(e->ledger, run->id, &c, NULL) < 0 || !c.valid)
		return 0;
	know_checkpoint(run, c.step);
	if (c.attempt == run->attempt.number && c.time_ms >= newest.started_ms)
		run->attempt.is_settled = true;
	return 0;
}

/* One file that is gone must not keep lbd from all other runs, nor this one's job from being
 * watched, and killed when somebody says so. */
static int take_spec(struct engine *e, struct run *run, bool is_known, struct err *err)
{
	struct err why = { 0 };

	run->gpus = -1;
	if (e->world->spec(e->world->self, run->dir, &run->spec, &why) == 0)
		return 0;
	if (!is_known)
		return err_set(err, why.code, "run %s: %s", run->name, why.text);
	log_error("run %s: %s; it is watched, and cannot be submitted until that is "
		  "mended%s",
		  run->name, why.text, err_is_passing(&why) ? "" : ": lbctl restart");
	run->spec_problem = xstrdup(why.text);
	run_spec_defaults(&run->spec);
	return 0;
}

bool engine_has_rules(struct engine *e, struct run *run)
{
	struct err why = { 0 };
	struct run_spec spec = { 0 };

	if (run->spec_problem == NULL)
		return true;
	if (e->world->spec(e->world->self, run->dir, &spec, &why) < 0)
		return !err_is_passing(&why);
	log_info("run %s: its spec can be read again", run->name);
	free(run->spec_problem);
	run->spec_problem = NULL;
	run_spec_clear(&run->spec);
	run->spec = spec;
	take_policy(run, e->slurm.scheduler);
	return true;
}

int engine_load_run(struct engine *e, const struct ledger_run *row, bool is_known, struct err *err)
{
	struct run *run = xcalloc(1, sizeof(*run));
	int64_t now_ms = engine_now(e);
	bool is_slurm = strcmp(row->scheduler, "slurm") == 0;

	run->scheduler = is_slurm ? e->slurm.scheduler : e->local.scheduler;
	take_row(run, row);
	if (take_spec(e, run, is_known, err) < 0) {
		run_destroy(run);
		return -1;
	}
	take_policy(run, e->slurm.scheduler);
	take_pause(run, now_ms, engine_wall(e));
	if (ledger_attempt_each(e->ledger, run->id, take_attempt, run, err) < 0 ||
	    take_progress(e, run, err) < 0 || engine_load_prequeued(e, run, err) < 0) {
		run_destroy(run);
		return -1;
	}
	run->attempt.watching_since_ms = now_ms;
	run->attempt.heard_ms = now_ms;
	run->next = e->runs;
	e->runs = run;
	e->run_count++;
	engine_wake(e, run);
	return 0;
}
