/* SPDX-License-Identifier: MIT */
/* test_top.c - lbctl top without a terminal: whole screens, what comes first, and keys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/json.h"
#include "common/base/mem.h"
#include "ctl/top/paint.h"
#include "ctl/top/view.h"

static const int64_t now_ms = 1795000000 * 1000LL;

/* One of each kind; times are seconds before now. */
static const char runs_text[] =
	"[{'name':'fine','state':'running','group':'a','step':500,'target_step':1000,'loss':2.5,"
	"'tokens_per_s':1000.0,'median_tokens_per_s':1000.0,'created':1794990000,'attempt':1,'launch':1,"
	"'launched':1794999000,'last_step_time':1794999999,'step_s':1.0,'losses':[4,3.5,3,2.5],"
	"'checkpoint':{'step':400,'path':'p','valid':true,'time':1794999900}},"
	"{'name':'stuck','state':'running','step':20,'target_step':100,'loss':3.0,'created':1794990001,"
	"'attempt':2,'launch':3,'launched':1794990000,'last_step_time':1794999820,'step_s':2.0,"
	"'losses':[3,3]},"
	"{'name':'late','state':'running','step':10,'target_step':10000,'created':1794990002,'attempt':1,"
	"'launch':1,'launched':1794999000,'last_step_time':1794999999,'step_s':2.0,'limit':1795003600,"
	"'checkpoint':{'step':1,'path':'p','valid':true,'time':1794999999}},"
	"{'name':'slow','state':'running','step':10,'target_step':20,'tokens_per_s':500.0,"
	"'median_tokens_per_s':1000.0,'created':1794990003,'attempt':1,'launch':1,"
	"'launched':1794999000,'last_step_time':1794999999,'step_s':1.0},"
	"{'name':'nan','state':'running','step':10,'target_step':20,'created':1794990004,'attempt':1,"
	"'launch':1,'launched':1794999000,'last_step_time':1794999999,'step_s':1.0,'loss':3.0,'losses':[3.0,null,3.0,null,null,null,null,null,null,null,null]},"
	"{'name':'dead','state':'failed','cause':'oom','text':'out of memory','created':1794990005,"
	"'ended':1794999940},"
	"{'name':'queue','state':'queued','waits_for':'Priority','created':1794999000,'attempt':1},"
	"{'name':'again','state':'backoff','cause':'crash','text':'signal 11','created':1794990006,"
	"'next_attempt':1795000030,'attempt':1},"
	"{'name':'unsaved','state':'running','step':10,'target_step':20,'created':1794990007,'attempt':1,"
	"'launch':1,'launched':1794990000,'last_step_time':1794999999,'step_s':1.0},"
	"{'name':'over','state':'completed','cause':'completed','text':'','created':1794990008,"
	"'ended':1794999400}]";

static json_t *runs_parse(const char *quoted)
{
	char *text = xstrdup(quoted);
	json_t *runs;

	for (char *c = text; *c; c++)
		*c = *c == '\'' ? '"' : *c;
	runs = js_parse(text, strlen(text), NULL);
	free(text);
	assert_non_null(runs);
	return runs;
}

/* All lines, without blanks at their ends; owned. */
static char *screen(const struct view *view, int height, int width, bool utf8)
{
	struct style plain = { .utf8 = utf8 };
	struct canvas canvas;
	char *text = NULL;
	size_t len = 0;
	FILE *to = open_memstream(&text, &len);

	canvas_init(&canvas, height, width, utf8);
	paint(view, &canvas);
	canvas_print(&canvas, &plain, to);
	canvas_fini(&canvas);
	fclose(to);
	return text;
}

static void assert_screen(const struct view *view, int height, int width, bool utf8,
			  const char *want)
{
	char *got = screen(view, height, width, utf8);

	assert_string_equal(got, want);
	free(got);
}

/* What is looked at: these runs. */
static struct view view_of(json_t *runs)
{
	struct view view;

	view_init(&view);
	view_set_runs(&view, runs, now_ms);
	return view;
}

static void done_with(struct view *view, json_t *runs)
{
	view_fini(view);
	json_decref(runs);
}

