/* SPDX-License-Identifier: MIT */
/* text.h - what a person sees: cleaned text, colours, tables, bars and sparklines.
 *
 * Nothing here knows lbd. Widths are columns of the terminal, not bytes. */
#ifndef CTL_BASE_TEXT_H
#define CTL_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* How a stream may be written to. */
struct style {
	bool terminal; /* one that understands escape sequences */
	bool color;
	bool utf8; /* bars and lines may be drawn with more than ASCII */
	int width; /* columns; 0 = no limit (not a terminal) */
};

void style_of(FILE *stream, bool no_color, struct style *out);
/* Asks the terminal again, after SIGWINCH. */
int terminal_width(int fd);

/* The one road for text that came from elsewhere. Escape sequences are dropped, other control
 * characters, bytes that are no UTF-8 and characters that reorder a line become '?'. With
 * CLEAN_ASCII, all that is not ASCII becomes '?', too. Tabs stay with CLEAN_KEEP_TABS. In place. */
enum clean { CLEAN_LINE = 0, CLEAN_KEEP_TABS = 1, CLEAN_ASCII = 2 };
void clean(char *text, unsigned how);
/* A cleaned copy; NULL gives "-". Owned by the caller. */
char *clean_copy(const char *text, const struct style *style);
/* Prints each line of a text, cleaned but for its tabs, behind `indent`. */
void print_lines(const char *indent, const char *text, const struct style *style);

/* Columns that cleaned text takes; the byte length of its longest prefix of at most `columns`. */
int columns_of(const char *text);
size_t bytes_within(const char *text, int columns);

enum color { COLOR_NONE, COLOR_GOOD, COLOR_WAIT, COLOR_BAD, COLOR_DIM, COLOR_BOLD, COLOR_COUNT };
/* Escape sequence that begins, or (COLOR_NONE) ends it; "" where the style has no colour. */
const char *color_code(const struct style *style, enum color color);
enum color state_color(const char *run_state);

/* --- numbers -------------------------------------------------------------------------------- */
enum { NUMBER_TEXT_MAX = 32 };
/* "-" when not finite. 5400 → "5.4k". */
const char *short_number(double value, char out[NUMBER_TEXT_MAX]);
/* "12.4 GiB", "340 MiB", "12 KiB", "0". */
const char *size_text(int64_t bytes, char out[NUMBER_TEXT_MAX]);
/* As losses are read: four places below 10, else two; very small and very large ones as 1.234e-05.
 * "-" when not finite. */
const char *loss_text(double value, char out[NUMBER_TEXT_MAX]);
/* "120/200", "120" without a target, "-" without a step. */
const char *step_text(int64_t step, int64_t target, char out[2 * NUMBER_TEXT_MAX]);

/* --- pictures ------------------------------------------------------------------------------- */
/* `columns` wide, "[####....]" or blocks; fraction is cut to 0..1. Owned by the caller. */
char *bar(double fraction, int columns, bool utf8);
/* One character per column: the mean of its share of the values, scaled between the smallest and
 * the largest mean. Values that are not finite are left out. "" when none is left. Owned. */
char *sparkline(const double *values, size_t count, int columns, bool utf8);

/* --- tables --------------------------------------------------------------------------------- */
struct column {
	const char *title;
	bool right;   /* aligned */
	bool runs_on; /* the last column only: never cut, the terminal may wrap it */
	int least;    /* may be cut down to this many columns; 0 = never cut */
	int rank;     /* dropped first when highest; 0 = never */
};

struct cell {
	char *text;
	enum color color;
};

struct table {
	const struct column *columns;
	int column_count;
	struct cell *cells; /* row by row; owned */
	int row_count;
};

void table_init(struct table *table, const struct column *columns, int column_count);
void table_fini(struct table *table);
/* A new row of empty cells; returns its first cell. Texts are cleaned by the caller and owned by
 * the table from then on. Valid until the next table_row. */
struct cell *table_row(struct table *table);
/* Puts the text into the cell, cleaned, and returns the cell. */
struct cell *cell_put(struct cell *cell, const char *text, const struct style *style);
/* Width per column so that the whole fits into `width` (0 = no limit); -1 = dropped. */
void table_fit(const struct table *table, int width, int *widths);
void table_print(const struct table *table, const struct style *style, FILE *to);

#endif
