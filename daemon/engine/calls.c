/* SPDX-License-Identifier: MIT */
/* calls.c - the acts of the engine: calls to a scheduler, and what becomes of their answers.
 *
 * An answer names its run by id, its attempt by token (the id of one that was dropped is given
 * again), neither by pointer: in the meantime the run may have ended, or the engine may have read
 * everything anew. An answer that finds nobody is dropped; the next poll shows what it did. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/failpoint.h"
#include "common/base/json.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/text.h"
#include "daemon/engine/state.h"

/* Where the call is made, and where its answer arrives; submit.call comes later, in job.c. */
static const struct {
	enum decision_kind kind;
	enum failpoint call, answer;
} call_points[] = {
	{ DECISION_SUBMIT, FP_COUNT, FP_SUBMIT_ANSWER },
	{ DECISION_RELEASE, FP_RELEASE_CALL, FP_RELEASE_ANSWER },
	{ DECISION_SIGNAL, FP_SIGNAL_CALL, FP_SIGNAL_ANSWER },
	{ DECISION_CANCEL, FP_CANCEL_CALL, FP_CANCEL_ANSWER },
};

static void pass_point(enum decision_kind kind, bool is_answer)
{
	for (size_t i = 0; i < sizeof(call_points) / sizeof(call_points[0]); i++) {
		enum failpoint point = is_answer ? call_points[i].answer : call_points[i].call;

		if (call_points[i].kind == kind && point != FP_COUNT)
			failpoint(point, NULL);
	}
}

struct open_call {
	struct open_call *next, **at;
	struct engine *engine;
	enum decision_kind kind;
	int64_t run_id;
	char token[TOKEN_HEX + 1];
};

/* `run` NULL: of a job that no run waits for. */
static struct open_call *begin_call(struct engine *e, const struct run *run,
				    const struct attempt *a, enum decision_kind kind)
{
	struct open_call *f = xcalloc(1, sizeof(*f));

	f->engine = e;
	f->kind = kind;
	if (run) {
		f->run_id = run->id;
		memcpy(f->token, a->job.token, sizeof(f->token));
	}
	f->next = e->open_calls;
	f->at = &e->open_calls;
	if (f->next)
		f->next->at = &f->next;
	e->open_calls = f;
	return f;
}

static void end_call(struct open_call *f)
{
	*f->at = f->next;
	if (f->next)
		f->next->at = f->at;
	free(f);
}

void engine_drop_calls(struct engine *e)
{
	struct open_call *f = e->open_calls;

	e->open_calls = NULL;
	while (f) {
		struct open_call *next = f->next;

		free(f);
		f = next;
	}
}

enum { COUNT_MS = 60 * 1000 };

static void turn_minute(struct call_count *c, int64_t now_ms)
{
	int64_t minutes = (now_ms - c->minute_ms) / COUNT_MS;

	if (c->minute_ms == 0)
		c->minute_ms = now_ms;
	else if (minutes > 0) {
		c->before = minutes == 1 ? c->now : 0;
		c->now = 0;
		c->is_whole = true;
		c->minute_ms += minutes * COUNT_MS;
	}
}

void engine_count_call(struct engine *e)
{
	turn_minute(&e->calls, engine_now(e));
	e->calls.now++;
}

double engine_calls_per_minute(struct engine *e)
{
	turn_minute(&e->calls, engine_now(e));
	return e->calls.is_whole ? (double)e->calls.before : NAN;
}

static enum call_state call_state_of(enum scheduler_result result)
{
	static const enum call_state states[SCHEDULER_RESULT_COUNT] = {
		[SCHEDULER_OK] = CALL_OK,           [SCHEDULER_REFUSED] = CALL_REFUSED,
		[SCHEDULER_GONE] = CALL_GONE,       [SCHEDULER_DOWN] = CALL_DOWN,
		[SCHEDULER_UNCLEAR] = CALL_UNCLEAR,
	};

	return states[result];
}

