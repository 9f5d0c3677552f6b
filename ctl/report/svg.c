/* SPDX-License-Identifier: MIT */
/* svg.c - draws by the classes that page.c has colours for, light and dark. */
#include "ctl/report/svg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "ctl/report/html.h"

enum {
	WIDTH = 860,
	HEIGHT = 220,
	LEFT = 64,
	RIGHT = 12,
	TOP = 24,
	BOTTOM = 26,
	BAR = 22,
	LETTER = 7
};

static double x_of(const struct range *s, int64_t step)
{
	double steps = s->last > s->first ? (double)(s->last - s->first) : 1;
	double share = (double)(step - s->first) / steps;

	return LEFT + fmin(fmax(share, 0), 1) * (WIDTH - LEFT - RIGHT);
}

static double y_of(const struct range *s, double value)
{
	return TOP + (1 - range_share(s, value)) * (HEIGHT - TOP - BOTTOM);
}

/* Steps, or the time of a minute. */
static const char *end_text(int64_t step, enum quantity quantity, const char *word,
			    char out[CLOCK_TEXT_MAX])
{
	if (quantity == QUANTITY_USE)
		return clock_text(step * 1000, out);
	snprintf(out, CLOCK_TEXT_MAX, "%s%lld", word, (long long)step);
	return out;
}

static void put_axes(struct buf *out, const struct range *s, enum quantity quantity)
{
	char text[NUMBER_TEXT_MAX], first[CLOCK_TEXT_MAX], last[CLOCK_TEXT_MAX];

	for (int i = 0; i <= 4; i++) {
		double value = range_value(s, i / 4.0);

		if (quantity == QUANTITY_LOSS)
			loss_text(value, text);
		else if (quantity == QUANTITY_USE)
			snprintf(text, sizeof(text), "%.0f%%", value);
		else
			short_number(value, text);
		buf_addf(out,
			 "<line class=\"grid\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>"
			 "<text class=\"end\" x=\"%d\" y=\"%.1f\">%s</text>\n",
			 LEFT, y_of(s, value), WIDTH - RIGHT, y_of(s, value), LEFT - 6,
			 y_of(s, value) + 4, text);
	}
	buf_addf(out,
		 "<text x=\"%d\" y=\"%d\">%s</text>"
		 "<text class=\"end\" x=\"%d\" y=\"%d\">%s</text>\n",
		 LEFT, HEIGHT - 8, end_text(s->first, quantity, "step ", first), WIDTH - RIGHT,
		 HEIGHT - 8, end_text(s->last, quantity, "", last));
}

/* One line for each stretch, and anew where what was undone begins. */
static void put_lines(struct buf *out, const struct series *s, const struct range *range,
		      enum quantity quantity)
{
	const struct point *last = NULL;

	for (size_t i = 0; i < s->count; i++) {
		const struct point *p = &s->points[i];
		double value = quantity_of(p, quantity);

		if (!isfinite(value))
			continue;
		if (!last || last->stretch != p->stretch || last->is_undone != p->is_undone)
			buf_addf(out, "%s<polyline class=\"%s\" points=\"", last ? "\"/>\n" : "",
				 p->is_undone ? "undone" : "curve");
		buf_addf(out, "%.1f,%.1f ", x_of(range, p->step), y_of(range, value));
		last = p;
	}
	buf_addf(out, last ? "\"/>\n" : "");
}

/* A line each; in words as many as do not run into each other. */
static void put_happenings(struct buf *out, const struct range *s,
			   const struct happening *happenings, size_t count)
{
	double free_from = -INFINITY;

	for (size_t i = 0; i < count; i++) {
		double x = x_of(s, happenings[i].step);
		double width = LETTER * (double)strlen(happenings[i].what);
		bool is_right = x + width > WIDTH - RIGHT;
		double left = is_right ? x - 3 - width : x + 3;

		buf_addf(out, "<line class=\"event\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\"/>",
			 x, TOP - 4, x, HEIGHT - BOTTOM);
		if (left > free_from) {
			buf_addf(out, "<text class=\"event%s\" x=\"%.1f\" y=\"%d\">",
				 is_right ? " end" : "", x + (is_right ? -3 : 3), TOP - 8);
			html_text(out, happenings[i].what);
			buf_addf(out, "</text>");
			free_from = left + width;
		}
		buf_addf(out, "\n");
	}
}

static void begin(struct buf *out, const char *title, int height)
{
	buf_addf(out, "<svg viewBox=\"0 0 %d %d\" role=\"img\"><title>", WIDTH, height);
	html_text(out, title);
	buf_addf(out, "</title>\n");
}

void svg_curve(struct buf *out, const char *title, const struct series *series,
	       enum quantity quantity, const struct happening *happenings, size_t count)
{
	struct range range;
	char *whole;

	if (!series_range(series, quantity, &range))
		return;
	whole = xasprintf("%s%s", title, range.is_log ? "; logarithmic" : "");
	buf_addf(out, "<figure><figcaption>");
	html_text(out, whole);
	buf_addf(out, "</figcaption>\n");
	begin(out, whole, HEIGHT);
	free(whole);
	put_axes(out, &range, quantity);
	put_lines(out, series, &range, quantity);
	put_happenings(out, &range, happenings, count);
	buf_addf(out, "</svg></figure>\n");
}

void svg_waterfall(struct buf *out, const char *title, const struct share *shares, size_t count)
{
	double sum = 0, at = 0, room = WIDTH - 330;
	char text[CLOCK_TEXT_MAX];

	for (size_t i = 0; i < count; i++)
		sum += shares[i].hours;
	if (!(sum > 0))
		return;
	buf_addf(out, "<figure><figcaption>");
	html_text(out, title);
	buf_addf(out, "</figcaption>\n");
	begin(out, title, (int)count * BAR + 4);
	for (size_t i = 0; i < count; i++) {
		int y = (int)i * BAR;

		buf_addf(out, "<text class=\"end\" x=\"190\" y=\"%d\">", y + 15);
		html_text(out, shares[i].name);
		buf_addf(out,
			 "</text><rect class=\"%s\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" "
			 "height=\"%d\"/><text x=\"%.1f\" y=\"%d\">%s, %.1f%%</text>\n",
			 i == 0 ? "good" : "bad", 200 + room * at / sum, y + 3,
			 fmax(1, room * shares[i].hours / sum), BAR - 6,
			 206 + room * (at + shares[i].hours) / sum, y + 15,
			 duration_text(llround(shares[i].hours * 3600e3), text),
			 100 * shares[i].hours / sum);
		at += shares[i].hours;
	}
	buf_addf(out, "</svg></figure>\n");
}
