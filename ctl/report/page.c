/* SPDX-License-Identifier: MIT */
/* page.c - sections of the page; its colours are those of Okabe and Ito, which people tell apart
 * however they see, and nothing is told by colour alone. */
#include "ctl/report/page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "ctl/base/hours.h"
#include "ctl/base/print.h"
#include "ctl/report/svg.h"

enum {
	PAGE_MAX_BYTES = 64 * 1024 * 1024,
	BUCKETS = 400,   /* of a curve; each is up to four points */
	DRAWN_RUNS = 20, /* have curves; the others a line in the table */
	MOST_HAPPENINGS = 60,
	MOST_ROWS = 500, /* of attempts, of checkpoints */
};

static const char style[] =
	":root{--ink:#1a1a1a;--paper:#fff;--faint:#ddd;--dim:#666;--curve:#0072b2;--bad:#d55e00;"
	"--good:#009e73}\n"
	"@media (prefers-color-scheme:dark){:root{--ink:#e8e8e8;--paper:#161616;--faint:#3a3a3a;"
	"--dim:#a0a0a0;--curve:#56b4e9;--bad:#e69f00;--good:#2fc79a}}\n"
	"@media print{:root{--ink:#000;--paper:#fff;--faint:#ccc;--dim:#444;--curve:#0072b2;"
	"--bad:#b34700;--good:#007a59}section{break-inside:avoid-page}}\n"
	"body{font:15px/1.45 system-ui,sans-serif;color:var(--ink);background:var(--paper);"
	"max-width:60em;margin:2em auto;padding:0 1em}\n"
	"table{border-collapse:collapse;margin:.6em 0}th,td{text-align:left;padding:.15em .9em .15em 0;"
	"vertical-align:top}th{color:var(--dim);font-weight:600}td.n,th.n{text-align:right;"
	"font-variant-numeric:tabular-nums}tr+tr td{border-top:1px solid var(--faint)}\n"
	"figure{margin:1em 0}figcaption,.dim{color:var(--dim)}svg{width:100%;height:auto;"
	"font:12px system-ui,sans-serif;fill:var(--ink)}\n"
	".curve,.undone{fill:none;stroke:var(--curve);stroke-width:1.6}.undone{stroke:var(--dim);"
	"stroke-dasharray:3 4}.grid{stroke:var(--faint)}line.event{stroke:var(--bad);"
	"stroke-dasharray:6 3}text.event{fill:var(--bad)}.end{text-anchor:end}.good{fill:var(--good)}"
	".bad{fill:var(--bad)}code{font-size:.95em}\n";

/* --- cells ------------------------------------------------------------------------------------ */
static void cell(struct buf *out, const char *text, bool is_number)
{
	buf_addf(out, is_number ? "<td class=\"n\">" : "<td>");
	html_text(out, text);
	buf_addf(out, "</td>");
}

static void head(struct buf *out, const char *const *titles, const char *numbers)
{
	buf_addf(out, "<table><tr>");
	for (size_t i = 0; titles[i]; i++)
		buf_addf(out, "<th%s scope=\"col\">%s</th>",
			 numbers[i] == 'n' ? " class=\"n\"" : "", titles[i]);
	buf_addf(out, "</tr>\n");
}

static const char *hours_text(double hours, char out[NUMBER_TEXT_MAX])
{
	snprintf(out, NUMBER_TEXT_MAX, hours < 10 ? "%.2f" : "%.1f", hours);
	return out;
}

