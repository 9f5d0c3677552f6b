/* SPDX-License-Identifier: MIT */
/* dots.h - a curve as dots: what a terminal shows as characters, or as a picture. Pure. */
#ifndef CTL_REPORT_DOTS_H
#define CTL_REPORT_DOTS_H

#include "ctl/report/series.h"

enum dot { DOT_NONE, DOT_UNDONE, DOT_CURVE, DOT_COUNT };

struct dots {
	int width, height;
	unsigned char *cells; /* height rows of width, from the top; enum dot; owned */
};

/* The curve from edge to edge of the range, as lines of so many dots; what was undone is dotted
 * thinly. To be cleared. */
void dots_draw(struct dots *dots, const struct series *series, enum quantity quantity,
	       const struct range *range, int thickness);
void dots_clear(struct dots *dots);

/* What a terminal takes as a picture of them; owned. Nothing is drawn behind the curve. */
char *dots_sixel(const struct dots *dots);
/* In so many characters; the cursor stays where it is. */
char *dots_kitty(const struct dots *dots, int columns, int rows);

#endif
