/* SPDX-License-Identifier: MIT */
/* facts.c - what is known of a run: from its files, from the polls, from the switches. */
#include "daemon/engine/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/run/hosts.h"

enum {
	FILES_MS = 1000,  /* how often claim and exit record are looked for */
	QUIET_MS = 10000, /* a run that has said nothing for so long is looked at seldom */
};

static void look_for_exit(struct engine *e, struct run *run, int64_t now_ms)
{
	struct attempt *a = &run->attempt;

	if (!e->world->exited(e->world->self, run, &a->exit) ||
	    strcmp(a->exit.token, a->job.token) != 0)
		return;
	a->has_exit = true;
	a->exit_seen_ms = now_ms;
}

static int64_t silent_since_ms(const struct attempt *a)
{
	return a->heard_ms > a->watching_since_ms ? a->heard_ms : a->watching_since_ms;
}

/* Do most nodes of the launch say that nobody answers them? One alone may be cut off itself; of
 * several that were lost together nobody hears. Looked for only while lbrun is silent. */
static void look_for_unheard(struct engine *e, struct run *run, int64_t now_ms)
{
	struct attempt *a = &run->attempt;
	int64_t limit_ms = run->spec.watch.node_ms;
	int64_t silent_ms = silent_since_ms(a);
	bool may_be = e->world->unheard && limit_ms > 0 && run->spec.nodes > 1 && a->launch > 0 &&
		      now_ms >= silent_ms + limit_ms;
	struct unheard u = { 0 };
	char *host;

	if (!may_be) {
		a->unheard.since_ms = 0;
		return;
	}
	if (a->unheard.since_ms > 0) /* each node's note is a file */
		return;
	host = engine_host(run);
	if (host[0])
		e->world->unheard(e->world->self, run, host, &u);
	if (2 * u.nodes > u.of) {
		a->unheard.since_ms = now_ms;
		a->unheard.limit_ms = limit_ms;
		snprintf(a->unheard.text, sizeof(a->unheard.text),
			 "the node of lbrun was not heard for %.0f s by %lld of %lld others",
			 (double)u.silent_ms / 1000, (long long)u.nodes, (long long)u.of);
		run->dirty = true;
	}
	free(host);
}

/* Once it is over, or seems so to the other nodes, what a network file system still hides is looked
 * for until the grace is over. Of a job that the scheduler does not know nothing but its files can
 * tell; of one that waits in line the polls tell when that is over, unless the scheduler falls
 * silent. One that trains without a word for long needs no look each half second. */
static int64_t look_pause_ms(struct engine *e, const struct run *run, int64_t now_ms)
{
	const struct attempt *a = &run->attempt;
	bool is_unknown = a->seen_poll_ms != engine_poller(e, run)->done_begun_ms;
	bool is_over = a->has_exit || a->ended_ms > 0 || a->unheard.since_ms > 0 || is_unknown;
	bool is_quiet = now_ms > silent_since_ms(a) + QUIET_MS;
	bool is_waiting = a->seen_poll_ms > 0 && !is_unknown && a->last_seen.phase < JOB_RUNNING;

	if (!a->claimed && is_waiting && e->times.idle_ms > FILES_MS)
		return e->times.idle_ms;
	if (!a->claimed || (is_over && e->times.spool_ms > FILES_MS) ||
	    (is_quiet && e->times.spool_ms < FILES_MS))
		return FILES_MS;
	return e->times.spool_ms;
}

void engine_look_at_files(struct engine *e, struct run *run, int64_t now_ms)
{
	struct attempt *a = &run->attempt;
	int64_t pause_ms;

	if (!run->has_attempt || a->state < ATTEMPT_HELD || a->state == ATTEMPT_ENDED) {
		run->next_look_ms = INT64_MAX;
		return;
	}
	if (!a->claimed && e->world->claimed(e->world->self, run)) {
		a->claimed = true;
		a->claim_seen_ms = now_ms;
	}
	/* The record is written after the last spool line: look for it first, then read the
	 * spool. */
	if (a->claimed && !a->has_exit)
		look_for_exit(e, run, now_ms);
	if (a->claimed)
		engine_count_tasks(e, run);
	if (a->claimed)
		engine_tell_failed_tasks(e, run);
	if (a->claimed && engine_ingest(e, run)) {
		a->heard_ms = now_ms;
		e->written |= WROTE_LINES;
	}
	if (a->claimed && !a->has_exit)
		look_for_unheard(e, run, now_ms);
	pause_ms = look_pause_ms(e, run, now_ms);
	if (a->claimed && a->has_more)
		run->next_look_ms = now_ms;
	else if (pause_ms <= FILES_MS) /* all runs in one turn: a hundred would have hundreds */
		run->next_look_ms = clock_next_round(now_ms, pause_ms);
	else
		run->next_look_ms = now_ms + pause_ms;
}

