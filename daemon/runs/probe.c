/* SPDX-License-Identifier: MIT */
/* probe.c - a question to the scheduler, under a time limit of our own. Its answer may come after
 * nobody waits any more: a probe lives until both the answer and its timer are done with. */
#include "daemon/runs/probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/failpoint.h"
#include "common/base/mem.h"
#include "daemon/job/job.h"

struct probe {
	struct probe *next; /* in lbd->probes */
	struct lbd *lbd;
	void (*done)(void *arg, const struct err *why); /* NULL: nobody waits any more */
	void (*told)(void *arg, uint32_t job_id);       /* the same, for a number */
	void *arg;
	char token[TOKEN_HEX + 1]; /* of the job whose number is asked for */
	uv_timer_t patience;
	bool is_answered, is_closed;
};

static void probe_unref(struct probe *p)
{
	struct probe **at = &p->lbd->probes;

	if (!p->is_answered || !p->is_closed)
		return;
	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	free(p);
}

static void on_patience_closed(uv_handle_t *handle)
{
	struct probe *p = handle->data;

	p->is_closed = true;
	probe_unref(p);
}

/* Who asked goes on, once. */
static void probe_over(struct probe *p, const struct err *why, uint32_t job_id)
{
	void (*done)(void *arg, const struct err *err) = p->done;
	void (*told)(void *arg, uint32_t job) = p->told;

	p->done = NULL;
	p->told = NULL;
	if (!uv_is_closing((uv_handle_t *)&p->patience))
		uv_close((uv_handle_t *)&p->patience, on_patience_closed);
	if (done)
		done(p->arg, why);
	if (told)
		told(p->arg, job_id);
}

static void on_answer(void *arg, const struct scheduler_reply *reply)
{
	struct probe *p = arg;
	struct err err = { 0 };

	p->is_answered = true;
	if (reply->result == SCHEDULER_REFUSED)
		err_set(&err, ERR_REFUSED, "%s", reply->text);
	probe_over(p, err.code ? &err : NULL, 0);
	probe_unref(p);
}

static void on_impatient(uv_timer_t *timer)
{
	struct probe *p = timer->data;

	p->is_answered |= p->told != NULL; /* nobody else has it in hand */
	probe_over(p, NULL, 0);
}

static struct probe *probe_create(struct lbd *lbd, uint64_t patience_ms, void *arg)
{
	struct probe *p = xcalloc(1, sizeof(*p));

	*p = (struct probe){ .next = lbd->probes, .lbd = lbd, .arg = arg };
	lbd->probes = p;
	p->patience.data = p;
	uv_timer_init(lbd->loop, &p->patience);
	uv_timer_start(&p->patience, on_impatient, patience_ms, 0);
	return p;
}

static bool is_worth_asking(const struct lbd *lbd, const struct run *run)
{
	struct engine_health health;

	engine_health(lbd->engine, &health);
	return run->scheduler && run->scheduler->ops->probe && health.slurm_down_since_ms == 0;
}

void probe_ask(struct lbd *lbd, const struct run *run,
	       void (*done)(void *arg, const struct err *why), void *arg)
{
	struct err err = { 0 };
	struct probe *p;

	if (!is_worth_asking(lbd, run)) {
		done(arg, NULL);
		return;
	}
	p = probe_create(lbd, PROBE_PATIENCE_MS, arg);
	p->done = done;
	if (job_probe(&lbd->config, run, on_answer, p, &err) == 0)
		return;
	p->is_answered = true;
	probe_over(p, &err, 0);
}

/* Where the scheduler knows no questions it is no other process either, and its word is late or
 * none. */
void probe_job(struct lbd *lbd, const char *name, int64_t until_ms,
	       void (*told)(void *arg, uint32_t job_id), void *arg)
{
	const struct run *run = engine_live(lbd->engine, name);
	int64_t left_ms = until_ms - clock_mono_ms();
	struct probe *p;

	if (left_ms <= 0 || !run || !is_worth_asking(lbd, run) || !run->has_attempt ||
	    run->attempt.submit.state != CALL_OPEN) {
		told(arg, 0);
		return;
	}
	p = probe_create(lbd, (uint64_t)left_ms, arg);
	p->told = told;
	snprintf(p->token, sizeof(p->token), "%s", run->attempt.job.token);
}

void probe_on_job(void *arg, const struct job_ref *job)
{
	struct lbd *lbd = arg;

	for (struct probe *p = lbd->probes; p; p = p->next) {
		if (!p->told || strcmp(p->token, job->token) != 0)
			continue;
		p->is_answered = true;
		failpoint(FP_JOB_TOLD, NULL);
		probe_over(p, NULL, job->job_id);
		return;
	}
}

void probes_close(struct lbd *lbd)
{
	struct err err = { 0 };

	err_set(&err, ERR_DAEMON, "lbd ends; submit it again");
	for (struct probe *p = lbd->probes, *next; p; p = next) {
		next = p->next;
		p->is_answered = true;
		probe_over(p, &err, 0);
		probe_unref(p);
	}
}