static struct call *call_of(struct attempt *a, enum decision_kind kind)
{
	switch (kind) {
	case DECISION_SUBMIT:
		return &a->submit;
	case DECISION_RELEASE:
		return &a->release;
	case DECISION_SIGNAL:
		return &a->signal;
	case DECISION_RECALL:
		return &a->recall;
	case DECISION_ASK_ROOM:
		return &a->room;
	case DECISION_GROW:
	case DECISION_LEAVE:
		return &a->signal;
	case DECISION_SAVE:
		return &a->save;
	default:
		return &a->cancel;
	}
}

/* That nobody remembers is no news: the attempt is lost, as it would be without asking. */
static void take_memory(struct engine *e, struct run *run, struct attempt *a,
			const struct scheduler_reply *reply)
{
	const struct job_status *job = reply->jobs;

	if (reply->result != SCHEDULER_OK || reply->job_count == 0)
		return;
	if (a == &run->attempt)
		engine_note_cancelled(e, run, json_object_get(reply->body, "cancelled"));
	if (a == &run->attempt && !js_bool(reply->body, "more", false))
		engine_note_unknown(e, run, json_object_get(reply->body, "known"));
	a->recalled = (struct recalled){
		.cause = job->cause,
		.exit_code = job->exit_code,
		.signal = job->signal,
		.had_nodes = job_nodes(job)[0] != '\0',
		.start_time = job->start_time,
		.end_time = job->end_time,
		.has_canceller = job->has_canceller,
		.canceller = job->canceller,
		.is_more = js_bool(reply->body, "more", false),
	};
	snprintf(a->recalled.state, sizeof(a->recalled.state), "%s (accounting)", job->state);
}

/* What may not have been done is tried again. */
static void take_release(struct engine *e, struct run *run, struct attempt *a,
			 const struct scheduler_reply *reply)
{
	if (reply->result == SCHEDULER_DOWN || reply->result == SCHEDULER_UNCLEAR)
		return;
	a->is_let_go = false;
	if (reply->result == SCHEDULER_OK && js_bool(reply->body, "held", false))
		engine_event(e, run, "release", run->let_go_by, "it was held in Slurm");
	else if (reply->result == SCHEDULER_REFUSED)
		engine_event(e, run, "release", run->let_go_by, "refused: %s", reply->text);
}

static void take_answer(struct engine *e, struct run *run, struct attempt *a,
			enum decision_kind kind, const struct scheduler_reply *reply)
{
	struct call *call = call_of(a, kind);

	if (kind == DECISION_SUBMIT)
		engine_forget_nodes(e, run, json_object_get(reply->body, "absent"));
	if (kind == DECISION_SUBMIT && reply->result == SCHEDULER_OK)
		engine_prepare_early(e, run, a);
	call->state = call_state_of(reply->result);
	call->reply_ms = engine_now(e);
	if (kind == DECISION_RELEASE && a->is_let_go)
		take_release(e, run, a, reply);
	if (kind == DECISION_SUBMIT || kind == DECISION_RELEASE)
		text_copy(a->call_text, sizeof(a->call_text), reply->text);
	if (kind == DECISION_ASK_ROOM)
		text_copy(a->room_text, sizeof(a->room_text), reply->text);
	if (kind == DECISION_SUBMIT && reply->result == SCHEDULER_OK)
		a->submitted = reply->job;
	if (kind == DECISION_RECALL)
		take_memory(e, run, a, reply);
	else if (kind == DECISION_ASK_ROOM)
		log_debug("%s: room: %s", run->name, reply->text[0] ? reply->text : "yes");
	else if (reply->result != SCHEDULER_OK)
		log_warn("%s: %s: %s", run->name, decision_name(kind), reply->text);
	engine_wake(e, run);
}