/* --- all runs --------------------------------------------------------------------------------- */
static void put_run_row(struct buf *out, size_t at, const struct report_run *r)
{
	const char *state = js_str(r->run, "state", "?"), *cause = js_str(r->run, "cause", state);
	char text[2 * NUMBER_TEXT_MAX];

	buf_addf(out, "<tr><td><a href=\"#run%zu\">", at + 1);
	html_text(out, js_str(r->run, "name", "?"));
	buf_addf(out, "</a></td>");
	cell(out, state, false);
	cell(out, strcmp(cause, state) == 0 ? "" : cause, false);
	cell(out, js_str(r->run, "owner", ""), false);
	cell(out, js_str(r->run, "group", ""), false);
	snprintf(text, sizeof(text), "%zu", json_array_size(json_object_get(r->run, "attempts")));
	cell(out, text, true);
	cell(out, step_text(js_int(r->run, "step", -1), js_int(r->run, "target_step", -1), text),
	     true);
	cell(out, loss_text(js_real(r->run, "loss", NAN), text), true);
	cell(out, hours_text(js_real(r->goodput, "gpu_hours_total", 0), text), true);
	snprintf(text, sizeof(text), "%.1f%%", 100 * js_real(r->goodput, "ettr", 0));
	cell(out, r->goodput ? text : "", true);
	buf_addf(out, "</tr>\n");
}

static void put_runs(struct buf *out, const struct report_run *runs, size_t count)
{
	static const char *const titles[] = { "run",       "state",    "cause", "owner",
					      "group",     "attempts", "step",  "loss",
					      "GPU-hours", "goodput",  NULL };

	head(out, titles, "     nnnnn");
	for (size_t i = 0; i < count; i++)
		put_run_row(out, i, &runs[i]);
	buf_addf(out, "</table>\n");
}

/* --- hours by person and group ------------------------------------------------------------------ */
static void add_hours(json_t *sums, const char *key, double hours, double productive)
{
	json_t *of = json_object_get(sums, key);

	if (!of) {
		of = json_object();
		json_object_set_new(sums, key, of);
	}
	js_set_real(of, "hours", js_real(of, "hours", 0) + hours);
	js_set_real(of, "productive", js_real(of, "productive", 0) + productive);
	js_set_int(of, "runs", js_int(of, "runs", 0) + 1);
}

static void put_hours(struct buf *out, const char *title, const struct report_run *runs,
		      size_t count, const char *key)
{
	const char *titles[] = { title, "runs", "GPU-hours", "of these productive", NULL };
	json_t *sums = json_object(), *of;
	char text[NUMBER_TEXT_MAX];
	const char *name;

	for (size_t i = 0; i < count; i++)
		add_hours(sums, js_str(runs[i].run, key, "none"),
			  js_real(runs[i].goodput, "gpu_hours_total", 0),
			  js_real(json_object_get(runs[i].goodput, "gpu_hours"), "productive", 0));
	head(out, titles, " nnn");
	json_object_foreach(sums, name, of) {
		buf_addf(out, "<tr>");
		cell(out, name, false);
		snprintf(text, sizeof(text), "%lld", (long long)js_int(of, "runs", 0));
		cell(out, text, true);
		cell(out, hours_text(js_real(of, "hours", 0), text), true);
		cell(out, hours_text(js_real(of, "productive", 0), text), true);
		buf_addf(out, "</tr>\n");
	}
	buf_addf(out, "</table>\n");
	json_decref(sums);
}

/* --- nodes ------------------------------------------------------------------------------------ */
/* Attempts × cause × node, over all runs: where one node stands beside one cause again and again
 * it is a lemon. */
static void put_nodes(struct buf *out, const struct report_run *runs, size_t count)
{
	static const char *const titles[] = { "node", "cause", "attempts", NULL };
	json_t *sums = json_object(), *attempt, *node, *n;
	const char *key;
	size_t i, k;

	for (size_t r = 0; r < count; r++) {
		json_array_foreach(json_object_get(runs[r].run, "attempts"), i, attempt) {
			json_array_foreach(json_object_get(attempt, "nodes"), k, node) {
				char *both = xasprintf("%s\t%s", json_string_value(node),
						       js_str(attempt, "cause", "runs"));

				js_set_int(sums, both, js_int(sums, both, 0) + 1);
				free(both);
			}
		}
	}
	if (json_object_size(sums) > 0)
		head(out, titles, "  n");
	json_object_foreach(sums, key, n) {
		const char *tab = strchr(key, '\t');
		char *name = xstrndup(key, (size_t)(tab - key)), text[NUMBER_TEXT_MAX];

		snprintf(text, sizeof(text), "%lld", (long long)json_integer_value(n));
		buf_addf(out, "<tr>");
		cell(out, name, false);
		cell(out, tab + 1, false);
		cell(out, text, true);
		buf_addf(out, "</tr>\n");
		free(name);
	}
	if (json_object_size(sums) > 0)
		buf_addf(out, "</table>\n");
	json_decref(sums);
}

