/* SPDX-License-Identifier: MIT */
/* page_run.c - the section of one run. */
#include "ctl/report/page_run.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/redact.h"
#include "ctl/base/hours.h"
#include "ctl/base/print.h"
#include "ctl/base/starts.h"
#include "ctl/base/text.h"
#include "ctl/report/html.h"
#include "ctl/report/svg.h"

enum {
	BUCKETS = 400, /* of a curve; each is up to four points */
	MOST_HAPPENINGS = 60,
	MOST_ROWS = 500, /* of attempts, of checkpoints */
	MOST_USE_ROWS = 256,
};

/* --- its story -------------------------------------------------------------------------------- */
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

	if (json_array_size(attempts) == 0)
		return;
	html_table(out, titles, "nn n  n ");
	json_array_foreach(attempts, i, attempt) {
		int64_t from_ms = time_ms(attempt, "start_time"),
			to_ms = time_ms(attempt, "end_time");

		if (i + MOST_ROWS < json_array_size(attempts))
			continue;
		buf_addf(out, "<tr><td class=\"n\">%lld</td>",
			 (long long)js_int(attempt, "number", 0));
		snprintf(text, sizeof(text), "%lld", (long long)js_int(attempt, "job_id", 0));
		html_number(out, js_int(attempt, "job_id", 0) ? text : "");
		html_cell(out, from_ms ? clock_text(from_ms, text) : "");
		html_number(out, from_ms && to_ms >= from_ms ? duration_text(to_ms - from_ms, text)
							     : "");
		html_cell(out, js_str(attempt, "cause", js_str(attempt, "state", "")));
		buf_addf(out, "<td>");
		json_array_foreach(json_object_get(attempt, "nodes"), k, node) {
			buf_addf(out, k ? ", " : "");
			html_text(out, json_string_value(node));
		}
		buf_addf(out, "</td>");
		snprintf(text, sizeof(text), "%lld",
			 (long long)js_int(attempt, "resumed_from_step", 0));
		html_number(out, text);
		html_cell(out, js_str(attempt, "text", ""));
		buf_addf(out, "</tr>\n");
	}
	html_table_end(out);
}

static void put_starts(struct buf *out, const json_t *starts)
{
	static const struct style plain = { .utf8 = true };
	int64_t count = js_int(starts, "launches", 0);
	char span[CLOCK_TEXT_MAX];
	char *text;

	if (count == 0)
		return;
	text = starts_text(json_object_get(starts, "hours"), 3600 / (double)count, &plain);
	buf_addf(out, "<p>A start takes %s (mean of %lld): ",
		 span_text(js_real(starts, "hours_total", 0) * 3600 / (double)count, span),
		 (long long)count);
	html_text(out, text);
	buf_addf(out, "</p>\n");
	free(text);
}

static void put_goodput(struct buf *out, const json_t *goodput)
{
	struct share shares[HOURS_PARTS];
	const json_t *hours = json_object_get(goodput, "hours");

	if (!hours)
		return;
	for (size_t i = 0; i < HOURS_PARTS; i++)
		shares[i] = (struct share){ hours_parts[i].words,
					    js_real(hours, hours_parts[i].name, 0) };
	svg_waterfall(out, "where its hours went", shares, HOURS_PARTS);
	put_starts(out, json_object_get(goodput, "starts"));
}

static void put_checkpoints(struct buf *out, const json_t *list)
{
	static const char *const titles[] = { "checkpoint of step", "written", "size", "", NULL };
	char written[CLOCK_TEXT_MAX], number[2 * NUMBER_TEXT_MAX];
	const json_t *c;
	size_t i;

	if (json_array_size(list) == 0)
		return;
	html_table(out, titles, "n n ");
	json_array_foreach(list, i, c) {
		if (i >= MOST_ROWS)
			break;
		buf_addf(out, "<tr>");
		html_number(out, step_text(js_int(c, "step", -1), -1, number));
		html_cell(out, clock_text(time_ms(c, "time"), written));
		html_number(out, size_text(js_int(c, "bytes", 0), number));
		html_cell(out, js_str(c, "why", ""));
		buf_addf(out, "</tr>\n");
	}
	html_table_end(out);
}

