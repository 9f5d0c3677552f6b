/* SPDX-License-Identifier: MIT */
/* slurm_model.c - the calls: when they take effect, and what the caller is told, if anything. */
#include "common/base/json.h"
#include "tests/sim/arrays.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "tests/sim/sim.h"

enum op { OP_SUBMIT, OP_RELEASE, OP_SIGNAL, OP_CANCEL, OP_POLL, OP_RECALL, OP_ROOM, OP_OUTAGES };

struct call_record {
	struct call_record *next;  /* in `calls` */
	struct call_record *spare; /* next free one */
	enum op op;
	int holders;   /* events that will still look at it */
	uint64_t life; /* of the lbd that made it */
	scheduler_done done;
	void *arg;
	int run, signo;
	int64_t number, warn_ms;
	uint64_t excluded;
	bool needs_all;
	struct job_ref ref;
	char ledger_id[LEDGER_ID_HEX + 1];
	enum scheduler_result result;
	const char *text;
	struct job_status *rows; /* owned; kept for the next use */
	size_t row_count, row_cap;
	json_t *body; /* owned */
};

static struct slurm_model *model_of(struct scheduler *s)
{
	return (struct slurm_model *)s; /* base is its first member */
}

static struct call_record *call_new(struct slurm_model *s, enum op op, scheduler_done done,
				    void *arg)
{
	struct call_record *c = s->spare;

	if (c) {
		s->spare = c->spare;
	} else {
		c = xcalloc(1, sizeof(*c));
		c->next = s->calls;
		s->calls = c;
	}
	c->op = op;
	c->done = done;
	c->arg = arg;
	c->holders = 0;
	c->life = s->sim->daemon.life;
	c->result = SCHEDULER_OK;
	c->text = "";
	c->row_count = 0;
	c->ref = (struct job_ref){ 0 };
	return c;
}

static void call_drop(struct sim *sim, struct call_record *c)
{
	if (--c->holders > 0)
		return;
	json_decref(c->body);
	c->body = NULL;
	c->spare = sim->slurm.spare;
	sim->slurm.spare = c;
}

/* --- effects ---------------------------------------------------------------------------------- */

static void do_submit(struct sim *sim, struct call_record *c)
{
	if (rng_chance(&sim->rng, sim->climate.refusal)) {
		c->result = SCHEDULER_REFUSED;
		c->text = "Invalid partition";
		sim_fact(sim, FACT_REFUSED, c->run, c->number, 0, 0);
		return;
	}
	c->ref = job_make(sim, c->run, c->number, c->ref.token, c->ledger_id, c->warn_ms,
			  c->excluded, c->needs_all)
			 ->status.ref;
}

static void signal_task(struct sim *sim, struct job *job, void *arg)
{
	int signo = *(int *)arg;

	if (job->status.phase < JOB_RUNNING)
		array_cancel(sim, job, OWNER_UID, 1u << job->task);
	else if (job->status.phase == JOB_RUNNING && job->lbrun)
		lbrun_signal(sim, job->lbrun, signo);
}

/* Those of its tasks that wait are cancelled. */
static void do_signal(struct sim *sim, struct call_record *c, struct job *job)
{
	if (job->task >= 0) {
		array_each(sim, job, signal_task, &c->signo);
	} else if (job->status.phase != JOB_RUNNING) {
		c->result = SCHEDULER_REFUSED;
		c->text = "the job does not run";
	} else if (job->lbrun) {
		lbrun_signal(sim, job->lbrun, c->signo);
	}
}

static void do_poll(struct sim *sim, struct call_record *c)
{
	struct slurm_model *s = &sim->slurm;

	if (c->row_cap < s->known_count) {
		c->row_cap = 2 * s->known_count;
		c->rows = xrealloc(c->rows, c->row_cap * sizeof(*c->rows));
	}
	c->row_count = 0;
	for (size_t i = 0; i < s->known_count; i++) {
		struct job_status *row = &c->rows[c->row_count];

		if (array_is_outweighed(sim, s->known[i]))
			continue;
		*row = s->known[i]->status;
		row->controller_start = EPOCH_S + s->down_until_ms / SECOND;
		row->has_canceller = false; /* only accounting knows */
		c->row_count++;
	}
	if (c->life == sim->daemon.life && sim->control != CONTROL_NO_SCANCEL)
		c->body = array_tell_cancelled(sim);
}

