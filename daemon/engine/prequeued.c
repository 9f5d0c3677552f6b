/* SPDX-License-Identifier: MIT */
/* prequeued.c - the engine's side of restart.prequeue: what prequeue.h decides, in the ledger and
 * in memory. A spare is an attempt in all but its place. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/mem.h"
#include "daemon/engine/state.h"
#include "daemon/engine/prequeue.h"

struct run run_with_spare(const struct run *run)
{
	struct run shadow = *run;

	shadow.attempt = *run->spare;
	shadow.excluded = run->spare_excluded;
	return shadow;
}

static void set_excluded(struct run *run, char *excluded)
{
	free(run->spare_excluded);
	run->spare_excluded = excluded;
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
		     ledger_spare_insert(e->ledger, run->id, s->number, s->job.token,
					 run->spare_excluded, engine_wall(e), &s->id, &err),
		     &err);
	run->spare = s;
}

static void adopt(struct engine *e, struct run *run, const struct job_ref *job)
{
	struct attempt *s = run->spare;
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

void engine_drop_spare(struct engine *e, struct run *run)
{
	struct err err = { 0 };

	if (run->spare == NULL)
		return;
	engine_wrote(e, ledger_spare_drop(e->ledger, run->spare->id, &err), &err);
	free(run->spare);
	run->spare = NULL;
	/* its job, if there is one, is a ghost now: look for it soon */
	engine_poller(e, run)->has_strays = true;
}

static void come_to_nothing(struct engine *e, struct run *run, const struct decision *d)
{
	run->is_walled_in |= d->is_walled_in;
	if (d->cause != CAUSE_KILLED) {
		run->spare_not_before_ms = engine_now(e) + SPARE_AGAIN_MS;
		engine_event(e, run, "prequeue_failed", "lbd", "the job of the next attempt: %s",
			     d->text ? d->text : "");
	}
	engine_drop_spare(e, run);
}

bool engine_write_spare(struct engine *e, struct run *run, const struct decision *d)
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
	bool same = strcmp(excluded, run->spare_excluded) == 0 && run->resume_from[0] == '\0';

	free(excluded);
	return same;
}

bool engine_take_spare(struct engine *e, struct run *run)
{
	struct err err = { 0 };

	if (run->spare && !is_fit(e, run))
		engine_drop_spare(e, run);
	if (run->spare == NULL)
		return false;
	run->attempt = *run->spare;
	free(run->spare);
	run->spare = NULL;
	free(run->excluded);
	run->excluded = xstrdup(run->spare_excluded);
	/* without it lbrun goes by an older count of launches without progress */
	if (e->world->retell(e->world->self, run, &err) < 0)
		log_warn("%s: %s", run->name, err.text);
	err_clear(&err);
	engine_wrote(e, ledger_spare_take(e->ledger, run->attempt.id, engine_wall(e), &err), &err);
	return true;
}

int engine_load_spare(struct engine *e, struct run *run, struct err *err)
{
	struct err none = { 0 };
	struct ledger_attempt row;
	struct attempt *s;

	if (ledger_spare_find(e->ledger, run->id, &row, &none) < 0) {
		if (none.code == ERR_NOT_FOUND)
			return 0;
		return err_set(err, none.code, "%s", none.text);
	}
	run->spare = s = xcalloc(1, sizeof(*s));
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
