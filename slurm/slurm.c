/* SPDX-License-Identifier: MIT */
/* slurm.c - the Slurm scheduler: requests to the helper lbd-slurm, one at a time.
 *
 *   call ─▶ queue (urgent | poll) ─▶ in flight, under a deadline ─▶ answer
 *                                         │
 *                                         └─▶ late, or the helper died ─▶ SIGKILL ─▶ unclear, down
 *
 * Submit, release, signal and cancel go before polls, but a poll waits for at most URGENT_IN_A_ROW
 * of them. When the helper fails its request, or finds no controller, all that queue behind it are
 * answered "down", too: whoever asked decides anew, and nobody waits for many deadlines in a
 * row. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "slurm/accounting.h"
#include "slurm/backends.h"
#include "slurm/helper_process.h"
#include "slurm/polled.h"
#include "slurm/request.h"
#include "slurm/wire.h"

enum {
	URGENT_IN_A_ROW = 64,
	RESPAWN_MS = 1000, /* at most one start of the helper in this time */
	KILL_MS = 1000,    /* from its SIGKILL to giving it up */
};

struct slurm {
	struct scheduler base;
	uv_loop_t *loop;
	struct helper *helper;
	struct accounting *accounting;
	int64_t deadline_ms;
	uv_timer_t deadline;
	uv_timer_t kick;  /* takes the next request, now or when the helper may start again */
	int open_handles; /* timers, helper and accounting whose close callback is still due */
	struct queue urgent, idle;
	struct request *current;
	bool has_acted;  /* the helper said so of the current request */
	bool is_new;     /* the helper has not been told anything yet */
	bool is_late;    /* the helper was killed for being late */
	bool is_absurd;  /* and this one for what it said: nothing more of it counts */
	bool is_failing; /* all that waits is about to be failed: nothing may be sent */
	int urgent_in_a_row;
	int64_t next_id;
	int64_t started_ms; /* monotonic; of the helper's last start, 0 = never */

	struct polled polled; /* what the last poll told */
	bool has_info;        /* the cluster's particulars are logged, or asked for */

	bool is_closing;
	void (*closed)(void *arg);
	void *closed_arg;
};

/* --- the queue -------------------------------------------------------------------------------- */
/* A timer that already runs is the respawn pause; it looks at the queue when it is over. */
static void kick(struct slurm *s, int64_t after_ms);

static struct request *make(struct slurm *s, enum op op, scheduler_done done, void *arg)
{
	struct request *r = xcalloc(1, sizeof(*r));

	r->op = op;
	r->id = ++s->next_id;
	r->done = done;
	r->arg = arg;
	return r;
}

static struct request *enqueue(struct slurm *s, enum op op, scheduler_done done, void *arg)
{
	struct request *r = make(s, op, done, arg);

	queue_put(op_is_urgent(op) ? &s->urgent : &s->idle, r);
	kick(s, 0);
	return r;
}

/* What a helper that has just begun is told before anything else; NULL: nothing. */
static struct request *first_request(struct slurm *s)
{
	bool is_due = s->is_new && s->base.known;
	struct request *r = is_due ? make(s, OP_KNOWN, NULL, NULL) : NULL;

	if (r)
		r->line = request_known_line(r, s->base.ledger_id,
					     s->base.known(s->base.known_arg));
	s->is_new = false;
	return r;
}

static struct request *next_request(struct slurm *s)
{
	bool idle_waits = s->idle.first && s->urgent_in_a_row >= URGENT_IN_A_ROW;
	struct request *r = idle_waits ? NULL : queue_take(&s->urgent);

	if (r) {
		s->urgent_in_a_row++;
		return r;
	}
	s->urgent_in_a_row = 0;
	return queue_take(&s->idle);
}

/* --- answers ---------------------------------------------------------------------------------- */
static void tell_job(const struct slurm *s, const struct request *r, uint32_t job_id)
{
	struct job_ref job = r->ref;

	job.job_id = job_id;
	if (r->op == OP_SUBMIT && s->base.on_job)
		s->base.on_job(s->base.on_job_arg, &job);
}

/* The callback may make new calls, and may close us: nothing of *s but is_closing counts after. */
static void answer(struct slurm *s, struct request *r, struct scheduler_reply *reply)
{
	tell_job(s, r, reply->job.job_id);
	if (r->done)
		r->done(r->arg, reply);
	request_free(r);
}

static void answer_word(struct slurm *s, struct request *r, enum scheduler_result result,
			const char *text)
{
	struct scheduler_reply reply = { .result = result, .text = text, .job = r->ref };

	answer(s, r, &reply);
}

