/* SPDX-License-Identifier: MIT */
/* goodput_sums.c - lbctl goodput over many runs: a row for each run, group, owner or week. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/bytes.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "ctl/base/hours.h"
#include "ctl/base/print.h"
#include "ctl/look/goodput_sums.h"
#include "ctl/team/ask.h"
#include "ctl/team/team.h"
#include "ctl/team/team_goodput.h"

enum { WEEKS = TEAM_WEEKS, KEY_BYTES = 256 };

struct sum {
	char key[KEY_BYTES];
	int64_t runs, interruptions;
	double hours[HOURS_PARTS], total, gpu_hours;
};

struct sums {
	struct sum *rows;
	size_t count;
};

static struct sum *row_of(struct sums *sums, const char *key)
{
	for (size_t i = 0; i < sums->count; i++) {
		if (strcmp(sums->rows[i].key, key) == 0)
			return &sums->rows[i];
	}
	sums->rows = xrealloc(sums->rows, (sums->count + 1) * sizeof(struct sum));
	sums->rows[sums->count] = (struct sum){ .runs = 0 };
	snprintf(sums->rows[sums->count].key, KEY_BYTES, "%s", key);
	return &sums->rows[sums->count++];
}

static void add(struct sums *sums, const char *key, const json_t *goodput)
{
	struct sum *sum = row_of(sums, key);
	const json_t *hours = json_object_get(goodput, "hours");

	sum->runs++;
	for (int i = 0; i < HOURS_PARTS; i++)
		sum->hours[i] += js_real(hours, hours_parts[i].name, 0);
	sum->total += js_real(goodput, "hours_total", 0);
	sum->gpu_hours += js_real(goodput, "gpu_hours_total", 0);
	sum->interruptions += js_int(goodput, "interruptions", 0);
}

int64_t goodput_since_s(const struct ctl *ctl)
{
	return (ctl->options.since_ms + 999) / 1000;
}

static json_t *ask(struct ctl *ctl, const json_t *run, int64_t since_s, int64_t until_s,
		   struct err *err)
{
	return ask_about(ctl, VERB_GOODPUT, js_str(run, "name", "?"),
			 json_pack("{s:I, s:I}", "since", (json_int_t)since_s, "until",
				   (json_int_t)until_s),
			 err);
}

/* Weeks in which the run had no time are none of its. */
static int add_weeks(struct ctl *ctl, struct sums *sums, const json_t *run, struct err *err)
{
	int64_t now_ms = clock_wall_ms(), until_ms = now_ms;
	int64_t created_ms = time_ms(run, "created");

	for (int week = 0; week < WEEKS && until_ms > created_ms; week++) {
		int64_t monday_ms = clock_monday(now_ms, week);
		int64_t since_s = (now_ms - monday_ms) / 1000;
		json_t *goodput = ask(ctl, run, since_s ? since_s : 1, (now_ms - until_ms) / 1000,
				      err);
		char name[CLOCK_TEXT_MAX];

		if (!goodput)
			return -1;
		if (js_real(goodput, "hours_total", 0) > 0)
			add(sums, clock_week(monday_ms, name), goodput);
		json_decref(goodput);
		until_ms = monday_ms;
	}
	return 0;
}

static int add_run(struct ctl *ctl, struct sums *sums, const json_t *run, struct err *err)
{
	const char *by = ctl->options.by;
	json_t *goodput;

	if (by && strcmp(by, "week") == 0)
		return add_weeks(ctl, sums, run, err);
	goodput = ask(ctl, run, goodput_since_s(ctl), 0, err);
	if (!goodput)
		return -1;
	add(sums, js_str(run, !by || strcmp(by, "run") == 0 ? "name" : by, "-"), goodput);
	json_decref(goodput);
	return 0;
}

/* lbd answers, and cannot tell of this run: its files are damaged, or purged, or it was removed. */
static bool is_about_run(const struct err *err)
{
	return err->code == ERR_NOT_FOUND || err->code == ERR_USAGE || err->code == ERR_IO;
}

/* One that cannot be read hides no other's hours: that it is not counted is said. Alone it is an
 * error. */
static int tell_unread(const struct ctl *ctl, int64_t unread, int64_t named, const char *first,
		       const struct err *why, struct err *err)
{
	char *text;

	if (unread > 0 && unread == named)
		return err_set(err, why->code, "%s", why->text);
	text = xasprintf("%lld of %lld runs are not counted, %s first: %s", (long long)unread,
			 (long long)named, first, why->text);
	if (unread > 0)
		complain(ctl, text);
	free(text);
	return 0;
}