static void on_answer(void *arg, const struct scheduler_reply *reply)
{
	struct open_call *f = arg;
	struct engine *e = f->engine;
	struct run *run = engine_find_id(e, f->run_id);

	pass_point(f->kind, true);
	if (run && run->has_attempt && strcmp(run->attempt.job.token, f->token) == 0)
		take_answer(e, run, &run->attempt, f->kind, reply);
	else if (run && run->prequeued && strcmp(run->prequeued->job.token, f->token) == 0)
		take_answer(e, run, run->prequeued, f->kind, reply);
	end_call(f);
}

static void on_stray_answer(void *arg, const struct scheduler_reply *reply)
{
	if (reply->result != SCHEDULER_OK)
		log_warn("cancel of a stray job: %s", reply->text);
	end_call(arg);
}

void engine_cancel_stray(struct engine *e, struct scheduler *s, const struct job_ref *job)
{
	engine_count_call(e);
	log_warn("job %u: cancelled, its attempt is over or has another job token=%.8s",
		 job->job_id, job->token);
	failpoint(FP_STRAY_CALL, NULL);
	s->ops->cancel(s, job, on_stray_answer, begin_call(e, NULL, NULL, DECISION_CANCEL));
}

/* The attempt cannot even be prepared: as if the scheduler had said no, with our own words; or,
 * where that is no fault of the run's (a full disk), as if it were down, and it is tried again. */
static void refuse(struct engine *e, struct run *run, struct attempt *a, const struct err *err)
{
	struct scheduler_reply reply = {
		.result = err_is_passing(err) ? SCHEDULER_DOWN : SCHEDULER_REFUSED,
		.text = err->text,
	};

	a->is_unfit = reply.result == SCHEDULER_REFUSED;
	take_answer(e, run, a, DECISION_SUBMIT, &reply);
}

static void submit(struct engine *e, struct run *run, struct attempt *a)
{
	struct open_call *f = begin_call(e, run, a, DECISION_SUBMIT);
	struct run shadow = a == run->prequeued ? run_with_prequeued(run) : *run;
	struct err err = { 0 };

	if (run->spec_problem)
		err_set(&err, ERR_USAGE, "%s", run->spec_problem);
	else if (e->world->submit(e->world->self, &shadow, ledger_id(e->ledger), on_answer, f,
				  &err) == 0)
		return;
	end_call(f);
	refuse(e, run, a, &err);
}

/* After a crash its files may not be there yet. Where they cannot be written the job stays held,
 * and it is tried again; what no trial changes ends the attempt, as it would have ended the
 * submission. */
static void release(struct engine *e, struct run *run, struct attempt *a, const struct job_ref *job)
{
	struct scheduler *s = run->scheduler;
	struct scheduler_reply reply = { .result = SCHEDULER_DOWN };
	struct err err = { 0 };

	if (engine_prepare(e, run, a, &err) == 0) {
		s->ops->release(s, job, on_answer, begin_call(e, run, a, DECISION_RELEASE));
		return;
	}
	reply.text = err.text;
	a->is_unfit = !err_is_passing(&err);
	engine_poller(e, run)->has_strays |= a->is_unfit; /* a ghost then: looked for soon */
	take_answer(e, run, a, DECISION_RELEASE, &reply);
}

/* A job with as many nodes as are missing, or are set to drain, others than those that it has and,
 * at first, than those that it would keep away from: as for any job a node that is mistrusted is
 * better than none. */
static void ask_room(struct engine *e, struct run *run)
{
	struct open_call *f = begin_call(e, run, &run->attempt, DECISION_ASK_ROOM);
	char *avoided = engine_choose_excluded(e, run);
	bool is_patient = engine_now(e) < run->attempt.watching_since_ms + e->nodes.patience_ms;
	struct run shadow = *run;
	struct err err = { 0 };

	shadow.excluded = xasprintf("%s%s%s", attempt_nodes(&run->attempt),
				    is_patient && avoided[0] ? "," : "", is_patient ? avoided : "");
	shadow.spec.nodes = run->attempt.leaving.draining > 0 ? run->attempt.leaving.draining
							      : engine_missing_nodes(run);
	shadow.spec.spare_nodes = 0;
	shadow.attempt.asks_fewer = false;
	run->attempt.room_is_avoided = !is_patient && avoided[0];
	if (e->world->room(e->world->self, &shadow, on_answer, f, &err) < 0) {
		struct scheduler_reply reply = { .result = SCHEDULER_REFUSED, .text = err.text };

		end_call(f);
		take_answer(e, run, &run->attempt, DECISION_ASK_ROOM, &reply);
	}
	free(shadow.excluded);
	free(avoided);
}