static void put_curves(struct buf *out, const struct report_run *r)
{
	struct happening happenings[MOST_HAPPENINGS];
	size_t count = happenings_of(r->run, happenings, MOST_HAPPENINGS);
	int64_t silent = series_silent_since(&r->series);
	struct series thin;
	char *title;

	title = xasprintf("loss over all attempts%s%.0lld%s",
			  silent < 0 ? "" : "; no number since step ",
			  silent < 0 ? 0 : (long long)silent,
			  r->series.stretches > 1 ? "; dashed: steps that were made again" : "");
	series_thin(&r->series, QUANTITY_LOSS, BUCKETS, &thin);
	svg_curve(out, title, &thin, QUANTITY_LOSS, happenings, count);
	series_clear(&thin);
	free(title);
	series_thin(&r->series, QUANTITY_SPEED, BUCKETS, &thin);
	svg_curve(out, "tokens/s", &thin, QUANTITY_SPEED, NULL, 0);
	series_clear(&thin);
	series_thin(&r->use.gpus, QUANTITY_USE, BUCKETS, &thin);
	svg_curve(out, "use of its GPUs, mean of all, by minute", &thin, QUANTITY_USE, NULL, 0);
	series_clear(&thin);
}

/* --- what it was made of ---------------------------------------------------------------------- */
/* The page is for others: secrets are left out. */
static void put_value(struct buf *out, const json_t *value)
{
	char *text = json_is_string(value) ? xstrdup(json_string_value(value))
					   : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);

	redact(text, NULL);
	html_cell(out, json_is_null(value) ? "" : text);
	free(text);
}

static void put_settings(struct buf *out, json_t *settings, const char *title)
{
	const char *titles[] = { title, "value", NULL };
	const char *key;
	json_t *value;

	if (json_object_size(settings) == 0)
		return;
	html_table(out, titles, "  ");
	json_object_foreach(settings, key, value) {
		buf_addf(out, "<tr>");
		html_cell(out, key);
		put_value(out, value);
		buf_addf(out, "</tr>\n");
	}
	html_table_end(out);
}

static void put_configuration(struct buf *out, json_t *settings)
{
	if (json_object_size(settings) == 0)
		return;
	buf_addf(out, "<details><summary>configuration</summary>\n");
	put_settings(out, settings, "setting");
	buf_addf(out, "</details>\n");
}

/* KEY: what the other run has, what this one has. */
static void put_differences(struct buf *out, json_t *differ, const char *what)
{
	const char *titles[] = { what, "there", "here", NULL };
	const char *key;
	json_t *pair;

	if (json_object_size(differ) == 0)
		return;
	html_table(out, titles, "   ");
	json_object_foreach(differ, key, pair) {
		buf_addf(out, "<tr>");
		html_cell(out, key);
		put_value(out, json_array_get(pair, 0));
		put_value(out, json_array_get(pair, 1));
		buf_addf(out, "</tr>\n");
	}
	html_table_end(out);
}

static void put_lines(struct buf *out, const char *text)
{
	char *copy = xstrdup(text), *rest = copy, *line;

	while ((line = strsep(&rest, "\n"))) {
		redact(line, NULL);
		html_line(out, line);
		buf_addf(out, rest ? "\n" : "");
	}
	free(copy);
}

static void put_patch(struct buf *out, const char *patch, const char *title, const char *of)
{
	if (!patch || !patch[0])
		return;
	buf_addf(out, "<details><summary>%s", title);
	html_text(out, of);
	buf_addf(out, "</summary><pre>");
	put_lines(out, patch);
	buf_addf(out, "</pre></details>\n");
}

static void put_made(struct buf *out, const struct report_run *r)
{
	put_settings(out, r->settings, "setting that differs");
	if (r->differs_from) {
		buf_addf(out, "<p>Compared with ");
		html_text(out, r->differs_from);
		buf_addf(out, ": code %s",
			 !r->code_patch     ? "cannot be compared"
			 : r->code_patch[0] ? "differs"
					    : "the same");
		buf_addf(out, r->code_patch ? "" : ", ");
		html_text(out, r->code_patch ? "" : r->code_why);
		buf_addf(out, "</p>\n");
		put_differences(out, json_object_get(r->differs, "packages"),
				"package that differs");
		put_patch(out, r->code_patch, "code: from ", r->differs_from);
	}
	put_configuration(out, r->made.settings);
	put_patch(out, js_str(r->made.code, "patch", NULL), "code: changes since the commit", "");
}

