/* SPDX-License-Identifier: MIT */
/* view.h - what a person looks at just now, and what each key makes of it. Pure: what a key asks
 * of the outside is a struct act, which the shell carries out. */
#ifndef CTL_TOP_VIEW_H
#define CTL_TOP_VIEW_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/names.h"
#include "ctl/top/gist.h"
#include "ctl/top/keys.h"

enum { FILTER_BYTES = 64, MESSAGE_BYTES = 256, ANY_RANK = -1 };

/* A text about a run, or about all; each is what a command of lbctl prints. */
enum page {
	PAGE_NONE,
	PAGE_STORY,
	PAGE_LOGS,
	PAGE_STACKS,
	PAGE_CHECKPOINTS,
	PAGE_TEAM,
	PAGE_GOODPUT,
	PAGE_HELP,
	PAGE_COUNT
};

enum order { ORDER_NOTHING, ORDER_TO_KILL, ORDER_TO_SAVE };

struct view {
	struct gist *gists; /* all runs, worst first; owned */
	size_t count;
	size_t *shown; /* places in `gists` of those that the filter lets through; owned */
	size_t shown_count;
	char chosen[NAME_MAX_BYTES + 1]; /* the run under the cursor, wherever it moves to */
	size_t cursor, first;            /* its place in `shown`; the one on the first line */
	char filter[FILTER_BYTES];
	bool is_typing; /* the filter */
	enum order asked;
	char asked_about[NAME_MAX_BYTES + 1];
	char message[MESSAGE_BYTES]; /* for the last line, until the next key */
	int64_t now_ms;              /* wall clock of what is shown */
	char trouble[MESSAGE_BYTES]; /* why it is not newer; "" */
	const char *title;           /* "demonstration"; "" */
	/* the page, in the place of the runs */
	enum page page;
	char page_run[NAME_MAX_BYTES + 1];
	char **lines; /* owned, as the list is */
	size_t line_count, top;
	int left;          /* columns that are out of sight on the left */
	int64_t rank;      /* of logs: only this one's lines */
	int64_t ranks[64]; /* that have lines, ascending */
	int rank_count;
};

enum act_kind { ACT_NONE, ACT_QUIT, ACT_PAGE, ACT_KILL, ACT_SAVE, ACT_REDRAW };
struct act {
	enum act_kind kind;
	enum page page;
	char run[NAME_MAX_BYTES + 1];
};

void view_init(struct view *view);
void view_fini(struct view *view);
/* The newest answer, `runs` borrowed for as long as the view shows it. */
void view_set_runs(struct view *view, const json_t *runs, int64_t now_ms);
/* Opens a page, or (the same page of the same run) renews it. Takes nothing. */
void view_set_page(struct view *view, enum page page, const char *run, const char *text);
/* `rows`: of runs, or lines, that the screen has room for. */
struct act view_key(struct view *view, int key, int rows);
/* Keeps the cursor in sight of so many rows. */
void view_scroll(struct view *view, int rows);
/* The run under the cursor; NULL: none is shown. */
const struct gist *view_chosen(const struct view *view);
/* Does the line of a page pass its rank? */
bool view_has_line(const struct view *view, const char *line);
/* How many do. */
size_t view_line_count(const struct view *view);

#endif