/* Without the note lbrun could not tell that the run goes on. */
static void end_to_move(struct engine *e, struct run *run)
{
	struct scheduler *s = run->scheduler;
	struct err err = { 0 };

	run->attempt.goes_on = true;
	if (e->world->order(e->world->self, run, &err) < 0) {
		log_warn("%s: %s", run->name, err.text);
		run->attempt.goes_on = false;
		run->attempt.signal.state = CALL_DOWN; /* from a reservation it is tried again */
		run->attempt.signal.reply_ms = engine_now(e);
		run->attempt.room.state = CALL_REFUSED; /* until the next checkpoint */
		snprintf(run->attempt.room_text, sizeof(run->attempt.room_text), "%.150s",
			 err.text);
		return;
	}
	run->has_no_eligible_node |= run->attempt.room_is_avoided;
	run->attempt.signalled = SIGTERM;
	run->attempt.ordered = run->wanted;
	s->ops->signal(s, &run->attempt.job, SIGTERM, on_answer,
		       begin_call(e, run, &run->attempt, DECISION_SIGNAL));
}

/* There is no answer to wait for: a file. */
static void ask_to_save(struct engine *e, struct run *run)
{
	struct call *call = &run->attempt.save;
	struct err err = { 0 };
	int rc = e->world->save(e->world->self, run, &err);

	if (rc < 0)
		log_warn("%s: %s", run->name, err.text);
	call->state = rc < 0 ? CALL_DOWN : CALL_OK;
	call->reply_ms = engine_now(e);
}

static void signal_job(struct engine *e, struct run *run, int signo)
{
	struct scheduler *s = run->scheduler;
	struct err err = { 0 };

	/* Without the note lbrun ends the trainer all the same, it just cannot say why. */
	if (e->world->order(e->world->self, run, &err) < 0)
		log_warn("%s: %s", run->name, err.text);
	run->attempt.signalled = signo;
	run->attempt.ordered = run->wanted;
	s->ops->signal(s, &run->attempt.job, signo, on_answer,
		       begin_call(e, run, &run->attempt, DECISION_SIGNAL));
}

void engine_act(struct engine *e, struct run *run, struct attempt *a, const struct decision *d)
{
	struct scheduler *s = run->scheduler;
	struct call *call = call_of(a, d->kind);

	if (s == NULL)
		return;
	engine_count_call(e);
	call->state = CALL_OPEN;
	call->made_ms = engine_now(e);
	pass_point(d->kind, false);
	switch (d->kind) {
	case DECISION_SUBMIT:
		submit(e, run, a);
		break;
	case DECISION_RELEASE:
		release(e, run, a, &d->job);
		break;
	case DECISION_SIGNAL:
		signal_job(e, run, d->signo);
		break;
	case DECISION_ASK_ROOM:
		ask_room(e, run);
		break;
	case DECISION_GROW:
	case DECISION_LEAVE:
		end_to_move(e, run);
		break;
	case DECISION_SAVE:
		ask_to_save(e, run);
		break;
	case DECISION_END: /* other jobs need its nodes */
		engine_cancel_stray(e, s, &d->job);
		break;
	case DECISION_RECALL:
		s->ops->recall(s, &d->job, on_answer, begin_call(e, run, a, d->kind));
		break;
	default:
		s->ops->cancel(s, &d->job, on_answer, begin_call(e, run, a, DECISION_CANCEL));
		break;
	}
	/* the call is open: find out what to wait for */
	engine_wake(e, run);
}
