/* SPDX-License-Identifier: MIT */
/* polls.c - asks the schedulers what they know of jobs, and holds it against what we expect.
 *
 * One poll tells of all jobs of ours. A job is ours when its comment carries this ledger's id; it
 * belongs to the run whose newest attempt has its token. Whatever else carries our id is a ghost: a
 * submission that arrived late, or a second job under one token. Ghosts are cancelled on sight;
 * most are still held and have cost nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/text.h"
#include "daemon/engine/state.h"

enum {
	POLL_MAX_PAUSE_MS = 60 * 1000,
	POLL_SHARE = 4,             /* a controller that takes long is left alone so much longer */
	STRAY_GRACE_MS = 30 * 1000, /* from lbrun's exit record to the end of its job */
	GAP_MS = 2 * 60 * 1000,     /* between polls: nobody knows what the controller did */
};

/* --- token → run, for the length of one poll -------------------------------------------------- */

/* .run NULL: nobody waits for it */
struct expected {
	struct run *run;
	struct attempt *attempt; /* the run's, or its prequeued one */
};

struct token_map {
	struct expected *slots;
	size_t mask;
};

/* Tokens are random digits: eight of them will do, once their bits are spread. */
static size_t token_hash(const char *token)
{
	uint64_t head;

	memcpy(&head, token, sizeof(head));
	return (size_t)((head * 0x9e3779b97f4a7c15u) >> 32);
}

static void map_add(struct token_map *map, struct run *run, struct attempt *a)
{
	size_t i = token_hash(a->job.token) & map->mask;

	while (map->slots[i].run)
		i = (i + 1) & map->mask;
	map->slots[i] = (struct expected){ run, a };
}

static struct token_map map_tokens(struct engine *e, const struct scheduler *s)
{
	struct token_map map;
	size_t size = 16;

	while (size < 4 * (size_t)e->run_count) /* a run may have a prequeued one */
		size *= 2;
	map.mask = size - 1;
	map.slots = xcalloc(size, sizeof(map.slots[0]));
	for (struct run *run = e->runs; run; run = run->next) {
		if (run->has_attempt && run->scheduler == s)
			map_add(&map, run, &run->attempt);
		if (run->prequeued && run->scheduler == s)
			map_add(&map, run, run->prequeued);
	}
	return map;
}

static struct expected map_find(const struct token_map *map, const char *token)
{
	size_t i = token_hash(token) & map->mask;

	while (map->slots[i].run && strcmp(map->slots[i].attempt->job.token, token) != 0)
		i = (i + 1) & map->mask;
	return map->slots[i];
}

/* --- the other way: jobs that lost their token while nobody looked ---------------------------- */

static void add_known(json_t *jobs, const struct attempt *a)
{
	if (a->job.job_id != 0 && a->state != ATTEMPT_ENDED)
		json_array_append_new(jobs,
				      json_pack("[sII]", a->job.token, (json_int_t)a->job.job_id,
						(json_int_t)a->job.submit_time));
}

json_t *engine_known_jobs(void *engine)
{
	struct engine *e = engine;
	json_t *jobs = json_array();

	for (struct run *run = e->runs; run; run = run->next) {
		if (run->scheduler != e->slurm.scheduler)
			continue;
		if (run->has_attempt)
			add_known(jobs, &run->attempt);
		if (run->prequeued)
			add_known(jobs, run->prequeued);
	}
	return jobs;
}

/* --- one job of a poll ------------------------------------------------------------------------ */

static bool same_job(const struct job_ref *a, const struct job_ref *b)
{
	return a->job_id == b->job_id && a->submit_time == b->submit_time;
}

/* Of one token. A job that somebody sends back into the queue keeps its number, and is submitted
 * anew. */
static bool is_ours_again(const struct job_ref *ours, const struct job_status *job)
{
	return same_job(ours, &job->ref) ||
	       (job->restart_count > 0 && ours->job_id == job->ref.job_id &&
		ours->submit_time < job->ref.submit_time);
}

