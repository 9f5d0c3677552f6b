/* SPDX-License-Identifier: MIT */
/* test_lbrun_output_parser.c - steps and errors read from what a trainer prints. */
#include "tests/unit/unit.h"

#include "common/base/json.h"
#include "worker/lbrun/trainer/output_parser.h"

static char told[400];

static void on_step(void *arg, json_t *line, int64_t rank)
{
	char *text = js_line(line);

	(void)arg;
	snprintf(told + strlen(told), sizeof(told) - strlen(told), "%s@%d ", text, (int)rank);
	free(text);
}

static void on_error(void *arg, const char *node, const char *line)
{
	(void)arg;
	snprintf(told + strlen(told), sizeof(told) - strlen(told), "%s|%s ", node, line);
}

static void on_rank_end(void *arg, const char *node, int64_t rank, int signo, int status)
{
	(void)arg;
	snprintf(told + strlen(told), sizeof(told) - strlen(told), "%s:%d ended %d/%d ", node,
		 (int)rank, signo, status);
}

static const char *read_all(struct attempt_watch *watch, const char *const *chunks)
{
	static struct output_parser p;

	memset(&p, 0, sizeof(p));
	told[0] = '\0';
	assert_int_equal(output_parser_init(&p, watch, NULL), 0);
	p.on_step = on_step;
	p.on_error = on_error;
	p.on_rank_end = on_rank_end;
	for (; *chunks; chunks++)
		output_parser_bytes(&p, 0, *chunks, strlen(*chunks));
	output_parser_fini(&p);
	return told;
}

#define READ(...) read_all(&watch, (const char *const[]){ __VA_ARGS__, NULL })

static void test_progress(void **state)
{
	struct attempt_watch watch = {
		.progress_regex = TEXT("step +(?<step>[\\d,]+)(/\\d+)?.*loss +(?<loss>\\S+)"
				       "( .*?(?<tokens_per_s>[\\d.]+) tok/s)?"),
	};

	(void)state;
	assert_string_equal(READ("step    1/20 | loss 6.5 (+nan) | 5.5 tok/s\n"),
			    "{\"type\":\"step\",\"loss\":6.5,\"step\":1,\"tokens_per_s\":5.5}@-1 ");
	assert_string_equal(READ("hello\nste", "p 1,0", "00 loss 2", ".5\r\n"),
			    "{\"type\":\"step\",\"loss\":2.5,\"step\":1000}@-1 ");
	assert_string_equal(READ("step 3 loss nan\n"),
			    "{\"type\":\"step\",\"loss\":null,\"step\":3}@-1 ");
	assert_string_equal(READ("[n2:7] step 3 loss 1\r"),
			    "{\"type\":\"step\",\"loss\":1.0,\"step\":3}@7 ");
	assert_string_equal(READ("step 3 loss"), "");
	assert_string_equal(READ("step 99999999999999999999 loss 1\n"), "");
	assert_string_equal(READ("step , loss 1\n"), "");
}

static void test_long_lines(void **state)
{
	static char longer[3 * OUTPUT_PARSER_LINE_BYTES];
	struct attempt_watch watch = { .progress_regex = TEXT("step (?<step>\\d+)") };

	(void)state;
	memset(longer, 'x', sizeof(longer) - 1);
	assert_string_equal(READ("step 1 ", longer, "\nstep 2\n"),
			    "{\"type\":\"step\",\"step\":2}@-1 ");
}

static void test_errors(void **state)
{
	char *patterns[] = { TEXT("Xid.*: 79"), TEXT("uncorrectable ECC"), NULL };
	struct attempt_watch watch = { .node_errors = patterns };

	(void)state;
	assert_string_equal(READ("[n3:0] CUDA error: uncorrectable ECC error\nfine\nXid (x): 79\n"),
			    "n3|CUDA error: uncorrectable ECC error |Xid (x): 79 ");
}

static void test_rank_killed(void **state)
{
	struct attempt_watch watch = { 0 };

	(void)state;
	assert_string_equal(READ("[n3:7] lbrun: this rank was killed by signal 11 (SIGSEGV)\n"),
			    "n3:7 ended 11/0 ");
	assert_string_equal(READ("[n3:7] lbrun: this rank ended with exit status 3\n"),
			    "n3:7 ended 0/3 ");
	/* a trainer's own words are no shepherd's */
	assert_string_equal(READ("lbrun: this rank was killed by signal 9\n[n3:7] was killed\n"),
			    "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_progress),
		cmocka_unit_test(test_long_lines),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_rank_killed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
