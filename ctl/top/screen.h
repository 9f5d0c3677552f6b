/* SPDX-License-Identifier: MIT */
/* screen.h - a canvas on a terminal, by curses, and the keys from there. */
#ifndef CTL_TOP_SCREEN_H
#define CTL_TOP_SCREEN_H

#include "common/base/err.h"
#include "ctl/top/canvas.h"

/* -1 with err where curses does not know the terminal. screen_close leaves it as it was. */
int screen_open(const struct style *style, struct err *err);
void screen_close(void);
/* Lines and columns, as they are now. */
void screen_size(int *height, int *width);
void screen_show(const struct canvas *canvas);
/* All of it anew, also what curses believes to be there. */
void screen_redraw(void);
/* A character, or one of enum top_key (keys.h); TOP_NOTHING after timeout_ms, or when the size
 * changed. */
int screen_key(int timeout_ms);
/* The terminal was closed. */
bool screen_is_gone(void);

#endif
