/* SPDX-License-Identifier: MIT */
/* starts.c - phases of starts in words, the longest first. */
#include "ctl/base/starts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"

enum { TEXT_BYTES = 2048 };
static const double too_little = 1 / 50.0;

const char *starts_words(const char *phase)
{
	static const struct {
		const char *phase, *words;
	} table[] = {
		{ "job", "Slurm before lbrun" },
		{ "fence", "an older attempt's end" },
		{ "check", "check of the nodes" },
		{ "clear", "clearing up" },
		{ "pause", "pause" },
		{ "search", "looking for a checkpoint" },
		{ "cache", "room in the cache" },
		{ "silent", "before its first word" },
		{ "setup", "set-up" },
		{ "first_step", "first step" },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if (strcmp(table[i].phase, phase) == 0)
			return table[i].words;
	}
	return phase;
}

double starts_sum(json_t *phases)
{
	const char *name;
	json_t *value;
	double sum = 0;

	json_object_foreach(phases, name, value) {
		sum += json_number_value(value);
	}
	return sum;
}

const char *span_text(double seconds, char out[CLOCK_TEXT_MAX])
{
	if (seconds < 10)
		snprintf(out, CLOCK_TEXT_MAX, "%.1fs", seconds);
	else
		duration_text(seconds < 1e12 ? llround(seconds) * 1000 : -1, out);
	return out;
}

struct item {
	const char *name;
	double value;
};

static int longest_first(const void *a, const void *b)
{
	double x = ((const struct item *)a)->value, y = ((const struct item *)b)->value;

	return x < y ? 1 : -(x > y);
}

char *starts_text(json_t *phases, double each, const struct style *style)
{
	struct item *items = xcalloc(json_object_size(phases) + 1, sizeof(*items));
	double least = starts_sum(phases) * too_little;
	char span[CLOCK_TEXT_MAX], *text, *out;
	const char *name;
	json_t *value;
	struct buf buf;
	size_t count = 0;

	json_object_foreach(phases, name, value) {
		if (json_number_value(value) > least)
			items[count++] = (struct item){ name, json_number_value(value) };
	}
	qsort(items, count, sizeof(*items), longest_first);
	buf_init(&buf, TEXT_BYTES);
	for (size_t i = 0; i < count; i++)
		buf_addf(&buf, "%s%s %s", i > 0 ? ", " : "", starts_words(items[i].name),
			 span_text(items[i].value * each, span));
	buf_addf(&buf, "%s", "");
	text = buf_take(&buf);
	out = clean_copy(text, style);
	free(text);
	free(items);
	return out;
}
