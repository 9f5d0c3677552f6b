/* SPDX-License-Identifier: MIT */
/* node_scores.c - the engine's side of node memory: blame in the ledger, names for the next job,
 * and whether that job really landed elsewhere.
 *
 * The local scheduler has one machine, and nowhere else to go: its runs only count. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/run/hosts.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/text.h"
#include "daemon/engine/state.h"

enum { EXCLUDED_MAX_BYTES = 4096, HOST_MAX_BYTES = 64 };

static bool may_go_elsewhere(struct engine *e, const struct run *run)
{
	return engine_poller(e, run) == &e->slurm;
}

/* --- blame ------------------------------------------------------------------------------------ */

struct search {
	const char *name;
	double score, record;
	int64_t score_ms;
};

static int see_score(const struct ledger_node *node, void *arg)
{
	struct search *s = arg;

	if (strcmp(node->name, s->name) == 0) {
		s->score = node->score;
		s->record = node->record;
		s->score_ms = node->score_ms;
	}
	return 0;
}

/* A failure ends all jobs of its node, and each tells of it: those that began before the node was
 * blamed for as much, a moment ago, have nothing to add. Less than a failure, a crash or a share,
 * may well be something else. */
static bool is_known(const struct run *run, const struct search *old, double blame, int64_t now_ms)
{
	enum { MOMENT_MS = 10 * 60 * 1000 };
	int64_t began_ms = run->attempt.started_ms;

	return blame >= 1 && old->score >= blame && now_ms < old->score_ms + MOMENT_MS &&
	       began_ms > 0 && began_ms < old->score_ms;
}

static void blame_node(struct engine *e, const struct run *run, const char *name, const char *why,
		       double blame)
{
	struct search old = { .name = name };
	int64_t now_ms = engine_wall(e), avoided_ms;
	char text[CLOCK_TEXT_MAX];
	struct err err = { 0 };
	double score, record;

	engine_wrote(e, ledger_node_each(e->ledger, see_score, &old, &err), &err);
	if (is_known(run, &old, blame, now_ms))
		return;
	score = node_score_at(old.score, old.score_ms, now_ms, e->nodes.half_life_ms) + blame;
	engine_wrote(e, ledger_node_know(e->ledger, name, now_ms, &err), &err);
	record = blame;
	if (e->nodes.repeat_half_life_ms > 0)
		record += node_score_at(old.record, old.score_ms, now_ms,
					e->nodes.repeat_half_life_ms);
	engine_wrote(e, ledger_node_set_score(e->ledger, name, score, record, now_ms, &err), &err);
	avoided_ms = node_avoided_ms(score, record, &e->nodes);
	if (avoided_ms > 0 && e->nodes.max_excluded > 0)
		engine_event(e, run, "node_suspect", "lbd", "%s is avoided for %s: %s", name,
			     duration_text(avoided_ms, text), why);
}

static size_t names_in(const char *list)
{
	json_t *names = hosts_expand(list);
	size_t count = json_array_size(names);

	json_decref(names);
	return count;
}

char *engine_failed_nodes(const struct run *run)
{
	const struct attempt *a = &run->attempt;
	json_t *names = hosts_expand(a->seen_poll_ms > 0 ? a->last_seen.failed_nodes : ""), *name;
	/* tasks of an array have nodes of their own, and what the attempt's are is one task's */
	const char *own = run_is_array(run) ? job_nodes(&a->last_seen) : attempt_nodes(a);
	struct buf out;
	size_t i;

	buf_init(&out, HOSTS_TEXT_BYTES);
	json_array_foreach(names, i, name) {
		if (hosts_have(own, json_string_value(name)))
			buf_addf(&out, "%s%s", out.len ? "," : "", json_string_value(name));
	}
	json_decref(names);
	buf_addf(&out, "%s", "");
	return buf_take(&out);
}

char *engine_host(const struct run *run)
{
	json_t *names = hosts_expand(run->attempt.nodes);
	const char *first = json_string_value(json_array_get(names, 0));
	char *host = xstrdup(first ? first : "");

	json_decref(names);
	return host;
}

static bool was_begun(const struct run *run, enum cause cause)
{
	return cause != CAUSE_LAUNCH_FAIL || run->attempt.claimed;
}

/* The end itself points at the node: it failed, or lbrun found it broken. */
static bool is_nodes_fault(const struct run *run, enum cause cause)
{
	return cause == CAUSE_NODE_FAIL || (cause == CAUSE_LAUNCH_FAIL && was_begun(run, cause));
}

