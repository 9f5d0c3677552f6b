/* SPDX-License-Identifier: MIT */
/* dots.c - draws lines from point to point. */
#include "ctl/report/dots.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"

static void put(struct dots *d, int x, int y, int thickness, enum dot dot)
{
	for (int i = 0; i < thickness * thickness; i++) {
		int at_x = x + i % thickness, at_y = y + i / thickness;
		unsigned char *cell = d->cells + (size_t)at_y * (size_t)d->width + at_x;

		if (at_x < d->width && at_y < d->height && *cell < dot)
			*cell = (unsigned char)dot;
	}
}

/* Of what was undone every third dot. */
static void segment(struct dots *d, const int from[2], const int to[2], int thickness, bool undone)
{
	int across = abs(to[0] - from[0]), down = abs(to[1] - from[1]);
	int n = across > down ? across : down, skip = undone ? 3 * thickness : 1;

	for (int i = 0; i <= n; i += skip) {
		double share = n ? (double)i / n : 0;

		put(d, from[0] + (int)lround(share * (to[0] - from[0])),
		    from[1] + (int)lround(share * (to[1] - from[1])), thickness,
		    undone ? DOT_UNDONE : DOT_CURVE);
	}
}

void dots_draw(struct dots *d, const struct series *s, enum quantity quantity,
	       const struct range *r, int thickness)
{
	double steps = r->last > r->first ? (double)(r->last - r->first) : 1;
	int last[2] = { 0 }, stretch = -1;

	d->cells = xcalloc((size_t)d->width, (size_t)d->height);
	for (size_t i = 0; i < s->count; i++) {
		const struct point *p = &s->points[i];
		double value = quantity_of(p, quantity);
		int at[2];

		if (!isfinite(value))
			continue;
		at[0] = (int)lround((double)(p->step - r->first) / steps * (d->width - thickness));
		at[1] = (int)lround((1 - range_share(r, value)) * (d->height - thickness));
		segment(d, p->stretch == stretch ? last : at, at, thickness, p->is_undone);
		memcpy(last, at, sizeof(last));
		stretch = p->stretch;
	}
}

void dots_clear(struct dots *d)
{
	free(d->cells);
	*d = (struct dots){ 0 };
}
