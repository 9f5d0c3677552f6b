/* SPDX-License-Identifier: MIT */
/* test_report.c - steps over all attempts, curves of characters, and the page of a million
 * steps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "ctl/report/chart.h"
#include "ctl/report/graphics.h"
#include "ctl/report/page.h"

static void add(struct series *s, int64_t step, double loss)
{
	json_t *o = json_object();

	js_set_int(o, "step", step);
	js_set_real(o, "loss", loss);
	js_set_real(o, "tokens_per_s", 1000);
	js_set_real(o, "time", 1795000000.0 + (double)step);
	series_add(s, o);
	json_decref(o);
}

/* 1..10, back to 5: 6..8, back to 7: 8..12 */
static struct series twice_back(void)
{
	struct series s = { 0 };

	for (int i = 1; i <= 10; i++)
		add(&s, i, 10 - i);
	for (int i = 6; i <= 8; i++)
		add(&s, i, 10 - i);
	for (int i = 8; i <= 12; i++)
		add(&s, i, 10 - i);
	series_end(&s);
	return s;
}

static void told(struct series *s, int64_t attempt_id, int launch, int64_t step, double loss,
		 double speed)
{
	json_t *o = json_object();

	js_set_int(o, "id", attempt_id << 32 | 7);
	js_set_int(o, "launch", launch);
	js_set_int(o, "step", step);
	js_set_real(o, "loss", loss);
	js_set_real(o, "tokens_per_s", speed);
	series_add(s, o);
	json_decref(o);
}

/* "step 2 loss 3", then "step 2 tokens/s 10": one point; from another launch it was made again. */
static void test_more_of_a_step(void **state)
{
	struct series s = { 0 };

	(void)state;
	told(&s, 1, 1, 1, 4, NAN);
	told(&s, 1, 1, 2, 3, NAN);
	told(&s, 1, 1, 2, NAN, 10);
	assert_int_equal(s.count, 2);
	assert_true(s.points[1].loss == 3 && s.points[1].tokens_per_s == 10);
	told(&s, 1, 2, 2, 3, NAN);
	told(&s, 2, 2, 2, 3, NAN);
	assert_int_equal(s.count, 4);
	series_end(&s);
	assert_int_equal(s.stretches, 3);
	series_clear(&s);
}

static void test_undone(void **state)
{
	struct series s = twice_back();

	(void)state;
	assert_int_equal(s.stretches, 3);
	for (size_t i = 0; i < s.count; i++) {
		const struct point *p = &s.points[i];
		bool want = (p->stretch == 0 && p->step >= 6) || (p->stretch == 1 && p->step >= 8);

		assert_int_equal(p->is_undone, want);
	}
	series_clear(&s);
}

/* A spike of one step in a million stays, and so do the ends. */
static void test_thin(void **state)
{
	struct series s = { 0 }, thin;
	double largest = 0, least = 1e9;

	(void)state;
	for (int i = 1; i <= 1000000; i++)
		add(&s, i, i == 777777 ? 99 : i == 333333 ? -5 : 3 + sin(i / 1000.0));
	series_end(&s);
	series_thin(&s, QUANTITY_LOSS, 400, &thin);
	assert_true(thin.count <= 1604);
	assert_int_equal(thin.points[0].step, 1);
	assert_int_equal(thin.points[thin.count - 1].step, 1000000);
	for (size_t i = 0; i < thin.count; i++) {
		largest = fmax(largest, thin.points[i].loss);
		least = fmin(least, thin.points[i].loss);
		assert_true(i == 0 || thin.points[i].step > thin.points[i - 1].step);
	}
	assert_true(largest == 99 && least == -5);
	series_clear(&thin);
	series_clear(&s);
}

static void test_thin_keeps_stretches(void **state)
{
	struct series s = twice_back(), thin;

	(void)state;
	series_thin(&s, QUANTITY_LOSS, 1, &thin);
	assert_int_equal(thin.points[0].step, 1);
	assert_int_equal(thin.points[thin.count - 1].step, 12);
	for (size_t i = 1; i < thin.count; i++)
		assert_true(thin.points[i].stretch == thin.points[i - 1].stretch ||
			    thin.points[i].stretch == thin.points[i - 1].stretch + 1);
	series_clear(&thin);
	series_clear(&s);
}

static void test_chart(void **state)
{
	struct series s = { 0 }, nothing = { 0 };
	char *chart;

	(void)state;
	for (int i = 0; i <= 8; i++)
		add(&s, i, 8 - i);
	series_end(&s);
	chart = chart_draw(&s, QUANTITY_LOSS, 19, 5, CHART_ASCII);
	assert_string_equal(chart, "  8.0000 |**       \n"
				   "         |  **     \n"
				   "  2.6667 |    ***  \n"
				   "  0.0000 |       **\n"
				   "          0  step 8\n");
	free(chart);
	assert_null(chart_draw(&nothing, QUANTITY_LOSS, 80, 10, CHART_BRAILLE));
	assert_null(chart_draw(&s, QUANTITY_LOSS, 5, 10, CHART_BRAILLE));
	series_clear(&s);
}

