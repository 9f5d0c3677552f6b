/* SPDX-License-Identifier: MIT */
/* view.c - keys to changes of what is looked at. */
#include "ctl/top/view.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "common/base/mem.h"

static const char *const help[] = {
	"One line a run, worst first; what the last column says is why.",
	"",
	"  arrows, j          choose a run          PageUp, PageDown, Home, End",
	"  Enter              its story: status and events",
	"  l                  its output            [ and ]: of one rank, or of all",
	"  s                  stacks of its processes, written down now",
	"  c                  its checkpoints",
	"  g                  goodput: where its hours went",
	"  k                  kill it, after a question",
	"  S                  ask it for a checkpoint, after a question",
	"  t                  the team's runs",
	"  /                  show only runs with this in name, group, state or fact",
	"  q, Esc             back, or end",
	"",
	"TRY is attempt.launch; CURVE the loss of the newest 64 steps; OF MED tokens/s against",
	"its own median; LEFT until the last step; LIMIT until its job's time limit; SAVED since",
	"the newest checkpoint; STEP since the last step.",
	NULL,
};

void view_init(struct view *view)
{
	*view = (struct view){ .rank = ANY_RANK, .title = "" };
}

static void drop_gists(struct view *view)
{
	for (size_t i = 0; i < view->count; i++)
		gist_clear(&view->gists[i]);
	free(view->gists);
	view->gists = NULL;
	view->count = 0;
}

static void drop_lines(struct view *view)
{
	for (size_t i = 0; i < view->line_count; i++)
		free(view->lines[i]);
	free(view->lines);
	view->lines = NULL;
	view->line_count = 0;
}

void view_fini(struct view *view)
{
	drop_gists(view);
	drop_lines(view);
	free(view->shown);
	view->shown = NULL;
}

/* --- the runs -------------------------------------------------------------------------------- */
/* Worst first, then the newest. */
static int compare(const void *a, const void *b)
{
	const struct gist *x = a, *y = b;

	if (x->worry != y->worry)
		return x->worry < y->worry ? 1 : -1;
	if (x->created_ms != y->created_ms)
		return x->created_ms < y->created_ms ? 1 : -1;
	return strcmp(x->name, y->name);
}

static bool passes(const struct view *view, const struct gist *g)
{
	const char *want = view->filter;

	return strcasestr(g->name, want) || strcasestr(g->group, want) ||
	       strcasestr(run_state_name(g->state), want) || strcasestr(g->fact, want);
}

/* The cursor stays with its run; where that is gone, with its place. */
static void apply_filter(struct view *view)
{
	bool is_there = false;

	view->shown = xrealloc(view->shown, (view->count + 1) * sizeof(size_t));
	view->shown_count = 0;
	for (size_t i = 0; i < view->count; i++) {
		if (!passes(view, &view->gists[i]))
			continue;
		if (strcmp(view->gists[i].name, view->chosen) == 0) {
			view->cursor = view->shown_count;
			is_there = true;
		}
		view->shown[view->shown_count++] = i;
	}
	if (view->cursor >= view->shown_count)
		view->cursor = view->shown_count ? view->shown_count - 1 : 0;
	/* until somebody moves the cursor it stays with the worst */
	if (!is_there && view->chosen[0] && view_chosen(view))
		snprintf(view->chosen, sizeof(view->chosen), "%s", view_chosen(view)->name);
}

void view_set_runs(struct view *view, const json_t *runs, int64_t now_ms)
{
	const json_t *run;
	size_t i;

	drop_gists(view);
	view->gists = xcalloc(json_array_size(runs) + 1, sizeof(struct gist));
	json_array_foreach(runs, i, run) {
		gist_make(run, now_ms, &view->gists[view->count++]);
	}
	qsort(view->gists, view->count, sizeof(struct gist), compare);
	view->now_ms = now_ms;
	apply_filter(view);
}

const struct gist *view_chosen(const struct view *view)
{
	return view->cursor < view->shown_count ? &view->gists[view->shown[view->cursor]] : NULL;
}

void view_scroll(struct view *view, int rows)
{
	size_t room = rows > 0 ? (size_t)rows : 1;

	if (view->cursor < view->first)
		view->first = view->cursor;
	if (view->cursor >= view->first + room)
		view->first = view->cursor - room + 1;
	if (view->first + room > view->shown_count)
		view->first = view->shown_count > room ? view->shown_count - room : 0;
}

