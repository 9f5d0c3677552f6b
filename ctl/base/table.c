/* SPDX-License-Identifier: MIT */
/* table.c - tables: first cut what may be cut, the widest first; then drop whole columns, least
 * important first. A row must never wrap, or the columns stop being columns. */
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "ctl/base/text.h"

enum { GAP = 2 };

void table_init(struct table *table, const struct column *columns, int column_count)
{
	*table = (struct table){ .columns = columns, .column_count = column_count };
}

void table_fini(struct table *table)
{
	for (int i = 0; i < table->row_count * table->column_count; i++)
		free(table->cells[i].text);
	free(table->cells);
	*table = (struct table){ 0 };
}

struct cell *table_row(struct table *table)
{
	size_t columns = (size_t)table->column_count;
	size_t rows = (size_t)table->row_count;
	struct cell *row;

	/* Doubling whenever the number of rows is a power of two. */
	if ((rows & (rows - 1)) == 0)
		table->cells = xrealloc(table->cells,
					(rows ? 2 * rows : 1) * columns * sizeof(*row));
	row = table->cells + rows * columns;
	memset(row, 0, columns * sizeof(*row));
	table->row_count++;
	return row;
}

struct cell *cell_put(struct cell *cell, const char *text, const struct style *style)
{
	cell->text = clean_copy(text, style);
	return cell;
}

static int natural_width(const struct table *table, int column)
{
	int widest = columns_of(table->columns[column].title);

	for (int r = 0; r < table->row_count; r++) {
		const struct cell *cell = &table->cells[r * table->column_count + column];
		int width = cell->text ? columns_of(cell->text) : 0;

		if (width > widest)
			widest = width;
	}
	return widest;
}

/* A column that runs on asks for no more than its title: the terminal wraps the rest. */
static int total_width(const struct table *table, const int *widths)
{
	int total = -GAP;

	for (int c = 0; c < table->column_count; c++) {
		const struct column *column = &table->columns[c];

		if (widths[c] >= 0)
			total += GAP + (column->runs_on ? columns_of(column->title) : widths[c]);
	}
	return total;
}

static bool cut_widest(const struct table *table, int *widths)
{
	int widest = -1;

	for (int c = 0; c < table->column_count; c++) {
		int least = table->columns[c].least;

		if (least > 0 && widths[c] > least && (widest < 0 || widths[c] > widths[widest]))
			widest = c;
	}
	if (widest >= 0)
		widths[widest]--;
	return widest >= 0;
}

static bool drop_one(const struct table *table, int *widths)
{
	int victim = -1;

	for (int c = 0; c < table->column_count; c++) {
		int rank = table->columns[c].rank;

		if (widths[c] >= 0 && rank > 0 &&
		    (victim < 0 || rank > table->columns[victim].rank))
			victim = c;
	}
	if (victim >= 0)
		widths[victim] = -1;
	return victim >= 0;
}

/* After a column was dropped the others may have their natural widths back. */
static void restore(const struct table *table, int *widths)
{
	for (int c = 0; c < table->column_count; c++) {
		if (widths[c] >= 0)
			widths[c] = natural_width(table, c);
	}
}

void table_fit(const struct table *table, int width, int *widths)
{
	for (int c = 0; c < table->column_count; c++)
		widths[c] = natural_width(table, c);
	while (width > 0 && total_width(table, widths) > width) {
		if (cut_widest(table, widths))
			continue;
		if (!drop_one(table, widths))
			break;
		restore(table, widths);
	}
	/* One last column that is still too wide is cut all the same. */
	for (int c = 0; width > 0 && c < table->column_count; c++) {
		if (widths[c] > width && !table->columns[c].runs_on)
			widths[c] = width;
	}
}

static void pad(int columns, FILE *to)
{
	if (columns > 0)
		fprintf(to, "%*s", columns, "");
}

static int columns_within(const char *text, size_t bytes)
{
	char *prefix = xstrndup(text, bytes);
	int columns = columns_of(prefix);

	free(prefix);
	return columns;
}

static void print_cell(const struct column *column, const char *text, enum color color, int width,
		       bool last, const struct style *style, FILE *to)
{
	size_t bytes = column->runs_on ? strlen(text) : bytes_within(text, width);
	bool cut = text[bytes] != '\0';
	int space;

	if (cut)
		bytes = bytes_within(text, width - 1);
	space = width - (cut ? 1 : 0) - columns_within(text, bytes);
	if (column->right)
		pad(space, to);
	fprintf(to, "%s%.*s%s%s", color ? color_code(style, color) : "", (int)bytes, text,
		cut ? (style->utf8 ? "…" : "~") : "", color ? color_code(style, COLOR_NONE) : "");
	if (!column->right && !last)
		pad(space, to);
}

static void print_row(const struct table *table, const struct cell *row, const int *widths,
		      const struct style *style, FILE *to)
{
	int last = table->column_count - 1;
	bool first = true;

	while (last > 0 && widths[last] < 0)
		last--;
	for (int c = 0; c <= last; c++) {
		const char *text = row ? row[c].text : table->columns[c].title;
		enum color color = row ? row[c].color : COLOR_DIM;

		if (widths[c] < 0)
			continue;
		if (!first)
			pad(GAP, to);
		print_cell(&table->columns[c], text ? text : "", color, widths[c], c == last, style,
			   to);
		first = false;
	}
	fputc('\n', to);
}

void table_print(const struct table *table, const struct style *style, FILE *to)
{
	int *widths = xcalloc((size_t)table->column_count, sizeof(*widths));

	table_fit(table, style->width, widths);
	print_row(table, NULL, widths, style, to);
	for (int r = 0; r < table->row_count; r++)
		print_row(table, table->cells + r * table->column_count, widths, style, to);
	free(widths);
}
