/* SPDX-License-Identifier: MIT */
/* events.c - lbctl events: what happened, who did it, and why. */

#include "common/base/clock.h"
#include "common/base/json.h"
#include "ctl/base/command.h"
#include "ctl/base/print.h"
#include "ctl/team/ask.h"

enum { EV_TIME, EV_RUN, EV_ACTOR, EV_KIND, EV_TEXT, EV_COUNT };
static const struct column events_columns[EV_COUNT] = {
	[EV_TIME] = { .title = "TIME", .rank = 0 },
	[EV_RUN] = { .title = "RUN", .least = 24, .rank = 1 },
	[EV_ACTOR] = { .title = "ACTOR", .rank = 3 },
	[EV_KIND] = { .title = "KIND", .rank = 2 },
	[EV_TEXT] = { .title = "WHAT HAPPENED", .runs_on = true, .rank = 0 },
};

/* `table` has no RUN column when all events are of one run: one column is then left out. */
static void events_row(struct table *table, const json_t *event, bool with_run,
		       const struct style *style)
{
	struct cell *cell = table_row(table);
	char time[CLOCK_TEXT_MAX];

	cell_put(cell++, clock_text(time_ms(event, "time"), time), style);
	if (with_run)
		cell_put(cell++, js_str(event, "run", NULL), style);
	cell_put(cell++, js_str(event, "actor", NULL), style);
	cell_put(cell++, js_str(event, "kind", NULL), style);
	cell_put(cell, js_str(event, "text", NULL), style);
}

static void events_print(const struct ctl *ctl, const json_t *events, bool with_run)
{
	struct column columns[EV_COUNT];
	struct table table;
	json_t *event;
	size_t i;
	int count = 0;

	for (int c = 0; c < EV_COUNT; c++) {
		if (c != EV_RUN || with_run)
			columns[count++] = events_columns[c];
	}
	table_init(&table, columns, count);
	json_array_foreach(events, i, event) {
		events_row(&table, event, with_run, &ctl->out);
	}
	table_print(&table, &ctl->out, stdout);
	table_fini(&table);
}

/* lbd answers a long story in parts: asks on until nothing new comes. */
static json_t *events_all(struct ctl *ctl, const char *run, struct err *err)
{
	json_t *all = json_array();
	int64_t after = 0;

	for (;;) {
		json_t *args = json_pack("{s:I}", "after", (json_int_t)after);
		json_t *part = run ? ask_about(ctl, VERB_EVENTS, run, args, err)
				   : client_ask(&ctl->client, VERB_EVENTS, args, err);
		size_t count = json_array_size(part);
		int64_t last;

		if (!part) {
			json_decref(all);
			return NULL;
		}
		last = count ? js_int(json_array_get(part, count - 1), "id", 0) : 0;
		json_array_extend(all, part);
		json_decref(part);
		if (last <= after)
			return all;
		after = last;
	}
}

int events_run(struct ctl *ctl, struct err *err)
{
	const char *run = ctl->operands.count ? ctl->operands.words[0] : NULL;
	json_t *events = events_all(ctl, run, err);

	if (!events)
		return -1;
	if (ctl->options.json) {
		print_json(events);
		return 0;
	}
	if (json_array_size(events) > 0)
		events_print(ctl, events, !run);
	else
		complain(ctl, "nothing has happened yet");
	json_decref(events);
	return 0;
}