/* A loss that has gone far up leaves something to be seen of what was before; where it is no number
 * any more the steps go on. */
static void test_far_up_and_away(void **state)
{
	struct series s = { 0 }, tenth = { 0 };
	struct range range;
	char *chart;

	(void)state;
	for (int i = 0; i <= 8; i++)
		add(&s, i, i < 7 ? pow(10, i) : NAN);
	series_end(&s);
	assert_true(series_range(&s, QUANTITY_LOSS, &range));
	assert_true(range.is_log && range.last == 8);
	assert_float_equal(range_share(&range, 1000), 0.5, 1e-9);
	assert_float_equal(range_value(&range, 0.5), 1000, 1e-6);
	chart = chart_draw(&s, QUANTITY_LOSS, 19, 4, CHART_ASCII);
	assert_string_equal(chart, "1.00e+06 |     **  \n"
				   " 1000.00 |  ***    \n"
				   "  1.0000 |**       \n"
				   "          0  step 8\n");
	free(chart);
	assert_int_equal(series_silent_since(&s), 7);
	for (int i = 0; i <= 48; i++) /* told with every tenth step */
		add(&tenth, i, i % 10 == 0 ? 2 : NAN);
	series_end(&tenth);
	assert_int_equal(series_silent_since(&tenth), -1);
	series_range(&tenth, QUANTITY_LOSS, &range);
	assert_false(range.is_log);
	series_clear(&tenth);
	series_clear(&s);
}

/* DA1 as terminals give it; 4 as their class, or within a number, is no sixels. */
static void test_graphics(void **state)
{
	(void)state;
	assert_int_equal(graphics_of("\033[?62;4;6;22c"), GRAPHICS_SIXEL);
	assert_int_equal(graphics_of("\033[?63;1;2;4c"), GRAPHICS_SIXEL);
	assert_int_equal(graphics_of("\033[?4;6c"), GRAPHICS_NONE);
	assert_int_equal(graphics_of("\033[?64;1;14;42c"), GRAPHICS_NONE);
	assert_int_equal(graphics_of("\033[?62;4;6"), GRAPHICS_NONE);
	assert_int_equal(graphics_of("\033[?6c"), GRAPHICS_NONE);
	assert_int_equal(graphics_of(""), GRAPHICS_NONE);
	assert_int_equal(graphics_of("\033_Gi=31;OK\033\\\033[?62;c"), GRAPHICS_KITTY);
	assert_int_equal(graphics_of("\033_Gi=31;EINVAL\033\\\033[?62;c"), GRAPHICS_NONE);
}

static void test_page(void **state)
{
	struct report_run r = { .series = twice_back() };
	char *page;

	(void)state;
	r.run = json_pack("{s:s, s:s, s:s, s:s, s:[{s:i, s:s, s:[s], s:[{s:s, s:i}]}]}", "name",
			  "<script>alert('1')</script>", "state", "failed", "owner", "ada & co",
			  "text", "\"quoted\"\x1b[31m", "attempts", "number", 1, "cause", "oom",
			  "nodes", "n<1", "launches", "cause", "oom", "last_step", 10);
	r.goodput = json_pack("{s:f, s:f, s:{s:f, s:f}}", "ettr", 0.5, "gpu_hours_total", 12.5,
			      "hours", "productive", 1.0, "queue", 1.0);
	page = page_make("a < b", "", 1795000000000, &r, 1, NULL);
	assert_null(strstr(page, "<script"));
	assert_null(strstr(page, "\x1b"));
	assert_non_null(strstr(page, "&lt;script&gt;alert(&#39;1&#39;)"));
	assert_non_null(strstr(page, "ada &amp; co"));
	assert_non_null(strstr(page, "class=\"undone\""));
	assert_non_null(strstr(page, "12.5"));
	assert_null(strstr(page, "http")); /* it needs no network */
	/* an attempt that has no job yet */
	assert_non_null(strstr(page, "<td class=\"n\">1</td><td class=\"n\"></td>"));
	free(page);
	report_run_clear(&r);
}

/* Two ranks with a GPU each, two minutes, and one of a second attempt. */
static struct use three_minutes(void)
{
	struct use use = { 0 };