static void make_room(struct call_record *c)
{
	if (c->row_cap == 0) {
		c->row_cap = 8;
		c->rows = xcalloc(c->row_cap, sizeof(*c->rows));
	}
}

static void recall_array(struct sim *sim, struct call_record *c)
{
	make_room(c);
	c->row_count = 1;
	if (!sim->climate.has_accounting || !array_recall(sim, &c->ref, &c->rows[0], &c->body))
		c->result = SCHEDULER_GONE;
}

/* Accounting keeps what ended, whoever has forgotten it since; what just vanished ended nowhere. */
static void do_recall(struct sim *sim, struct call_record *c)
{
	const struct job_ref *ref = &c->ref;
	struct job *job = sim->slurm.jobs;

	while (job && (job->status.ref.job_id != ref->job_id ||
		       job->status.ref.submit_time != ref->submit_time ||
		       strcmp(job->status.ref.token, ref->token) != 0))
		job = job->next;
	if (job && job->task >= 0) {
		recall_array(sim, c);
		return;
	}
	if (job == NULL || job->status.phase != JOB_ENDED || !sim->climate.has_accounting) {
		c->result = SCHEDULER_GONE;
		return;
	}
	make_room(c);
	c->rows[0] = job->status;
	c->row_count = 1;
}

/* Nodes that are free may have others in line for them. */
static void do_room(struct sim *sim, struct call_record *c)
{
	bool is_there = !nodes_are_missing(sim, c->run) && rng_chance(&sim->rng, 0.5);

	sim_fact(sim, FACT_ROOM, c->run, c->number, is_there, 0);
	if (is_there || sim->control == CONTROL_NO_NODES)
		return;
	c->result = SCHEDULER_REFUSED;
	c->text = "no such nodes are free";
}

static void do_outages(struct sim *sim, struct call_record *c)
{
	json_t *list = json_array();

	c->body = json_pack("{s:o}", "outages", list);
	for (int i = 0; i < NODES && sim->control != CONTROL_NO_OUTAGES; i++) {
		const struct node *node = &sim->slurm.nodes[i];
		json_t *row;

		if (node->leaves_ms == 0)
			continue;
		row = json_pack("{s:o, s:s}", "nodes", json_sprintf("n%d", i), "text",
				node->is_reserved ? "maintenance" : "it is set to drain");
		if (node->is_reserved)
			js_set_int(row, "begins", EPOCH_S + node->leaves_ms / SECOND);
		json_array_append_new(list, row);
	}
}

static void do_on_job(struct sim *sim, struct call_record *c)
{
	struct job *job = job_find(sim, &c->ref);

	if (job == NULL || !job_is_live(job)) {
		c->result = SCHEDULER_GONE;
		c->text = "no such job";
	} else if (c->op == OP_RELEASE) {
		array_release(sim, job);
	} else if (c->op == OP_CANCEL) {
		array_cancel(sim, job, OWNER_UID, ALL_TASKS);
	} else {
		do_signal(sim, c, job);
	}
}

static void take_effect(struct sim *sim, struct call_record *c)
{
	if (c->op < OP_POLL && rng_chance(&sim->rng, sim->climate.forgetting))
		controller_crash_soon(sim);
	if (c->op == OP_SUBMIT)
		do_submit(sim, c);
	else if (c->op == OP_POLL)
		do_poll(sim, c);
	else if (c->op == OP_RECALL)
		do_recall(sim, c);
	else if (c->op == OP_ROOM)
		do_room(sim, c);
	else if (c->op == OP_OUTAGES)
		do_outages(sim, c);
	else
		do_on_job(sim, c);
}

/* --- the way there and back ------------------------------------------------------------------- */

static void on_told(struct sim *sim, void *arg, uint64_t stamp)
{
	(void)arg;
	sim->slurm.base.ages_held |= sim->daemon.engine && stamp == sim->daemon.life;
}