static int add_mine(struct ctl *ctl, struct sums *sums, struct err *err)
{
	json_t *runs = client_ask(&ctl->client, VERB_LS, json_pack("{s:b}", "all", 1), err), *run;
	int64_t unread = 0, named = 0;
	const char *first = "";
	struct err why = { 0 };
	int rc = runs ? 0 : -1;
	size_t i;

	json_array_foreach(runs, i, run) {
		if (rc < 0 || !run_is_named(ctl, run, NULL))
			continue;
		named++;
		rc = add_run(ctl, sums, run, err);
		if (rc == 0 || !is_about_run(err))
			continue;
		if (unread++ == 0) {
			first = js_str(run, "name", "?");
			why = *err;
		}
		err_clear(err);
		rc = 0;
	}
	if (rc == 0)
		rc = tell_unread(ctl, unread, named, first, &why, err);
	json_decref(runs);
	return rc;
}

/* --- the team's ------------------------------------------------------------------------------- */

static void add_window(struct sums *sums, const char *key, const json_t *run, const char *of)
{
	json_t *goodput = team_goodput(run, of);

	add(sums, key, goodput);
	json_decref(goodput);
}

static void add_told(struct sums *sums, const json_t *run, const char *user, const char *by)
{
	const json_t *weeks = json_object_get(json_object_get(run, "goodput"), "weeks"), *window;
	char *full = xasprintf("%s/%s", user, js_str(run, "name", "?"));
	size_t i;

	if (!by || strcmp(by, "run") == 0)
		add_window(sums, full, run, NULL);
	else if (strcmp(by, "team") == 0)
		add_window(sums, by, run, NULL);
	else if (strcmp(by, "week") != 0)
		add_window(sums, js_str(run, by, "-"), run, NULL);
	else
		json_array_foreach(weeks, i, window) {
			const char *week = js_str(window, "week", "");

			add_window(sums, week, run, week);
		}
	free(full);
}

static void tell_lack(const struct ctl *ctl, const char *user, size_t count)
{
	char *text = xasprintf(
		"%zu runs of %s are not counted: where their hours went is not told (by "
		"an older lbd never, by one that has just begun not at once)",
		count, user);

	if (count > 0)
		complain(ctl, text);
	free(text);
}

/* What is not told is said, and is not nothing. */
static int add_team(struct ctl *ctl, struct sums *sums, struct err *err)
{
	const json_t *run;
	size_t i;

	if (ctl->options.since_ms > 0)
		return err_set(err, ERR_USAGE,
			       "of colleagues' runs weeks are told: --by week, not --since");
	if (team_load(ctl, err) < 0)
		return -1;
	for (size_t n = 0; n < ctl->team.count; n++) {
		const struct team_export *export = &ctl->team.exports[n];
		size_t lacking = 0;

		team_tell_stale(ctl, export);
		team_tell_left_out(ctl, export);
		json_array_foreach(export->runs, i, run) {
			if (!run_is_named(ctl, run, export->user))
				continue;
			if (team_tells_goodput(run))
				add_told(sums, run, export->user, ctl->options.by);
			else
				lacking++;
		}
		tell_lack(ctl, export->user, lacking);
	}
	return 0;
}

/* --- as people see it ------------------------------------------------------------------------- */

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct sum *)a)->key, ((const struct sum *)b)->key);
}

static double ettr_of(const struct sum *s)
{
	return s->total > 0 ? s->hours[0] / s->total : NAN;
}

/* As RFC 4180 wants it. */
static void print_csv_text(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		if (*text == '"')
			putchar('"');
		putchar(*text);
	}
	putchar('"');
}

static void print_csv(const struct sums *sums, const char *title)
{
	printf("%s,runs,hours,gpu_hours,ettr", title);
	for (int i = 0; i < HOURS_PARTS; i++)
		printf(",%s_hours", hours_parts[i].name);
	puts(",interruptions");
	for (size_t i = 0; i < sums->count; i++) {
		const struct sum *s = &sums->rows[i];

		print_csv_text(s->key);
		printf(",%lld,%.6f,%.6f,", (long long)s->runs, s->total, s->gpu_hours);
		if (isfinite(ettr_of(s)))
			printf("%.6f", ettr_of(s));
		for (int k = 0; k < HOURS_PARTS; k++)
			printf(",%.6f", s->hours[k]);
		printf(",%lld\n", (long long)s->interruptions);
	}
}

