/* SPDX-License-Identifier: MIT */
/* canvas.h - lines of cleaned, coloured text of a screen's width; what curses shows, or a pipe
 * gets. Pure. */
#ifndef CTL_TOP_CANVAS_H
#define CTL_TOP_CANVAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "ctl/base/text.h"

enum { LINE_MARKS = 24 };

/* From this byte of a line on it has this colour. */
struct mark {
	size_t at;
	enum color color;
};

struct line {
	char *text; /* owned */
	int columns;
	struct mark marks[LINE_MARKS];
	int mark_count;
	bool is_chosen; /* to be shown in reverse */
};

struct canvas {
	struct line *lines;
	int height, width;
	bool utf8;
};

void canvas_init(struct canvas *canvas, int height, int width, bool utf8);
void canvas_fini(struct canvas *canvas);
/* Adds text to a line, cleaned, in exactly `columns` columns: cut, or filled up; 0: as long as it
 * is. What is beyond the width is dropped, as is a line that is not there. */
void canvas_put(struct canvas *canvas, int line, const char *text, int columns, bool right,
		enum color color);
/* Without the blanks at the end of lines. */
void canvas_print(const struct canvas *canvas, const struct style *style, FILE *to);

#endif