static bool is_older(const struct job_ref *a, const struct job_ref *b)
{
	return a->submit_time != b->submit_time ? a->submit_time < b->submit_time
						: a->job_id < b->job_id;
}

/* By then the controller has saved the release. */
static bool is_settled(const struct attempt *a, int64_t begun_ms)
{
	return a->state >= ATTEMPT_QUEUED && begun_ms > a->watching_since_ms + CONFIRM_MS &&
	       begun_ms > a->release.reply_ms + CONFIRM_MS;
}

/* Somebody who may has sent it back into the queue although it was not to be requeued, or the
 * controller died before it had saved the start. Of an array some tasks may have begun and others
 * wait. */
static bool is_back_in_line(const struct run *run, const struct attempt *a,
			    const struct job_status *job, int64_t begun_ms)
{
	bool is_array = run_is_array(run);
	bool is_unstarted = begun_ms > a->claim_seen_ms && !is_array;

	return a->claimed && job->phase < JOB_RUNNING && (job->restart_count > 0 || is_unstarted);
}

/* It waited, and has not run since: no file of its tells more than it did. */
static bool still_waits(const struct attempt *a, const struct job_status *job)
{
	return !a->claimed && a->seen_poll_ms > 0 && a->last_seen.phase < JOB_RUNNING &&
	       job->phase < JOB_RUNNING && a->last_seen.restart_count == job->restart_count;
}

/* Nodes that boot for it are its nodes: if one does not come, Slurm soon names the others only. */
static void note_booting(struct engine *e, struct run *run, struct attempt *a)
{
	const char *nodes = job_nodes(&a->last_seen);

	if (a != &run->attempt || a->last_seen.phase != JOB_PENDING || nodes[0] == '\0')
		return;
	if (strcmp(attempt_nodes(a), nodes) != 0) /* others, if it was put back in line meanwhile */
		text_keep(&a->nodes, "");
	engine_note_nodes(e, run, nodes);
}

static void keep_status(struct attempt *a, const struct job_status *job)
{
	text_keep(&a->seen_nodes, job_nodes(job));
	text_keep(&a->seen_failed_nodes, job->failed_nodes ? job->failed_nodes : "");
	a->last_seen = *job;
	a->last_seen.nodes = a->seen_nodes;
	a->last_seen.failed_nodes = a->seen_failed_nodes;
}

/* On the disk: a later lbd, too, is to know that whoever holds it then is somebody else. */
static void note_waiting(struct engine *e, struct attempt *a)
{
	struct err err = { 0 };

	a->was_waiting = true;
	engine_wrote(e, ledger_attempt_waited(e->ledger, a->id, &err), &err);
}

static void note_job(struct engine *e, struct run *run, struct attempt *a,
		     const struct job_status *job, int64_t begun_ms)
{
	bool is_about_waiting = still_waits(a, job);
	bool is_change = a->seen_poll_ms == 0 || a->last_seen.phase != job->phase ||
			 strcmp(a->last_seen.reason, job->reason) != 0 ||
			 (a->last_seen.idle_excluded > 0) != (job->idle_excluded > 0);

	keep_status(a, job);
	a->seen_poll_ms = begun_ms;
	note_booting(e, run, a);
	if (job->phase != JOB_HELD && !a->was_waiting && is_settled(a, begun_ms))
		note_waiting(e, a);
	if ((job->phase >= JOB_ENDING || is_back_in_line(run, a, job, begun_ms)) &&
	    (is_change || a->ended_ms == 0)) {
		a->ended_ms = engine_now(e);
		is_change = true;
	}
	if (is_change && !is_about_waiting)
		run->next_look_ms = 0;
	run->dirty |= is_change;
}

static void cancel_unless_over(struct engine *e, struct scheduler *s, const struct job_status *job)
{
	if (job->phase < JOB_ENDING)
		engine_cancel_stray(e, s, &job->ref);
}

