/* SPDX-License-Identifier: MIT */
/* metric_batch.c - a list of points that never gets longer than what the ledger keeps of a run. */
#include "sql/metric_batch.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"

static char *grown(char *text, size_t *cap, size_t wanted)
{
	while (*cap < wanted)
		*cap = *cap ? 2 * *cap : 4096;
	return xrealloc(text, *cap);
}

/* Keeps point i, whose text begins at `from`, as the next one of those that stay. */
static void keep(struct metric_batch *b, size_t i, const char *from, size_t *count, size_t *used)
{
	size_t size = strlen(from) + 1;

	memmove(b->text + *used, from, size);
	*used += size;
	b->rows[(*count)++] = b->rows[i];
}

/* As ledger_metric_thin does it later with longer stretches: of those that are not among the
 * newest, the last of each stretch. */
static void thin(struct metric_batch *b)
{
	size_t old = b->count - LEDGER_METRICS_DENSE, count = 0, used = 0;
	int64_t last = 0;
	const char *at = b->text;
	int shift;

	for (size_t i = 0; i < b->count; i++)
		if (b->rows[i].step > last)
			last = b->rows[i].step;
	shift = ledger_metric_shift(last);
	for (size_t i = 0; i < b->count; i++) {
		const char *next = at + strlen(at) + 1;
		bool is_last = i + 1 >= old ||
			       b->rows[i].step >> shift != b->rows[i + 1].step >> shift;

		if (is_last)
			keep(b, i, at, &count, &used);
		at = next;
	}
	b->count = count;
	b->text_len = used;
}

void metric_batch_add(struct metric_batch *b, const struct ledger_metric *m, const char *text,
		      size_t len)
{
	if (b->count == LEDGER_METRICS_MAX)
		thin(b);
	if (b->count == b->cap) {
		b->cap = b->cap ? 2 * b->cap : 16;
		b->rows = xrealloc(b->rows, b->cap * sizeof(b->rows[0]));
	}
	if (b->text_len + len + 1 > b->text_cap)
		b->text = grown(b->text, &b->text_cap, b->text_len + len + 1);
	memcpy(b->text + b->text_len, text, len);
	b->text[b->text_len + len] = '\0';
	b->text_len += len + 1;
	b->rows[b->count] = *m;
	b->rows[b->count++].fields = NULL;
}

int metric_batch_write(struct metric_batch *b, struct ledger *l, struct err *err)
{
	const char *at = b->text;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < b->count; i++) {
		b->rows[i].fields = at;
		at += strlen(at) + 1;
		rc = ledger_metric_put(l, &b->rows[i], err);
	}
	free(b->rows);
	free(b->text);
	*b = (struct metric_batch){ 0 };
	return rc;
}
