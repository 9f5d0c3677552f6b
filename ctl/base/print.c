/* SPDX-License-Identifier: MIT */
/* print.c - what all commands print: tables, JSON, complaints and hints. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "ctl/base/command.h"
#include "ctl/base/print.h"

void print_rows(const struct ctl *ctl, const struct column *columns, int column_count,
		const json_t *items,
		void (*fill)(struct cell *row, const json_t *item, const struct style *style))
{
	struct table table;
	const json_t *item;
	size_t i;

	table_init(&table, columns, column_count);
	json_array_foreach(items, i, item) {
		fill(table_row(&table), item, &ctl->out);
	}
	table_print(&table, &ctl->out, stdout);
	table_fini(&table);
}

void print_json(json_t *value)
{
	/* A terminal gets ASCII: JSON escapes controls, but not the marks that reorder a line. */
	size_t flags = JSON_COMPACT | JSON_ENCODE_ANY |
		       (isatty(STDOUT_FILENO) ? JSON_ENSURE_ASCII : 0);
	size_t digits = JSON_REAL_PRECISION(15); /* with 17, .656 is printed as .6559999 */

	json_dumpf(value, stdout, flags | digits);
	putchar('\n');
	json_decref(value);
}

int64_t time_ms(const json_t *object, const char *key)
{
	double seconds = js_real(object, key, 0);

	/* Up to the year 9999; the cast of anything larger would be undefined. */
	return seconds > 0 && seconds < 253402300800.0 ? (int64_t)(seconds * 1000) : 0;
}

void complain(const struct ctl *ctl, const char *text)
{
	char *shown = clean_copy(text, &ctl->err);

	fflush(stdout);
	fprintf(stderr, "lbctl: %s\n", shown);
	free(shown);
}

void complain_of_ledger(struct ctl *ctl)
{
	json_t *lbd = client_ask(&ctl->client, VERB_VERSION, NULL, &(struct err){ 0 });
	int64_t down_ms = time_ms(lbd, "ledger_down_since");
	char age[CLOCK_TEXT_MAX], *text;

	if (down_ms > 0) {
		text = xasprintf("the ledger cannot be written since %s ago (%s): runs are shown "
				 "as they were then",
				 duration_text(clock_wall_ms() - down_ms, age),
				 js_str(lbd, "ledger_text", ""));
		complain(ctl, text);
		free(text);
	}
	json_decref(lbd);
}

void hint(const struct ctl *ctl, const char *fmt, ...)
{
	va_list args;

	if (ctl->err.width == 0)
		return;
	fflush(stdout);
	va_start(args, fmt);
	fputs(color_code(&ctl->err, COLOR_DIM), stderr);
	vfprintf(stderr, fmt, args);
	fprintf(stderr, "%s\n", color_code(&ctl->err, COLOR_NONE));
	va_end(args);
}
