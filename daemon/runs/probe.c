/* SPDX-License-Identifier: MIT */
/* probe.c - a question to the scheduler, under a time limit of our own. Its answer may come after
 * nobody waits any more: a probe lives until both the answer and its timer are done with. */
#include "daemon/runs/probe.h"

#include <stdlib.h>

#include "common/base/mem.h"
#include "daemon/job/job.h"

enum { PATIENCE_MS = 5000 };

struct probe {
	struct probe *next; /* in lbd->probes */
	struct lbd *lbd;
	void (*done)(void *arg, const struct err *why); /* NULL: nobody waits any more */
	void *arg;
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
static void probe_over(struct probe *p, const struct err *why)
{
	void (*done)(void *arg, const struct err *err) = p->done;

	p->done = NULL;
	if (!uv_is_closing((uv_handle_t *)&p->patience))
		uv_close((uv_handle_t *)&p->patience, on_patience_closed);
	if (done)
		done(p->arg, why);
}

static void on_answer(void *arg, const struct scheduler_reply *reply)
{
	struct probe *p = arg;
	struct err err = { 0 };

	p->is_answered = true;
	if (reply->result == SCHEDULER_REFUSED)
		err_set(&err, ERR_REFUSED, "%s", reply->text);
	probe_over(p, err.code ? &err : NULL);
	probe_unref(p);
}

static void on_impatient(uv_timer_t *timer)
{
	probe_over(timer->data, NULL);
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
	p = xcalloc(1, sizeof(*p));
	*p = (struct probe){ .next = lbd->probes, .lbd = lbd, .done = done, .arg = arg };
	lbd->probes = p;
	p->patience.data = p;
	uv_timer_init(lbd->loop, &p->patience);
	uv_timer_start(&p->patience, on_impatient, PATIENCE_MS, 0);
	if (job_probe(&lbd->config, run, on_answer, p, &err) == 0)
		return;
	p->is_answered = true;
	probe_over(p, &err);
}

void probes_close(struct lbd *lbd)
{
	struct err err = { 0 };

	err_set(&err, ERR_DAEMON, "lbd ends; submit it again");
	for (struct probe *p = lbd->probes, *next; p; p = next) {
		next = p->next;
		p->is_answered = true;
		probe_over(p, &err);
		probe_unref(p);
	}
}