static void press(struct view *view, const char *keys)
{
	for (; *keys; keys++)
		view_key(view, (unsigned char)*keys, 10);
}

static void test_worst_first(void **state)
{
	static const char *const want[] = { "stuck", "dead",    "nan",   "again", "late",
					    "slow",  "unsaved", "queue", "fine",  "over" };
	static const char *const facts[] = {
		"no step for 3m00s, usual 2s",
		"oom 1m00s ago: out of memory",
		"the loss is no number since step 10",
		"crash; next attempt in 30s: signal 11",
		"needs 5h33m, its time limit comes in 1h00m",
		"50% of its usual speed",
		"no checkpoint in 2h46m",
		"waits 16m40s: Priority",
		"done in 8m20s",
		"completed 10m00s ago",
	};
	json_t *runs = runs_parse(runs_text);
	struct view view = view_of(runs);

	(void)state;
	assert_int_equal(view.shown_count, 10);
	for (size_t i = 0; i < 10; i++) {
		assert_string_equal(view.gists[view.shown[i]].name, want[i]);
		assert_string_equal(view.gists[view.shown[i]].fact, facts[i]);
	}
	done_with(&view, runs);
}

/* Whole screens, as tests/golden/top has them. LB_GOLDEN=write writes them anew, to be looked
 * at. */
static void assert_golden(const struct view *view, int height, int width, bool utf8)
{
	const char *src = getenv("LB_SRC");
	char *path = xasprintf("%s/tests/golden/top/%dx%d", src ? src : ".", width, height);
	char *got = screen(view, height, width, utf8), *want = NULL;
	size_t size = 0;
	FILE *file;

	if (getenv("LB_GOLDEN")) {
		file = fopen(path, "w");
		assert_non_null(file);
		fputs(got, file);
		fclose(file);
	}
	file = fopen(path, "r");
	assert_non_null(file);
	assert_true(getdelim(&want, &size, '\0', file) > 0);
	fclose(file);
	assert_string_equal(got, want);
	free(want);
	free(got);
	free(path);
}

static void test_screen(void **state)
{
	json_t *runs = runs_parse(runs_text);
	struct view view;

	(void)state;
	setenv("TZ", "UTC", 1);
	tzset();
	view_init(&view);
	view_set_runs(&view, runs, now_ms);
	assert_golden(&view, 24, 80, false);
	assert_golden(&view, 60, 200, true);
	assert_golden(&view, 10, 40, true);
	done_with(&view, runs);
}

/* The launches of an array are its tasks'. */
static void test_array(void **state)
{
	json_t *runs = runs_parse(
		"[{'name':'tasks','state':'running','step':0,'target_step':4,"
		"'created':1794990000,'attempt':1,'attempt_started':1794999400}]");
	struct view view = view_of(runs);

	(void)state;
	assert_string_equal(view.gists[0].fact, "runs for 10m00s");
	done_with(&view, runs);
}

/* The cursor stays on its run when others overtake it, and at the top until somebody moves it. */
/* A GPU of two does nothing: that is the fact, and the line below has a bar for each. */
static void test_gpus(void **state)
{
	json_t *runs = runs_parse(
		"[{'name':'half','state':'running','step':10,'target_step':20,'created':1794990003,"
		"'attempt':1,'launch':1,'launched':1794999000,'last_step_time':1794999999,'step_s':1.0,"
		"'gpu_use':[100,1,50,null]}]");
	struct view view;
	char *bars, *digits;

	(void)state;
	view_init(&view);
	view_set_runs(&view, runs, now_ms);
	assert_string_equal(view.gists[0].fact, "1 of 3 GPUs idle");
	bars = screen(&view, 24, 200, true);
	digits = screen(&view, 24, 200, false);
	assert_non_null(strstr(bars, "GPUs █▁▅?"));
	assert_non_null(strstr(digits, "GPUs 905?"));
	free(bars);
	free(digits);
	view_fini(&view);
	json_decref(runs);
}