/* The helper failed its request: that one and all behind it get an answer. */
static void fail_all(struct slurm *s, const char *text)
{
	struct request *current = s->current;
	struct queue waiting[2] = { s->urgent, s->idle };
	bool is_unclear = current && op_is_change(current->op) && s->has_acted;

	s->current = NULL;
	uv_timer_stop(&s->deadline);
	/* Callbacks may enqueue: what they put in is not ours to fail. */
	for (int i = 0; i < 2; i++)
		if (!waiting[i].first)
			queue_init(&waiting[i]);
	queue_init(&s->urgent);
	queue_init(&s->idle);
	if (current)
		answer_word(s, current, is_unclear ? SCHEDULER_UNCLEAR : SCHEDULER_DOWN, text);
	for (int i = 0; i < 2; i++) {
		struct request *r;

		while (!s->is_closing && (r = queue_take(&waiting[i])))
			answer_word(s, r, SCHEDULER_DOWN, text);
		queue_drop(&waiting[i]);
	}
}

static void take_info(struct slurm *s, const json_t *body)
{
	int64_t age = js_int(body, "min_job_age", 0);

	s->base.kill_wait_ms = 1000 * js_int(body, "kill_wait", 0);
	s->base.node_uid = (uint32_t)js_int(body, "slurmd_uid", 0);
	s->base.ages_held = js_bool(body, "ages_held", false);
	log_info("Slurm %s cluster=%s min_job_age=%llds message_timeout=%llds kill_wait=%llds",
		 js_str(body, "version", "?"), js_str(body, "cluster", "?"), (long long)age,
		 (long long)js_int(body, "message_timeout", 0),
		 (long long)js_int(body, "kill_wait", 0));
	if (age > 0 && age < 60)
		log_warn("Slurm forgets ended jobs after %llds (MinJobAge): an ending that lbrun "
			 "could not record may be missed",
			 (long long)age);
}

/* Of a token that has expired Slurm says no more than of a network that is down. */
static char *text_of(const json_t *body)
{
	char *text = js_bytes_take(json_object_get(body, "text")), *more = NULL;

	if (text && js_bool(body, "unreachable", false) && getenv("SLURM_JWT"))
		more = xasprintf("%s (lbd was started with a token in SLURM_JWT: has it expired?)",
				 text);
	if (more)
		free(text);
	return more ? more : text;
}

static void finish(struct slurm *s, const json_t *body)
{
	struct request *r = s->current;
	char *text = text_of(body);
	struct scheduler_reply reply = {
		.result = wire_result_from_name(js_str(body, "result", "")),
		.text = text ? text : "",
		.job = r->ref,
		.body = body,
	};

	s->current = NULL;
	uv_timer_stop(&s->deadline);
	if (r->op == OP_SUBMIT) {
		reply.job.job_id = (uint32_t)js_int(body, "job_id", 0);
		reply.job.submit_time = js_int(body, "submit_time", 0);
	} else if (r->op == OP_POLL && reply.result == SCHEDULER_OK) {
		if (polled_answer(&s->polled, body)) {
			reply.result = SCHEDULER_DOWN;
			reply.text = "the Slurm helper sent a job list that cannot be read";
		} else {
			reply.jobs = s->polled.jobs;
			reply.job_count = s->polled.count;
		}
		if (!s->has_info)
			enqueue(s, OP_INFO, NULL, NULL);
		s->has_info = true;
	} else if (r->op == OP_INFO && reply.result == SCHEDULER_OK) {
		take_info(s, body);
	}
	kick(s, 0);
	/* what the callback asks for fails with the rest: the helper must not have begun with it */
	s->is_failing = js_bool(body, "unreachable", false);
	answer(s, r, &reply);
	if (js_bool(body, "unfit", false))
		helper_is_unfit(s->helper);
	if (s->is_failing && !s->is_closing)
		fail_all(s, text ? text : "Slurm does not answer");
	s->is_failing = false;
	free(text);
}

/* --- the helper ------------------------------------------------------------------------------- */
static void on_line(void *arg, char *line, size_t len)
{
	struct slurm *s = arg;
	struct err err = { 0 };
	json_t *body;

	if (s->is_absurd)
		return;
	if (line[0] != '{' && s->current && s->current->op == OP_POLL &&
	    polled_row(&s->polled, line))
		return;
	body = js_parse(line, len, &err);
	if (!body || !s->current || js_int(body, "id", 0) != s->current->id) {
		log_error("the Slurm helper does not make sense: %s", body ? "wrong id" : err.text);
		s->is_absurd = true;
		helper_kill(s->helper);
	} else if (js_bool(body, "acting", false)) {
		s->has_acted = true;
		if (json_object_get(body, "job_id")) /* taken; what more there is to know follows */
			tell_job(s, s->current, (uint32_t)js_int(body, "job_id", 0));
	} else {
		finish(s, body);
	}
	json_decref(body);
}

