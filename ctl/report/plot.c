/* SPDX-License-Identifier: MIT */
/* plot.c - lbctl plot: curves of runs in the terminal, one below the other. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/mem.h"
#include "ctl/base/command.h"
#include "ctl/report/chart.h"
#include "ctl/report/dots.h"
#include "ctl/report/graphics.h"
#include "ctl/team/ask.h"

enum { ROWS = 16, MOST_COLUMNS = 120, THICKNESS = 2, ABOUT_BYTES = 1024 };

/* What was undone, in words: the picture only dots it. */
static size_t undone_of(const struct series *s)
{
	size_t count = 0;

	for (size_t i = 0; i < s->count; i++)
		count += s->points[i].is_undone;
	return count;
}

/* A picture behind its scale, which is drawn already: upwards, to the right, and back. */
static void show_picture(enum graphics graphics, const struct series *series,
			 enum quantity quantity, int columns, int rows)
{
	struct range range;
	struct dots dots;
	int width, height;
	char *picture;

	series_range(series, quantity, &range);
	columns -= CHART_SCALE_COLUMNS;
	graphics_cell(&width, &height);
	dots = (struct dots){ .width = columns * width,
			      .height = (rows - CHART_SCALE_ROWS) * height };
	dots_draw(&dots, series, quantity, &range, THICKNESS);
	picture = graphics == GRAPHICS_SIXEL ? dots_sixel(&dots)
					     : dots_kitty(&dots, columns, rows - CHART_SCALE_ROWS);
	printf("\0337\033[%dA\033[%dG%s\0338", rows, CHART_SCALE_COLUMNS + 1, picture);
	free(picture);
	dots_clear(&dots);
}

/* False: there is nothing to draw. */
static bool draw(const struct ctl *ctl, enum graphics graphics, const struct series *series,
		 enum quantity quantity, const char *title)
{
	int rows = quantity == QUANTITY_LOSS ? ROWS : ROWS / 2;
	int columns = terminal_width(STDOUT_FILENO);
	char *chart;

	if (columns > MOST_COLUMNS)
		columns = MOST_COLUMNS;
	chart = chart_draw(series, quantity, columns, rows,
			   graphics != GRAPHICS_NONE ? CHART_FRAME
			   : ctl->out.utf8           ? CHART_BRAILLE
						     : CHART_ASCII);
	if (!chart)
		return false;
	printf("%s\n%s", title, chart);
	if (graphics != GRAPHICS_NONE)
		show_picture(graphics, series, quantity, columns, rows);
	free(chart);
	return true;
}

/* What there is to know of the curve of losses, behind its name; owned. */
static char *about_loss(const struct series *series)
{
	struct range range;
	struct buf out;
	size_t undone = undone_of(series);
	int returns = series->stretches - 1;
	int64_t silent = series_silent_since(series);

	buf_init(&out, ABOUT_BYTES);
	buf_addf(&out, "loss");
	if (series_range(series, QUANTITY_LOSS, &range) && range.is_log)
		buf_addf(&out, ", logarithmic");
	if (returns > 0)
		buf_addf(&out, "; %d return%s to a checkpoint, %zu step%s made again (dotted)",
			 returns, returns == 1 ? "" : "s", undone, undone == 1 ? "" : "s");
	if (silent >= 0)
		buf_addf(&out, "; no number since step %lld", (long long)silent);
	return buf_take(&out);
}

static void plot(const struct ctl *ctl, enum graphics graphics, const char *run,
		 const struct series *series)
{
	char *name = clean_copy(run, &ctl->out), *about = about_loss(series);
	const char *bold = color_code(&ctl->out, COLOR_BOLD),
		   *plain = color_code(&ctl->out, COLOR_NONE);
	char *loss = xasprintf("%s%s%s  %s", bold, name, plain, about),
	     *speed = xasprintf("%s%s%s  tokens/s", bold, name, plain);

	if (!draw(ctl, graphics, series, QUANTITY_LOSS, loss))
		printf("%s  has told no loss yet\n", name);
	draw(ctl, graphics, series, QUANTITY_SPEED, speed);
	free(speed);
	free(loss);
	free(about);
	free(name);
}

int plot_run(struct ctl *ctl, struct err *err)
{
	json_t *names = runs_meant(ctl, err);
	enum graphics graphics = graphics_ask(&ctl->out, ROWS + 2);
	int rc = names ? 0 : -1;

	for (size_t i = 0; i < json_array_size(names) && rc == 0; i++) {
		const char *run = json_string_value(json_array_get(names, i));
		struct series series;

		rc = series_ask(ctl, run, &series, err);
		if (rc < 0)
			break;
		plot(ctl, graphics, run, &series);
		series_clear(&series);
	}
	json_decref(names);
	return rc;
}
