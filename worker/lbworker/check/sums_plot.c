/* SPDX-License-Identifier: MIT */
/* sums_plot.c - two curves over powers of four, a line for each power of ten. */
#include "worker/lbworker/check/sums_plot.h"

#include <math.h>
#include <stdio.h>

enum { WIDTH = 640, HEIGHT = 360, LEFT = 70, RIGHT = 20, TOP = 40, BOTTOM = 40 };

struct range {
	double first, last; /* of log10 GB/s, whole numbers */
};

static struct range range_of(const struct sum_row *rows)
{
	struct range r = { INFINITY, -INFINITY };

	for (int i = 0; i < SUM_ROWS; i++) {
		double low = fmin(rows[i].algorithm_gbs, rows[i].bus_gbs);
		double high = fmax(rows[i].algorithm_gbs, rows[i].bus_gbs);
		r.first = fmin(r.first, floor(log10(fmax(low, 1e-6))));
		r.last = fmax(r.last, ceil(log10(fmax(high, 1e-6))));
	}
	r.last = fmax(r.last, r.first + 1);
	return r;
}

static double x_of(int row)
{
	return LEFT + (double)row * (WIDTH - LEFT - RIGHT) / (SUM_ROWS - 1);
}

static double y_of(const struct range *r, double gbs)
{
	double share = (log10(fmax(gbs, 1e-6)) - r->first) / (r->last - r->first);

	return TOP + (1 - share) * (HEIGHT - TOP - BOTTOM);
}

static void put_axes(FILE *to, const struct range *r, const struct sum_row *rows)
{
	int decades = (int)(r->last - r->first);

	for (int i = 0; i <= decades; i++) {
		double gbs = pow(10, r->first + i), y = y_of(r, gbs);
		fprintf(to,
			"<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"#ccc\"/>"
			"<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g GB/s</text>\n",
			LEFT, y, WIDTH - RIGHT, y, LEFT - 6, y + 4, gbs);
	}
	for (int i = 0; i < SUM_ROWS; i++)
		fprintf(to, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%zu KiB</text>\n",
			x_of(i), HEIGHT - 16, rows[i].bytes >> 10);
}

/* Both have a name at their end and another dash: nothing is told by colour alone. */
static void put_curve(FILE *to, const struct range *r, const struct sum_row *rows, bool is_bus)
{
	const char *color = is_bus ? "#d55e00" : "#0072b2", *dash = is_bus ? "6 3" : "none";
	double last = 0;

	fprintf(to,
		"<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" stroke-dasharray=\"%s\" "
		"points=\"",
		color, dash);
	for (int i = 0; i < SUM_ROWS; i++) {
		last = y_of(r, is_bus ? rows[i].bus_gbs : rows[i].algorithm_gbs);
		fprintf(to, "%.1f,%.1f ", x_of(i), last);
	}
	fprintf(to, "\"/><text x=\"%d\" y=\"%d\" fill=\"%s\">%s</text>\n",
		LEFT + (is_bus ? 190 : 0), TOP - 8, color,
		is_bus ? "- - bus bandwidth" : "\u2014 algorithm bandwidth");
}

int sums_plot(const char *path, const struct sum_row rows[SUM_ROWS], int ranks, struct err *err)
{
	struct range r = range_of(rows);
	FILE *to = fopen(path, "we");

	if (!to)
		return err_errno(err, "%s", path);
	fprintf(to,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
		"font-family=\"sans-serif\" "
		"font-size=\"11\"><title>all-reduce of %d ranks</title>\n"
		"<text x=\"%d\" y=\"16\" font-size=\"14\">all-reduce of %d ranks</text>\n",
		WIDTH, HEIGHT, ranks, LEFT, ranks);
	put_axes(to, &r, rows);
	put_curve(to, &r, rows, false);
	put_curve(to, &r, rows, true);
	fputs("</svg>\n", to);
	bool is_good = !ferror(to);
	is_good = fclose(to) == 0 && is_good;
	return is_good ? 0 : err_errno(err, "%s", path);
}