/* What is too wide for its column is told with fewer digits; half a number would be another one. */
static void test_large_numbers(void **state)
{
	json_t *runs = runs_parse("[{'name':'far','state':'killed','step':1000000,"
				  "'target_step':1000000,'loss':11250000.0,'created':1}]");
	struct view view = view_of(runs);
	char *narrow = screen(&view, 24, 80, false), *wide = screen(&view, 24, 160, false);

	(void)state;
	assert_non_null(strstr(narrow, " 1.0M/1.0M 1.1e+07 "));
	assert_non_null(strstr(wide, " 1000000/1000000  1.1e+07 "));
	assert_non_null(strstr(wide, "1 runs: 0 run, 0 wait, 0 failed, 1 killed, 0 done"));
	free(narrow);
	free(wide);
	done_with(&view, runs);
}

static void test_long_names(void **state)
{
	json_t *runs = runs_parse("[{'name':'llama-8b-scan-of-rates-7','state':'held'},"
				  "{'name':'llama-8b-scan-of-rates-42','state':'held'},"
				  "{'name':'sixteen-columns-','state':'held'}]");
	struct view view = view_of(runs);
	char *small = screen(&view, 24, 80, false), *wide = screen(&view, 24, 160, false);

	(void)state;
	assert_non_null(strstr(small, "\nllama-8b~rates-7 "));
	assert_non_null(strstr(small, "\nllama-8b~ates-42 "));
	assert_non_null(strstr(small, "\nsixteen-columns- "));
	assert_non_null(strstr(wide, "\nllama-8b-scan-of-rates-42 "));
	free(small);
	free(wide);
	done_with(&view, runs);
}

static void test_cursor(void **state)
{
	json_t *runs = runs_parse(runs_text), *fewer = runs_parse(runs_text);
	struct view view;

	(void)state;
	view_init(&view);
	json_array_remove(fewer, 1); /* stuck */
	view_set_runs(&view, fewer, now_ms);
	assert_string_equal(view_chosen(&view)->name, "dead");
	view_set_runs(&view, runs, now_ms);
	assert_string_equal(view_chosen(&view)->name, "stuck");
	press(&view, "jj");
	assert_string_equal(view_chosen(&view)->name, "nan");
	view_set_runs(&view, fewer, now_ms);
	assert_string_equal(view_chosen(&view)->name, "nan");
	assert_int_equal(view.cursor, 1);
	view_key(&view, TOP_LAST, 5);
	assert_string_equal(view_chosen(&view)->name, "over");
	view_scroll(&view, 5);
	assert_int_equal(view.first, 4);
	view_key(&view, TOP_PAGE_UP, 5);
	assert_int_equal(view.cursor, 3);
	view_fini(&view);
	json_decref(runs);
	json_decref(fewer);
}

static void test_filter(void **state)
{
	json_t *runs = runs_parse(runs_text);
	struct view view = view_of(runs);

	(void)state;
	press(&view, "/FIn");
	assert_int_equal(view.shown_count, 1);
	assert_string_equal(view_chosen(&view)->name, "fine");
	press(&view, "q\n"); /* a letter of the filter, then done */
	assert_int_equal(view.shown_count, 0);
	assert_null(view_chosen(&view));
	assert_int_equal(view_key(&view, 'k', 10).kind, ACT_NONE); /* there is nothing to kill */
	assert_int_equal(view.asked, ORDER_NOTHING);
	view_key(&view, TOP_ESC, 10);
	assert_int_equal(view.shown_count, 10);
	press(&view, "/priority\n"); /* what the fact says counts, too */
	assert_int_equal(view.shown_count, 1);
	done_with(&view, runs);
}

static void test_questions(void **state)
{
	json_t *runs = runs_parse(runs_text);
	struct view view = view_of(runs);
	struct act act;

	(void)state;
	assert_int_equal(view_key(&view, 'k', 10).kind, ACT_NONE);
	assert_int_equal(view_key(&view, 'n', 10).kind, ACT_NONE);
	assert_string_equal(view.message, "nothing was done");
	press(&view, "k");
	act = view_key(&view, 'y', 10);
	assert_int_equal(act.kind, ACT_KILL);
	assert_string_equal(act.run, "stuck");
	press(&view, "S");
	/* the run that was asked about, wherever the cursor is by then */
	json_array_remove(runs, 1);
	view_set_runs(&view, runs, now_ms);
	act = view_key(&view, 'y', 10);
	assert_int_equal(act.kind, ACT_SAVE);
	assert_string_equal(act.run, "stuck");
	press(&view, "k"); /* failed already */
	assert_int_equal(view.asked, ORDER_NOTHING);
	assert_string_equal(view.message, "dead is over");
	assert_int_equal(view_key(&view, 'q', 10).kind, ACT_QUIT);
	done_with(&view, runs);
}