/* What does not point at the node may be the run's own fault. */
static void suspect_node(struct engine *e, struct run *run, const char *name, enum cause cause,
			 double blame)
{
	if (is_nodes_fault(run, cause) || hosts_have(run->attempt.error_nodes, name))
		blame_node(e, run, name, cause_name(cause), blame);
	else
		suspects_add(&run->suspects, cause, name, blame);
}

/* The batch script runs on the first of a job's nodes: where lbrun never began, that one is
 * suspected. */
static bool may_have_done_it(const struct run *run, enum cause cause, const char *failed,
			     const char *name, size_t i)
{
	if (!was_begun(run, cause))
		return i == 0;
	return !failed[0] || hosts_have(failed, name);
}

static size_t blamed_in(const struct run *run, enum cause cause, const char *failed, size_t nodes)
{
	if (!was_begun(run, cause))
		return nodes > 0;
	return failed[0] ? names_in(failed) : nodes;
}

void engine_blame_nodes(struct engine *e, struct run *run, const struct decision *end,
			const char *failed)
{
	enum cause cause = end->cause;
	json_t *names = hosts_expand(run_is_array(run) ? failed : run->attempt.nodes), *name;
	/* a launch's end that had one node to blame is not the others' as well */
	bool is_settled = run->attempt.is_node_named && node_blame_named(cause) > 0;
	double blame = may_go_elsewhere(e, run) && !is_settled
			       ? node_blame(cause, end->blame_run, end->signal,
					    blamed_in(run, cause, failed, json_array_size(names)))
			       : 0;
	struct err err = { 0 };
	size_t i;

	if (blame > 0 && !is_nodes_fault(run, cause))
		suspects_end(&run->suspects, cause);
	json_array_foreach(names, i, name) {
		const char *node = json_string_value(name);

		engine_wrote(
			e, ledger_node_attempt_ended(e->ledger, node, cause, engine_wall(e), &err),
			&err);
		if (blame > 0 && may_have_done_it(run, cause, failed, node, i) && !e->broken)
			suspect_node(e, run, node, cause, blame);
	}
	json_decref(names);
}

void engine_launch_blames(struct engine *e, struct run *run, enum cause cause, const char *node)
{
	double blame = node_blame_named(cause);

	run->attempt.is_node_named = blame > 0 && may_go_elsewhere(e, run) &&
				     hosts_have(run->attempt.nodes, node);
	if (!run->attempt.is_node_named)
		return;
	if (!is_nodes_fault(run, cause))
		suspects_end(&run->suspects, cause);
	suspect_node(e, run, node, cause, blame);
}

void engine_run_began(struct engine *e, struct run *run)
{
	for (size_t i = 0; i < run->suspects.count; i++) {
		const struct suspect *s = &run->suspects.items[i];

		if (s->cause == CAUSE_LAUNCH_FAIL && !hosts_have(run->attempt.nodes, s->node) &&
		    suspects_proven(&run->suspects, s) > 0)
			blame_node(e, run, s->node, "a job began elsewhere that ended here at once",
				   suspects_proven(&run->suspects, s));
	}
	suspects_forget(&run->suspects, CAUSE_LAUNCH_FAIL);
}

void engine_run_got_on(struct engine *e, struct run *run)
{
	for (size_t i = 0; i < run->suspects.count; i++) {
		const struct suspect *s = &run->suspects.items[i];
		double blame = suspects_proven(&run->suspects, s);

		if (s->cause != CAUSE_LAUNCH_FAIL && blame > 0)
			blame_node(e, run, s->node, cause_name(s->cause), blame);
	}
	suspects_forget(&run->suspects, CAUSE_NONE);
}

/* Of "NODE: what", once in an attempt; of a node that the job does not have we believe nothing.
 * False: so it is. */
static bool name_node(struct engine *e, struct run *run, const char *text,
		      char name[HOST_MAX_BYTES + 1])
{
	struct attempt *a = &run->attempt;
	size_t used = strlen(a->error_nodes);

	snprintf(name, HOST_MAX_BYTES + 1, "%.*s", (int)strcspn(text, ":"), text);
	if (!may_go_elsewhere(e, run) || !hosts_have(a->nodes, name) ||
	    hosts_have(a->error_nodes, name) || used + strlen(name) + 2 > sizeof(a->error_nodes))
		return false;
	snprintf(a->error_nodes + used, sizeof(a->error_nodes) - used, "%s%s", used ? "," : "",
		 name);
	return true;
}

void engine_node_error(struct engine *e, struct run *run, const char *text)
{
	char name[HOST_MAX_BYTES + 1];

	if (name_node(e, run, text, name))
		blame_node(e, run, name, "errors in the output", NODE_ERROR_BLAME);
}

