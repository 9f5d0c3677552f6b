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

static void on_rank_end(void *arg, const char *node, int64_t rank, int signo, int status, bool oom)
{
	(void)arg;
	snprintf(told + strlen(told), sizeof(told) - strlen(told), "%s:%d ended %d/%d%s ", node,
		 (int)rank, signo, status, oom ? " oom" : "");
}

static void on_no_cache(void *arg, const char *node, const char *why)
{
	(void)arg;
	snprintf(told + strlen(told), sizeof(told) - strlen(told), "%s without: %s ", node, why);
}

static bool has_shepherds, hears_lines;

static void on_line(void *arg, int stream, const char *node, int64_t rank, const char *text,
		    size_t len)
{
	(void)arg;
	(void)stream;
	assert_int_equal(len, strlen(text));
	snprintf(told + strlen(told), sizeof(told) - strlen(told), "%s:%d %s|", node, (int)rank,
		 text);
}

static const char *read_all(struct attempt_watch *watch, const char *const *chunks)
{
	static struct output_parser p;

	memset(&p, 0, sizeof(p));
	told[0] = '\0';
	assert_int_equal(output_parser_init(&p, watch, has_shepherds, 1000, NULL), 0);
	p.on_step = on_step;
	p.on_error = on_error;
	p.on_rank_end = on_rank_end;
	p.on_no_cache = on_no_cache;
	p.on_line = hears_lines ? on_line : NULL;
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
	has_shepherds = true;
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
	has_shepherds = true;
	assert_string_equal(READ("[n3:0] CUDA error: uncorrectable ECC error\nfine\nXid (x): 79\n"),
			    "n3|CUDA error: uncorrectable ECC error |Xid (x): 79 ");
}

static void test_no_cache(void **state)
{
	struct attempt_watch watch = { 0 };

	(void)state;
	has_shepherds = true;
	assert_string_equal(READ("[n2:8] lbrun: cache.folder: /x: No such file: without a cache\n"),
			    "n2 without: cache.folder: /x: No such file ");
	assert_string_equal(READ("[n2:8] lbrun: cache.folder: without a cache\n"), "");
	assert_string_equal(READ("[n2:8] cache.folder: /x: why: without a cache\n"), "");
	assert_string_equal(READ("lbrun: cache.folder: /x: why: without a cache\n"), "");
}

/* What launchers put in front: none of it may be lost on steps, or taken for a node. */
static void test_prefixes(void **state)
{
	struct attempt_watch watch = { .progress_regex = TEXT("auto") };
	static const struct {
		const char *line;
		int rank;
	} rows[] = {
		{ "[1,3]<stdout>:step 5 loss 2.0\n", 3 },
		{ "[3]<stderr>:step 5 loss 2.0[3]<stderr>:\n", 3 },
		{ "[3] step 5 loss 2.0\n", 3 },
		{ "[3@gpu-1] step 5 loss 2.0[3@gpu-1]\n", 3 },
		{ " 3: step 5 loss 2.0\n", 3 },
		{ "[default3]:step 5 loss 2.0\n", 3 },
		{ "[rank3]: step 5 loss 2.0\n", 3 },
		{ "(RayTrainWorker pid=4711, ip=10.0.0.1) step 5 loss 2.0\n", -1 },
		{ "Sun Nov 22 17:53:29 2026<stdout>:step 5 loss 2.0\n", -1 },
		{ "[vm:04711] step 5 loss 2.0\n", -1 },
		{ "[loss:2.0] step 5 loss 2.0\n", -1 },
		{ "[12:30:45] step 5 loss 2.0\n", -1 },
		{ "[2026-11-22 12:30:45,123] [INFO] step 5 loss 2.0\n", -1 },
	};
	char want[100];

	(void)state;
	has_shepherds = false;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(want, sizeof(want), "{\"type\":\"step\",\"step\":5,\"loss\":2.0}@%d ",
			 rows[i].rank);
		assert_string_equal(READ(rows[i].line), want);
	}
	has_shepherds = true;
	assert_string_equal(READ("[n1:2] [rank3]: step 5 loss 2.0\n"),
			    "{\"type\":\"step\",\"step\":5,\"loss\":2.0}@2 ");
	assert_string_equal(READ("[default3]:[n1:2] [vm:04711] 9: step 5 loss 2.0\n"),
			    "{\"type\":\"step\",\"step\":5,\"loss\":2.0}@2 ");
}

