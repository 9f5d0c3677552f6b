/* SPDX-License-Identifier: MIT */
/* plot.c - lbctl plot: curves of runs in the terminal, one below the other. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/json.h"
#include "common/base/mem.h"
#include "ctl/base/command.h"
#include "ctl/report/chart.h"

enum { ROWS = 16, MOST_COLUMNS = 120 };

/* What was undone, in words: the picture only dots it. */
static size_t undone_of(const struct series *s)
{
	size_t count = 0;

	for (size_t i = 0; i < s->count; i++)
		count += s->points[i].is_undone;
	return count;
}

static void plot(const struct ctl *ctl, const char *run, const struct series *series)
{
	static const char *const titles[] = {
		[QUANTITY_LOSS] = "loss", [QUANTITY_SPEED] = "tokens/s"
	};
	int columns = terminal_width(STDOUT_FILENO);
	char *name = clean_copy(run, &ctl->out);
	size_t undone = undone_of(series);

	if (columns > MOST_COLUMNS)
		columns = MOST_COLUMNS;
	for (int i = QUANTITY_LOSS; i <= QUANTITY_SPEED; i++) {
		char *chart = chart_draw(series, (enum quantity)i, columns,
					 i == QUANTITY_LOSS ? ROWS : ROWS / 2, ctl->out.utf8);

		if (chart)
			printf("%s%s%s  %s", color_code(&ctl->out, COLOR_BOLD), name,
			       color_code(&ctl->out, COLOR_NONE), titles[i]);
		if (chart && i == QUANTITY_LOSS && series->stretches > 1)
			printf("; %d times back to a checkpoint, %zu steps made again (dotted)",
			       series->stretches - 1, undone);
		if (chart)
			printf("\n%s", chart);
		else if (i == QUANTITY_LOSS)
			printf("%s  has told no loss yet\n", name);
		free(chart);
	}
	free(name);
}

int plot_run(struct ctl *ctl, struct err *err)
{
	for (size_t i = 0; i < ctl->operands.count; i++) {
		const char *run = ctl->operands.words[i];
		struct series series;

		if (series_ask(ctl, run, &series, err) < 0)
			return -1;
		plot(ctl, run, &series);
		series_clear(&series);
	}
	return 0;
}