static void on_reply(struct sim *sim, void *arg, uint64_t stamp)
{
	struct call_record *c = arg;
	struct scheduler_reply reply = {
		.result = c->result,
		.text = c->text,
		.job = c->ref,
		.jobs = c->rows,
		.job_count = c->row_count,
		.body = c->body,
	};

	if (sim->daemon.engine && c->life == sim->daemon.life && !daemon_is_awake(sim)) {
		agenda_add(&sim->agenda, sim->daemon.frozen_until_ms, on_reply, c, stamp);
		return;
	}
	if (sim->daemon.engine && c->life == sim->daemon.life && !daemon_dies_here(sim))
		c->done(c->arg, &reply);
	/* behind its first poll lbd asks how Slurm is set up */
	if (c->op == OP_POLL && c->result == SCHEDULER_OK && !sim->slurm.base.ages_held)
		sim_after(sim, rng_range(&sim->rng, 0, 30 * SECOND), on_told, NULL, c->life);
	daemon_settle(sim);
	call_drop(sim, c);
}

static void reply_after(struct sim *sim, struct call_record *c, int64_t ms)
{
	c->holders++;
	sim_after(sim, ms, on_reply, c, 0);
}

/* Nobody waits for the outcome. */
static void on_late_effect(struct sim *sim, void *arg, uint64_t stamp)
{
	struct call_record *c = arg, outcome = *c;

	if (sim->now_ms < sim->slurm.down_until_ms)
		; /* it went down with the controller */
	else if (sim->now_ms >= sim->slurm.frozen_until_ms)
		take_effect(sim, &outcome);
	else if (sim->slurm.frozen_until_ms <= (int64_t)stamp + CREDENTIAL_MS) {
		agenda_add(&sim->agenda, sim->slurm.frozen_until_ms + rng_range(&sim->rng, 0, 2000),
			   on_late_effect, c, stamp);
		return;
	}
	call_drop(sim, c);
}

static void effect_later(struct sim *sim, struct call_record *c, int64_t ms, uint64_t made_ms)
{
	c->holders++;
	sim_after(sim, ms, on_late_effect, c, made_ms);
}

static void no_answer(struct sim *sim, struct call_record *c)
{
	c->result = c->op >= OP_POLL ? SCHEDULER_DOWN : SCHEDULER_UNCLEAR;
	c->text = "Slurm did not answer in time";
	reply_after(sim, c, rng_range(&sim->rng, 10, 30) * SECOND);
}

static bool goes_wrong(struct sim *sim, struct call_record *c)
{
	double dice = rng_real(&sim->rng);
	const struct climate *w = &sim->climate;

	if (c->op >= OP_POLL || dice >= w->late_effect + w->no_effect + w->lost_answer)
		return false;
	if (dice < w->late_effect)
		effect_later(sim, c, rng_range(&sim->rng, 0, CREDENTIAL_MS), (uint64_t)sim->now_ms);
	else if (dice < w->late_effect + w->lost_answer)
		effect_later(sim, c, 0, (uint64_t)sim->now_ms);
	no_answer(sim, c);
	return true;
}

static void on_arrival(struct sim *sim, void *arg, uint64_t stamp)
{
	struct call_record *c = arg;
	const struct slurm_model *s = &sim->slurm;

	(void)stamp;
	if (sim->is_local && c->life != sim->daemon.life) {
		; /* it was within the lbd that died */
	} else if (sim->now_ms < s->down_until_ms) {
		c->result = SCHEDULER_DOWN;
		c->text = "Slurm is down";
		reply_after(sim, c, rng_range(&sim->rng, 1, 2000));
	} else if (sim->now_ms < s->frozen_until_ms) {
		if (c->op < OP_POLL)
			effect_later(sim, c, 0, (uint64_t)sim->now_ms);
		no_answer(sim, c);
	} else if (!goes_wrong(sim, c)) {
		take_effect(sim, c);
		reply_after(sim, c,
			    rng_range(&sim->rng, 0, rng_chance(&sim->rng, 0.02) ? 5000 : 20));
	}
	call_drop(sim, c);
}

static void make_call(struct sim *sim, struct call_record *c)
{
	c->holders++;
	sim_after(sim, rng_range(&sim->rng, 1, 20), on_arrival, c, 0);
	sim->slurm.call_count++;
	daemon_dies_here(sim);
}

/* --- the scheduler that lbd sees -------------------------------------------------------------- */

