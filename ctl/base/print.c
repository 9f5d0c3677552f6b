/* SPDX-License-Identifier: MIT */
/* print.c - what all commands print: tables, JSON, complaints and hints. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/shell_words.h"
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

static bool is_command(const struct ctl *ctl, const char *word)
{
	size_t len = strspn(word, "abcdefghijklmnopqrstuvwxyz");

	for (size_t i = 0; i < ctl->command_count; i++)
		if (strlen(ctl->commands[i].name) == len &&
		    strncmp(ctl->commands[i].name, word, len) == 0)
			return true;
	return false;
}

char *with_home(const struct ctl *ctl, const char *text)
{
	static const char name[] = "lbctl ";
	const char *home = ctl->client.home ? ctl->client.home : ctl->options.home, *at = text;
	char word[SHELL_WORD_BYTES];
	struct buf out;

	if (!ctl->options.home)
		return xstrdup(text);
	buf_init(&out, SIZE_MAX);
	while ((at = strstr(at, name))) {
		at += strlen(name);
		buf_add(&out, text, (size_t)(at - text));
		if (is_command(ctl, at))
			buf_addf(&out, "--home %s ", shell_word(home, word));
		text = at;
	}
	buf_addf(&out, "%s", text);
	return buf_take(&out);
}

void complain(const struct ctl *ctl, const char *text)
{
	char *meant = with_home(ctl, text), *shown = clean_copy(meant, &ctl->err);

	fflush(stdout);
	fprintf(stderr, "lbctl: %s\n", shown);
	free(shown);
	free(meant);
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
	char *text, *meant;
	va_list args;

	if (ctl->err.width == 0)
		return;
	fflush(stdout);
	va_start(args, fmt);
	text = xvasprintf(fmt, args);
	va_end(args);
	meant = with_home(ctl, text);
	fprintf(stderr, "%s%s%s\n", color_code(&ctl->err, COLOR_DIM), meant,
		color_code(&ctl->err, COLOR_NONE));
	free(meant);
	free(text);
}
