/* SPDX-License-Identifier: MIT */
/* precision_page.c - lbworker precision FOLDER: what became of each operand of few bits in a
 * training, as one page of HTML that needs nothing else: curves over the steps, and the last step's
 * histogram.
 *
 * A row is one operand of one module of one layer. Three words are said of it, each with its rule:
 *   saturates   more than 0.1 % of its elements were beyond the largest number, in the mean of all
 *               steps
 *   underflows  more than 10 % of what was not zero became zero
 *   drifts      its largest number is more than twice or less than half of what it was in the first
 *               tenth, or the signal to noise ratio fell by 3 dB */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "worker/lbworker/commands/command.h"
#include "worker/lbworker/commands/words.h"

enum { SATURATED, ZEROED, AMAX, SQNR, CURVES, WIDTH = 150, HEIGHT = 26, NAME_BYTES = 80 };

static const struct {
	const char *key, *title;
} curves[CURVES] = { { "saturated", "saturated" },
		     { "zeroed", "became zero" },
		     { "amax", "largest |x|" },
		     { "sqnr_db", "signal to noise, dB" } };

struct operand {
	char name[NAME_BYTES]; /* "weight.g, layer 1, down" */
	int64_t *step;
	double *value[CURVES]; /* NAN: not told */
	size_t count;
	json_t *binades; /* of the last step */
};

struct page {
	struct operand *operand;
	size_t count;
};

/* --- reading ---------------------------------------------------------------------------------- */

static struct operand *operand_of(struct page *p, const json_t *line)
{
	char name[NAME_BYTES];

	snprintf(name, sizeof(name), "%.20s, layer %" PRId64 ", %.20s", js_str(line, "slot", "?"),
		 js_int(line, "layer", -1), js_str(line, "module", "?"));
	for (size_t i = 0; i < p->count; i++)
		if (strcmp(p->operand[i].name, name) == 0)
			return &p->operand[i];
	p->operand = xrealloc(p->operand, (p->count + 1) * sizeof(*p->operand));
	struct operand *o = &p->operand[p->count++];
	*o = (struct operand){ 0 };
	memcpy(o->name, name, sizeof(name));
	return o;
}

/* A launch that began again earlier tells its steps anew: what was told of them before goes. */
static void add_line(struct page *p, const json_t *line)
{
	struct operand *o = operand_of(p, line);
	int64_t step = js_int(line, "step", 0);

	while (o->count > 0 && o->step[o->count - 1] >= step)
		o->count--;
	o->step = xrealloc(o->step, (o->count + 1) * sizeof(*o->step));
	o->step[o->count] = step;
	for (int c = 0; c < CURVES; c++) {
		o->value[c] = xrealloc(o->value[c], (o->count + 1) * sizeof(double));
		o->value[c][o->count] = js_real(line, curves[c].key, NAN);
	}
	o->count++;
	json_decref(o->binades);
	o->binades = json_incref(json_object_get(line, "binades"));
}

/* A launch that was killed, or met a full disk, leaves half a line; behind one of an older version
 * the next goes on. */
static int read_lines(struct page *p, const char *path, struct err *err)
{
	FILE *from = fopen(path, "re");
	size_t room = 0, broken = 0;
	char *text = NULL;

	if (!from)
		return err_errno(err, "%s", path);
	while (getline(&text, &room, from) > 0) {
		json_t *line = json_loads(text, 0, NULL);
		if (line)
			add_line(p, line);
		else if (strchr(text, '\n')) /* the last one may still be on its way */
			broken++;
		json_decref(line);
	}
	free(text);
	fclose(from);
	if (broken > 0)
		fprintf(stderr, "%s: left out what is no line of JSON: %zu\n", path, broken);
	if (p->count > 0)
		return 0;
	return err_set(err, ERR_USAGE,
		       "%s: has no statistics: was there a quantize.recipe, and a step of "
		       "metrics.log_freq?",
		       path);
}