static void model_submit(struct scheduler *base, const struct job_request *job, scheduler_done done,
			 void *arg)
{
	struct slurm_model *s = model_of(base);
	struct call_record *c;

	if (daemon_dies_here(s->sim))
		return;
	c = call_new(s, OP_SUBMIT, done, arg);
	c->run = run_index(job->run);
	c->number = js_int(job->fields, "attempt", 0);
	c->warn_ms = js_int(job->fields, "warn_time", 0) * SECOND;
	c->excluded = node_bits(js_str(job->fields, "exc_nodes", NULL));
	c->needs_all = js_int(job->fields, "min_nodes", 1) > 1;
	snprintf(c->ref.token, sizeof(c->ref.token), "%s", job->token);
	snprintf(c->ledger_id, sizeof(c->ledger_id), "%s", job->ledger_id);
	make_call(s->sim, c);
}

static void call_on_job(struct scheduler *base, enum op op, const struct job_ref *ref, int signo,
			scheduler_done done, void *arg)
{
	struct slurm_model *s = model_of(base);
	struct call_record *c;

	if (daemon_dies_here(s->sim))
		return;
	c = call_new(s, op, done, arg);
	c->ref = *ref;
	c->signo = signo;
	make_call(s->sim, c);
}

static void model_release(struct scheduler *base, const struct job_ref *ref, scheduler_done done,
			  void *arg)
{
	call_on_job(base, OP_RELEASE, ref, 0, done, arg);
}

static void model_signal(struct scheduler *base, const struct job_ref *ref, int signo,
			 scheduler_done done, void *arg)
{
	call_on_job(base, OP_SIGNAL, ref, signo, done, arg);
}

static void model_cancel(struct scheduler *base, const struct job_ref *ref, scheduler_done done,
			 void *arg)
{
	call_on_job(base, OP_CANCEL, ref, 0, done, arg);
}

static void model_room(struct scheduler *base, const struct job_request *job, scheduler_done done,
		       void *arg)
{
	struct slurm_model *s = model_of(base);
	struct call_record *c;

	if (daemon_dies_here(s->sim))
		return;
	c = call_new(s, OP_ROOM, done, arg);
	c->run = run_index(job->run);
	c->number = js_int(job->fields, "attempt", 0);
	make_call(s->sim, c);
}

static void model_outages(struct scheduler *base, scheduler_done done, void *arg)
{
	struct slurm_model *s = model_of(base);

	if (!daemon_dies_here(s->sim))
		make_call(s->sim, call_new(s, OP_OUTAGES, done, arg));
}

static void model_recall(struct scheduler *base, const struct job_ref *ref, scheduler_done done,
			 void *arg)
{
	call_on_job(base, OP_RECALL, ref, 0, done, arg);
}

static void model_poll(struct scheduler *base, scheduler_done done, void *arg)
{
	struct slurm_model *s = model_of(base);

	if (s->sim->daemon.is_dead)
		return;
	s->poll_count++;
	s->call_count--; /* send counts it */
	make_call(s->sim, call_new(s, OP_POLL, done, arg));
}

static void model_close(struct scheduler *base, void (*closed)(void *arg), void *arg)
{
	(void)base;
	closed(arg);
}

static const struct scheduler_ops ops = {
	.name = "slurm",
	.submit = model_submit,
	.release = model_release,
	.signal = model_signal,
	.cancel = model_cancel,
	.poll = model_poll,
	.room = model_room,
	.outages = model_outages,
	.recall = model_recall,
	.close = model_close,
};

/* lbd's own has no memory beyond its jobs. */
static const struct scheduler_ops local_ops = {
	.name = "local",
	.submit = model_submit,
	.release = model_release,
	.signal = model_signal,
	.cancel = model_cancel,
	.poll = model_poll,
	.close = model_close,
};

void slurm_init(struct slurm_model *s, struct sim *sim)
{
	*s = (struct slurm_model){ .base = { .ops = sim->is_local ? &local_ops : &ops },
				   .sim = sim,
				   .next_id = 1 };
}

void slurm_fini(struct slurm_model *s)
{
	while (s->calls) {
		struct call_record *c = s->calls;

		s->calls = c->next;
		json_decref(c->body);
		free(c->rows);
		free(c);
	}
	while (s->jobs) {
		struct job *job = s->jobs;

		s->jobs = job->next;
		free(job);
	}
	strv_free(s->node_lists.items);
	free(s->known);
}
