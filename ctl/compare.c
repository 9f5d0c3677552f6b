/* SPDX-License-Identifier: MIT */
/* compare: the runs of a group side by side, with the settings in which they differ. */
#include <math.h>
#include <stdlib.h>

#include "common/bytes.h"
#include "common/json.h"
#include "common/mem.h"
#include "ctl/command.h"

enum { MAX_KEYS = 12, AFTER_KEYS = 5 };

static void put(struct cell *cell, const char *text, const struct style *style)
{
	cell->text = clean_copy(text, style);
}

/* Texts as they are, the rest as JSON writes it. */
static void put_value(struct cell *cell, const json_t *value, const struct style *style)
{
	char *text = json_is_string(value) ? js_bytes_take(value) :
		     value && !json_is_null(value) ?
			     json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(6)) :
			     NULL;

	put(cell, text, style);
	free(text);
}

static void add_row(struct table *table, const json_t *run, const json_t *keys, size_t key_count,
		    const struct style *style)
{
	struct cell *cell = table_row(table);
	const char *state = js_str(run, "state", "?");
	char text[2 * NUMBER_TEXT_MAX];

	put(cell++, js_str(run, "name", NULL), style);
	for (size_t i = 0; i < key_count; i++)
		put_value(cell++, json_object_get(json_object_get(run, "settings"),
						  json_string_value(json_array_get(keys, i))),
						  style);
	put(cell, state, style);
	cell++->color = state_color(state);
	put(cell++, step_text(js_int(run, "step", -1), js_int(run, "target_step", -1), text),
	    style);
	put(cell++, loss_text(js_real(run, "loss", NAN), text), style);
	put(cell++, loss_text(js_real(run, "min_loss", NAN), text), style);
	put(cell, short_number(js_real(run, "tokens_per_s", NAN), text), style);
}

static void print_table(const struct ctl *ctl, const json_t *data)
{
	static const struct column last[AFTER_KEYS] = {
		{.title = "STATE", .rank = 2}, {.title = "STEP", .right = true, .rank = 1},
		{.title = "LOSS", .right = true, .rank = 1},
		{.title = "MIN LOSS", .right = true, .rank = 3},
		{.title = "TOK/S", .right = true, .rank = 4},
	};
	const json_t *keys = json_object_get(data, "keys"), *run;
	size_t key_count = json_array_size(keys), i;
	struct column columns[1 + MAX_KEYS + AFTER_KEYS] = {{.title = "NAME", .least = 12}};
	struct table table;

	if (key_count > MAX_KEYS)
		key_count = MAX_KEYS;
	for (i = 0; i < key_count; i++)
		columns[1 + i] = (struct column){
			.title = json_string_value(json_array_get(keys, i)), .right = true,
			.least = 8};
	for (i = 0; i < AFTER_KEYS; i++)
		columns[1 + key_count + i] = last[i];
	table_init(&table, columns, (int)(1 + key_count + AFTER_KEYS));
	json_array_foreach(json_object_get(data, "runs"), i, run) {
		add_row(&table, run, keys, key_count, &ctl->out);
	}
	table_print(&table, &ctl->out, stdout);
	table_fini(&table);
}

int compare_run(struct ctl *ctl, struct err *err)
{
	json_t *args = json_pack("{s:s}", "group", ctl->operands.words[0]);
	json_t *data = client_ask(&ctl->client, VERB_COMPARE, args, err);

	if (!data)
		return -1;
	if (ctl->options.json) {
		print_json(data);
		return 0;
	}
	print_table(ctl, data);
	json_decref(data);
	return 0;
}
