/* SPDX-License-Identifier: MIT */
/* compare.c - lbctl compare: the runs of a group side by side, with the settings in which they
 * differ. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/bytes.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "ctl/base/command.h"
#include "ctl/base/print.h"

enum {
	MAX_KEYS = 12,
	AFTER_KEYS = 5,
	KEYS_ALWAYS = 3, /* are never left out */
	PLAIN_COLUMNS = 80,
	FULL_TITLE_COLUMNS = 40,
};

static const json_t *setting(const json_t *run, const json_t *keys, size_t i)
{
	return json_object_get(json_object_get(run, "settings"),
			       json_string_value(json_array_get(keys, i)));
}

/* How much the paths of a column have in common, down to the last folder; 0 = they are none. */
static size_t shared_folder(const json_t *runs, const json_t *keys, size_t i)
{
	const char *first = json_string_value(setting(json_array_get(runs, 0), keys, i));
	size_t shared = first ? strlen(first) : 0, k;
	const json_t *run;

	json_array_foreach(runs, k, run) {
		const char *text = json_string_value(setting(run, keys, i));
		size_t n = 0;

		while (text && n < shared && text[n] == first[n])
			n++;
		shared = n;
	}
	while (shared > 0 && first[shared - 1] != '/')
		shared--;
	return shared > strlen(".../") ? shared : 0;
}

/* Texts as they are but for the folder that all share, the rest as JSON writes it. */
static void put_value(struct cell *cell, const json_t *value, size_t shared,
		      const struct style *style)
{
	char *text = NULL;

	if (json_is_string(value) && shared > 0)
		text = xasprintf(".../%s", json_string_value(value) + shared);
	else if (json_is_string(value))
		text = js_bytes_take(value);
	else if (value && !json_is_null(value))
		text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(6));
	cell_put(cell, text, style);
	free(text);
}

static void add_row(struct table *table, const json_t *run, const json_t *keys, size_t key_count,
		    const size_t *shared, const struct style *style)
{
	struct cell *cell = table_row(table);
	const char *state = js_str(run, "state", "?");
	char text[2 * NUMBER_TEXT_MAX];

	cell_put(cell++, js_str(run, "name", NULL), style);
	for (size_t i = 0; i < key_count; i++)
		put_value(cell++, setting(run, keys, i), shared[i], style);
	cell_put(cell, state, style);
	cell++->color = state_color(state);
	cell_put(cell++, step_text(js_int(run, "step", -1), js_int(run, "target_step", -1), text),
		 style);
	cell_put(cell++, loss_text(js_real(run, "loss", NAN), text), style);
	cell_put(cell++, loss_text(js_real(run, "min_loss", NAN), text), style);
	cell_put(cell, short_number(js_real(run, "tokens_per_s", NAN), text), style);
}

/* "optimizer.lr", or only "lr" where the full names would fill the line. */
static const char *title_of(const json_t *keys, size_t i)
{
	const char *full = json_string_value(json_array_get(keys, i)), *dot = strrchr(full, '.');
	size_t columns = 0, k;
	const json_t *key;

	json_array_foreach(keys, k, key) {
		columns += json_string_length(key) + 2;
	}
	return dot && columns > FULL_TITLE_COLUMNS ? dot + 1 : full;
}

/* A value may be cut, but not below its title; the last keys go before how the runs do. */
static struct column key_column(const json_t *keys, size_t i)
{
	const char *title = title_of(keys, i);
	int least = columns_of(title);

	return (struct column){
		.title = title,
		.right = true,
		.least = least < 8 ? 8 : least,
		.rank = i < KEYS_ALWAYS ? 0 : AFTER_KEYS + (int)i,
	};
}

/* Also where nobody reads it on a terminal: what differs is what counts, and stays in sight.
 * `hidden` settings are no column of the table. */
static void print_fitting(const struct ctl *ctl, const struct table *table, int key_count,
			  int hidden)
{
	struct style style = ctl->out;
	int widths[1 + MAX_KEYS + AFTER_KEYS];

	if (style.width == 0)
		style.width = PLAIN_COLUMNS;
	table_fit(table, style.width, widths);
	for (int i = 1; i <= key_count; i++)
		hidden += widths[i] < 0;
	table_print(table, &style, stdout);
	if (hidden > 0)
		hint(ctl, "%d more settings differ: --json shows them", hidden);
}

static void print_table(const struct ctl *ctl, const json_t *data)
{
	static const struct column last[AFTER_KEYS] = {
		{ .title = "STATE", .rank = 2 },
		{ .title = "STEP", .right = true, .rank = 1 },
		{ .title = "LOSS", .right = true, .rank = 1 },
		{ .title = "MIN LOSS", .right = true, .rank = 3 },
		{ .title = "TOK/S", .right = true, .rank = 4 },
	};
	const json_t *keys = json_object_get(data, "keys"), *runs = json_object_get(data, "runs"),
		     *run;
	size_t all_keys = json_array_size(keys), key_count = all_keys, shared[MAX_KEYS], i;
	struct column columns[1 + MAX_KEYS + AFTER_KEYS] = { { .title = "NAME", .least = 12 } };
	struct table table;

	if (key_count > MAX_KEYS)
		key_count = MAX_KEYS;
	for (i = 0; i < key_count; i++) {
		columns[1 + i] = key_column(keys, i);
		shared[i] = shared_folder(runs, keys, i);
	}
	for (i = 0; i < AFTER_KEYS; i++)
		columns[1 + key_count + i] = last[i];
	table_init(&table, columns, (int)(1 + key_count + AFTER_KEYS));
	json_array_foreach(runs, i, run) {
		add_row(&table, run, keys, key_count, shared, &ctl->out);
	}
	print_fitting(ctl, &table, (int)key_count, (int)(all_keys - key_count));
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
