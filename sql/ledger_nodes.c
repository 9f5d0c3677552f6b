/* SPDX-License-Identifier: MIT */
/* ledger_nodes.c - the queries about the nodes that attempts ran on, and small facts about lbd
 * itself. */
#include "sql/ledger_internal.h"

#include <stdio.h>
#include <stdlib.h>

static const struct column node_columns[] = {
	COLUMN(ledger_node, TEXT, name),     COLUMN(ledger_node, INT64, attempts),
	COLUMN(ledger_node, INT64, suspect), COLUMN(ledger_node, CAUSE, last_cause),
	COLUMN(ledger_node, INT64, last_ms), COLUMN(ledger_node, INT64, suspect_ms),
	COLUMN(ledger_node, REAL, score),    COLUMN(ledger_node, INT64, score_ms),
	COLUMN(ledger_node, REAL, record),   { NULL, 0, 0 },
};

struct fact {
	const char *value;
};

static const struct column fact_columns[] = {
	COLUMN(fact, TEXT, value),
	{ NULL, 0, 0 },
};

static bool may_be_the_nodes_fault(enum cause cause)
{
	return cause == CAUSE_NODE_FAIL || cause == CAUSE_LAUNCH_FAIL || cause == CAUSE_CRASH ||
	       cause == CAUSE_HANG;
}

int ledger_node_attempt_ended(struct ledger *l, const char *node, enum cause cause, int64_t now_ms,
			      struct err *err)
{
	sqlite3_stmt *s = query(l, Q_NODE_ATTEMPT_ENDED);

	bind_text(s, ":name", node);
	bind_int(s, ":suspect", may_be_the_nodes_fault(cause));
	bind_text(s, ":cause", cause_name(cause));
	bind_int(s, ":now_ms", now_ms);
	return write_rows(l, s, err) < 0 ? -1 : 0;
}

int ledger_node_know(struct ledger *l, const char *node, int64_t now_ms, struct err *err)
{
	sqlite3_stmt *s = query(l, Q_NODE_KNOW);

	bind_text(s, ":name", node);
	bind_int(s, ":now_ms", now_ms);
	return write_rows(l, s, err) < 0 ? -1 : 0;
}

int ledger_node_set_score(struct ledger *l, const char *node, double score, double record,
			  int64_t now_ms, struct err *err)
{
	sqlite3_stmt *s = query(l, Q_NODE_SET_SCORE);

	bind_text(s, ":name", node);
	bind_real(s, ":score", score);
	bind_real(s, ":record", record);
	bind_int(s, ":score_ms", now_ms);
	if (write_one(l, s, ERR_NOT_FOUND, "nothing is known of this node", err))
		return err_wrap(err, "%s", node);
	return 0;
}

int ledger_node_each(struct ledger *l, int (*each)(const struct ledger_node *node, void *arg),
		     void *arg, struct err *err)
{
	sqlite3_stmt *s = query(l, Q_NODE_LIST);
	struct ledger_node node;
	int got;

	while ((got = read_next(l, s, node_columns, &node, err)) > 0 && each(&node, arg) == 0)
		;
	return read_end(s, got);
}

int ledger_meta_get(struct ledger *l, const char *key, int64_t fallback, int64_t *out,
		    struct err *err)
{
	sqlite3_stmt *s = query(l, Q_META_GET);
	struct err why = { 0 };
	struct fact fact;

	*out = fallback;
	bind_text(s, ":key", key);
	if (read_one(l, s, fact_columns, &fact, "", &why) == 0)
		*out = strtoll(fact.value, NULL, 10);
	else if (why.code != ERR_NOT_FOUND)
		return err_set(err, why.code, "%s", why.text);
	return 0;
}

int ledger_meta_put(struct ledger *l, const char *key, int64_t value, struct err *err)
{
	sqlite3_stmt *s = query(l, Q_META_PUT);
	char text[24];

	snprintf(text, sizeof(text), "%lld", (long long)value);
	bind_text(s, ":key", key);
	bind_text(s, ":value", text);
	return write_rows(l, s, err) < 0 ? -1 : 0;
}