/* Nothing of the spool may be left behind; a line that a network file system still hides gets a
 * moment. */
static bool is_told(const struct engine *e, const struct attempt *a)
{
	return a->has_exit && a->drained &&
	       (a->spool_seq >= a->exit.last_seq ||
		engine_now(e) >= a->exit_seen_ms + EXIT_GRACE_MS);
}

/* Asked of the files of the run, so only when the answer counts: the job is gone, and had never
 * begun. */
static bool does_depend(const struct engine *e, const struct run *run, const struct facts *f)
{
	const struct attempt *a = f->a;
	bool counts = !a->claimed && !f->seen && a->job.job_id != 0 && f->poll_ms > 0 &&
		      (a->state == ATTEMPT_HELD || a->state == ATTEMPT_QUEUED);

	return counts && e->world->depends && e->world->depends(e->world->self, run);
}

/* Did the job lose its first node, where lbrun is, and kept others? */
static bool has_lost_host(const struct run *run, const struct facts *f)
{
	const struct attempt *a = f->a;
	json_t *has, *name;
	bool is_lost = true;
	char *host;
	size_t i;

	if (run->spec.spare_nodes <= 0 || !f->seen || f->seen->phase != JOB_RUNNING ||
	    !job_nodes(f->seen)[0] || !attempt_nodes(a)[0] ||
	    strcmp(attempt_nodes(a), job_nodes(f->seen)) == 0)
		return false;
	host = engine_host(run);
	has = hosts_expand(f->seen->nodes);
	json_array_foreach(has, i, name)
		is_lost &= strcmp(json_string_value(name), host) != 0;
	json_decref(has);
	free(host);
	return is_lost;
}

/* What the scheduler forgets (MinJobAge) before all is known of its end stays over. */
static bool is_seen(const struct attempt *a, const struct poller *p)
{
	return a->seen_poll_ms > 0 &&
	       (a->seen_poll_ms == p->done_begun_ms || a->last_seen.phase >= JOB_ENDING);
}

void engine_gather(struct engine *e, const struct run *run, const struct attempt *a,
		   struct facts *f)
{
	static const struct attempt none;
	const struct poller *p = engine_poller(e, run);
	struct switched switched = { 0 };

	*f = (struct facts){
		.state = run->state,
		.wanted = run->wanted,
		.failures = run->failures,
		.backoff_left_ms = run->pause_until_ms - engine_now(e),
		.was_taken = run->was_taken,
		.ever_trained = run->ever_trained,
		.in_vain = run->in_vain,
		.dependencies = run->dependencies,
		.dependencies_text = run->dependencies_text,
		.has_attempt = run->has_attempt,
		.a = &none,
		.goes_back = run->resume_from[0] != '\0',
	};
	e->world->switched(e->world->self, run, &switched);
	f->switches_known = switched.is_known;
	f->switched = switched.order;
	f->by_switch = run->by_switch != NULL;
	if (!run->has_attempt)
		return;
	f->a = a;
	f->excludes = run->excluded[0] != '\0';
	f->asks_fewer = a->asks_fewer;
	f->is_small = run->policy.grows_back && a->asks_fewer && engine_missing_nodes(run) > 0;
	f->patience_ms = e->nodes.patience_ms;
	f->node_uid = run->scheduler ? run->scheduler->node_uid : 0;
	f->may_recall = run->scheduler && run->scheduler->ops->recall;
	f->poll_ms = p->done_begun_ms;
	f->heard_since_ms = p->heard_since_ms;
	f->seen = is_seen(a, p) ? &a->last_seen : NULL;
	f->is_array = run_is_array(run);
	f->exited = is_told(e, a);
	f->lost_host = has_lost_host(run, f);
	f->depends = does_depend(e, run, f);
}
