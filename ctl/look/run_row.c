/* SPDX-License-Identifier: MIT */
/* run_row.c - a run as a line of a table. */
#include <math.h>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "ctl/base/command.h"
#include "ctl/base/print.h"
#include "ctl/look/run_row.h"

enum { LS_NAME, LS_STATE, LS_STEP, LS_LOSS, LS_SPEED, LS_AGE, LS_CAUSE };
const struct column run_columns[RUN_COLUMNS] = {
	[LS_NAME] = { .title = "NAME", .least = 32, .rank = 0 }, /* people copy it */
	[LS_STATE] = { .title = "STATE", .rank = 1 },
	[LS_STEP] = { .title = "STEP", .right = true, .rank = 2 },
	[LS_LOSS] = { .title = "LOSS", .right = true, .rank = 3 },
	[LS_SPEED] = { .title = "TOK/S", .right = true, .rank = 6 },
	[LS_AGE] = { .title = "AGE", .right = true, .rank = 5 },
	[LS_CAUSE] = { .title = "CAUSE", .rank = 4 },
};

void fill_run(struct cell *row, const json_t *run, const struct style *style)
{
	int64_t created_ms = time_ms(run, "created");
	const char *state = js_str(run, "state", "?");
	char text[2 * NUMBER_TEXT_MAX], age[CLOCK_TEXT_MAX];

	cell_put(&row[LS_NAME], js_str(run, "name", NULL), style);
	cell_put(&row[LS_STATE], state, style)->color = state_color(state);
	cell_put(&row[LS_STEP],
		 step_text(js_int(run, "step", -1), js_int(run, "target_step", -1), text), style);
	cell_put(&row[LS_LOSS], loss_text(js_real(run, "loss", NAN), text), style);
	cell_put(&row[LS_SPEED], short_number(js_real(run, "tokens_per_s", NAN), text), style);
	cell_put(&row[LS_AGE], duration_text(created_ms ? clock_wall_ms() - created_ms : -1, age),
		 style);
	cell_put(&row[LS_CAUSE], js_str(run, "cause", js_str(run, "waits_for", NULL)), style);
}

bool ls_is_of_some(const struct ctl *ctl)
{
	return ctl->options.group || ctl->operands.count > 0;
}
