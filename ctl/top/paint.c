/* SPDX-License-Identifier: MIT */
/* paint.c - columns by the width that there is; a line of numbers, a line of facts. */
#include "ctl/top/paint.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/mem.h"

/* lines: above the runs; of numbers of the chosen one; below the runs */
enum { ABOVE = 2, CHOSEN_LINES = 2, BELOW = CHOSEN_LINES + 2, TEXT_BYTES = 64 };

enum field {
	FIELD_NAME,
	FIELD_STATE,
	FIELD_TRY,
	FIELD_STEP,
	FIELD_LOSS,
	FIELD_CURVE,
	FIELD_SPEED,
	FIELD_MEDIAN,
	FIELD_LEFT,
	FIELD_LIMIT,
	FIELD_SAVED,
	FIELD_IDLE,
	FIELD_FACT,
	FIELD_COUNT
};

/* `from`: shown on screens of so many columns; `wide`: so wide on those of 160. */
static const struct {
	const char *title;
	int from, columns, wide;
	bool right;
} fields[FIELD_COUNT] = {
	[FIELD_NAME] = { "NAME", 0, 16, 28, false },
	[FIELD_STATE] = { "STATE", 0, 10, 10, false },
	[FIELD_TRY] = { "TRY", 88, 4, 5, true },
	[FIELD_STEP] = { "STEP", 40, 12, 16, true },
	[FIELD_LOSS] = { "LOSS", 56, 7, 8, true },
	[FIELD_CURVE] = { "CURVE", 76, 8, 24, false },
	[FIELD_SPEED] = { "TOK/S", 94, 5, 6, true },
	[FIELD_MEDIAN] = { "OF MED", 132, 6, 6, true },
	[FIELD_LEFT] = { "LEFT", 101, 6, 7, true },
	[FIELD_LIMIT] = { "LIMIT", 140, 6, 7, true },
	[FIELD_SAVED] = { "SAVED", 108, 6, 7, true },
	[FIELD_IDLE] = { "STEP", 115, 6, 7, true },
	[FIELD_FACT] = { "WHY", 48, 0, 0, false },
};
enum { WIDE = 160 };

static int columns_of_field(const struct canvas *canvas, int field)
{
	if (canvas->width < fields[field].from)
		return -1;
	return canvas->width >= WIDE ? fields[field].wide : fields[field].columns;
}

static const char *age(int64_t ms, char out[CLOCK_TEXT_MAX])
{
	return ms < 0 ? "" : duration_text(ms, out);
}

static const char *known(double value, char out[NUMBER_TEXT_MAX])
{
	return isfinite(value) ? short_number(value, out) : "";
}

static const char *share_of_median(const struct gist *g, char *out)
{
	double share = g->tokens_per_s / g->median_tokens_per_s;

	if (!isfinite(share))
		return "";
	snprintf(out, TEXT_BYTES, "%.0f%%", fmin(100 * share, 9999));
	return out;
}

/* Runs of a sweep differ where their names end: what does not fit is left out in the middle. */
static const char *name_within(const char *name, int columns, char *out)
{
	int tail = (columns - 1) / 2, len = (int)strlen(name);

	if (len <= columns)
		return name;
	snprintf(out, TEXT_BYTES, "%.*s~%s", columns - 1 - tail, name, name + len - tail);
	return out;
}

/* Half a number would be another one: what does not fit is told with fewer digits. */
static const char *step_within(const struct gist *g, int columns, char *out)
{
	char step[NUMBER_TEXT_MAX], target[NUMBER_TEXT_MAX];

	if (g->step < 0 || strlen(step_text(g->step, g->target, out)) <= (size_t)columns)
		return g->step < 0 ? "" : out;
	snprintf(out, TEXT_BYTES, "%s%s%s", short_number((double)g->step, step),
		 g->target > 0 ? "/" : "",
		 g->target > 0 ? short_number((double)g->target, target) : "");
	return out;
}

static const char *loss_within(double loss, int columns, char *out)
{
	if (!isfinite(loss))
		return "";
	if (strlen(loss_text(loss, out)) > (size_t)columns)
		snprintf(out, TEXT_BYTES, "%.1e", loss);
	return out;
}

