/* SPDX-License-Identifier: MIT */
/* canvas.c - puts text into lines by columns, not bytes. */
#include "ctl/top/canvas.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"

void canvas_init(struct canvas *canvas, int height, int width, bool utf8)
{
	*canvas = (struct canvas){ .height = height, .width = width, .utf8 = utf8 };
	canvas->lines = xcalloc((size_t)height + 1, sizeof(struct line));
	for (int i = 0; i < height; i++)
		canvas->lines[i].text = xstrdup("");
}

void canvas_fini(struct canvas *canvas)
{
	for (int i = 0; i < canvas->height; i++)
		free(canvas->lines[i].text);
	free(canvas->lines);
	canvas->lines = NULL;
}

static void add_mark(struct line *line, enum color color)
{
	size_t at = strlen(line->text);

	if (line->mark_count < LINE_MARKS)
		line->marks[line->mark_count++] = (struct mark){ .at = at, .color = color };
}

void canvas_put(struct canvas *canvas, int y, const char *text, int columns, bool right,
		enum color color)
{
	struct line *line;
	char *shown, *longer;
	int left, blanks;

	if (y < 0 || y >= canvas->height || canvas->lines[y].columns >= canvas->width)
		return;
	line = &canvas->lines[y];
	left = canvas->width - line->columns;
	if (columns > left)
		columns = left;
	shown = xstrdup(text);
	clean(shown, canvas->utf8 ? CLEAN_LINE : CLEAN_ASCII);
	shown[bytes_within(shown, columns ? columns : left)] = '\0';
	blanks = columns ? columns - columns_of(shown) : 0;
	add_mark(line, color);
	longer = xasprintf("%s%*s%s%*s", line->text, right ? blanks : 0, "", shown,
			   right ? 0 : blanks, "");
	free(line->text);
	line->text = longer;
	line->columns += columns ? columns : columns_of(shown);
	free(shown);
}

static void print_line(const struct line *line, size_t len, const struct style *style, FILE *to)
{
	for (int i = 0; i < line->mark_count && line->marks[i].at < len; i++) {
		size_t from = line->marks[i].at;
		size_t end = i + 1 < line->mark_count ? line->marks[i + 1].at : len;
		enum color color = line->marks[i].color;

		if (color != COLOR_NONE)
			fputs(color_code(style, color), to);
		fwrite(line->text + from, 1, (end < len ? end : len) - from, to);
		if (color != COLOR_NONE)
			fputs(color_code(style, COLOR_NONE), to);
	}
	putc('\n', to);
}

void canvas_print(const struct canvas *canvas, const struct style *style, FILE *to)
{
	for (int i = 0; i < canvas->height; i++) {
		size_t len = strlen(canvas->lines[i].text);

		while (len > 0 && canvas->lines[i].text[len - 1] == ' ')
			len--;
		print_line(&canvas->lines[i], len, style, to);
	}
}
