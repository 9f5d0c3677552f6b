/* SPDX-License-Identifier: MIT */
/* run_load.c - a run's row, spec and newest attempt → memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "daemon/engine_internal.h"

struct poller *engine_poller(struct engine *e, const struct run *run)
{
	return e->slurm.scheduler && run->scheduler == e->slurm.scheduler ? &e->slurm : &e->local;
}

void run_destroy(struct run *run)
{
	if (run == NULL)
		return;
	run_spec_clear(&run->spec);
	free(run->owner);
	free(run->dir);
	free(run->wanted_by);
	free(run->wanted_reason);
	free(run->resume_from);
	free(run->excluded);
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
	run->resume_from = xstrdup(row->resume_from);
	run->excluded = xstrdup("");
	run->backoff_until_ms = row->backoff_until_ms;
	run->failures = row->failures;
	run->checkpoint_step = -1;
	run->ever_trained = row->step >= 0;
}

static void take_policy(struct run *run)
{
	run->policy = (struct policy){
		.max_without_progress = run->spec.max_without_progress,
		.backoff_first_ms = run->spec.backoff_first_ms,
		.backoff_max_ms = run->spec.backoff_max_ms,
		.kill_grace_ms = run->spec.kill_grace_ms,
		.stop_grace_ms = run->spec.stop_grace_ms,
		.rules = run->spec.rules,
		.never_on_exit_codes = run->spec.never_on_exit_codes.items,
		.never_count = run->spec.never_on_exit_codes.count,
	};
}

static int take_attempt(const struct ledger_attempt *row, void *arg)
{
	struct run *run = arg;
	struct attempt *a = &run->attempt;

	/* rows come oldest first: the last one stays */
	memset(a, 0, sizeof(*a));
	a->id = row->id;
	a->number = row->number;
	a->state = row->state;
	snprintf(a->job.token, sizeof(a->job.token), "%s", row->token);
	a->job.job_id = (uint32_t)row->job_id;
	a->job.submit_time = row->submit_time;
	a->cause = row->cause;
	a->exit_code = row->exit_code;
	a->spool_offset = row->spool_offset;
	a->spool_seq = row->spool_seq;
	a->launches_counted = row->started_ms > 0 && row->spool_seq > 0;
	run->has_attempt = true;
	snprintf(a->nodes, sizeof(a->nodes), "%s", row->nodes);
	free(run->excluded);
	run->excluded = xstrdup(row->excluded);
	snprintf(a->end_text, sizeof(a->end_text), "%s", row->text);
	if (row->started_ms > 0) {
		if (row->state == ATTEMPT_ENDED && row->cause != CAUSE_LAUNCH_FAIL)
			run->ever_trained = true;
		run->unstarted = 0;
	} else if (row->state == ATTEMPT_ENDED) {
		run->unstarted++;
	}
	return 0;
}

static void take_checkpoint(struct engine *e, struct run *run)
{
	struct ledger_checkpoint c;

	if (ledger_checkpoint_newest(e->ledger, run->id, &c, NULL) == 0 && c.valid)
		run->checkpoint_step = c.step;
}

int engine_load_run(struct engine *e, const struct ledger_run *row, struct err *err)
{
	struct run *run = xcalloc(1, sizeof(*run));
	int64_t now_ms = engine_now(e);
	bool is_slurm = strcmp(row->scheduler, "slurm") == 0;

	run->scheduler = is_slurm ? e->slurm.scheduler : e->local.scheduler;
	take_row(run, row);
	if (e->world->spec(e->world->self, run->dir, &run->spec, err) < 0) {
		err_wrap(err, "run %s", run->name);
		run_destroy(run);
		return -1;
	}
	take_policy(run);
	if (ledger_attempt_each(e->ledger, run->id, take_attempt, run, err) < 0) {
		run_destroy(run);
		return -1;
	}
	take_checkpoint(e, run);
	run->attempt.watching_since_ms = now_ms;
	run->attempt.heard_ms = now_ms;
	run->next = e->runs;
	e->runs = run;
	e->run_count++;
	engine_wake(e, run);
	return 0;
}