	for (int i = 0; i < 6; i++) {
		json_t *line = json_pack("{s:s, s:i, s:i, s:f, s:[{s:i, s:i, s:i, s:i, s:[s]}]}",
					 "node", i % 2 ? "n2" : "n<1", "rank", i % 2, "seconds", 60,
					 "cpu", 2.0, "gpus", "gpu", 0, "use", i % 2 ? 100 : 50,
					 "memory_mb", 1024 * (i + 1), "memory_total_mb", 8192,
					 "throttled", "thermal");

		use_add(&use, i < 4 ? 1 : 2, 1795000020000 + i / 2 * 60000, line);
		json_decref(line);
	}
	use_end(&use);
	return use;
}

static void test_use(void **state)
{
	struct use use = three_minutes();

	(void)state;
	assert_int_equal(use.gpus.count, 3);
	assert_true(use.gpus.points[1].use == 75);
	assert_int_equal(use.gpus.points[1].step - use.gpus.points[0].step, 60);
	assert_int_equal(use.gpus.points[2].stretch, 2);
	assert_int_equal(use.count, 4); /* two machines, two GPUs */
	assert_int_equal(use.rows[1].seconds, 180);
	assert_true(use.rows[1].use / 180 == 50);
	assert_int_equal(use.rows[3].memory_mb, 6 * 1024);
	assert_int_equal(use.rows[3].throttled, USE_THERMAL);
	use_clear(&use);
}

/* GPUs, lemon nodes, and how it differs from another run. */
static void test_page_sections(void **state)
{
	struct report_run r = { .use = three_minutes() };
	json_t *nodes = json_pack("[{s:s, s:f, s:i, s:i}, {s:s, s:f, s:i, s:i}]", "name", "n<1",
				  "score", 0.25, "attempts", 9, "suspect", 1, "name", "n2", "score",
				  2.5, "attempts", 4, "suspect", 3);
	const char *n1, *n2;
	char *page;

	(void)state;
	r.run = json_pack("{s:s, s:s, s:[{s:i, s:s, s:[s, s]}]}", "name", "b", "state", "failed",
			  "attempts", "number", 1, "cause", "node_fail", "nodes", "n<1", "n2");
	r.differs_from = strdup("a");
	r.differs = json_pack("{s:{}, s:{s:[s, s]}}", "settings", "packages", "torch", "2.3",
			      "2.4");
	r.checkpoints = json_pack("[{s:n, s:b, s:b, s:s}]", "step", "valid", 1, "suspect", 1, "why",
				  "last.ckpt: is suspect");
	r.code_patch = strdup("--- a/x\n+++ b/x\n-\t1 < 2\n+\t2\n");
	page = page_make("b", "", 1795000000000, &r, 1, nodes);
	assert_non_null(strstr(page, "use of its GPUs"));
	assert_non_null(strstr(page, "<td class=\"n\">50%</td><td class=\"n\">5.0 of 8.0</td>"));
	assert_non_null(strstr(page, "thermal"));
	n2 = strstr(page, "<td>n2</td><td>node_fail 1</td><td class=\"n\">2.50</td>"
			  "<td class=\"n\">3 of 4</td>");
	n1 = strstr(page, "<td>n&lt;1</td><td>node_fail 1</td><td class=\"n\">0.25</td>");
	assert_true(n1 && n2 && n2 < n1); /* the worst one first */
	assert_non_null(strstr(page, "<tr><td class=\"n\">-</td><td>"));
	assert_non_null(strstr(page, "<td>last.ckpt: is suspect</td>"));
	assert_non_null(strstr(page, "<td>torch</td><td>2.3</td><td>2.4</td>"));
	assert_non_null(strstr(page, "-\t1 &lt; 2\n+\t2\n"));
	free(page);
	json_decref(nodes);
	report_run_clear(&r);
}

static void test_page_of_a_million(void **state)
{
	struct report_run r = { .series = { 0 } };
	char *page;

	(void)state;
	for (int i = 1; i <= 1000000; i++)
		add(&r.series, i, 3 + sin(i / 7.0));
	series_end(&r.series);
	r.run = json_pack("{s:s, s:s}", "name", "long", "state", "running");
	page = page_make("long", "", 1795000000000, &r, 1, NULL);
	assert_true(strlen(page) < 1000 * 1000);
	free(page);
	report_run_clear(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_undone),
		cmocka_unit_test(test_thin),
		cmocka_unit_test(test_thin_keeps_stretches),
		cmocka_unit_test(test_more_of_a_step),
		cmocka_unit_test(test_chart),
		cmocka_unit_test(test_far_up_and_away),
		cmocka_unit_test(test_graphics),
		cmocka_unit_test(test_page),
		cmocka_unit_test(test_use),
		cmocka_unit_test(test_page_sections),
		cmocka_unit_test(test_page_of_a_million),
	};

	setlocale(LC_CTYPE, "C.UTF-8");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
