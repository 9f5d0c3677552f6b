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
#include "ctl/report/html.h"
#include "ctl/report/page_run.h"
#include "ctl/report/page_sums.h"

enum { PAGE_MAX_BYTES = 64 * 1024 * 1024 };

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
	".bad{fill:var(--bad)}code{font-size:.95em}pre{font-size:12px;white-space:pre-wrap}"
	"summary{cursor:pointer;color:var(--dim)}\n"
	/* what is folded is printed, too */
	"@media print{details::details-content{content-visibility:visible;block-size:auto}}\n";

static void put_run_row(struct buf *out, size_t at, const struct report_run *r)
{
	const char *state = js_str(r->run, "state", "?"), *cause = js_str(r->run, "cause", state);
	const json_t *attempts = json_object_get(r->run, "attempts");
	double ettr = js_real(r->goodput, "ettr", NAN);
	char text[2 * NUMBER_TEXT_MAX];

	buf_addf(out, "<tr><td><a href=\"#run%zu\">", at + 1);
	html_text(out, js_str(r->run, "name", "?"));
	buf_addf(out, "</a></td>");
	html_cell(out, state);
	html_cell(out, strcmp(cause, state) == 0 ? "" : cause);
	html_cell(out, js_str(r->run, "owner", ""));
	html_cell(out, js_str(r->run, "group", ""));
	snprintf(text, sizeof(text), "%zu", json_array_size(attempts));
	html_number(out, attempts ? text : "");
	html_number(out,
		    step_text(js_int(r->run, "step", -1), js_int(r->run, "target_step", -1), text));
	html_number(out, loss_text(js_real(r->run, "loss", NAN), text));
	html_number(out, page_hours_text(js_real(r->goodput, "gpu_hours_total", NAN), text));
	snprintf(text, sizeof(text), "%.1f%%", 100 * ettr);
	html_number(out, isfinite(ettr) ? text : "");
	buf_addf(out, "</tr>\n");
}

static void put_runs(struct buf *out, const struct report_run *runs, size_t count)
{
	static const char *const titles[] = { "run",       "state",    "cause", "owner",
					      "group",     "attempts", "step",  "loss",
					      "GPU-hours", "goodput",  NULL };

	html_table(out, titles, "     nnnnn");
	for (size_t i = 0; i < count; i++)
		put_run_row(out, i, &runs[i]);
	html_table_end(out);
}

void report_run_clear(struct report_run *r)
{
	json_decref(r->run);
	json_decref(r->goodput);
	json_decref(r->checkpoints);
	json_decref(r->settings);
	json_decref(r->differs);
	free(r->code);
	free(r->code_changed);
	free(r->differs_from);
	free(r->code_patch);
	free(r->code_why);
	made_clear(&r->made);
	series_clear(&r->series);
	use_clear(&r->use);
	*r = (struct report_run){ 0 };
}

char *page_make(const char *title, const char *note, int64_t now_ms, const struct report_run *runs,
		size_t count, const json_t *nodes)
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
	buf_addf(&out, "</h1>\n<p class=\"dim\">as of %s%s</p>\n", clock_text(now_ms, time), note);
	put_runs(&out, runs, count);
	if (count > 1) {
		page_hours(&out, runs, count, "owner");
		page_hours(&out, runs, count, "group");
	}
	page_nodes(&out, runs, count, nodes);
	for (size_t i = 0; i < count; i++)
		page_run(&out, i, &runs[i]);
	buf_addf(&out, "</body></html>\n");
	return buf_take(&out);
}
