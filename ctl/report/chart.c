/* SPDX-License-Identifier: MIT */
/* chart.c - a grid of dots, two by four to a character where the terminal has braille. */
#include "ctl/report/chart.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"

enum { SCALE_COLUMNS = 9, CHART_MAX_BYTES = 1024 * 1024 };

struct grid {
	unsigned char *cells; /* braille: its dots; ASCII: 1 */
	int columns, rows;    /* characters */
	int dx, dy;           /* dots to a character */
};

double quantity_of(const struct point *point, enum quantity quantity)
{
	return quantity == QUANTITY_LOSS ? point->loss : point->tokens_per_s;
}

/* Dots of a braille character are numbered by columns, but for the lowest two. */
static void dot(struct grid *g, int x, int y)
{
	static const unsigned char bits[4][2] = { { 1, 8 }, { 2, 16 }, { 4, 32 }, { 64, 128 } };
	int column = x / g->dx, row = y / g->dy;

	if (x < 0 || y < 0 || column >= g->columns || row >= g->rows)
		return;
	g->cells[row * g->columns + column] |= g->dx == 2 ? bits[y % 4][x % 2] : 1;
}

/* From dot to dot; every `skip`-th of them. */
static void segment(struct grid *g, const int from[2], const int to[2], int skip)
{
	int across = abs(to[0] - from[0]), down = abs(to[1] - from[1]);
	int n = across > down ? across : down;

	for (int i = 0; i <= n; i++) {
		double share = n ? (double)i / n : 0;

		if (i % skip == 0)
			dot(g, from[0] + (int)lround(share * (to[0] - from[0])),
			    from[1] + (int)lround(share * (to[1] - from[1])));
	}
}

struct range {
	double low, high;
	int64_t first, last;
};

static bool range_of(const struct series *s, enum quantity quantity, struct range *r)
{
	*r = (struct range){ INFINITY, -INFINITY, INT64_MAX, 0 };
	for (size_t i = 0; i < s->count; i++) {
		double value = quantity_of(&s->points[i], quantity);

		if (!isfinite(value))
			continue;
		r->low = fmin(r->low, value);
		r->high = fmax(r->high, value);
		r->first = s->points[i].step < r->first ? s->points[i].step : r->first;
		r->last = s->points[i].step > r->last ? s->points[i].step : r->last;
	}
	if (r->low == r->high) { /* a line in the middle */
		r->low -= fabs(r->low) / 100 + 1e-9;
		r->high += fabs(r->high) / 100 + 1e-9;
	}
	return r->low <= r->high;
}

static void draw(struct grid *g, const struct series *s, enum quantity quantity,
		 const struct range *r)
{
	double steps = r->last > r->first ? (double)(r->last - r->first) : 1;
	int width = g->columns * g->dx - 1, height = g->rows * g->dy - 1;
	int last[2] = { 0 }, stretch = -1;

	for (size_t i = 0; i < s->count; i++) {
		const struct point *p = &s->points[i];
		double value = quantity_of(p, quantity);
		int at[2];

		if (!isfinite(value)) {
			stretch = -1;
			continue;
		}
		at[0] = (int)lround((double)(p->step - r->first) / steps * width);
		at[1] = (int)lround((r->high - value) / (r->high - r->low) * height);
		segment(g, p->stretch == stretch ? last : at, at, p->is_undone ? 3 : 1);
		memcpy(last, at, sizeof(last));
		stretch = p->stretch;
	}
}

/* The scale's number of this row: at the top, in the middle, at the bottom. */
static void put_scale(struct buf *out, const struct range *r, enum quantity quantity, int row,
		      int rows)
{
	double value = r->high - (r->high - r->low) * row / (rows > 1 ? rows - 1 : 1);
	char text[NUMBER_TEXT_MAX];

	if (row != 0 && row != rows - 1 && row != rows / 2)
		text[0] = '\0';
	else if (quantity == QUANTITY_LOSS)
		loss_text(value, text);
	else
		short_number(value, text);
	buf_addf(out, "%*s ", SCALE_COLUMNS - 1, text);
}

static void put_row(struct buf *out, const struct grid *g, int row)
{
	for (int x = 0; x < g->columns; x++) {
		unsigned char bits = g->cells[row * g->columns + x];

		if (g->dx == 2) /* U+2800 and its dots */
			buf_addf(out, "\xe2%c%c", 0xa0 | bits >> 6, 0x80 | (bits & 0x3f));
		else
			buf_add(out, bits ? "*" : " ", 1);
	}
	buf_add(out, "\n", 1);
}

char *chart_draw(const struct series *series, enum quantity quantity, int columns, int rows,
		 bool utf8)
{
	struct grid g = { .columns = columns - SCALE_COLUMNS - 1,
			  .rows = rows - 1,
			  .dx = utf8 ? 2 : 1,
			  .dy = utf8 ? 4 : 1 };
	struct range range;
	char first[NUMBER_TEXT_MAX], last[2 * NUMBER_TEXT_MAX];
	struct buf out;

	if (g.columns < 4 || g.rows < 2 || !range_of(series, quantity, &range))
		return NULL;
	g.cells = xcalloc((size_t)g.columns, (size_t)g.rows);
	draw(&g, series, quantity, &range);
	buf_init(&out, CHART_MAX_BYTES);
	for (int row = 0; row < g.rows; row++) {
		put_scale(&out, &range, quantity, row, g.rows);
		buf_addf(&out, "%s", utf8 ? "│" : "|");
		put_row(&out, &g, row);
	}
	snprintf(first, sizeof(first), "%lld", (long long)range.first);
	snprintf(last, sizeof(last), "step %lld", (long long)range.last);
	buf_addf(&out, "%*s%s%*s\n", SCALE_COLUMNS + 1, "", first, g.columns - (int)strlen(first),
		 last);
	free(g.cells);
	return buf_take(&out);
}