static void on_end(void *arg)
{
	struct slurm *s = arg;

	s->is_absurd = false;
	fail_all(s, s->is_late ? "Slurm did not answer in time" : "the Slurm helper ended");
}

static const struct helper_events helper_events = { on_line, on_end };

static void on_deadline(uv_timer_t *timer)
{
	struct slurm *s = timer->data;

	if (s->is_late) {
		log_error("the Slurm helper cannot be killed: leaving it behind");
		s->is_absurd = false;
		helper_abandon(s->helper);
		fail_all(s, "Slurm did not answer in time");
		return;
	}
	s->is_late = true;
	log_warn("Slurm did not answer request=%s within %lld ms", op_name(s->current->op),
		 (long long)s->deadline_ms);
	helper_kill(s->helper);
	uv_timer_start(timer, on_deadline, KILL_MS, 0);
}

static char *poll_line(struct slurm *s, const struct request *r)
{
	return request_poll_line(r, s->base.ledger_id, polled_have(&s->polled));
}

static void send_request(struct slurm *s, struct request *r)
{
	char *line = r->line ? r->line : r->op == OP_POLL ? poll_line(s, r) : request_bare_line(r);

	r->line = NULL;
	s->current = r;
	s->has_acted = false;
	s->is_late = false;
	uv_timer_start(&s->deadline, on_deadline, (uint64_t)s->deadline_ms, 0);
	helper_send(s->helper, line, strlen(line));
}

/* 0: it runs; 1: not yet, the kick timer knows when; -1: it cannot be started. */
static int start_helper(struct slurm *s, struct err *err)
{
	int64_t now = clock_mono_ms();

	if (helper_is_running(s->helper))
		return 0;
	if (s->started_ms && now - s->started_ms < RESPAWN_MS) {
		kick(s, s->started_ms + RESPAWN_MS - now);
		return 1;
	}
	s->started_ms = now;
	s->is_new = true;
	return helper_start(s->helper, err);
}

/* What the helper can begin with at once does not wait for the loop: who asked may go on with
 * something that takes long. No answer comes from here. */
static void send_now(struct slurm *s, const struct request *r)
{
	bool is_next = !s->is_failing && !s->current && s->urgent.first == r && !s->idle.first &&
		       helper_is_running(s->helper);

	if (is_next && strlen(r->line) < WIRE_MAX_REQUEST)
		send_request(s, next_request(s));
}

static void on_kick(uv_timer_t *timer)
{
	struct slurm *s = timer->data;
	struct err err = { 0 };
	struct request *r;
	int rc;

	if (s->current || (!s->urgent.first && !s->idle.first))
		return;
	rc = start_helper(s, &err);
	if (rc < 0)
		fail_all(s, err.text);
	if (rc)
		return;
	r = first_request(s);
	if (!r)
		r = next_request(s);
	if (!r->line || strlen(r->line) < WIRE_MAX_REQUEST) {
		send_request(s, r);
		return;
	}
	kick(s, 0);
	answer_word(s, r, SCHEDULER_REFUSED, "the job's script and environment are too large");
}

static void kick(struct slurm *s, int64_t after_ms)
{
	if (!uv_is_active((uv_handle_t *)&s->kick))
		uv_timer_start(&s->kick, on_kick, (uint64_t)after_ms, 0);
}

/* --- calls ------------------------------------------------------------------------------------ */
static void slurm_submit(struct scheduler *base, const struct job_request *job, scheduler_done done,
			 void *arg)
{
	struct request *r = enqueue((struct slurm *)base, OP_SUBMIT, done, arg);

	snprintf(r->ref.token, sizeof(r->ref.token), "%s", job->token);
	r->line = request_job_line(r, job);
	send_now((struct slurm *)base, r);
}

static void slurm_probe(struct scheduler *base, const struct job_request *job, scheduler_done done,
			void *arg)
{
	struct request *r = enqueue((struct slurm *)base, OP_CHECK, done, arg);

	r->line = request_job_line(r, job);
	send_now((struct slurm *)base, r);
}

