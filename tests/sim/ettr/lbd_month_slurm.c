/* SPDX-License-Identifier: MIT */
/* lbd_month_slurm.c - Slurm in this month: it answers each call, loses nothing, and jobs start as
 * the month says. */
#include "common/base/json.h"
#include "tests/sim/ettr/lbd_month_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/run/hosts.h"
#include "common/base/mem.h"
#include "slurm/job_result.h"
#include "tests/sim/scheduler_calls.h"

enum {
	ANSWER_MS = 50,       /* to each call */
	OPEN_MS = 2 * SECOND, /* from a job's start to its lbrun's claim */
	MIN_JOB_AGE_MS = 300 * SECOND,
};

struct job *live_job_of(const struct sim *sim, int64_t number)
{
	for (size_t i = sim->job_count; i-- > 0;)
		if (sim->jobs[i]->number == number)
			return sim->jobs[i];
	return NULL;
}

json_t *live_names_of(const struct job *job)
{
	json_t *names = json_array();

	for (int i = 0; i < NODE_COUNT; i++)
		if (job->held[i] || job->spare[i])
			json_array_append_new(names, json_sprintf("gpu-node-%03d", i));
	return names;
}

static void read_names(const char *text, bool out[NODE_COUNT])
{
	json_t *names = hosts_expand(text ? text : ""), *name;
	size_t i;

	json_array_foreach(names, i, name)
		out[strtol(strrchr(json_string_value(name), '-') + 1, NULL, 10)] = true;
	json_decref(names);
}

void live_job_over(struct sim *sim, struct job *job, uint32_t state, uint32_t reason,
		   uint32_t exit_code)
{
	for (int i = 0; i < LEMONS; i++)
		if (job->held[i])
			sim->notes.on_lemons_ms += sim->now_ms -
						   (job->status.start_time - EPOCH_S) * 1000;
	set_status(&job->status, state, reason, exit_code);
	job->over_ms = sim->now_ms;
	sim->job = NULL;
	sim->phase = PHASE_NONE;
	sim->stamp++;
}

static void on_launch_failed(struct sim *sim, void *arg, uint64_t stamp)
{
	(void)stamp;
	live_spent(sim, WHERE_START);
	sim->why = TROUBLE_LAUNCH;
	sim->a->count[TROUBLE_LAUNCH]++;
	live_job_over(sim, arg, SJ_FAILED, SR_LAUNCH_FAILURE, 0);
}

/* The last of its nodes. */
static void set_spares_apart(const struct sim *sim, struct job *job)
{
	int spares = sim->spares;

	for (int i = NODE_COUNT; i-- > 0;) {
		int node = sim->m->order[i];

		if (!job->held[node])
			continue;
		job->head = node;
		if (spares-- <= 0)
			continue;
		job->held[node] = false;
		job->spare[node] = true;
	}
}

static void on_job_starts(struct sim *sim, void *arg, uint64_t stamp)
{
	struct job *job = arg;
	json_t *names;

	if (job->status.phase != JOB_PENDING)
		return;
	if (!month_place(sim->m, sim->now_ms, JOB_NODES + sim->spares, job->avoided, job->held)) {
		live_after(sim, MINUTE, on_job_starts, job, stamp);
		return;
	}
	set_spares_apart(sim, job);
	live_spent(sim, WHERE_WAIT);
	names = live_names_of(job);
	free(job->nodes);
	job->status.nodes = job->nodes = hosts_fold(names, HOSTS_TEXT_BYTES);
	json_decref(names);
	job->status.start_time = EPOCH_S + sim->now_ms / SECOND;
	set_status(&job->status, SJ_RUNNING, SR_NONE, 0);
	if (month_launch_fails(sim->m, (int64_t)stamp))
		live_after(sim, LAUNCH_FAILS_MS, on_launch_failed, job, 0);
	else
		live_after(sim, OPEN_MS, live_lbrun_begin, job, 0);
}

enum op { OP_SUBMIT, OP_RELEASE, OP_CANCEL, OP_POLL };

struct call_record {
	enum op op;
	scheduler_done done;
	void *arg;
	struct job *job;
};

static struct job *find(struct sim *sim, const char *token)
{
	for (size_t i = sim->job_count; i-- > 0;)
		if (strcmp(sim->jobs[i]->status.ref.token, token) == 0)
			return sim->jobs[i];
	return NULL;
}

static size_t list(struct sim *sim, struct job_status **out)
{
	size_t first = sim->job_count, count = 0;

	while (first > 0 && (sim->jobs[first - 1]->over_ms == 0 ||
			     sim->now_ms - sim->jobs[first - 1]->over_ms < MIN_JOB_AGE_MS))
		first--;
	*out = xcalloc(sim->job_count - first + 1, sizeof(**out));
	for (; first < sim->job_count; first++)
		(*out)[count++] = sim->jobs[first]->status;
	return count;
}