void engine_node_broken(struct engine *e, struct run *run, const char *text)
{
	char name[HOST_MAX_BYTES + 1];

	if (!name_node(e, run, text, name))
		return;
	run->attempt.is_node_named = true;
	blame_node(e, run, name, text + strlen(name) + (text[strlen(name)] == ':' ? 2 : 0),
		   node_blame_named(CAUSE_LAUNCH_FAIL));
}

void engine_forget_nodes(struct engine *e, const struct run *run, const json_t *names)
{
	struct err err = { 0 };
	const json_t *name;
	size_t i;

	json_array_foreach(names, i, name) {
		struct search old = { .name = json_string_value(name) };

		engine_wrote(e, ledger_node_each(e->ledger, see_score, &old, &err), &err);
		if (old.score <= 0 && old.record <= 0)
			continue;
		engine_wrote(e,
			     ledger_node_set_score(e->ledger, old.name, 0, 0, engine_wall(e), &err),
			     &err);
		engine_event(e, run, "node_forgiven", "lbd", "%s is not in the cluster any more",
			     old.name);
	}
}

/* --- the next job ----------------------------------------------------------------------------- */

struct notes {
	const struct suspects *suspects;
	struct node_note *items;
	size_t count, cap, known;
};

static int add_note(const struct ledger_node *node, void *arg)
{
	struct notes *n = arg;
	double own = suspects_blame(n->suspects, node->name);

	n->known++;
	if (node->score <= 0 && own <= 0)
		return 0;
	if (n->count == n->cap) {
		n->cap = n->cap ? 2 * n->cap : 16;
		n->items = xrealloc(n->items, n->cap * sizeof(n->items[0]));
	}
	n->items[n->count++] = (struct node_note){
		.name = xstrdup(node->name),
		.score = node->score,
		.record = node->record,
		.score_ms = node->score_ms,
		.own = own,
	};
	return 0;
}

/* Where the last attempt kept away from too many, this one keeps away from one less: not from the
 * one that is mistrusted least. */
static size_t limit_of(const struct run *run, size_t chosen)
{
	size_t before = names_in(run->excluded);

	if (!run->has_no_eligible_node)
		return chosen;
	return before == 0 ? 0 : chosen < before ? chosen : before - 1;
}

/* Owned by the caller; "" = none. */
static char *choose(struct engine *e, const struct run *run)
{
	struct notes n = { .suspects = &run->suspects };
	struct err err = { 0 };
	struct buf out;
	size_t chosen;

	buf_init(&out, EXCLUDED_MAX_BYTES);
	engine_wrote(e, ledger_node_each(e->ledger, add_note, &n, &err), &err);
	chosen = limit_of(run, node_choose(n.items, n.count, n.known, &e->nodes, engine_wall(e)));
	for (size_t i = 0; i < n.count; i++) {
		/* a node that the spec insists on is not argued about */
		if (i < chosen && !hosts_have(run->spec.nodelist, n.items[i].name))
			buf_addf(&out, "%s%s", out.len ? "," : "", n.items[i].name);
		free(n.items[i].name);
	}
	free(n.items);
	buf_addf(&out, "%s", "");
	return buf_take(&out);
}

char *engine_choose_excluded(struct engine *e, const struct run *run)
{
	return may_go_elsewhere(e, run) ? choose(e, run) : xstrdup("");
}

void engine_exclude_nodes(struct engine *e, struct run *run)
{
	char *excluded = engine_choose_excluded(e, run);
	struct err err = { 0 };

	if (run->has_no_eligible_node && run->excluded[0])
		engine_event(e, run, "node_again", "lbd", "it kept away from %s; now %s%s",
			     run->excluded,
			     excluded[0] ? "from those that are mistrusted most: "
					 : "it may run anywhere",
			     excluded);
	free(run->excluded);
	run->excluded = excluded;
	if (excluded[0])
		engine_wrote(
			e, ledger_attempt_set_excluded(e->ledger, run->attempt.id, excluded, &err),
			&err);
}

/* --- where it landed -------------------------------------------------------------------------- */

void engine_note_nodes(struct engine *e, struct run *run, const char *nodes)
{
	struct attempt *a = &run->attempt;
	json_t *names, *name;
	size_t i;

	if (nodes[0] == '\0' || attempt_nodes(a)[0] != '\0')
		return;
	text_keep(&a->nodes, nodes);
	if (run->excluded[0] == '\0')
		return;
	names = hosts_expand(a->nodes);
	json_array_foreach(names, i, name) {
		if (hosts_have(run->excluded, json_string_value(name)))
			engine_event(e, run, "node_again", "lbd",
				     "it runs on %s again, which it was to "
				     "keep away from",
				     json_string_value(name));
	}
	json_decref(names);
}
