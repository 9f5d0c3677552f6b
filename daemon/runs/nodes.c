/* SPDX-License-Identifier: MIT */
/* nodes.c - the verbs about nodes: list, and forget. */
#include "daemon/runs/nodes.h"

#include "common/base/clock.h"
#include "common/base/json.h"

struct listing {
	const struct node_rules *rules;
	json_t *list;
	int64_t now_ms;
};

static int list_node(const struct ledger_node *node, void *arg)
{
	struct listing *l = arg;
	double score = node_score_at(node->score, node->score_ms, l->now_ms,
				     l->rules->half_life_ms);
	double record = l->rules->repeat_half_life_ms > 0
				? node_score_at(node->record, node->score_ms, l->now_ms,
						l->rules->repeat_half_life_ms)
				: 0;
	int64_t avoided_ms = l->rules->max_excluded ? node_avoided_ms(score, record, l->rules) : 0;
	json_t *o = json_object();

	js_set_str(o, "name", node->name);
	js_set_real(o, "score", score);
	js_set_real(o, "record", record);
	js_set_time(o, "avoided_until", avoided_ms ? l->now_ms + avoided_ms : 0);
	js_set_int(o, "attempts", node->attempts);
	js_set_int(o, "suspect", node->suspect);
	js_set_str(o, "last_cause", cause_name(node->last_cause));
	js_set_time(o, "last_time", node->last_ms);
	json_array_append_new(l->list, o);
	return 0;
}

json_t *nodes_list(struct request *r, struct err *err)
{
	struct listing l = {
		.rules = &r->lbd->config.nodes,
		.list = json_array(),
		.now_ms = clock_wall_ms(),
	};

	if (ledger_node_each(r->lbd->ledger, list_node, &l, err) == 0)
		return l.list;
	json_decref(l.list);
	return NULL;
}

static int forgive(struct request *r, const char *name, struct err *err)
{
	struct ledger_event e = {
		.time_ms = clock_wall_ms(),
		.kind = "node_forgiven",
		.actor = r->peer.user,
		.text = name,
	};

	if (ledger_node_set_score(r->lbd->ledger, name, 0, 0, e.time_ms, err) < 0)
		return -1;
	return ledger_event_put(r->lbd->ledger, &e, err);
}

/* What the runs themselves have against their nodes. */
static void forget_suspects(struct run *run, void *arg)
{
	(void)arg;
	suspects_forget(&run->suspects, CAUSE_NONE);
}

/* All of them or none. */
json_t *nodes_forgive(struct request *r, struct err *err)
{
	const json_t *names = json_object_get(r->args, "nodes"), *name;
	int rc = json_array_size(names) > 0 ? 0 : err_set(err, ERR_USAGE, "which nodes?");
	size_t i;

	json_array_foreach(names, i, name) {
		if (rc == 0)
			rc = forgive(r, json_is_string(name) ? json_string_value(name) : "", err);
	}
	if (rc == 0 && ledger_commit(r->lbd->ledger, err) == 0) {
		engine_each_live(r->lbd->engine, forget_suspects, NULL);
		return nodes_list(r, err);
	}
	ledger_rollback(r->lbd->ledger);
	return NULL;
}
