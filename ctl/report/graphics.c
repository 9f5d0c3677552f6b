/* SPDX-License-Identifier: MIT */
/* graphics.c - asks by "primary device attributes", which every terminal answers: a 4 in it is
 * sixels. kitty's own question goes first, and only to those that are known to understand it. */
#include "ctl/report/graphics.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "ctl/base/text.h"

enum { ANSWER_MS = 1000, ANSWERS_MAX = 512, CELL_WIDTH = 8, CELL_HEIGHT = 16, CTRL_C = 3 };

static const char ask_kitty[] = "\033_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\033\\";
static const char ask_attributes[] = "\033[c";

/* The parameters of "ESC [ ? CLASS ; 4 ; … c", or NULL while they are not all there. */
static const char *attributes_of(const char *answers)
{
	const char *at = strstr(answers, "\033[?");

	if (!at)
		return NULL;
	at += strlen("\033[?");
	return at[strspn(at, "0123456789;")] == 'c' ? at : NULL;
}

enum graphics graphics_of(const char *answers)
{
	const char *at = attributes_of(answers);

	if (strstr(answers, "\033_Gi=31;OK"))
		return GRAPHICS_KITTY;
	/* the first of them is the terminal's class */
	for (at = at ? strchr(at, ';') : NULL; at; at = strchr(at, ';')) {
		at++;
		if (strspn(at, "0123456789") == 1 && *at == '4')
			return GRAPHICS_SIXEL;
	}
	return GRAPHICS_NONE;
}

/* tmux and screen, which may run inside of one, would take the question for a title. */
static bool may_be_kitty(void)
{
	static const char *const terms[] = { "xterm-kitty", "xterm-ghostty", "wezterm" };
	const char *term = getenv("TERM");

	if (!term)
		return false;
	for (size_t i = 0; i < sizeof(terms) / sizeof(terms[0]); i++)
		if (strcmp(term, terms[i]) == 0)
			return true;
	return getenv("KITTY_WINDOW_ID") && !getenv("TMUX") && strncmp(term, "screen", 6) != 0 &&
	       strncmp(term, "tmux", 4) != 0;
}

/* Up to the attributes, which come last. False: somebody pressed Ctrl-C. */
static bool hear(char answers[ANSWERS_MAX])
{
	int64_t end_ms = clock_mono_ms() + ANSWER_MS, left_ms;
	struct pollfd fd = { .fd = STDOUT_FILENO, .events = POLLIN };
	size_t len = 0;

	while (!attributes_of(answers) && len + 1 < ANSWERS_MAX &&
	       (left_ms = end_ms - clock_mono_ms()) > 0 && poll(&fd, 1, (int)left_ms) > 0) {
		ssize_t got = read(STDOUT_FILENO, answers + len, ANSWERS_MAX - 1 - len);

		if (got <= 0)
			break;
		if (memchr(answers + len, CTRL_C, (size_t)got))
			return false;
		len += (size_t)got;
		answers[len] = '\0';
	}
	return true;
}

static bool ask(const char *question)
{
	return write(STDOUT_FILENO, question, strlen(question)) == (ssize_t)strlen(question);
}

/* Who does not own the terminal would be stopped for speaking with it. */
static bool may_ask(const struct style *style, int lines)
{
	struct winsize size = { 0 };

	return style->terminal && (fcntl(STDOUT_FILENO, F_GETFL) & O_ACCMODE) == O_RDWR &&
	       tcgetpgrp(STDOUT_FILENO) == getpgrp() &&
	       ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row >= lines;
}

enum graphics graphics_ask(const struct style *style, int lines)
{
	char answers[ANSWERS_MAX] = "";
	struct termios before, raw;
	bool go_on = true;

	if (!may_ask(style, lines) || tcgetattr(STDOUT_FILENO, &before) < 0)
		return GRAPHICS_NONE;
	raw = before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG);
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	if (tcsetattr(STDOUT_FILENO, TCSANOW, &raw) < 0)
		return GRAPHICS_NONE;
	if ((!may_be_kitty() || ask(ask_kitty)) && ask(ask_attributes))
		go_on = hear(answers);
	tcsetattr(STDOUT_FILENO, TCSAFLUSH, &before);
	if (!go_on)
		raise(SIGINT);
	return graphics_of(answers);
}

void graphics_cell(int *width, int *height)
{
	struct winsize size = { 0 };

	*width = CELL_WIDTH;
	*height = CELL_HEIGHT;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_xpixel / 2 >= size.ws_col &&
	    size.ws_ypixel / 2 >= size.ws_row && size.ws_col > 0 && size.ws_row > 0) {
		*width = size.ws_xpixel / size.ws_col;
		*height = size.ws_ypixel / size.ws_row;
	}
}