/* --- pages ------------------------------------------------------------------------------------ */
/* "[n1:3] text" or "[3] text" → 3; ANY_RANK: none is told. */
static int64_t rank_of(const char *line)
{
	const char *end = line[0] == '[' ? strchr(line, ']') : NULL, *digits = end;

	if (!end)
		return ANY_RANK;
	while (digits > line && isdigit((unsigned char)digits[-1]))
		digits--;
	if (digits == end || (digits[-1] != ':' && digits[-1] != '['))
		return ANY_RANK;
	return strtol(digits, NULL, 10);
}

bool view_has_line(const struct view *view, const char *line)
{
	return view->page != PAGE_LOGS || view->rank == ANY_RANK || rank_of(line) == view->rank;
}

size_t view_line_count(const struct view *view)
{
	size_t count = 0;

	for (size_t i = 0; i < view->line_count; i++)
		count += view_has_line(view, view->lines[i]);
	return count;
}

/* Keeps the list sorted, each once. */
static void note_rank(struct view *view, int64_t rank)
{
	int at = 0;

	while (at < view->rank_count && view->ranks[at] < rank)
		at++;
	if (rank == ANY_RANK || view->rank_count == 64 ||
	    (at < view->rank_count && view->ranks[at] == rank))
		return;
	memmove(&view->ranks[at + 1], &view->ranks[at],
		(size_t)(view->rank_count - at) * sizeof(view->ranks[0]));
	view->ranks[at] = rank;
	view->rank_count++;
}

static void add_line(struct view *view, const char *text, size_t len)
{
	if ((view->line_count & (view->line_count + 1)) == 0)
		view->lines = xrealloc(view->lines, 2 * (view->line_count + 1) * sizeof(char *));
	view->lines[view->line_count++] = xstrndup(text, len);
	note_rank(view, rank_of(view->lines[view->line_count - 1]));
}

void view_set_page(struct view *view, enum page page, const char *run, const char *text)
{
	bool is_new = page != view->page || strcmp(run, view->page_run) != 0;

	drop_lines(view);
	view->page = page;
	snprintf(view->page_run, sizeof(view->page_run), "%s", run);
	view->rank_count = 0;
	while (*text) {
		size_t len = strcspn(text, "\n");

		add_line(view, text, len);
		text += len + (text[len] == '\n');
	}
	if (!is_new)
		return;
	view->rank = ANY_RANK;
	view->left = 0;
	view->top = page == PAGE_LOGS ? view->line_count : 0; /* view_key and paint cut it */
}

static void open_help(struct view *view)
{
	view_set_page(view, PAGE_HELP, "", "");
	for (size_t i = 0; help[i]; i++)
		add_line(view, help[i], strlen(help[i]));
}

static void close_page(struct view *view)
{
	drop_lines(view);
	view->page = PAGE_NONE;
}

/* The next rank after the one that is shown, in that direction; behind the last one: all. */
static void turn_rank(struct view *view, int by)
{
	int at = -1;

	for (int i = 0; i < view->rank_count; i++)
		at = view->ranks[i] == view->rank ? i : at;
	at += by;
	if (at < -1)
		at = view->rank_count - 1;
	view->rank = at >= 0 && at < view->rank_count ? view->ranks[at] : ANY_RANK;
}

static void move_page(struct view *view, int key, size_t rows)
{
	size_t shown = view_line_count(view), last = shown > rows ? shown - rows : 0;

	if (view->top > last)
		view->top = last;
	switch (key) {
	case TOP_UP:
		view->top -= view->top > 0;
		break;
	case TOP_DOWN:
	case 'j':
		view->top += view->top < last;
		break;
	case TOP_PAGE_UP:
		view->top = view->top > rows ? view->top - rows : 0;
		break;
	case TOP_PAGE_DOWN:
	case ' ':
		view->top = view->top + rows < last ? view->top + rows : last;
		break;
	case TOP_FIRST:
		view->top = 0;
		break;
	case TOP_LAST:
		view->top = last;
		break;
	case TOP_LEFT:
		view->left = view->left > 8 ? view->left - 8 : 0;
		break;
	case TOP_RIGHT:
		view->left += view->left < 4096 ? 8 : 0;
		break;
	default:
		break;
	}
}

