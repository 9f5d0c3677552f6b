/* SPDX-License-Identifier: MIT */
/* screen.c - the only file that knows curses; what is drawn is decided elsewhere. */
#include "ctl/top/screen.h"

#include <curses.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/top/keys.h"

static bool has_color;
static SCREEN *screen;

enum { PAIR_GOOD = 1, PAIR_WAIT, PAIR_BAD, ESCAPE_MS = 50 };

int screen_open(const struct style *style, struct err *err)
{
	const char *term = getenv("TERM");

	screen = newterm(NULL, stdout, stdin);
	if (!screen)
		return err_set(err, ERR_USAGE, "the terminal \"%s\" is not known here; set TERM",
			       term ? term : "");
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	set_escdelay(ESCAPE_MS);
	curs_set(0);
	has_color = style->color && has_colors();
	if (has_color) {
		start_color();
		use_default_colors();
		init_pair(PAIR_GOOD, COLOR_GREEN, -1);
		init_pair(PAIR_WAIT, COLOR_YELLOW, -1);
		init_pair(PAIR_BAD, COLOR_RED, -1);
	}
	return 0;
}

void screen_close(void)
{
	if (!screen)
		return;
	endwin();
	delscreen(screen);
	screen = NULL;
}

void screen_size(int *height, int *width)
{
	getmaxyx(stdscr, *height, *width);
}

/* Without colours what is bad is bold: that much a monochrome terminal has. */
static attr_t attributes(enum color color)
{
	switch (color) {
	case COLOR_GOOD:
		return has_color ? COLOR_PAIR(PAIR_GOOD) : A_NORMAL;
	case COLOR_WAIT:
		return has_color ? COLOR_PAIR(PAIR_WAIT) : A_NORMAL;
	case COLOR_BAD:
		return has_color ? COLOR_PAIR(PAIR_BAD) | A_BOLD : A_BOLD;
	case COLOR_DIM:
		return A_DIM;
	case COLOR_BOLD:
		return A_BOLD;
	default:
		return A_NORMAL;
	}
}

static void show_line(const struct line *line, int y)
{
	size_t len = strlen(line->text);
	attr_t chosen = line->is_chosen ? A_REVERSE : A_NORMAL;

	move(y, 0);
	for (int i = 0; i < line->mark_count; i++) {
		size_t from = line->marks[i].at;
		size_t end = i + 1 < line->mark_count ? line->marks[i + 1].at : len;

		attrset(attributes(line->marks[i].color) | chosen);
		addnstr(line->text + from, (int)(end - from));
	}
	attrset(A_NORMAL | chosen);
	if (line->is_chosen)
		for (int x = line->columns; x < COLS; x++)
			mvaddch(y, x, ' ');
	attrset(A_NORMAL);
}

void screen_show(const struct canvas *canvas)
{
	erase();
	for (int y = 0; y < canvas->height; y++)
		show_line(&canvas->lines[y], y);
	refresh();
}

void screen_redraw(void)
{
	clearok(stdscr, TRUE);
}

static int translated(int key)
{
	switch (key) {
	case ERR:
	case KEY_RESIZE:
		return TOP_NOTHING;
	case KEY_UP:
		return TOP_UP;
	case KEY_DOWN:
		return TOP_DOWN;
	case KEY_LEFT:
		return TOP_LEFT;
	case KEY_RIGHT:
		return TOP_RIGHT;
	case KEY_PPAGE:
		return TOP_PAGE_UP;
	case KEY_NPAGE:
		return TOP_PAGE_DOWN;
	case KEY_HOME:
		return TOP_FIRST;
	case KEY_END:
		return TOP_LAST;
	case KEY_ENTER:
	case '\r':
		return TOP_RETURN;
	case KEY_BACKSPACE:
	case 127:
		return TOP_BACK;
	default:
		return key < 256 ? key : TOP_NOTHING;
	}
}

int screen_key(int timeout_ms)
{
	timeout(timeout_ms);
	return translated(getch());
}

/* Where SIGHUP is ignored nothing else says so, and no key is waited for any more. */
bool screen_is_gone(void)
{
	struct pollfd terminal = { .fd = STDIN_FILENO };

	return poll(&terminal, 1, 0) > 0;
}