static void test_pages(void **state)
{
	static const char text[] = "[n1:0] one\n[n1:2] two\n[n2:10] three\n[n1:0] four\nno rank\n";
	json_t *runs = runs_parse(runs_text);
	struct view view = view_of(runs);
	struct act act;

	(void)state;
	act = view_key(&view, TOP_RETURN, 10);
	assert_int_equal(act.kind, ACT_PAGE);
	assert_int_equal(act.page, PAGE_STORY);
	act = view_key(&view, 'l', 10);
	assert_int_equal(act.page, PAGE_LOGS);
	view_set_page(&view, PAGE_LOGS, act.run, text);
	assert_screen(&view, 7, 60, false,
		      "output of stuck, all ranks ([ ] choose)\n[n1:0] one\n[n1:2] two\n"
		      "[n2:10] three\n[n1:0] four\nno rank\nq back  r again  arrows move\n");
	press(&view, "]]");
	assert_screen(&view, 5, 60, false,
		      "output of stuck, rank 2 ([ ] choose)\n[n1:2] two\n\n\nq back  r again  "
		      "arrows move\n");
	press(&view, "]");
	assert_int_equal(view.rank, 10);
	press(&view, "]");
	assert_int_equal(view.rank, ANY_RANK);
	press(&view, "[");
	assert_int_equal(view.rank, 10);
	press(&view, "q");
	assert_int_equal(view.page, PAGE_NONE);
	press(&view, "?");
	assert_int_equal(view.page, PAGE_HELP);
	done_with(&view, runs);
}

/* Names, facts and pages come from others. */
static void test_hostile_text(void **state)
{
	json_t *runs = runs_parse("[{'name':'x\\u001b[31m','state':'failed','cause':'a\\u009bb',"
				  "'text':'\\u202eevil\\n\\u001b]0;t\\u0007','ended':1794999999}]");
	struct view view = view_of(runs);
	char *got;

	(void)state;
	got = screen(&view, 10, 120, true);
	for (const char *c = got; *c; c++)
		assert_true(*c == '\n' || (unsigned char)*c >= ' ');
	assert_null(strstr(got, "\xe2\x80\xae"));
	free(got);
	view_set_page(&view, PAGE_STORY, "x", "\x1b[2Jgone\r\n");
	got = screen(&view, 4, 40, false);
	assert_string_equal(got, "story of x\ngone?\n\nq back  r again  arrows move\n");
	free(got);
	done_with(&view, runs);
}

/* Whatever the size, no line is longer than the screen is wide, and none is missing. */
static void test_every_size(void **state)
{
	json_t *runs = runs_parse(runs_text);
	struct view view = view_of(runs);

	(void)state;
	for (int width = 1; width < 210; width += 3) {
		for (int height = 1; height < 64; height += 7) {
			struct canvas canvas;

			view_scroll(&view, paint_rows(&view, height));
			canvas_init(&canvas, height, width, true);
			paint(&view, &canvas);
			for (int i = 0; i < height; i++)
				assert_true(columns_of(canvas.lines[i].text) <= width);
			canvas_fini(&canvas);
		}
	}
	done_with(&view, runs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_worst_first),   cmocka_unit_test(test_array),
		cmocka_unit_test(test_screen),        cmocka_unit_test(test_gpus),
		cmocka_unit_test(test_large_numbers), cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_cursor),        cmocka_unit_test(test_filter),
		cmocka_unit_test(test_questions),     cmocka_unit_test(test_pages),
		cmocka_unit_test(test_hostile_text),  cmocka_unit_test(test_every_size),
	};

	setlocale(LC_CTYPE, "C.UTF-8");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
