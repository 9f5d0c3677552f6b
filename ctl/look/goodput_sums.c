/* SPDX-License-Identifier: MIT */
/* goodput_sums.c - lbctl goodput over many runs: a row for each run, group, owner or week. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/clock.h"
#include "common/base/bytes.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "ctl/base/hours.h"
#include "ctl/base/print.h"
#include "ctl/look/goodput_sums.h"
#include "ctl/team/ask.h"
#include "ctl/team/team.h"

enum { WEEKS = 8, WEEK_S = 7 * 24 * 3600, KEY_BYTES = 256 };

struct sum {
	char key[KEY_BYTES];
	int64_t runs;
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
}

static json_t *ask(struct ctl *ctl, const json_t *run, int64_t since_s, int64_t until_s,
		   struct err *err)
{
	return ask_about(ctl, VERB_GOODPUT, js_str(run, "name", "?"),
			 json_pack("{s:I, s:I}", "since", (json_int_t)since_s, "until",
				   (json_int_t)until_s),
			 err);
}

/* "2026-W47", as ISO 8601 counts weeks, here. */
static void week_name(int64_t wall_s, char *out, size_t size)
{
	time_t t = wall_s;
	struct tm tm = { 0 };

	localtime_r(&t, &tm);
	strftime(out, size, "%G-W%V", &tm);
}

/* Seconds since Monday's midnight of the week that lies so many back. */
static int64_t since_monday(int64_t now_s, int weeks_ago)
{
	time_t t = now_s;
	struct tm tm = { 0 };

	localtime_r(&t, &tm);
	tm.tm_mday -= (tm.tm_wday + 6) % 7 + 7 * weeks_ago;
	tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
	tm.tm_isdst = -1;
	return now_s - mktime(&tm);
}

/* Weeks in which the run had no time are none of its. */
static int add_weeks(struct ctl *ctl, struct sums *sums, const json_t *run, struct err *err)
{
	int64_t now_s = clock_wall_ms() / 1000, until_s = 0;
	int64_t age_s = now_s - time_ms(run, "created") / 1000;

	for (int week = 0; week < WEEKS && until_s <= age_s; week++) {
		int64_t since_s = since_monday(now_s, week);
		json_t *goodput = ask(ctl, run, since_s ? since_s : 1, until_s, err);
		char name[16];

		if (!goodput)
			return -1;
		week_name(now_s - since_s, name, sizeof(name));
		if (js_real(goodput, "hours_total", 0) > 0)
			add(sums, name, goodput);
		json_decref(goodput);
		until_s = since_s;
	}
	return 0;
}

static int add_run(struct ctl *ctl, struct sums *sums, const json_t *run, struct err *err)
{
	const char *by = ctl->options.by;
	json_t *goodput;

	if (by && strcmp(by, "week") == 0)
		return add_weeks(ctl, sums, run, err);
	goodput = ask(ctl, run, ctl->options.since_ms / 1000, 0, err);
	if (!goodput)
		return -1;
	add(sums, js_str(run, !by || strcmp(by, "run") == 0 ? "name" : by, "-"), goodput);
	json_decref(goodput);
	return 0;
}

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
	putchar('\n');
	for (size_t i = 0; i < sums->count; i++) {
		const struct sum *s = &sums->rows[i];

		print_csv_text(s->key);
		printf(",%lld,%.6f,%.6f,", (long long)s->runs, s->total, s->gpu_hours);
		if (isfinite(ettr_of(s)))
			printf("%.6f", ettr_of(s));
		for (int k = 0; k < HOURS_PARTS; k++)
			printf(",%.6f", s->hours[k]);
		putchar('\n');
	}
}

/* [{"KEY":…,"runs","hours_total","gpu_hours_total","ettr","hours":{…}}…] */
static void print_rows_json(const struct sums *sums, const char *title)
{
	json_t *rows = json_array();

	for (size_t i = 0; i < sums->count; i++) {
		const struct sum *s = &sums->rows[i];
		json_t *row = json_object(), *hours = json_object();

		json_object_set_new(row, title, js_bytes(s->key));
		js_set_int(row, "runs", s->runs);
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

enum { COLUMNS_BEFORE = 5 };

static void fill(struct cell *cell, const struct sum *s, const struct style *style)
{
	(cell++)->text = clean_copy(s->key, style);
	(cell++)->text = xasprintf("%lld", (long long)s->runs);
	(cell++)->text = xasprintf("%.1f", s->total);
	(cell++)->text = xasprintf("%.1f", s->gpu_hours);
	(cell++)->text = isfinite(ettr_of(s)) ? xasprintf("%.3f", ettr_of(s)) : xstrdup("-");
	for (int i = 1; i < HOURS_PARTS; i++)
		(cell++)->text = s->total > 0 ? xasprintf("%.1f%%", 100 * s->hours[i] / s->total)
					      : xstrdup("-");
}

static void print_table(const struct ctl *ctl, const struct sums *sums, const char *title)
{
	struct column columns[COLUMNS_BEFORE + HOURS_PARTS - 1] = {
		{ .title = title, .least = 12 },     { .title = "RUNS", .right = true, .rank = 2 },
		{ .title = "HOURS", .right = true }, { .title = "GPU-H", .right = true },
		{ .title = "ETTR", .right = true },
	};
	struct table table;

	for (int i = 1; i < HOURS_PARTS; i++)
		columns[COLUMNS_BEFORE + i - 1] = (struct column){ .title = hours_parts[i].title,
								   .right = true,
								   .rank = hours_parts[i].rank };
	table_init(&table, columns, COLUMNS_BEFORE + HOURS_PARTS - 1);
	for (size_t i = 0; i < sums->count; i++)
		fill(table_row(&table), &sums->rows[i], &ctl->out);
	table_print(&table, &ctl->out, stdout);
	table_fini(&table);
}

static bool is_known_key(const char *by)
{
	static const char *const keys[] = { "run", "group", "owner", "week" };

	for (size_t i = 0; by && i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (strcmp(by, keys[i]) == 0)
			return true;
	}
	return !by;
}

int goodput_sums(struct ctl *ctl, struct err *err)
{
	const char *by = ctl->options.by;
	struct sums sums = { .count = 0 };
	json_t *runs, *run;
	int rc = 0;
	size_t i;

	if (!is_known_key(by))
		return err_set(err, ERR_USAGE, "--by: run, group, owner or week, not \"%.64s\"",
			       by);
	runs = client_ask(&ctl->client, VERB_LS, json_pack("{s:b}", "all", 1), err);
	if (!runs)
		return -1;
	json_array_foreach(runs, i, run) {
		if (rc == 0 && run_is_named(ctl, run, NULL))
			rc = add_run(ctl, &sums, run, err);
	}
	json_decref(runs);
	if (rc == 0 && sums.count == 0)
		rc = err_set(err, ERR_NOT_FOUND, "no such runs");
	if (sums.count > 0)
		qsort(sums.rows, sums.count, sizeof(struct sum), by_key);
	if (rc == 0 && ctl->options.csv)
		print_csv(&sums, by ? by : "run");
	else if (rc == 0 && ctl->options.json)
		print_rows_json(&sums, by ? by : "run");
	else if (rc == 0)
		print_table(ctl, &sums, by ? by : "run");
	free(sums.rows);
	return rc;
}