/* --- one run ---------------------------------------------------------------------------------- */
/* What ended launches, at their last steps. The newest ones, where there are many. */
static size_t happenings_of(const json_t *run, struct happening *out, size_t most)
{
	const json_t *attempts = json_object_get(run, "attempts"), *attempt, *launch;
	size_t count = 0, i, k;

	json_array_foreach(attempts, i, attempt) {
		json_array_foreach(json_object_get(attempt, "launches"), k, launch) {
			const char *cause = js_str(launch, "cause", NULL);
			int64_t step = js_int(launch, "last_step", -1);

			if (!cause || step < 0 || strcmp(cause, "completed") == 0)
				continue;
			if (count == most)
				memmove(out, out + 1, --count * sizeof(*out));
			out[count++] = (struct happening){ .step = step, .what = cause };
		}
	}
	return count;
}

static void put_attempts(struct buf *out, const json_t *run)
{
	static const char *const titles[] = { "attempt", "job",       "began", "took", "cause",
					      "nodes",   "from step", "why",   NULL };
	const json_t *attempts = json_object_get(run, "attempts"), *attempt, *node;
	char text[CLOCK_TEXT_MAX];
	size_t i, k;

	head(out, titles, "nn n  n ");
	json_array_foreach(attempts, i, attempt) {
		int64_t from_ms = time_ms(attempt, "start_time"),
			to_ms = time_ms(attempt, "end_time");

		if (i + MOST_ROWS < json_array_size(attempts))
			continue;
		buf_addf(out, "<tr><td class=\"n\">%lld</td><td class=\"n\">%lld</td>",
			 (long long)js_int(attempt, "number", 0),
			 (long long)js_int(attempt, "job_id", 0));
		cell(out, from_ms ? clock_text(from_ms, text) : "", false);
		cell(out, from_ms && to_ms >= from_ms ? duration_text(to_ms - from_ms, text) : "",
		     true);
		cell(out, js_str(attempt, "cause", js_str(attempt, "state", "")), false);
		buf_addf(out, "<td>");
		json_array_foreach(json_object_get(attempt, "nodes"), k, node) {
			buf_addf(out, k ? ", " : "");
			html_text(out, json_string_value(node));
		}
		buf_addf(out, "</td>");
		snprintf(text, sizeof(text), "%lld",
			 (long long)js_int(attempt, "resumed_from_step", 0));
		cell(out, text, true);
		cell(out, js_str(attempt, "text", ""), false);
		buf_addf(out, "</tr>\n");
	}
	buf_addf(out, "</table>\n");
}

static void put_goodput(struct buf *out, const json_t *goodput)
{
	struct share shares[HOURS_PARTS];
	const json_t *hours = json_object_get(goodput, "hours");

	for (size_t i = 0; i < HOURS_PARTS; i++)
		shares[i] = (struct share){ hours_parts[i].words,
					    js_real(hours, hours_parts[i].name, 0) };
	svg_waterfall(out, "where its hours went", shares, HOURS_PARTS);
}

