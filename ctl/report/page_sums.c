/* SPDX-License-Identifier: MIT */
/* page_sums.c - over all runs of the page: who and what the GPU-hours were for, and which nodes
 * stand beside which causes. */
#include "ctl/report/page_sums.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "ctl/base/print.h"
#include "ctl/base/text.h"
#include "ctl/report/html.h"

const char *page_hours_text(double hours, char out[NUMBER_TEXT_MAX])
{
	snprintf(out, NUMBER_TEXT_MAX, !isfinite(hours) ? "" : hours < 10 ? "%.2f" : "%.1f", hours);
	return out;
}

/* --- hours by person and group ---------------------------------------------------------------- */
/* What is not told is counted as such, not as nothing. */
static void add_hours(json_t *sums, const char *key, const json_t *goodput)
{
	double hours = js_real(goodput, "gpu_hours_total", NAN);
	double productive = js_real(json_object_get(goodput, "gpu_hours"), "productive", NAN);
	json_t *of = json_object_get(sums, key);

	if (!of) {
		of = json_object();
		json_object_set_new(sums, key, of);
	}
	js_set_int(of, "runs", js_int(of, "runs", 0) + 1);
	js_set_int(of, "untold", js_int(of, "untold", 0) + !isfinite(productive));
	js_set_real(of, "hours", js_real(of, "hours", 0) + (isfinite(hours) ? hours : 0));
	js_set_real(of, "productive",
		    js_real(of, "productive", 0) + (isfinite(productive) ? productive : 0));
}

static void put_hours(struct buf *out, const char *name, const json_t *of)
{
	long long runs = (long long)js_int(of, "runs", 0), untold = js_int(of, "untold", 0);
	char text[3 * NUMBER_TEXT_MAX], hours[NUMBER_TEXT_MAX];

	buf_addf(out, "<tr>");
	html_cell(out, name);
	snprintf(text, sizeof(text), "%lld", runs);
	html_number(out, text);
	html_number(out, page_hours_text(js_real(of, "hours", 0), hours));
	page_hours_text(js_real(of, "productive", 0), hours);
	if (untold > 0)
		snprintf(text, sizeof(text), "%s; of %lld runs not told",
			 untold < runs ? hours : "", untold);
	html_number(out, untold == 0 ? hours : untold < runs ? text : "not told");
	buf_addf(out, "</tr>\n");
}

void page_hours(struct buf *out, const struct report_run *runs, size_t count, const char *key)
{
	const char *titles[] = { key, "runs", "GPU-hours", "of these productive", NULL };
	json_t *sums = json_object(), *of;
	const char *name;

	for (size_t i = 0; i < count; i++)
		add_hours(sums, js_str(runs[i].run, key, "none"), runs[i].goodput);
	html_table(out, titles, " nnn");
	json_object_foreach(sums, name, of) {
		put_hours(out, name, of);
	}
	html_table_end(out);
	json_decref(sums);
}

/* --- nodes ------------------------------------------------------------------------------------ */
/* {NODE:{CAUSE:attempts}} over all runs. */
static json_t *causes_by_node(const struct report_run *runs, size_t count)
{
	json_t *sums = json_object(), *attempt, *node;
	size_t i, k;

	for (size_t r = 0; r < count; r++) {
		json_array_foreach(json_object_get(runs[r].run, "attempts"), i, attempt) {
			json_array_foreach(json_object_get(attempt, "nodes"), k, node) {
				const char *name = json_string_value(node);
				const char *cause = js_str(attempt, "cause", "runs");
				json_t *of = json_object_get(sums, name ? name : "?");

				if (!of) {
					of = json_object();
					json_object_set_new(sums, name ? name : "?", of);
				}
				js_set_int(of, cause, js_int(of, cause, 0) + 1);
			}
		}
	}
	return sums;
}

static const json_t *node_of(const json_t *nodes, const char *name)
{
	const json_t *node;
	size_t i;

	json_array_foreach(nodes, i, node) {
		if (strcmp(js_str(node, "name", ""), name) == 0)
			return node;
	}
	return NULL;
}

/* "node_fail 3, completed 1" */
static void put_causes(struct buf *out, json_t *causes)
{
	const char *cause;
	bool is_first = true;
	json_t *n;

	buf_addf(out, "<td>");
	json_object_foreach(causes, cause, n) {
		buf_addf(out, is_first ? "" : ", ");
		html_text(out, cause);
		buf_addf(out, " %lld", (long long)json_integer_value(n));
		is_first = false;
	}
	buf_addf(out, "</td>");
}

static void put_node(struct buf *out, const char *name, json_t *causes, const json_t *node)
{
	int64_t until_ms = time_ms(node, "avoided_until");
	char text[CLOCK_TEXT_MAX];

	buf_addf(out, "<tr>");
	html_cell(out, name);
	put_causes(out, causes);
	snprintf(text, sizeof(text), "%.2f", js_real(node, "score", 0));
	html_number(out, node ? text : "");
	snprintf(text, sizeof(text), "%lld of %lld", (long long)js_int(node, "suspect", 0),
		 (long long)js_int(node, "attempts", 0));
	html_number(out, node ? text : "");
	html_cell(out, until_ms ? clock_text(until_ms, text) : "");
	buf_addf(out, "</tr>\n");
}

struct ranked {
	const char *name;
	double score;
};

static int by_score(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	return x->score != y->score ? (x->score < y->score) - (x->score > y->score)
				    : strcmp(x->name, y->name);
}

void page_nodes(struct buf *out, const struct report_run *runs, size_t count, const json_t *nodes)
{
	static const char *const titles[] = { "node",          "attempts of these runs, by cause",
					      "lemon score",   "suspect ends, of all",
					      "avoided until", NULL };
	json_t *sums = causes_by_node(runs, count), *causes;
	struct ranked *order = xcalloc(json_object_size(sums) + 1, sizeof(*order));
	const char *name;
	size_t n = 0;

	json_object_foreach(sums, name, causes) {
		order[n++] = (struct ranked){ name, js_real(node_of(nodes, name), "score", 0) };
	}
	qsort(order, n, sizeof(*order), by_score);
	if (n > 0)
		html_table(out, titles, "  nn ");
	for (size_t i = 0; i < n; i++)
		put_node(out, order[i].name, json_object_get(sums, order[i].name),
			 node_of(nodes, order[i].name));
	if (n > 0)
		html_table_end(out);
	free(order);
	json_decref(sums);
}
