/* SPDX-License-Identifier: MIT */
/* prequeued.c - the engine's side of restart.prequeue: what prequeue.h decides, in the ledger and
 * in memory. Such an attempt is one in all but its place. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/mem.h"
#include "daemon/engine/state.h"
#include "daemon/engine/decide/prequeue.h"

struct run run_with_prequeued(const struct run *run)
{
	struct run shadow = *run;

	shadow.attempt = *run->prequeued;
	shadow.excluded = run->prequeued_excluded;
	return shadow;
}

void run_waited(struct run *run)
{
	const struct attempt *a = &run->attempt;
	int64_t wait_ms = a->started_ms - a->released_ms;

	if (a->released_ms > 0 && a->started_ms > 0 && wait_ms > run->longest_wait_ms)
		run->longest_wait_ms = wait_ms;
}

/* Elsewhere than under Slurm nothing is gained by waiting in line, and there is one machine. */
bool engine_prequeues(const struct engine *e, const struct run *run)
{
	return run->scheduler && run->scheduler == e->slurm.scheduler &&
	       prequeue_is_worth(run->spec.prequeue, run->prequeued != NULL,
				 run->scheduler->ages_held, run->longest_wait_ms);
}

static void set_excluded(struct run *run, char *excluded)
{
	free(run->prequeued_excluded);
	run->prequeued_excluded = excluded;
}

static void make(struct engine *e, struct run *run)
{
	struct attempt *s = xcalloc(1, sizeof(*s));
	struct err err = { 0 };

	s->number = run->attempt.number + 1;
	s->state = ATTEMPT_INTENT;
	s->fresh = true;
	s->exit_code = -1;
	s->watching_since_ms = engine_now(e);
	e->world->token(e->world->self, s->job.token);
	set_excluded(run, engine_choose_excluded(e, run));
	engine_wrote(e,
		     ledger_prequeued_insert(e->ledger, run->id, s->number, s->job.token,
					     run->prequeued_excluded, engine_wall(e), &s->id, &err),
		     &err);
	run->prequeued = s;
}

static void adopt(struct engine *e, struct run *run, const struct job_ref *job)
{
	struct attempt *s = run->prequeued;
	struct err err = { 0 };

	engine_wrote(e,
		     ledger_attempt_set_job(e->ledger, s->id, job->job_id, job->submit_time, &err),
		     &err);
	s->job.job_id = job->job_id;
	s->job.submit_time = job->submit_time;
	s->state = ATTEMPT_HELD;
	s->watching_since_ms = engine_now(e);
	engine_event(e, run, "prequeued", "lbd", "job %u waits behind attempt %lld", job->job_id,
		     (long long)run->attempt.number);
}

void engine_drop_prequeued(struct engine *e, struct run *run)
{
	struct err err = { 0 };

	if (run->prequeued == NULL)
		return;
	engine_wrote(e, ledger_prequeued_drop(e->ledger, run->prequeued->id, &err), &err);
	attempt_clear(run->prequeued);
	free(run->prequeued);
	run->prequeued = NULL;
	/* its job, if there is one, is a ghost now: look for it soon */
	engine_poller(e, run)->has_strays = true;
}

static void come_to_nothing(struct engine *e, struct run *run, const struct decision *d)
{
	run->has_no_eligible_node |= d->has_no_eligible_node;
	if (d->cause != CAUSE_KILLED) {
		run->prequeued_not_before_ms = engine_now(e) + PREQUEUE_AGAIN_MS;
		engine_event(e, run, "prequeue_failed", "lbd", "the job of the next attempt: %s",
			     d->text ? d->text : "");
	}
	engine_drop_prequeued(e, run);
}

bool engine_write_prequeued(struct engine *e, struct run *run, const struct decision *d)
{
	switch (d->kind) {
	case DECISION_NEW_ATTEMPT:
		make(e, run);
		return false;
	case DECISION_ADOPT:
		adopt(e, run, &d->job);
		return false;
	case DECISION_END:
		come_to_nothing(e, run, d);
		return false;
	default:
		return true;
	}
}

/* What it was told when it was submitted must still hold. */
static bool is_fit(struct engine *e, struct run *run)
{
	char *excluded = engine_choose_excluded(e, run);
	bool same = strcmp(excluded, run->prequeued_excluded) == 0 && run->resume_from[0] == '\0';

	free(excluded);
	return same;
}

bool engine_take_prequeued(struct engine *e, struct run *run)
{
	struct err err = { 0 };

	if (run->prequeued && !is_fit(e, run))
		engine_drop_prequeued(e, run);
	if (run->prequeued == NULL)
		return false;
	attempt_clear(&run->attempt);
	run->attempt = *run->prequeued;
	free(run->prequeued);
	run->prequeued = NULL;
	free(run->excluded);
	run->excluded = xstrdup(run->prequeued_excluded);
	/* without it lbrun goes by an older count of launches without progress */
	if (e->world->retell(e->world->self, run, &err) < 0)
		log_warn("%s: %s", run->name, err.text);
	err_clear(&err);
	engine_wrote(e, ledger_prequeued_take(e->ledger, run->attempt.id, engine_wall(e), &err),
		     &err);
	return true;
}

int engine_load_prequeued(struct engine *e, struct run *run, struct err *err)
{
	struct err none = { 0 };
	struct ledger_attempt row;
	struct attempt *s;

	if (ledger_prequeued_find(e->ledger, run->id, &row, &none) < 0) {
		if (none.code == ERR_NOT_FOUND)
			return 0;
		return err_set(err, none.code, "%s", none.text);
	}
	run->prequeued = s = xcalloc(1, sizeof(*s));
	s->id = row.id;
	s->number = row.number;
	s->state = row.state;
	snprintf(s->job.token, sizeof(s->job.token), "%s", row.token);
	s->job.job_id = (uint32_t)row.job_id;
	s->job.submit_time = row.submit_time;
	s->exit_code = -1;
	s->watching_since_ms = s->heard_ms = engine_now(e);
	set_excluded(run, xstrdup(row.excluded));
	return 0;
}