static const char *field_text(const struct gist *g, int field, int columns, char *out)
{
	switch (field) {
	case FIELD_NAME:
		return name_within(g->name, columns, out);
	case FIELD_STATE:
		return run_state_name(g->state);
	case FIELD_TRY:
		snprintf(out, TEXT_BYTES, g->launch ? "%lld.%lld" : "%lld", (long long)g->attempt,
			 (long long)g->launch);
		return g->attempt ? out : "";
	case FIELD_STEP:
		return step_within(g, columns, out);
	case FIELD_LOSS:
		return loss_within(g->loss, columns, out);
	case FIELD_SPEED:
		return g->state == RUN_RUNNING ? known(g->tokens_per_s, out) : "";
	case FIELD_MEDIAN:
		return share_of_median(g, out);
	case FIELD_LEFT:
		return age(g->eta_ms, out);
	case FIELD_LIMIT:
		return age(g->limit_ms, out);
	case FIELD_SAVED:
		return age(g->saved_ms, out);
	case FIELD_IDLE:
		return age(g->idle_ms, out);
	default:
		return g->fact;
	}
}

static void put_run(struct canvas *canvas, int y, const struct gist *g)
{
	for (int i = 0; i < FIELD_COUNT; i++) {
		char text[2 * TEXT_BYTES];
		int columns = columns_of_field(canvas, i);
		enum color color = COLOR_NONE;

		if (columns < 0)
			continue;
		if (i > 0)
			canvas_put(canvas, y, " ", 1, false, COLOR_NONE);
		if (i == FIELD_STATE)
			color = state_color(run_state_name(g->state));
		if (i == FIELD_FACT)
			color = worry_color(g->worry);
		if (i == FIELD_CURVE) {
			char *curve = sparkline(g->losses, g->loss_count, columns, canvas->utf8);

			canvas_put(canvas, y, curve, columns, false, COLOR_NONE);
			free(curve);
			continue;
		}
		canvas_put(canvas, y, field_text(g, i, columns, text), columns, fields[i].right,
			   color);
	}
}

static void put_titles(struct canvas *canvas, int y)
{
	for (int i = 0; i < FIELD_COUNT; i++) {
		int columns = columns_of_field(canvas, i);

		if (columns < 0)
			continue;
		if (i > 0)
			canvas_put(canvas, y, " ", 1, false, COLOR_NONE);
		canvas_put(canvas, y, fields[i].title, columns, fields[i].right, COLOR_BOLD);
	}
}

static void put_summary(const struct view *view, struct canvas *canvas)
{
	size_t of[RUN_STATE_COUNT + 1] = { 0 }, worried = 0;
	char clock[CLOCK_TEXT_MAX], text[MESSAGE_BYTES], killed[NUMBER_TEXT_MAX] = "";

	for (size_t i = 0; i < view->count; i++) {
		of[view->gists[i].state]++;
		worried += view->gists[i].worry >= WORRY_UNSAVED;
	}
	if (of[RUN_KILLED])
		snprintf(killed, sizeof(killed), "%zu killed, ", of[RUN_KILLED]);
	clock_text(view->now_ms, clock);
	snprintf(text, sizeof(text), "lbctl top  %s  ", strlen(clock) > 11 ? clock + 11 : clock);
	canvas_put(canvas, 0, text, 0, false, COLOR_BOLD);
	snprintf(text, sizeof(text), "%zu runs: %zu run, %zu wait, %zu failed, %s%zu done%s",
		 view->count, of[RUN_RUNNING] + of[RUN_STOPPING],
		 of[RUN_CREATED] + of[RUN_SUBMITTING] + of[RUN_QUEUED] + of[RUN_BACKOFF] +
			 of[RUN_HELD],
		 of[RUN_FAILED], killed, of[RUN_COMPLETED], worried ? "; " : "");
	canvas_put(canvas, 0, text, 0, false, COLOR_NONE);
	if (worried) {
		snprintf(text, sizeof(text), "%zu want a look", worried);
		canvas_put(canvas, 0, text, 0, false, COLOR_BAD);
	}
	if (view->title[0]) {
		canvas_put(canvas, 0, "  ", 2, false, COLOR_NONE);
		canvas_put(canvas, 0, view->title, 0, false, COLOR_DIM);
	}
	if (view->trouble[0]) {
		canvas_put(canvas, 0, "  ", 2, false, COLOR_NONE);
		canvas_put(canvas, 0, view->trouble, 0, false, COLOR_BAD);
	}
}

