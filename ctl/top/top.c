/* SPDX-License-Identifier: MIT */
/* top.c - lbctl top: looks, paints, waits for a key, and again. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "ctl/base/command.h"
#include "ctl/top/paint.h"
#include "ctl/top/screen.h"
#include "ctl/top/source.h"
#include "ctl/top/view.h"

enum {
	LOOK_MS = 2000,
	LOOK_SHARE = 20, /* at most so small a part of the time is spent on answers */
	TICK_MS = 1000,  /* clocks on the screen go on */
	ANSWER_MS = 5000,
	LOGS_AGAIN_MS = 4000,
};

struct top {
	struct source source;
	struct view view;
	int64_t look_ms, painted_ms, page_ms; /* monotonic: next look; last picture, page */
	int64_t asked_wall_ms, asked_mono_ms; /* the answer's clock, and ours then */
	bool is_utf8;
};

static int look(struct top *top, struct err *err)
{
	int64_t begun_ms = clock_mono_ms(), now_ms = 0, took_ms;
	int rc = source_look(&top->source, &now_ms, err);

	took_ms = clock_mono_ms() - begun_ms;
	top->look_ms = begun_ms + took_ms +
		       (took_ms * LOOK_SHARE > LOOK_MS ? took_ms * LOOK_SHARE : LOOK_MS);
	if (top->source.frames)
		top->look_ms = begun_ms + TICK_MS;
	if (rc < 0)
		return -1;
	top->asked_wall_ms = now_ms;
	top->asked_mono_ms = clock_mono_ms();
	view_set_runs(&top->view, top->source.list, now_ms);
	return 0;
}

/* lbd may be away for a while: what was known stays, with a word that it is old. */
static void look_again(struct top *top)
{
	struct err err = { 0 };

	if (look(top, &err) == 0)
		top->view.trouble[0] = '\0';
	else
		snprintf(top->view.trouble, sizeof(top->view.trouble), "old: %.200s", err.text);
}

/* Ages grow between two answers. */
static void tick(struct top *top)
{
	int64_t gone_ms = clock_mono_ms() - top->asked_mono_ms;

	if (!top->source.frames && !top->view.trouble[0])
		view_set_runs(&top->view, top->source.list, top->asked_wall_ms + gone_ms);
}

static void open_page(struct top *top, enum page page, const char *run)
{
	char *text = source_page(&top->source, page, run);

	view_set_page(&top->view, page, run, text);
	top->page_ms = clock_mono_ms();
	free(text);
}

/* false: it is over */
static bool carry_out(struct top *top, const struct act *act)
{
	char *said;

	switch (act->kind) {
	case ACT_QUIT:
		return false;
	case ACT_PAGE:
		open_page(top, act->page, act->run);
		return true;
	case ACT_KILL:
	case ACT_SAVE:
		said = source_order(&top->source, act->kind, act->run);
		snprintf(top->view.message, sizeof(top->view.message), "%s", said);
		free(said);
		top->look_ms = 0;
		return true;
	case ACT_REDRAW:
		screen_redraw();
		return true;
	default:
		return true;
	}
}

static void show(struct top *top)
{
	struct canvas canvas;
	int height, width;

	screen_size(&height, &width);
	view_scroll(&top->view, paint_rows(&top->view, height));
	canvas_init(&canvas, height, width, top->is_utf8);
	paint(&top->view, &canvas);
	screen_show(&canvas);
	canvas_fini(&canvas);
	top->painted_ms = clock_mono_ms();
}

/* Whoever reads output wants to see it grow. */
static bool is_page_due(const struct top *top)
{
	return top->view.page == PAGE_LOGS && !top->source.frames &&
	       clock_mono_ms() - top->page_ms >= LOGS_AGAIN_MS;
}

static int until_next(const struct top *top)
{
	int64_t now_ms = clock_mono_ms(), due_ms = top->painted_ms + TICK_MS;

	if (top->look_ms < due_ms)
		due_ms = top->look_ms;
	return due_ms > now_ms ? (int)(due_ms - now_ms) : 0;
}

static void live(struct top *top)
{
	bool goes_on = true;

	interrupt_catch();
	while (goes_on && !interrupted() && !screen_is_gone()) {
		int height, width, key;
		struct act act;

		show(top);
		key = screen_key(until_next(top));
		screen_size(&height, &width);
		if (key != TOP_NOTHING) {
			act = view_key(&top->view, key, paint_rows(&top->view, height));
			goes_on = carry_out(top, &act);
		} else if (is_page_due(top)) {
			open_page(top, top->view.page, top->view.page_run);
		}
		if (clock_mono_ms() >= top->look_ms)
			look_again(top);
		else
			tick(top);
	}
}

static int run_live(struct top *top, struct err *err)
{
	struct ctl *ctl = top->source.ctl;

	ctl->client.deadline_ms = ANSWER_MS;
	if (look(top, err) < 0 || screen_open(&ctl->out, err) < 0)
		return -1;
	live(top);
	screen_close();
	return 0;
}

/* One picture, for a pipe, or a terminal of which nothing is known. */
static int run_once(struct top *top, struct err *err)
{
	struct ctl *ctl = top->source.ctl;
	struct canvas canvas;

	source_skip(&top->source);
	if (look(top, err) < 0)
		return -1;
	canvas_init(&canvas, (int)top->view.shown_count + 2, terminal_width(STDOUT_FILENO),
		    ctl->out.utf8);
	paint_plain(&top->view, &canvas);
	canvas_print(&canvas, &ctl->out, stdout);
	canvas_fini(&canvas);
	return 0;
}

/* Nobody looks on: answer after answer, until a signal comes. */
static int run_recorder(struct top *top, struct err *err)
{
	int rc = look(top, err);

	interrupt_catch();
	while (rc == 0 && !interrupted()) {
		nap(top->look_ms - clock_mono_ms());
		if (!interrupted())
			look_again(top);
	}
	return rc;
}

int top_run(struct ctl *ctl, struct err *err)
{
	const struct options *o = &ctl->options;
	struct top top = { .source = { .ctl = ctl }, .is_utf8 = ctl->out.utf8 };
	int rc = 0;

	view_init(&top.view);
	if (o->demo || o->replay) {
		rc = source_replay(&top.source, o->replay, err);
		top.view.title = o->replay ? "recording" : "demonstration";
	} else if (o->record) {
		rc = source_record(&top.source, o->record, err);
	}
	if (rc == 0 && ctl->out.terminal && isatty(STDIN_FILENO))
		rc = run_live(&top, err);
	else if (rc == 0)
		rc = o->record ? run_recorder(&top, err) : run_once(&top, err);
	view_fini(&top.view);
	source_fini(&top.source);
	return rc;
}
