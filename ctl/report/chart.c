/* SPDX-License-Identifier: MIT */
/* chart.c - dots as characters, two by four to one where the terminal has braille. */
#include "ctl/report/chart.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "ctl/report/dots.h"

enum { CHART_MAX_BYTES = 1024 * 1024, BRAILLE_ACROSS = 2, BRAILLE_DOWN = 4 };

/* The scale's number of this row: at the top, in the middle, at the bottom. */
static void put_scale(struct buf *out, const struct range *r, enum quantity quantity, int row,
		      int rows)
{
	double value = range_value(r, 1 - (double)row / (rows > 1 ? rows - 1 : 1));
	char text[NUMBER_TEXT_MAX];

	if (row != 0 && row != rows - 1 && row != rows / 2)
		text[0] = '\0';
	else if (quantity == QUANTITY_LOSS)
		loss_text(value, text);
	else
		short_number(value, text);
	if (strlen(text) > CHART_SCALE_COLUMNS - 2)
		snprintf(text, sizeof(text), "%.2e", value);
	buf_addf(out, "%*s ", CHART_SCALE_COLUMNS - 2, text);
}

/* Eight dots of a character, which are numbered by columns, but for the lowest two. */
static void put_braille(struct buf *out, const struct dots *d, int column, int row)
{
	static const unsigned char bits[4][2] = { { 1, 8 }, { 2, 16 }, { 4, 32 }, { 64, 128 } };
	unsigned char set = 0;

	for (int i = 0; i < BRAILLE_ACROSS * BRAILLE_DOWN; i++) {
		int x = i % BRAILLE_ACROSS, y = i / BRAILLE_ACROSS;

		if (d->cells[(row * BRAILLE_DOWN + y) * d->width + column * BRAILLE_ACROSS + x])
			set |= bits[y][x];
	}
	buf_addf(out, "\xe2%c%c", 0xa0 | set >> 6, 0x80 | (set & 0x3f)); /* U+2800 and its dots */
}

static void put_row(struct buf *out, const struct dots *d, enum chart chart, int columns, int row)
{
	for (int x = 0; x < columns; x++) {
		if (chart == CHART_BRAILLE)
			put_braille(out, d, x, row);
		else
			buf_addf(out, "%s",
				 chart == CHART_ASCII && d->cells[row * d->width + x] ? "*" : " ");
	}
	buf_add(out, "\n", 1);
}

char *chart_draw(const struct series *series, enum quantity quantity, int columns, int rows,
		 enum chart chart)
{
	bool is_braille = chart == CHART_BRAILLE;
	struct dots dots = { 0 };
	struct range range;
	char first[NUMBER_TEXT_MAX], last[2 * NUMBER_TEXT_MAX];
	struct buf out;

	columns -= CHART_SCALE_COLUMNS;
	rows -= CHART_SCALE_ROWS;
	if (columns < 4 || rows < 2 || !series_range(series, quantity, &range))
		return NULL;
	dots.width = columns * (is_braille ? BRAILLE_ACROSS : 1);
	dots.height = rows * (is_braille ? BRAILLE_DOWN : 1);
	dots_draw(&dots, series, quantity, &range, 1);
	buf_init(&out, CHART_MAX_BYTES);
	for (int row = 0; row < rows; row++) {
		put_scale(&out, &range, quantity, row, rows);
		buf_addf(&out, "%s", is_braille ? "│" : "|");
		put_row(&out, &dots, chart, columns, row);
	}
	dots_clear(&dots);
	snprintf(first, sizeof(first), "%lld", (long long)range.first);
	snprintf(last, sizeof(last), "step %lld", (long long)range.last);
	buf_addf(&out, "%*s%s%*s\n", CHART_SCALE_COLUMNS, "", first, columns - (int)strlen(first),
		 last);
	return buf_take(&out);
}
