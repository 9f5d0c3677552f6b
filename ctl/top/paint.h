/* SPDX-License-Identifier: MIT */
/* paint.h - what is looked at, as lines of a screen. Pure. */
#ifndef CTL_TOP_PAINT_H
#define CTL_TOP_PAINT_H

#include "ctl/top/canvas.h"
#include "ctl/top/view.h"

/* Rows of runs, or of a page's text, that a screen of this height has room for. */
int paint_rows(const struct view *view, int height);
/* The whole screen. */
void paint(const struct view *view, struct canvas *canvas);
/* For who has no terminal: a canvas of view->shown_count + 2 lines. */
void paint_plain(const struct view *view, struct canvas *canvas);

#endif