/* An attempt that is over, and was not simply the one that is just ending. */
static bool is_ghost(struct engine *e, const struct job_status *job)
{
	int64_t wall_ms = engine_wall(e);
	struct ledger_attempt attempt;
	struct err err = { 0 };

	if (job->phase == JOB_HELD)
		return true;
	if (ledger_attempt_by_token(e->ledger, job->ref.token, &attempt, &err) < 0)
		return false;
	/* an end that is to come: the clock was set back */
	return attempt.started_ms == 0 || wall_ms > attempt.ended_ms + STRAY_GRACE_MS ||
	       wall_ms < attempt.ended_ms;
}

/* Nobody waits for this job. One that runs under a token that the ledger has never heard of (an
 * older copy of it was put back, perhaps) is only told of. */
static void on_stray(struct engine *e, struct scheduler *s, const struct job_status *job)
{
	if (job->phase >= JOB_ENDING)
		return;
	if (is_ghost(e, job))
		engine_cancel_stray(e, s, &job->ref);
	else
		log_debug("job %u: no attempt waits for it token=%.8s", job->ref.job_id,
			  job->ref.token);
}

static void on_job(struct engine *e, struct poller *p, const struct token_map *map,
		   const struct job_status *job)
{
	struct expected x = map_find(map, job->ref.token);
	struct attempt *a = x.attempt;
	bool has_other = a && a->seen_poll_ms == p->begun_ms &&
			 !same_job(&a->last_seen.ref, &job->ref);

	if (a == NULL || a->state == ATTEMPT_ENDED) {
		on_stray(e, p->scheduler, job);
	} else if (a->job.job_id != 0) {
		if (is_ours_again(&a->job, job))
			note_job(e, x.run, a, job, p->begun_ms);
		else
			cancel_unless_over(e, p->scheduler, job);
	} else if (has_other && is_older(&a->last_seen.ref, &job->ref)) {
		cancel_unless_over(e, p->scheduler, job);
	} else {
		if (has_other)
			cancel_unless_over(e, p->scheduler, &a->last_seen);
		note_job(e, x.run, a, job, p->begun_ms);
	}
}

/* --- the poll --------------------------------------------------------------------------------- */

/* Jobs that were there and are no more: their runs must think again, and first look whether lbrun
 * has had more to say. */
static bool is_missing(const struct poller *p, const struct attempt *a)
{
	return a && a->state != ATTEMPT_ENDED && a->seen_poll_ms != p->done_begun_ms;
}

static void wake_missing(struct engine *e, const struct poller *p)
{
	for (struct run *run = e->runs; run; run = run->next) {
		if (run->scheduler == p->scheduler &&
		    (is_missing(p, run->has_attempt ? &run->attempt : NULL) ||
		     is_missing(p, run->prequeued))) {
			run->next_look_ms = 0;
			run->dirty = true;
		}
	}
}

static void on_poll_failed(struct engine *e, struct poller *p, const struct scheduler_reply *reply)
{
	int64_t pause_ms = e->times.busy_ms;

	if (p->down_since_ms == 0) {
		p->down_since_ms = engine_wall(e);
		log_warn("%s does not answer: %s", p->scheduler->ops->name, reply->text);
	}
	snprintf(p->text, sizeof(p->text), "%s", reply->text);
	for (int64_t i = 0; i < p->failures && pause_ms < POLL_MAX_PAUSE_MS; i++)
		pause_ms *= 2;
	p->failures++;
	p->not_before_ms = engine_now(e) +
			   (pause_ms < POLL_MAX_PAUSE_MS ? pause_ms : POLL_MAX_PAUSE_MS);
}

/* One that is busy must not be asked as often as one that answers at once: our questions take a
 * fifth of its time at most. That one answer took long says nothing: another controller may have
 * taken over meanwhile, and is fast. */