static void release(struct sim *sim, struct job *job)
{
	int64_t n = sim->notes.jobs++, wait_ms = month_queue_ms(sim->m, n);

	if (sim->slurm.ages_held)
		wait_ms -= wait_ms < sim->now_ms - job->made_ms ? wait_ms
								: sim->now_ms - job->made_ms;
	set_status(&job->status, SJ_PENDING, SR_PRIORITY, 0);
	live_after(sim, wait_ms, on_job_starts, job, (uint64_t)n);
}

static void on_call(struct sim *sim, void *arg, uint64_t stamp)
{
	struct call_record *c = arg;
	struct scheduler_reply reply = { .result = SCHEDULER_OK, .text = "" };
	struct job_status *rows = NULL;

	(void)stamp;
	if (c->op == OP_POLL) {
		reply.job_count = list(sim, &rows);
		reply.jobs = rows;
	} else if (c->op == OP_SUBMIT) {
		reply.job = c->job->status.ref;
	} else if (c->op == OP_RELEASE && c->job && c->job->status.phase == JOB_HELD) {
		release(sim, c->job);
	} else if (c->op == OP_CANCEL && c->job && c->job->status.phase == JOB_HELD) {
		set_status(&c->job->status, SJ_CANCELLED, SR_NONE, 0);
		c->job->over_ms = sim->now_ms;
	} else {
		reply.result = SCHEDULER_GONE; /* nobody cancels a live job in this month */
	}
	c->done(c->arg, &reply);
	free(rows);
	free(c);
}

static struct sim *sim_of(struct scheduler *s)
{
	return (struct sim *)(void *)((char *)s - offsetof(struct sim, slurm));
}

static void call(struct scheduler *s, enum op op, struct job *job, scheduler_done done, void *arg)
{
	struct call_record *c = xcalloc(1, sizeof(*c));

	*c = (struct call_record){ op, done, arg, job };
	live_after(sim_of(s), ANSWER_MS, on_call, c, 0);
}

static void do_submit(struct scheduler *s, const struct job_request *request, scheduler_done done,
		      void *arg)
{
	struct sim *sim = sim_of(s);
	struct job *job = xcalloc(1, sizeof(*job));

	if (sim->job_count == JOBS_MAX)
		abort(); /* one every ten minutes of the month */
	sim->jobs[sim->job_count++] = job;
	job->number = js_int(request->fields, "attempt", 0);
	job->made_ms = sim->now_ms;
	snprintf(job->status.ref.token, sizeof(job->status.ref.token), "%s", request->token);
	snprintf(job->status.ledger_id, sizeof(job->status.ledger_id), "%s", request->ledger_id);
	job->status.ref.job_id = (uint32_t)sim->job_count;
	job->status.ref.submit_time = EPOCH_S + sim->now_ms / SECOND;
	read_names(js_str(request->fields, "exc_nodes", NULL), job->avoided);
	set_status(&job->status, SJ_PENDING, SR_HELD_USER, 0);
	call(s, OP_SUBMIT, job, done, arg);
}

static void do_release(struct scheduler *s, const struct job_ref *ref, scheduler_done done,
		       void *arg)
{
	call(s, OP_RELEASE, find(sim_of(s), ref->token), done, arg);
}

static void do_signal(struct scheduler *s, const struct job_ref *ref, int signo,
		      scheduler_done done, void *arg)
{
	(void)ref;
	(void)signo;
	call(s, OP_CANCEL, NULL, done, arg);
}

static void do_cancel(struct scheduler *s, const struct job_ref *ref, scheduler_done done,
		      void *arg)
{
	call(s, OP_CANCEL, find(sim_of(s), ref->token), done, arg);
}

static void do_poll(struct scheduler *s, scheduler_done done, void *arg)
{
	call(s, OP_POLL, NULL, done, arg);
}

static void do_close(struct scheduler *s, void (*closed)(void *arg), void *arg)
{
	(void)s;
	closed(arg);
}

const struct scheduler_ops live_slurm_ops = {
	.name = "slurm",
	.submit = do_submit,
	.release = do_release,
	.signal = do_signal,
	.cancel = do_cancel,
	.poll = do_poll,
	.close = do_close,
};

void live_drop_calls(struct sim *sim)
{
	for (size_t i = 0; i < sim->agenda.count; i++)
		if (sim->agenda.heap[i].fn == on_call)
			free(sim->agenda.heap[i].arg);
}