/* [{"KEY":…,"runs","interruptions","hours_total","gpu_hours_total","ettr","hours":{…}}…] */
static void print_rows_json(const struct sums *sums, const char *title)
{
	json_t *rows = json_array();

	for (size_t i = 0; i < sums->count; i++) {
		const struct sum *s = &sums->rows[i];
		json_t *row = json_object(), *hours = json_object();

		json_object_set_new(row, title, js_bytes(s->key));
		js_set_int(row, "runs", s->runs);
		js_set_int(row, "interruptions", s->interruptions);
		js_set_real(row, "hours_total", s->total);
		js_set_real(row, "gpu_hours_total", s->gpu_hours);
		js_set_real(row, "ettr", ettr_of(s));
		for (int k = 0; k < HOURS_PARTS; k++)
			js_set_real(hours, hours_parts[k].name, s->hours[k]);
		json_object_set_new(row, "hours", hours);
		json_array_append_new(rows, row);
	}
	print_json(rows);
}

enum { COLUMNS_BEFORE = 6 };

static void fill(struct cell *cell, const struct sum *s, const struct style *style)
{
	(cell++)->text = clean_copy(s->key, style);
	(cell++)->text = xasprintf("%lld", (long long)s->runs);
	(cell++)->text = xasprintf("%lld", (long long)s->interruptions);
	(cell++)->text = xasprintf("%.1f", s->total);
	(cell++)->text = xasprintf("%.1f", s->gpu_hours);
	(cell++)->text = isfinite(ettr_of(s)) ? xasprintf("%.3f", ettr_of(s)) : xstrdup("-");
	for (int i = 1; i < HOURS_PARTS; i++)
		(cell++)->text = s->total > 0 ? xasprintf("%.1f%%", 100 * s->hours[i] / s->total)
					      : xstrdup("-");
}

static void print_table(const struct ctl *ctl, const struct sums *sums, const char *by)
{
	char title[KEY_BYTES];
	struct column columns[COLUMNS_BEFORE + HOURS_PARTS - 1] = {
		{ .title = title, .least = 12 },
		{ .title = "RUNS", .right = true, .rank = 2 },
		{ .title = "INTERRUPTED", .right = true, .rank = 2 },
		{ .title = "HOURS", .right = true },
		{ .title = "GPU-H", .right = true },
		{ .title = "ETTR", .right = true },
	};
	struct table table;

	for (int i = 1; i < HOURS_PARTS; i++)
		columns[COLUMNS_BEFORE + i - 1] = (struct column){ .title = hours_parts[i].title,
								   .right = true,
								   .rank = hours_parts[i].rank };
	for (size_t i = 0; i <= strlen(by) && i < sizeof(title); i++)
		title[i] = (char)toupper((unsigned char)by[i]);
	table_init(&table, columns, COLUMNS_BEFORE + HOURS_PARTS - 1);
	for (size_t i = 0; i < sums->count; i++)
		fill(table_row(&table), &sums->rows[i], &ctl->out);
	table_print(&table, &ctl->out, stdout);
	table_fini(&table);
}

/* A row for all of them below, where there are several. */
static void add_total(struct sums *sums)
{
	struct sum total = { .key = "all" };

	for (size_t i = 0; i < sums->count; i++) {
		const struct sum *s = &sums->rows[i];

		total.runs += s->runs;
		total.interruptions += s->interruptions;
		total.total += s->total;
		total.gpu_hours += s->gpu_hours;
		for (int k = 0; k < HOURS_PARTS; k++)
			total.hours[k] += s->hours[k];
	}
	*row_of(sums, "") = total;
}

static bool is_known_key(const char *by, bool of_team)
{
	static const char *const keys[] = { "run", "group", "owner", "week" };

	for (size_t i = 0; by && i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (strcmp(by, keys[i]) == 0)
			return true;
	}
	return !by || (of_team && strcmp(by, "team") == 0);
}

int goodput_sums(struct ctl *ctl, struct err *err)
{
	const char *by = ctl->options.by;
	bool of_team = team_is_meant(ctl), by_week = by && strcmp(by, "week") == 0;
	struct sums sums = { .count = 0 };
	int rc;

	if (!is_known_key(by, of_team))
		return err_set(err, ERR_USAGE,
			       "--by: run, group, owner, week or (with --team) team, not \"%.64s\"",
			       by);
	rc = of_team ? add_team(ctl, &sums, err) : add_mine(ctl, &sums, err);
	if (rc == 0 && sums.count == 0)
		rc = err_set(err, ERR_NOT_FOUND, "no such runs");
	if (sums.count > 0)
		qsort(sums.rows, sums.count, sizeof(struct sum), by_key);
	if (rc == 0 && ctl->options.csv)
		print_csv(&sums, by ? by : "run");
	else if (rc == 0 && ctl->options.json)
		print_rows_json(&sums, by ? by : "run");
	else if (rc == 0) {
		if (sums.count > 1 && !by_week) /* a run of two weeks is one run */
			add_total(&sums);
		print_table(ctl, &sums, by ? by : "run");
	}
	free(sums.rows);
	return rc;
}