/* "12: loss 3.4" may be of rank 12 or of step 12. */
static void test_guess(void **state)
{
	struct attempt_watch watch = {
		.progress_regex = TEXT("^(?<step>\\d+): loss (?<loss>\\S+)"),
	};

	(void)state;
	has_shepherds = false;
	assert_string_equal(READ("12: loss 3.5\n1: 13: loss 3.5\n"),
			    "{\"type\":\"step\",\"loss\":3.5,\"step\":12}@-1 "
			    "{\"type\":\"step\",\"loss\":3.5,\"step\":13}@1 ");
}

/* A number of a process is no rank, and what a rank prints is no shepherd's. */
static void test_no_shepherd(void **state)
{
	char *patterns[] = { TEXT("uncorrectable ECC"), NULL };
	struct attempt_watch watch = { .node_errors = patterns };

	(void)state;
	has_shepherds = false;
	assert_string_equal(READ("[n3:7] lbrun: this rank was killed by signal 11 (SIGSEGV)\n"),
			    "");
	assert_string_equal(READ("[n3:04711] uncorrectable ECC\n[1@n4] uncorrectable ECC\n"),
			    "n3|uncorrectable ECC n4|uncorrectable ECC ");
}

/* Who dies while a bar is drawn speaks behind it, in the same line, as his launcher does. */
static void test_behind_bars(void **state)
{
	struct attempt_watch watch = { .progress_regex = TEXT("none") };
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "\r 40%|#   | 24/60 [00:21<00:26,  1.38it/s]Traceback (most recent call last):\n",
		  ":-1 Traceback (most recent call last):|" },
		{ "[n1:1] \r 40%|# | 24/60 [00:21<00:26,  1.38it/s, loss=2]odd.Thing: 7\nbye\n",
		  "n1:1 |n1:1 odd.Thing: 7|:-1 bye|" },
		{ "[n1:1] \r 42%|# | 25/60 [00:03<00:05,  6.5it/s]srun: error: n1: task 1: Killed\n",
		  "n1:1 |:-1 srun: error: n1: task 1: Killed|" },
		{ "\rEpoch 1:  2%|# | 1/60 [00:03<00:05]\r25it [00:01, 9.5it/s][rank3]: odd.Thing: 7\n",
		  ":-1 Epoch 1:  2%|# | 1/60 [00:03<00:05]|:3 odd.Thing: 7|" },
		{ "a:  5%|# | 1/20 [00:01<00:19]b:  5%|# | 1/20 [00:01<00:19]\nrow | 3 [4] x\n",
		  ":-1 a:  5%|# | 1/20 [00:01<00:19]b:  5%|# | 1/20 [00:01<00:19]|:-1 row | 3 [4] x|" },
	};

	(void)state;
	has_shepherds = hears_lines = true;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_string_equal(READ(rows[i].text), rows[i].want);
	hears_lines = false;
}

/* Of 1,000 ranks at most: a process of Julia's, and a list of Rust's, are of none. */
static void test_more_than_ranks(void **state)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "[12345] signal (11.1)\n", ":-1 [12345] signal (11.1)|" },
		{ "    1: no such file\n", ":-1     1: no such file|" },
		{ "   9: no such file\n", ":-1    9: no such file|" },
		{ " 12: x\n", ":12 x|" },
		{ "  1: x\n", ":1 x|" },
		{ "999: x\n", ":999 x|" },
		{ "[999] x\n", ":999 x|" },
	};
	struct attempt_watch watch = { 0 };

	(void)state;
	has_shepherds = false;
	hears_lines = true;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_string_equal(READ(rows[i].text), rows[i].want);
	hears_lines = false;
}

static void test_rank_killed(void **state)
{
	struct attempt_watch watch = { 0 };

	(void)state;
	has_shepherds = true;
	assert_string_equal(READ("[n3:7] lbrun: this rank was killed by signal 11 (SIGSEGV)\n"),
			    "n3:7 ended 11/0 ");
	assert_string_equal(READ("[n3:7] lbrun: this rank ended with exit status 3\n"),
			    "n3:7 ended 0/3 ");
	assert_string_equal(
		READ("[n3:7] lbrun: this rank was killed by signal 9 (SIGKILL)" OUTPUT_PARSER_RANK_OOM
		     "\n"),
		"n3:7 ended 9/0 oom ");
	/* a trainer's own words are no shepherd's */
	assert_string_equal(READ("lbrun: this rank was killed by signal 9\n[n3:7] was killed\n"),
			    "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_progress),        cmocka_unit_test(test_long_lines),
		cmocka_unit_test(test_errors),          cmocka_unit_test(test_no_cache),
		cmocka_unit_test(test_prefixes),        cmocka_unit_test(test_guess),
		cmocka_unit_test(test_no_shepherd),     cmocka_unit_test(test_behind_bars),
		cmocka_unit_test(test_more_than_ranks), cmocka_unit_test(test_rank_killed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