static int64_t after_slow(struct poller *p, int64_t now_ms)
{
	int64_t took_ms = now_ms - p->begun_ms,
		both_ms = took_ms < p->took_ms ? took_ms : p->took_ms,
		pause_ms = POLL_SHARE * both_ms;

	p->took_ms = took_ms;
	return now_ms + (pause_ms < POLL_MAX_PAUSE_MS ? pause_ms : POLL_MAX_PAUSE_MS);
}

static void on_cancelled_tasks(struct engine *e, const struct token_map *map, json_t *arrays)
{
	const char *token;
	json_t *tasks;

	json_object_foreach(arrays, token, tasks) {
		struct expected x = { 0 };

		if (strlen(token) == TOKEN_HEX)
			x = map_find(map, token);
		if (x.run && x.attempt == &x.run->attempt && x.attempt->state != ATTEMPT_ENDED)
			engine_note_cancelled(e, x.run, tasks);
	}
}

static void on_poll_done(struct engine *e, struct poller *p, const struct scheduler_reply *reply)
{
	const char *ours = ledger_id(e->ledger);
	struct token_map map = map_tokens(e, p->scheduler);

	if (p->done_begun_ms == 0 || p->begun_ms - p->done_begun_ms > GAP_MS)
		p->heard_since_ms = p->begun_ms;
	for (size_t i = 0; i < reply->job_count; i++)
		if (strcmp(reply->jobs[i].ledger_id, ours) == 0)
			on_job(e, p, &map, &reply->jobs[i]);
	on_cancelled_tasks(e, &map, json_object_get(reply->body, "cancelled"));
	free(map.slots);
	if (p->down_since_ms != 0)
		log_info("%s answers again", p->scheduler->ops->name);
	p->has_strays = false;
	p->done_begun_ms = p->begun_ms;
	p->down_since_ms = 0;
	p->failures = 0;
	p->not_before_ms = after_slow(p, engine_now(e));
	p->text[0] = '\0';
	wake_missing(e, p);
}

static void on_poll(void *arg, const struct scheduler_reply *reply)
{
	struct poller *p = arg;
	struct engine *e = p->engine;

	p->is_asking = false;
	if (reply->result == SCHEDULER_OK)
		on_poll_done(e, p, reply);
	else
		on_poll_failed(e, p, reply);
	if (e->news)
		e->news(e->news_arg);
}

/* Fast while some job is about to change, slowly at rest (a ghost may still turn up). */
static int64_t interval_ms(const struct engine *e, const struct poller *p)
{
	if (p->has_strays)
		return e->times.busy_ms;
	for (const struct run *run = e->runs; run; run = run->next)
		if (run->state != RUN_RUNNING && run->scheduler == p->scheduler &&
		    run->has_attempt && run->attempt.state != ATTEMPT_ENDED)
			return e->times.busy_ms;
	return e->times.idle_ms;
}

static int64_t poll_due(struct engine *e, struct poller *p)
{
	int64_t now_ms = engine_now(e), due_ms;

	if (p->scheduler == NULL || p->is_asking)
		return INT64_MAX;
	due_ms = p->done_begun_ms > 0 ? p->done_begun_ms + interval_ms(e, p) : now_ms;
	if (due_ms < p->not_before_ms)
		due_ms = p->not_before_ms;
	if (now_ms < due_ms)
		return due_ms;
	p->is_asking = true;
	p->begun_ms = now_ms;
	engine_count_call(e);
	p->scheduler->ops->poll(p->scheduler, on_poll, p);
	return INT64_MAX;
}

int64_t engine_poll_due(struct engine *e)
{
	int64_t first_ms = INT64_MAX;
	struct poller *const pollers[] = { &e->slurm, &e->local };

	for (size_t i = 0; i < sizeof(pollers) / sizeof(pollers[0]); i++) {
		int64_t jobs_ms = poll_due(e, pollers[i]),
			nodes_ms = engine_outages_due(e, pollers[i]);

		first_ms = jobs_ms < first_ms ? jobs_ms : first_ms;
		first_ms = nodes_ms < first_ms ? nodes_ms : first_ms;
	}
	return first_ms;
}