static void slurm_room(struct scheduler *base, const struct job_request *job, scheduler_done done,
		       void *arg)
{
	struct request *r = enqueue((struct slurm *)base, OP_ROOM, done, arg);

	r->line = request_job_line(r, job);
}

static void slurm_why(struct scheduler *base, const struct job_ref *ref,
		      const struct job_request *job, const char *avoided, scheduler_done done,
		      void *arg)
{
	struct request *r = enqueue((struct slurm *)base, OP_WHY, done, arg);

	r->ref = *ref;
	r->line = request_why_line(r, job, avoided);
}

static void control(struct scheduler *base, enum op op, const struct job_ref *job, int signo,
		    scheduler_done done, void *arg)
{
	struct request *r = enqueue((struct slurm *)base, op, done, arg);

	r->ref = *job;
	r->line = request_order_line(r, signo);
	send_now((struct slurm *)base, r);
}

static void slurm_release(struct scheduler *base, const struct job_ref *job, scheduler_done done,
			  void *arg)
{
	control(base, OP_RELEASE, job, 0, done, arg);
}

static void slurm_signal(struct scheduler *base, const struct job_ref *job, int signo,
			 scheduler_done done, void *arg)
{
	control(base, OP_SIGNAL, job, signo, done, arg);
}

static void slurm_cancel(struct scheduler *base, const struct job_ref *job, scheduler_done done,
			 void *arg)
{
	control(base, OP_CANCEL, job, 0, done, arg);
}

static void slurm_poll(struct scheduler *base, scheduler_done done, void *arg)
{
	enqueue((struct slurm *)base, OP_POLL, done, arg);
}

static void slurm_outages(struct scheduler *base, scheduler_done done, void *arg)
{
	enqueue((struct slurm *)base, OP_OUTAGES, done, arg);
}

static void slurm_recall(struct scheduler *base, const struct job_ref *job, scheduler_done done,
			 void *arg)
{
	accounting_ask(((struct slurm *)base)->accounting, job, done, arg);
}

/* --- life ------------------------------------------------------------------------------------- */
static void unref(struct slurm *s)
{
	void (*closed)(void *arg) = s->closed;
	void *arg = s->closed_arg;

	if (--s->open_handles > 0)
		return;
	polled_clear(&s->polled);
	free(s);
	closed(arg);
}

static void on_timer_closed(uv_handle_t *handle)
{
	unref(handle->data);
}

static void on_part_closed(void *arg)
{
	unref(arg);
}

static void slurm_close(struct scheduler *base, void (*closed)(void *arg), void *arg)
{
	struct slurm *s = (struct slurm *)base;

	s->is_closing = true;
	s->closed = closed;
	s->closed_arg = arg;
	queue_drop(&s->urgent);
	queue_drop(&s->idle);
	request_free(s->current);
	s->current = NULL;
	uv_close((uv_handle_t *)&s->deadline, on_timer_closed);
	uv_close((uv_handle_t *)&s->kick, on_timer_closed);
	accounting_close(s->accounting, on_part_closed, s);
	helper_close(s->helper, on_part_closed, s);
}

static const struct scheduler_ops slurm_ops = {
	.name = "slurm",
	.submit = slurm_submit,
	.release = slurm_release,
	.signal = slurm_signal,
	.cancel = slurm_cancel,
	.poll = slurm_poll,
	.recall = slurm_recall,
	.probe = slurm_probe,
	.room = slurm_room,
	.outages = slurm_outages,
	.why = slurm_why,
	.close = slurm_close,
};

struct scheduler *scheduler_slurm_create(uv_loop_t *loop, const char *helper_path,
					 int64_t deadline_ms, bool by_sbatch)
{
	struct slurm *s = xcalloc(1, sizeof(*s));

	s->base.ops = &slurm_ops;
	s->base.by_sbatch = by_sbatch;
	s->loop = loop;
	s->deadline_ms = deadline_ms;
	s->open_handles = 4;
	queue_init(&s->urgent);
	queue_init(&s->idle);
	uv_timer_init(loop, &s->deadline);
	uv_timer_init(loop, &s->kick);
	s->deadline.data = s->kick.data = s;
	s->helper = helper_create(loop, helper_path, WIRE_MAX_REPLY, &helper_events, s);
	s->accounting = accounting_create(loop, "sacct", deadline_ms);
	return &s->base;
}

void scheduler_slurm_on_doubt(struct scheduler *slurm, helper_find find, void *arg)
{
	helper_on_doubt(((struct slurm *)slurm)->helper, find, arg);
}