/* --- judging ---------------------------------------------------------------------------------- */

static double mean(const double *x, size_t from, size_t to)
{
	double sum = 0;
	size_t count = 0;

	for (size_t i = from; i < to; i++)
		if (isfinite(x[i]))
			sum += x[i], count++;
	return count > 0 ? sum / (double)count : NAN;
}

struct judgement {
	bool saturates, underflows, drifts;
};

static struct judgement judge(const struct operand *o)
{
	size_t tenth = o->count / 10 + 1;
	double first = mean(o->value[AMAX], 0, tenth);
	double last = mean(o->value[AMAX], o->count - tenth, o->count);
	double fell = mean(o->value[SQNR], 0, tenth) -
		      mean(o->value[SQNR], o->count - tenth, o->count);

	return (struct judgement){
		.saturates = mean(o->value[SATURATED], 0, o->count) > 1e-3,
		.underflows = mean(o->value[ZEROED], 0, o->count) > 0.1,
		.drifts = o->count > 1 && (last > 2 * first || last < first / 2 || fell > 3),
	};
}

/* --- drawing ---------------------------------------------------------------------------------- */

static void draw_curve(const struct operand *o, int curve, FILE *to)
{
	const double *y = o->value[curve];
	double low = INFINITY, high = -INFINITY;

	for (size_t i = 0; i < o->count; i++) {
		low = fmin(low, y[i]);
		high = fmax(high, y[i]);
	}
	if (curve == SATURATED || curve == ZEROED) {
		low = 0;
		high = fmax(high, 1e-3);
	}
	if (!isfinite(high)) {
		fprintf(to, "<td>exact</td>");
		return;
	}
	double span = high > low ? high - low : 1;
	double steps = o->count > 1 ? (double)(o->step[o->count - 1] - o->step[0]) : 1;
	fprintf(to, "<td><svg width=\"%d\" height=\"%d\"><path d=\"", WIDTH, HEIGHT);
	bool begun = false;
	for (size_t i = 0; i < o->count; i++) {
		if (!isfinite(y[i]))
			continue;
		fprintf(to, "%c%.1f %.1f", begun ? 'L' : 'M',
			2 + (WIDTH - 4) * (double)(o->step[i] - o->step[0]) / steps,
			2 + (HEIGHT - 4) * (1 - (y[i] - low) / span));
		begun = true;
	}
	double last = y[o->count - 1];
	bool is_share = curve == SATURATED || curve == ZEROED;
	fprintf(to, "\"/></svg><br>%.3g%s (%.3g … %.3g)</td>", is_share ? 100 * last : last,
		is_share ? " %" : "", is_share ? 100 * low : low, is_share ? 100 * high : high);
}

/* Bars of |x/s|, a binade each; heights are square roots of shares, so that rare ones are seen. */
static void draw_histogram(const struct operand *o, FILE *to)
{
	size_t bins = json_array_size(o->binades);
	double first = json_number_value(json_array_get(o->binades, 0)), most = 1;

	for (size_t i = 1; i < bins; i++)
		most = fmax(most, json_number_value(json_array_get(o->binades, i)));
	fprintf(to, "<td><svg width=\"%d\" height=\"%d\">", WIDTH, HEIGHT);
	for (size_t i = 1; i < bins; i++) {
		double share = json_number_value(json_array_get(o->binades, i)) / most;
		double wide = (double)WIDTH / (double)(bins - 1), high = (HEIGHT - 2) * sqrt(share);
		fprintf(to, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>",
			wide * (double)(i - 1), HEIGHT - high, wide * 0.9, high);
	}
	fprintf(to, "</svg><br>2^%.0f … 2^%.0f</td>", first, first + (double)bins - 1);
}

