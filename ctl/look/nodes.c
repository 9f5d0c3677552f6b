/* SPDX-License-Identifier: MIT */
/* nodes.c - lbctl nodes: which ones the team has learned to keep away from, and how to trust one
 * again. */
#include <string.h>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "ctl/base/command.h"
#include "ctl/base/print.h"

enum { NODE_NAME, NODE_SCORE, NODE_AVOIDED, NODE_ATTEMPTS, NODE_SUSPECT, NODE_LAST, NODE_COUNT };
static const struct column columns[NODE_COUNT] = {
	[NODE_NAME] = { .title = "NODE", .least = 12, .rank = 0 },
	[NODE_SCORE] = { .title = "SCORE", .right = true, .rank = 1 },
	[NODE_AVOIDED] = { .title = "AVOIDED FOR", .right = true, .rank = 2 },
	[NODE_ATTEMPTS] = { .title = "ATTEMPTS", .right = true, .rank = 4 },
	[NODE_SUSPECT] = { .title = "SUSPECT", .right = true, .rank = 3 },
	[NODE_LAST] = { .title = "LAST ENDED", .rank = 5 },
};

static void fill_row(struct cell *row, const json_t *node, const struct style *style)
{
	int64_t until_ms = time_ms(node, "avoided_until");
	char text[CLOCK_TEXT_MAX];

	row[NODE_NAME].text = clean_copy(js_str(node, "name", NULL), style);
	row[NODE_SCORE].text = xasprintf("%.2f", js_real(node, "score", 0));
	row[NODE_AVOIDED].text = xstrdup(until_ms ? duration_text(until_ms - clock_wall_ms(), text)
						  : "-");
	row[NODE_AVOIDED].color = until_ms ? COLOR_BAD : COLOR_NONE;
	row[NODE_ATTEMPTS].text = xasprintf("%lld", (long long)js_int(node, "attempts", 0));
	row[NODE_SUSPECT].text = xasprintf("%lld", (long long)js_int(node, "suspect", 0));
	row[NODE_LAST].text = clean_copy(js_str(node, "last_cause", NULL), style);
}

static json_t *forgive(struct ctl *ctl, struct err *err)
{
	json_t *names = json_array();

	for (size_t i = 1; i < ctl->operands.count; i++)
		json_array_append_new(names, json_string(ctl->operands.words[i]));
	return client_ask(&ctl->client, VERB_FORGIVE, json_pack("{s:o}", "nodes", names), err);
}

int nodes_run(struct ctl *ctl, struct err *err)
{
	const struct operands *o = &ctl->operands;
	json_t *nodes;

	if (o->count == 0)
		nodes = client_ask(&ctl->client, VERB_NODES, NULL, err);
	else if (strcmp(o->words[0], "forgive") == 0 && o->count > 1)
		nodes = forgive(ctl, err);
	else
		return err_set(err, ERR_USAGE, "nodes: usage: lbctl nodes %s", ctl->command->usage);
	if (!nodes)
		return -1;
	if (ctl->options.json) {
		print_json(nodes);
		return 0;
	}
	if (json_array_size(nodes) > 0)
		print_rows(ctl, columns, NODE_COUNT, nodes, fill_row);
	else
		complain(ctl, "no attempt has ended on any node yet");
	json_decref(nodes);
	return 0;
}