static void put_checkpoints(struct buf *out, const json_t *list)
{
	static const char *const titles[] = { "checkpoint of step", "written", "size", "", NULL };
	char text[CLOCK_TEXT_MAX], size[NUMBER_TEXT_MAX];
	const json_t *c;
	size_t i;

	if (json_array_size(list) == 0)
		return;
	head(out, titles, "n n ");
	json_array_foreach(list, i, c) {
		if (i >= MOST_ROWS)
			break;
		snprintf(text, sizeof(text), "%lld", (long long)js_int(c, "step", -1));
		buf_addf(out, "<tr>");
		cell(out, text, true);
		cell(out, clock_text(time_ms(c, "time"), text), false);
		cell(out, size_text(js_int(c, "bytes", 0), size), true);
		cell(out, js_bool(c, "valid", true) ? "" : js_str(c, "why", "not valid"), false);
		buf_addf(out, "</tr>\n");
	}
	buf_addf(out, "</table>\n");
}

static void put_settings(struct buf *out, json_t *settings)
{
	static const char *const titles[] = { "setting that differs", "value", NULL };
	const char *key;
	json_t *value;

	if (json_object_size(settings) == 0)
		return;
	head(out, titles, "  ");
	json_object_foreach(settings, key, value) {
		char *text = json_is_string(value)
				     ? xstrdup(json_string_value(value))
				     : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);

		buf_addf(out, "<tr>");
		cell(out, key, false);
		cell(out, text, false);
		buf_addf(out, "</tr>\n");
		free(text);
	}
	buf_addf(out, "</table>\n");
}

static void put_curves(struct buf *out, const struct report_run *r)
{
	struct happening happenings[MOST_HAPPENINGS];
	size_t count = happenings_of(r->run, happenings, MOST_HAPPENINGS);
	struct series thin;

	series_thin(&r->series, BUCKETS, &thin);
	svg_curve(out, "loss over all attempts; dashed: steps that were made again", &thin,
		  QUANTITY_LOSS, happenings, count);
	svg_curve(out, "tokens/s", &thin, QUANTITY_SPEED, NULL, 0);
	series_clear(&thin);
}

static void put_run(struct buf *out, size_t at, const struct report_run *r)
{
	char time[CLOCK_TEXT_MAX];

	buf_addf(out, "<section id=\"run%zu\"><h2>", at + 1);
	html_text(out, js_str(r->run, "name", "?"));
	buf_addf(out, "</h2>\n<p>");
	html_text(out, js_str(r->run, "state", "?"));
	buf_addf(out, js_str(r->run, "text", "")[0] ? ": " : "");
	html_text(out, js_str(r->run, "text", ""));
	buf_addf(out, "<br><span class=\"dim\">submitted %s by ",
		 clock_text(time_ms(r->run, "created"), time));
	html_text(out, js_str(r->run, "owner", "?"));
	if (r->code) {
		buf_addf(out, "; code ");
		html_text(out, r->code);
	}
	buf_addf(out, "</span></p>\n");
	if (at < DRAWN_RUNS)
		put_curves(out, r);
	put_goodput(out, r->goodput);
	put_attempts(out, r->run);
	put_settings(out, r->settings);
	put_checkpoints(out, r->checkpoints);
	buf_addf(out, "</section>\n");
}

char *page_make(const char *title, int64_t now_ms, const struct report_run *runs, size_t count)
{
	char time[CLOCK_TEXT_MAX];
	struct buf out;

	buf_init(&out, PAGE_MAX_BYTES);
	buf_addf(&out, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
		       "<meta name=\"viewport\" content=\"width=device-width\">"
		       "<meta name=\"color-scheme\" content=\"light dark\"><title>");
	html_text(&out, title);
	buf_addf(&out, "</title>\n<style>%s</style></head><body>\n<h1>", style);
	html_text(&out, title);
	buf_addf(&out, "</h1>\n<p class=\"dim\">as of %s</p>\n", clock_text(now_ms, time));
	put_runs(&out, runs, count);
	put_hours(&out, "owner", runs, count, "owner");
	put_hours(&out, "group", runs, count, "group");
	put_nodes(&out, runs, count);
	for (size_t i = 0; i < count; i++)
		put_run(&out, i, &runs[i]);
	buf_addf(&out, "</body></html>\n");
	return buf_take(&out);
}
