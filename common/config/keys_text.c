/* SPDX-License-Identifier: MIT */
/* keys_text.c - the parts of keys.h that need no TOML, apart from it so that programs without
 * configuration files (lbrun, lbctl's "did you mean") need not link the parser. */
#include <stdbool.h>
#include <string.h>

#include "common/config/keys.h"

enum { NEAREST_MAX = 63 };

static const struct {
	const char *name;
	double ms;
} units[] = { { "ms", 1 }, { "s", 1e3 }, { "m", 60e3 }, { "h", 3600e3 }, { "d", 86400e3 } };

/* 100 years: far beyond any use, far below what int64_t and double hold exactly. */
static const double duration_max_ms = 100 * 365.25 * 86400e3;

/* "12" or "1.5"; false when there is no digit. */
static bool read_number(const char **at, double *out)
{
	const char *s = *at;
	double value = 0, scale = 1;

	if (*s < '0' || *s > '9')
		return false;
	for (; *s >= '0' && *s <= '9'; s++)
		value = value * 10 + (*s - '0');
	if (*s == '.' && s[1] >= '0' && s[1] <= '9') {
		for (s++; *s >= '0' && *s <= '9'; s++) {
			value = value * 10 + (*s - '0');
			scale *= 10;
		}
	}
	*at = s;
	*out = value / scale;
	return true;
}

/* The unit at *at as milliseconds, 0 when there is none. */
static double read_unit(const char **at)
{
	size_t len = strspn(*at, "dhms");

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strlen(units[i].name) == len && strncmp(*at, units[i].name, len) == 0) {
			*at += len;
			return units[i].ms;
		}
	}
	return 0;
}

/* Units must fall ("1h30m", never "30m1h"): a slip of the finger is then rarely valid. */
static bool read_duration(const char *at, double *out_ms)
{
	double last = 0, total = 0, number, unit;

	if (!read_number(&at, &number))
		return false;
	if (*at == '\0') {
		*out_ms = number * 1e3;
		return true;
	}
	for (;;) {
		unit = read_unit(&at);
		if (unit == 0 || (last != 0 && unit >= last))
			return false;
		total += number * unit;
		last = unit;
		if (*at == '\0')
			break;
		if (!read_number(&at, &number))
			return false;
	}
	*out_ms = total;
	return true;
}

int duration_parse(const char *text, int64_t *out_ms, struct err *err)
{
	double ms = 0;

	*out_ms = 0;
	if (!read_duration(text, &ms))
		return err_set(err, ERR_USAGE,
			       "\"%.40s\" is no duration; write it like \"90s\", \"5m\", \"1h30m\" "
			       "or \"2d\"",
			       text);
	if (!(ms <= duration_max_ms))
		return err_set(err, ERR_USAGE, "\"%.40s\" is longer than 100 years", text);
	*out_ms = (int64_t)(ms + 0.5);
	return 0;
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static size_t min3(size_t a, size_t b, size_t c)
{
	size_t m = a < b ? a : b;

	return m < c ? m : c;
}

/* Edits (insert, drop, replace, swap of neighbours) from a to b; both at most NEAREST_MAX long. */
static size_t distance(const char *a, const char *b)
{
	size_t rows[3][NEAREST_MAX + 2];
	size_t *before = rows[0], *above = rows[1], *row = rows[2];
	size_t a_len = strlen(a), b_len = strlen(b);

	for (size_t j = 0; j <= b_len; j++)
		above[j] = j;
	memcpy(before, above, sizeof(rows[0]));
	for (size_t i = 1; i <= a_len; i++) {
		size_t *oldest = before;

		row[0] = i;
		for (size_t j = 1; j <= b_len; j++) {
			char x = lower(a[i - 1]), y = lower(b[j - 1]);

			row[j] = min3(above[j] + 1, row[j - 1] + 1, above[j - 1] + (x != y));
			if (i > 1 && j > 1 && x == lower(b[j - 2]) && lower(a[i - 2]) == y &&
			    before[j - 2] + 1 < row[j])
				row[j] = before[j - 2] + 1;
		}
		before = above;
		above = row;
		row = oldest;
	}
	return above[b_len];
}

const char *nearest(const char *word, const char *const *candidates, size_t count)
{
	const char *best = NULL;
	size_t best_edits = SIZE_MAX;
	size_t len = strnlen(word, NEAREST_MAX + 1);

	for (size_t i = 0; len <= NEAREST_MAX && i < count; i++) {
		size_t other = strnlen(candidates[i], NEAREST_MAX + 1);
		size_t longer = other > len ? other : len;
		size_t edits;

		if (other > NEAREST_MAX)
			continue;
		/* A third of the letters wrong is still a guess; more is noise. */
		edits = distance(word, candidates[i]);
		if (edits <= (longer + 1) / 3 && edits < best_edits &&
		    strcmp(word, candidates[i]) != 0) {
			best = candidates[i];
			best_edits = edits;
		}
	}
	return best;
}