static void draw_row(const struct operand *o, FILE *to)
{
	const struct judgement j = judge(o);

	fputs("<tr><td>", to);
	command_put_text(o->name, to);
	if (j.saturates)
		fprintf(to, " <b class=\"s\">saturates</b>");
	if (j.underflows)
		fprintf(to, " <b class=\"u\">underflows</b>");
	if (j.drifts)
		fprintf(to, " <b class=\"d\">drifts</b>");
	fprintf(to, "</td>");
	for (int c = 0; c < CURVES; c++)
		draw_curve(o, c, to);
	draw_histogram(o, to);
	fprintf(to, "</tr>\n");
}

static const char head[] =
	"<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>precision</title><style>"
	"body{font:13px sans-serif;margin:1em}td,th{text-align:left;padding:3px 8px;border-bottom:1px "
	"solid #ddd;vertical-align:top}svg{background:#f6f6f6}path{fill:none;stroke:#247}rect{fill:#58a}"
	"b{color:#fff;padding:1px 4px;border-radius:3px}.s{background:#c33}.u{background:#c80}"
	".d{background:#639}</style>\n";

static void draw(const struct page *p, const char *path, FILE *to)
{
	size_t saturate = 0, underflow = 0, drift = 0;

	for (size_t i = 0; i < p->count; i++) {
		const struct judgement j = judge(&p->operand[i]);
		saturate += j.saturates;
		underflow += j.underflows;
		drift += j.drifts;
	}
	fprintf(to, "%s<h1>Operands of few bits</h1><p>", head);
	command_put_text(path, to);
	fprintf(to,
		": %zu operands; <b class=\"s\">%zu saturate</b> "
		"(more than 0.1 %% beyond the largest number), <b class=\"u\">%zu underflow</b> (more "
		"than 10 %% became zero), <b class=\"d\">%zu drift</b> (largest number doubled or "
		"halved, or 3 dB lost, from the first tenth of the steps to the last). A curve's "
		"numbers: the last, and the range.</p>\n<table><tr><th>operand</th>",
		p->count, saturate, underflow, drift);
	for (int c = 0; c < CURVES; c++)
		fprintf(to, "<th>%s</th>", curves[c].title);
	fprintf(to, "<th>|x/scale| of the last step</th></tr>\n");
	for (size_t i = 0; i < p->count; i++)
		draw_row(&p->operand[i], to);
	fprintf(to, "</table></html>\n");
	printf("%zu operands: %zu saturate, %zu underflow, %zu drift\n", p->count, saturate,
	       underflow, drift);
}

/* --- all of it -------------------------------------------------------------------------------- */

static void page_clear(struct page *p)
{
	for (size_t i = 0; i < p->count; i++) {
		for (int c = 0; c < CURVES; c++)
			free(p->operand[i].value[c]);
		free(p->operand[i].step);
		json_decref(p->operand[i].binades);
	}
	free(p->operand);
}

static int make_page(const char *folder, const char *out, struct err *err)
{
	char *path = path_join("%s/precision.jsonl", folder);
	struct page page = { 0 };
	int rc = read_lines(&page, path, err);
	FILE *to = rc == 0 ? fopen(out, "we") : NULL;

	if (rc == 0 && !to)
		rc = err_errno(err, "%s", out);
	if (to)
		draw(&page, path, to);
	if (to && fclose(to) != 0)
		rc = err_errno(err, "%s", out);
	page_clear(&page);
	free(path);
	return rc;
}

int command_precision(int argc, char **argv)
{
	const char *out = "precision.html";
	const struct word_option options[] = { { "-o", .text = &out }, { 0 } };
	char **rest = xcalloc((size_t)argc, sizeof(*rest));
	struct err err = { 0 };
	size_t count;
	int status;

	if (words_parse(options, argc, argv, rest, &count, &err))
		status = command_failed(&err);
	else if (count != 1)
		status = command_usage(
			"precision takes the FOLDER of a training, and perhaps -o PAGE.html");
	else
		status = make_page(rest[0], out, &err) ? command_failed(&err) : EXIT_DONE;
	free(rest);
	return status;
}
