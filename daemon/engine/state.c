/* SPDX-License-Identifier: MIT */
/* state.c - what all files of the engine stand on: finding a run, waking it, writing to the ledger;
 * and what comes from outside, which is noted in a run and looked at in the next turn. Calls none
 * of them. */
#include "daemon/engine/state.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/mem.h"

void engine_wake(struct engine *e, struct run *run)
{
	run->dirty = true;
	if (e->news)
		e->news(e->news_arg);
}

struct run *engine_find(struct engine *e, const char *name)
{
	struct run *run = e->runs;

	while (run && strcmp(run->name, name) != 0)
		run = run->next;
	return run;
}

struct run *engine_find_id(struct engine *e, int64_t id)
{
	struct run *run = e->runs;

	while (run && run->id != id)
		run = run->next;
	return run;
}

void engine_wrote(struct engine *e, int rc, const struct err *err)
{
	if (rc == 0)
		return;
	if (!e->broken)
		log_error("ledger: %s", err->text);
	e->broken = true;
}

void engine_event(struct engine *e, const struct run *run, const char *kind, const char *actor,
		  const char *fmt, ...)
{
	struct err err = { 0 };
	char text[800];
	va_list ap;
	struct ledger_event event = {
		.run_id = run->id,
		.time_ms = engine_wall(e),
		.kind = kind,
		.actor = actor,
		.text = text,
		.attempt = run->has_attempt ? run->attempt.number : 0,
	};

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	engine_wrote(e, ledger_event_put(e->ledger, &event, &err), &err);
	log_info("%s: %s text=\"%s\"", run->name, kind, text);
}

struct poller *engine_poller(struct engine *e, const struct run *run)
{
	return e->slurm.scheduler && run->scheduler == e->slurm.scheduler ? &e->slurm : &e->local;
}

/* --- orders and hints from outside ------------------------------------------------------------ */

bool engine_is_released(const struct run *run)
{
	const struct attempt *a = &run->attempt;

	return run->wanted == ORDER_RUN && run->scheduler && run->has_attempt &&
	       (a->state == ATTEMPT_QUEUED || a->state == ATTEMPT_RUNNING);
}

bool engine_is_held(const struct run *run)
{
	const struct attempt *a = &run->attempt;

	return engine_is_released(run) && a->seen_poll_ms > 0 && a->last_seen.phase == JOB_HELD;
}

void engine_order(struct engine *e, const char *name, enum run_order wanted, const char *by,
		  const char *reason)
{
	struct run *run = engine_find(e, name);

	if (run == NULL)
		return;
	run->attempt.is_let_go = wanted == ORDER_RUN && engine_is_released(run);
	free(run->let_go_by);
	run->let_go_by = xstrdup(by);
	run->wanted = wanted;
	run->asked_ms = engine_wall(e); /* as the ledger has it */
	free(run->wanted_by);
	run->wanted_by = xstrdup(by);
	free(run->wanted_reason);
	run->wanted_reason = xstrdup(reason);
	free(run->by_switch);
	run->by_switch = NULL;
	engine_wake(e, run);
}

void engine_on_switches(struct engine *e)
{
	for (struct run *run = e->runs; run; run = run->next)
		run->dirty = true;
	if (e->runs && e->news)
		e->news(e->news_arg);
}

void engine_poke(struct engine *e, const char *name)
{
	struct run *run = engine_find(e, name);

	if (run == NULL)
		return;
	run->next_look_ms = 0;
	engine_wake(e, run);
}