/* --- what the machines did -------------------------------------------------------------------- */
static const char *known(int64_t value, char out[NUMBER_TEXT_MAX])
{
	snprintf(out, NUMBER_TEXT_MAX, value < 0 ? "" : "%lld", (long long)value);
	return out;
}

static void put_gpu(struct buf *out, const struct use_row *r)
{
	double seconds = r->seconds > 0 ? (double)r->seconds : 1;
	char text[2 * NUMBER_TEXT_MAX];

	buf_addf(out, "<tr>");
	html_cell(out, r->node);
	html_number(out, known(r->gpu, text));
	snprintf(text, sizeof(text), "%.0f%%", r->use / seconds);
	html_number(out, text);
	snprintf(text, sizeof(text), "%.1f of %.1f", (double)r->memory_mb / 1024,
		 (double)r->memory_total_mb / 1024);
	html_number(out, r->memory_mb < 0 ? "" : text);
	snprintf(text, sizeof(text), "%.0f", r->watts / seconds);
	html_number(out, text);
	html_number(out, known(r->celsius, text));
	html_number(out, known(r->ecc_uncorrected, text));
	html_number(out, known(r->nvlink_errors, text));
	snprintf(text, sizeof(text), "%s%s%s", r->throttled & USE_POWER ? "power " : "",
		 r->throttled & USE_THERMAL ? "thermal " : "",
		 r->throttled & USE_HARDWARE ? "hardware" : "");
	html_cell(out, text);
	buf_addf(out, "</tr>\n");
}

static void put_machine(struct buf *out, const struct use_row *r)
{
	double seconds = r->seconds > 0 ? (double)r->seconds : 1;
	char text[NUMBER_TEXT_MAX];

	buf_addf(out, "<tr>");
	html_cell(out, r->node);
	html_number(out, known(r->rank, text));
	snprintf(text, sizeof(text), "%.2f", r->cpus / seconds);
	html_number(out, text);
	html_number(out, r->memory_mb < 0 ? "" : size_text(r->memory_mb << 20, text));
	snprintf(text, sizeof(text), "%.1f%%", 100 * r->io_stall / seconds);
	html_number(out, text);
	buf_addf(out, "</tr>\n");
}

static void put_use(struct buf *out, const struct use *use, bool is_gpu)
{
	static const char *const of_gpus[] = { "node",
					       "GPU",
					       "use",
					       "memory, GiB",
					       "W",
					       "°C",
					       "ECC errors, uncorrected",
					       "NVLink errors",
					       "clocks held down by",
					       NULL };
	static const char *const of_machines[] = {
		"node", "rank", "CPUs used", "memory, highest", "time in file system waits", NULL
	};
	size_t rows = 0;

	for (size_t i = 0; i < use->count; i++) {
		if ((use->rows[i].gpu != USE_MACHINE) != is_gpu || rows++ >= MOST_USE_ROWS)
			continue;
		if (rows == 1)
			html_table(out, is_gpu ? of_gpus : of_machines, " nnnnnnn");
		if (is_gpu)
			put_gpu(out, &use->rows[i]);
		else
			put_machine(out, &use->rows[i]);
	}
	if (rows > 0)
		html_table_end(out);
	if (rows > MOST_USE_ROWS)
		buf_addf(out, "<p class=\"dim\">and %zu more</p>\n", rows - MOST_USE_ROWS);
}

/* --- all of it -------------------------------------------------------------------------------- */
void page_run(struct buf *out, size_t at, const struct report_run *r)
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
	if (r->code_changed) {
		buf_addf(out, "; ");
		html_text(out, r->code_changed);
	}
	buf_addf(out, "</span></p>\n");
	put_curves(out, r);
	put_goodput(out, r->goodput);
	put_attempts(out, r->run);
	put_use(out, &r->use, true);
	put_use(out, &r->use, false);
	put_checkpoints(out, r->checkpoints);
	put_made(out, r);
	buf_addf(out, "</section>\n");
}