/* --- the run under the cursor, in words ------------------------------------------------------- */
/* Adds ", words" where there is a value. */
static void add_part(struct buf *buf, const char *before, const char *value, const char *after)
{
	if (value[0])
		buf_addf(buf, "%s%s%s%s", buf->len ? ", " : "", before, value, after);
}

/* A bar for each GPU, a digit for tenths where there are no blocks; of the first so many. */
static void add_gpus(struct buf *buf, const struct gist *g, bool utf8)
{
	static const char *const bars[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
	enum { MOST = 64, TENTH = 10, BARS = 8, FULL = 100 };
	const json_t *use;
	size_t i;

	if (g->gpus_known == 0)
		return;
	buf_addf(buf, "%sGPUs ", buf->len ? ", " : "");
	json_array_foreach(g->gpu_use, i, use) {
		int percent = (int)json_integer_value(use);

		if (i >= MOST)
			break;
		if (!json_is_integer(use))
			buf_addf(buf, "?");
		else if (utf8)
			buf_addf(buf, "%s",
				 bars[percent >= FULL ? BARS - 1 : percent * BARS / FULL]);
		else
			buf_addf(buf, "%d", percent >= FULL ? TENTH - 1 : percent / TENTH);
	}
}

static char *numbers_of(const struct gist *g, bool utf8)
{
	char text[2 * TEXT_BYTES];
	struct buf out;

	buf_init(&out, 4096);
	if (g->attempt)
		add_part(&out, "attempt ", field_text(g, FIELD_TRY, TEXT_BYTES, text), "");
	add_gpus(&out, g, utf8);
	add_part(&out, "", field_text(g, FIELD_SPEED, TEXT_BYTES, text), " tokens/s");
	add_part(&out, "", share_of_median(g, text), " of its median");
	add_part(&out, "", age(g->eta_ms, text), " left");
	add_part(&out, "time limit in ", age(g->limit_ms, text), "");
	add_part(&out, "checkpoint ", age(g->saved_ms, text), " ago");
	add_part(&out, "last step ", age(g->idle_ms, text), " ago");
	if (g->usual_ms >= 0)
		add_part(&out, "usually ",
			 g->usual_ms < 1000 ? "under 1s" : duration_text(g->usual_ms, text), "");
	add_part(&out, "on ", js_str(g->run, "nodes", ""), "");
	return buf_take(&out);
}

/* In CHOSEN_LINES lines, cut between parts. */
static void put_numbers(struct canvas *canvas, int y, char *numbers)
{
	char *rest = numbers;

	for (int i = 0; i < CHOSEN_LINES && rest; i++) {
		size_t fits = bytes_within(rest, canvas->width);
		char *line = rest, *cut = rest[fits] ? rest + fits : NULL;

		/* the comma stays on its line */
		while (cut && cut > line && !(cut[-1] == ',' && *cut == ' '))
			cut--;
		rest = cut > line && i + 1 < CHOSEN_LINES ? cut + 1 : NULL;
		if (rest)
			*cut = '\0';
		canvas_put(canvas, y + i, line, 0, false, COLOR_NONE);
	}
}

static void put_chosen(const struct view *view, struct canvas *canvas, int y)
{
	const struct gist *g = view_chosen(view);
	char *numbers;

	if (!g)
		return;
	canvas_put(canvas, y, g->name, 0, false, COLOR_BOLD);
	canvas_put(canvas, y, ": ", 2, false, COLOR_NONE);
	canvas_put(canvas, y, g->fact, 0, false, worry_color(g->worry));
	numbers = numbers_of(g, canvas->utf8);
	put_numbers(canvas, y + 1, numbers);
	free(numbers);
}

static void put_last_line(const struct view *view, struct canvas *canvas)
{
	int y = canvas->height - 1;
	char text[MESSAGE_BYTES + NAME_MAX_BYTES];

	if (view->asked != ORDER_NOTHING) {
		snprintf(text, sizeof(text),
			 view->asked == ORDER_TO_KILL
				 ? "kill %s for good? y: yes, any other key: no"
				 : "ask %s for a checkpoint? y: yes, any other key: no",
			 view->asked_about);
		canvas_put(canvas, y, text, 0, false, COLOR_BAD);
	} else if (view->is_typing) {
		snprintf(text, sizeof(text), "/%s_", view->filter);
		canvas_put(canvas, y, text, 0, false, COLOR_BOLD);
	} else if (view->message[0]) {
		canvas_put(canvas, y, view->message, 0, false, COLOR_BOLD);
	} else if (view->filter[0] && view->page == PAGE_NONE) {
		snprintf(text, sizeof(text), "only \"%s\", %zu of %zu; Esc: all", view->filter,
			 view->shown_count, view->count);
		canvas_put(canvas, y, text, 0, false, COLOR_WAIT);
	} else {
		canvas_put(
			canvas, y,
			view->page != PAGE_NONE
				? "q back  r again  arrows move"
				/* help first: a narrow terminal shows no more than the beginning */
				: "? help  Enter story  l logs  s stacks  c checkpoints  k kill  S save  "
				  "/ filter",
			0, false, COLOR_DIM);
	}
}

/* --- pages ------------------------------------------------------------------------------------ */
static const char *const page_titles[PAGE_COUNT] = {
	[PAGE_STORY] = "story of ",   [PAGE_LOGS] = "output of ",
	[PAGE_STACKS] = "stacks of ", [PAGE_CHECKPOINTS] = "checkpoints of ",
	[PAGE_TEAM] = "the team",     [PAGE_GOODPUT] = "goodput of ",
	[PAGE_HELP] = "keys",
};

static void put_page(const struct view *view, struct canvas *canvas)
{
	size_t rows = (size_t)paint_rows(view, canvas->height), shown = view_line_count(view);
	size_t last = shown > rows ? shown - rows : 0, skip = view->top < last ? view->top : last;
	int y = 1;
	char rank[TEXT_BYTES];

	canvas_put(canvas, 0, page_titles[view->page], 0, false, COLOR_BOLD);
	canvas_put(canvas, 0, view->page_run, 0, false, COLOR_BOLD);
	if (view->page == PAGE_LOGS && view->rank_count > 0) {
		snprintf(rank, sizeof(rank),
			 view->rank == ANY_RANK ? ", all ranks ([ ] choose)"
						: ", rank %lld ([ ] choose)",
			 (long long)view->rank);
		canvas_put(canvas, 0, rank, 0, false, COLOR_NONE);
	}
	for (size_t i = 0; i < view->line_count && (size_t)y <= rows; i++) {
		const char *text = view->lines[i];

		if (!view_has_line(view, text) || (skip > 0 && skip--))
			continue;
		canvas_put(canvas, y++, text + bytes_within(text, view->left), 0, false,
			   COLOR_NONE);
	}
}

/* --- all together ----------------------------------------------------------------------------- */
int paint_rows(const struct view *view, int height)
{
	int rows = view->page != PAGE_NONE ? height - 2 : height - ABOVE - BELOW;

	return rows > 0 ? rows : 0;
}

void paint(const struct view *view, struct canvas *canvas)
{
	int rows = paint_rows(view, canvas->height);

	if (view->page != PAGE_NONE) {
		put_page(view, canvas);
		put_last_line(view, canvas);
		return;
	}
	put_summary(view, canvas);
	put_titles(canvas, 1);
	for (int i = 0; i < rows && view->first + (size_t)i < view->shown_count; i++) {
		size_t at = view->first + (size_t)i;

		put_run(canvas, ABOVE + i, &view->gists[view->shown[at]]);
		canvas->lines[ABOVE + i].is_chosen = at == view->cursor;
	}
	if (view->shown_count == 0 && rows > 0)
		canvas_put(canvas, ABOVE,
			   view->count ? "no run passes the filter"
				       : "no runs in the last day; start one with: lbctl submit",
			   0, false, COLOR_NONE);
	if (canvas->height > ABOVE + BELOW)
		put_chosen(view, canvas, canvas->height - BELOW);
	put_last_line(view, canvas);
}

void paint_plain(const struct view *view, struct canvas *canvas)
{
	put_summary(view, canvas);
	put_titles(canvas, 1);
	for (size_t i = 0; i < view->shown_count; i++)
		put_run(canvas, ABOVE + (int)i, &view->gists[view->shown[i]]);
}