/* --- keys ------------------------------------------------------------------------------------- */
static void move_cursor(struct view *view, int key, size_t rows)
{
	size_t last = view->shown_count ? view->shown_count - 1 : 0;

	switch (key) {
	case TOP_UP:
		view->cursor -= view->cursor > 0;
		break;
	case TOP_DOWN:
	case 'j':
		view->cursor += view->cursor < last;
		break;
	case TOP_PAGE_UP:
		view->cursor = view->cursor > rows ? view->cursor - rows : 0;
		break;
	case TOP_PAGE_DOWN:
	case ' ':
		view->cursor = view->cursor + rows < last ? view->cursor + rows : last;
		break;
	case TOP_FIRST:
		view->cursor = 0;
		break;
	case TOP_LAST:
		view->cursor = last;
		break;
	default:
		return;
	}
	if (view_chosen(view))
		snprintf(view->chosen, sizeof(view->chosen), "%s", view_chosen(view)->name);
}

static struct act act_on(enum act_kind kind, enum page page, const char *run)
{
	struct act act = { .kind = kind, .page = page };

	snprintf(act.run, sizeof(act.run), "%s", run);
	return act;
}

static struct act key_filter(struct view *view, int key)
{
	size_t len = strlen(view->filter);

	if (key == TOP_RETURN || key == TOP_ESC)
		view->is_typing = false;
	if (key == TOP_ESC)
		len = 0;
	else if (key == TOP_BACK && len > 0)
		len--;
	else if (key >= ' ' && key < 127 && len + 1 < sizeof(view->filter))
		view->filter[len++] = (char)key;
	view->filter[len] = '\0';
	apply_filter(view);
	return act_on(ACT_NONE, PAGE_NONE, "");
}

static struct act key_answer(struct view *view, int key)
{
	enum act_kind kind = view->asked == ORDER_TO_KILL ? ACT_KILL : ACT_SAVE;

	view->asked = ORDER_NOTHING;
	if (key == 'y' || key == 'Y')
		return act_on(kind, PAGE_NONE, view->asked_about);
	snprintf(view->message, sizeof(view->message), "nothing was done");
	return act_on(ACT_NONE, PAGE_NONE, "");
}

static void ask(struct view *view, enum order order)
{
	const struct gist *g = view_chosen(view);

	if (!g)
		return;
	if (run_state_is_final(g->state)) {
		snprintf(view->message, sizeof(view->message), "%s is over", g->name);
		return;
	}
	view->asked = order;
	snprintf(view->asked_about, sizeof(view->asked_about), "%s", g->name);
}

static struct act key_page(struct view *view, int key, int rows)
{
	if (key == 'q' || key == TOP_ESC || key == TOP_BACK)
		close_page(view);
	else if (key == ']' || key == '[')
		turn_rank(view, key == ']' ? 1 : -1);
	else if (key == 'r')
		return act_on(ACT_PAGE, view->page, view->page_run);
	else
		move_page(view, key, rows > 0 ? (size_t)rows : 1);
	return act_on(ACT_NONE, PAGE_NONE, "");
}

static enum page page_of(int key)
{
	switch (key) {
	case TOP_RETURN:
		return PAGE_STORY;
	case 'l':
		return PAGE_LOGS;
	case 's':
		return PAGE_STACKS;
	case 'c':
		return PAGE_CHECKPOINTS;
	case 'g':
		return PAGE_GOODPUT;
	default:
		return PAGE_NONE;
	}
}

static struct act key_runs(struct view *view, int key, int rows)
{
	const struct gist *g = view_chosen(view);

	if (page_of(key) != PAGE_NONE && g)
		return act_on(ACT_PAGE, page_of(key), g->name);
	if (key == 't')
		return act_on(ACT_PAGE, PAGE_TEAM, "");
	if (key == 'q')
		return act_on(ACT_QUIT, PAGE_NONE, "");
	if (key == 'k' || key == 'S')
		ask(view, key == 'k' ? ORDER_TO_KILL : ORDER_TO_SAVE);
	else if (key == '?' || key == 'h')
		open_help(view);
	else if (key == '/')
		view->is_typing = true;
	else if (key == TOP_ESC)
		key_filter(view, TOP_ESC);
	else
		move_cursor(view, key, rows > 0 ? (size_t)rows : 1);
	return act_on(ACT_NONE, PAGE_NONE, "");
}

struct act view_key(struct view *view, int key, int rows)
{
	view->message[0] = '\0';
	if (view->is_typing)
		return key_filter(view, key);
	if (view->asked != ORDER_NOTHING)
		return key_answer(view, key);
	if (key == TOP_REDRAW)
		return act_on(ACT_REDRAW, PAGE_NONE, "");
	return view->page != PAGE_NONE ? key_page(view, key, rows) : key_runs(view, key, rows);
}
