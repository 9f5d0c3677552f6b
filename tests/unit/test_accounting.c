/* SPDX-License-Identifier: MIT */
/* test_accounting.c - what sacct prints, and a sacct that lies, fails, hangs or is not there. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "slurm/accounting.h"
#include "slurm/accounting_lines.h"

/* --- lines ------------------------------------------------------------------------------------ */

static const struct {
	const char *line;
	enum cause cause; /* CAUSE_NONE: it tells of no job that is over */
	int exit_code, signal;
	const char *state;
} lines[] = {
	{ "7|COMPLETED|0:0|None|1700000000|1700000100|n1|1699999999", CAUSE_COMPLETED, 0, 0,
	  "COMPLETED" },
	{ "7|FAILED|3:0|NonZeroExitCode|1|2|n[1-2]|1699999999\n", CAUSE_ERROR, 3, 0, "FAILED" },
	{ "7|FAILED|0:9|None|1|2|n1|1699999999", CAUSE_CRASH, -1, 9, "FAILED" },
	{ "7|FAILED|127:0|None|1|2|n1|1699999999", CAUSE_LAUNCH_FAIL, 127, 0, "FAILED" },
	/* Slurm's error number 4021 in the two bytes of a wait status */
	{ "7|FAILED|15:53|JobLaunchFailure|1|2|n1|1699999999", CAUSE_LAUNCH_FAIL, -1, 0, "FAILED" },
	{ "7|FAILED|1:0|NodeDown|1|2|n1|1699999999", CAUSE_NODE_FAIL, 1, 0, "FAILED" },
	{ "7|NODE_FAIL|0:0|None|1|2|n1|1699999999", CAUSE_NODE_FAIL, -1, 0, "NODE_FAIL" },
	{ "7|CANCELLED by 1000|0:15|None|1|2|n1|1699999999", CAUSE_KILLED, -1, 15, "CANCELLED" },
	{ "7|TIMEOUT|0:0|TimeLimit|1|2|n1|1699999999", CAUSE_TIMEOUT, -1, 0, "TIMEOUT" },
	{ "7|PREEMPTED|0:0|None|1|2|n1|1699999999", CAUSE_PREEMPTED, -1, 0, "PREEMPTED" },
	{ "7|OUT_OF_MEMORY|0:125|OutOfMemory|1|2|n1|1699999999", CAUSE_OOM, -1, 0,
	  "OUT_OF_MEMORY" },
	{ "7_3|TIMEOUT|0:0|None|Unknown|Unknown|None assigned|1699999999", CAUSE_TIMEOUT, -1, 0,
	  "TIMEOUT" },
	{ "7_[4-9]|CANCELLED by 0|0:0|None|None|2|None assigned|1699999999", CAUSE_KILLED, -1, 0,
	  "CANCELLED" },
	/* not over, or not to be understood */
	{ "7|RUNNING|0:0|None|1|Unknown|n1|1699999999", CAUSE_NONE, 0, 0, "" },
	{ "7|PENDING|0:0|Priority|Unknown|Unknown|None assigned|1699999999", CAUSE_NONE, 0, 0, "" },
	{ "7|REQUEUED|0:0|None|1|2|n1|1699999999", CAUSE_NONE, 0, 0, "" },
	{ "7|COMPLETEDX|0:0|None|1|2|n1|1699999999", CAUSE_NONE, 0, 0, "" },
	{ "7||0:0|None|1|2|n1|1699999999", CAUSE_NONE, 0, 0, "" },
	{ "7.batch|FAILED|1:0|None|1|2|n1|1699999999", CAUSE_NONE, 0, 0, "" },
	{ "0|FAILED|1:0|None|1|2|n1|1699999999", CAUSE_NONE, 0, 0, "" },
	{ "-7|FAILED|1:0|None|1|2|n1|1699999999", CAUSE_NONE, 0, 0, "" },
	{ "4294967303|FAILED|1:0|None|1|2|n1|1699999999", CAUSE_NONE, 0, 0, "" },
	{ "7|FAILED|1|None|1|2|n1|1699999999", CAUSE_NONE, 0, 0, "" },
	{ "7|FAILED|256:0|None|1|2|n1|1699999999", CAUSE_NONE, 0, 0, "" },
	{ "7|FAILED|1:-1|None|1|2|n1|1699999999", CAUSE_NONE, 0, 0, "" },
	{ "7|FAILED|1:0|None|1|2|n1|2023-11-14T22:13:19", CAUSE_NONE, 0, 0, "" },
	{ "7|FAILED|1:0|None|1|2|n1", CAUSE_NONE, 0, 0, "" },
	{ "7|FAILED|1:0|None|1|2|n1|1699999999|more", CAUSE_NONE, 0, 0, "" },
	{ "||||||||", CAUSE_NONE, 0, 0, "" },
	{ "", CAUSE_NONE, 0, 0, "" },
	{ "Slurm accounting storage is disabled", CAUSE_NONE, 0, 0, "" },
	{ "\x01\xff\xfe|\x80", CAUSE_NONE, 0, 0, "" },
};

/* One line that was asked for job 7. */
static bool read_line(const char *line, int64_t submit_time, struct job_status *out)
{
	const struct job_ref job = { .job_id = 7, .submit_time = submit_time };
	json_t *body;
	bool is_over = accounting_read(line, &job, out, &body);

	out->nodes = is_over && out->nodes[0] ? "some" : "";
	json_decref(body);
	return is_over;
}

static void test_who_cancelled(void **state)
{
	struct job_status job;

	(void)state;
	assert_true(read_line("7|CANCELLED by 1000|0:15|None|1|2|n1|3", 3, &job));
	assert_true(job.has_canceller);
	assert_int_equal(job.canceller, 1000);
	assert_true(read_line("7|CANCELLED by 0|0:0|None|1|2|None assigned|3", 3, &job));
	assert_true(job.has_canceller);
	assert_string_equal(job.nodes, "");
	assert_true(read_line("7|CANCELLED|0:15|None|1|2|n1|3", 3, &job));
	assert_false(job.has_canceller);
}

static void test_lines(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct job_status got;
		bool is_over = read_line(lines[i].line, 1699999999, &got);

		if (is_over != (lines[i].cause != CAUSE_NONE) || got.cause != lines[i].cause ||
		    (is_over &&
		     (got.exit_code != lines[i].exit_code || got.signal != lines[i].signal ||
		      got.ref.job_id != 7 || got.ref.submit_time != 1699999999 ||
		      strcmp(got.state, lines[i].state) != 0)))
			fail_msg("%s: %s, exit %d, signal %d, %s", lines[i].line,
				 cause_name(got.cause), got.exit_code, got.signal, got.state);
	}
}

/* Every prefix of a good line, and every line with one byte changed: no crash, no other job. */
static void test_torn_lines(void **state)
{
	static const char good[] = "7|NODE_FAIL|0:0|None|1700000000|1700000100|n1|1699999999";

	(void)state;
	for (size_t i = 0; i + 1 < sizeof(good); i++) {
		char line[sizeof(good)];
		struct job_status got;

		memcpy(line, good, sizeof(good));
		for (int c = 1; c < 256; c += 3) {
			line[i] = (char)c;
			read_line(line, 1699999999, &got);
		}
		line[i] = '\0';
		if (i < 47)
			assert_false(read_line(line, 1699999999, &got));
	}
}

/* --- programs --------------------------------------------------------------------------------- */

struct answer {
	int count;
	enum scheduler_result result;
	enum cause cause;
	char nodes[256];
	char body[200];
};

static char folder[] = "/tmp/lb-accounting-XXXXXX";
static bool is_closed;

static void on_answer(void *arg, const struct scheduler_reply *reply)
{
	struct answer *a = arg;

	a->count++;
	a->result = reply->result;
	a->cause = reply->job_count ? reply->jobs[0].cause : CAUSE_NONE;
	snprintf(a->nodes, sizeof(a->nodes), "%s", reply->job_count ? reply->jobs[0].nodes : "");
	if (reply->body) {
		char *body = json_dumps(reply->body, JSON_COMPACT);

		snprintf(a->body, sizeof(a->body), "%s", body);
		free(body);
	}
}

static void on_closed(void *arg)
{
	*(bool *)arg = true;
}

/* A sacct that is this shell script. */
static const char *program(const char *script)
{
	static char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "%s/sacct", folder);
	f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f, "#!/bin/sh\n%s\n", script);
	fclose(f);
	assert_int_equal(chmod(path, 0700), 0);
	return path;
}

static void ask(const char *path, int64_t deadline_ms, const struct job_ref *jobs,
		struct answer *answers, size_t count)
{
	struct accounting *a;
	uv_loop_t loop;
	size_t done = 0;

	uv_loop_init(&loop);
	a = accounting_create(&loop, path, deadline_ms);
	for (size_t i = 0; i < count; i++)
		accounting_ask(a, &jobs[i], on_answer, &answers[i]);
	while (done < count) {
		int more = uv_run(&loop, UV_RUN_ONCE);

		for (done = 0; done < count && answers[done].count; done++)
			;
		assert_true(more || done == count);
	}
	is_closed = false;
	accounting_close(a, on_closed, &is_closed);
	while (uv_run(&loop, UV_RUN_ONCE))
		;
	assert_true(is_closed);
	assert_int_equal(uv_loop_close(&loop), 0);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(answers[i].count, 1);
}

static struct answer ask_one(const char *path, int64_t deadline_ms)
{
	static const struct job_ref job = { .job_id = 7, .submit_time = 1000 };
	struct answer answer = { 0 };

	ask(path, deadline_ms, &job, &answer, 1);
	return answer;
}

static void test_programs(void **state)
{
	/* clang-format off */
	static const struct {
		const char *script;
		enum scheduler_result result;
		enum cause cause;
	} cases[] = {
		/* only the line with its own submit time is of our job: ids are reused */
		{ "echo '7|FAILED|1:0|None|1|2|n1|999'; echo '7|PREEMPTED|0:0|None|1|2|n1|1000'; "
		  "echo '7|FAILED|1:0|None|1|2|n1|1001'", SCHEDULER_OK, CAUSE_PREEMPTED },
		{ "echo '7|FAILED|1:0|None|1|2|n1|999'", SCHEDULER_GONE, CAUSE_NONE },
		{ "echo '7|RUNNING|0:0|None|1|2|n1|1000'", SCHEDULER_GONE, CAUSE_NONE },
		{ "echo '7_1|COMPLETED|0:0|None|1|2|n1|1000'; echo '7_2|NODE_FAIL|0:0|None|1|2|n1|1000'; "
		  "echo '7_3|COMPLETED|0:0|None|1|2|n1|1000'", SCHEDULER_OK, CAUSE_NODE_FAIL },
		{ "", SCHEDULER_GONE, CAUSE_NONE },
		{ "head -c 100000 /dev/urandom", SCHEDULER_GONE, CAUSE_NONE },
		{ "echo 'Slurm accounting storage is disabled' >&2; exit 1", SCHEDULER_DOWN, CAUSE_NONE },
		{ "echo '7|PREEMPTED|0:0|None|1|2|n1|1000'; kill -9 $$", SCHEDULER_DOWN, CAUSE_NONE },
		{ "exec head -c 9000000 /dev/zero", SCHEDULER_DOWN, CAUSE_NONE },
		{ "[ \"$SLURM_TIME_FORMAT\" = %s ] && [ \"$7\" = 7 ] && [ -z \"$SACCT_FORMAT\" ] && "
		  "echo '7|TIMEOUT|0:0|None|1|2|n1|1000'", SCHEDULER_OK, CAUSE_TIMEOUT },
	};
	/* clang-format on */

	(void)state;
	setenv("SLURM_TIME_FORMAT", "relative", 1);
	setenv("SACCT_FORMAT", "JobID", 1);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct answer got = ask_one(program(cases[i].script), 60000);

		if (got.result != cases[i].result || got.cause != cases[i].cause)
			fail_msg("%s: result %d, %s", cases[i].script, got.result,
				 cause_name(got.cause));
	}
}

/* Of an array: what stands for all is what does in a poll, and who cancelled which task. */
static void test_arrays(void **state)
{
	/* clang-format off */
	static const struct {
		const char *lines;
		enum cause cause;
		const char *body;
	} cases[] = {
		{ "7_1|COMPLETED|0:0|None|1|200|n1|1000\n7_2|CANCELLED by 1000|0:15|None|1|90|n1|1000\n"
		  "7_3|CANCELLED by 0|0:15|None|1|91|n1|1000\n7_4|CANCELLED|0:15|None|1|92|n1|1000", CAUSE_COMPLETED,
		  "{\"cancelled\":[[2,true,1,90,0,1000],[3,true,1,91,0,0]],\"known\":[1,2,3,4],\"more\":false,\"nodes\":\"n1\"}" },
		{ "7_1|FAILED|1:0|NonZeroExitCode|1|20|n1|1000\n7_2|CANCELLED by 1000|0:15|None|1|90|n1|1000\n"
		  "7_[3-9%2]|CANCELLED by 1000|0:0|None|None|89|None assigned|1000", CAUSE_KILLED,
		  "{\"cancelled\":[[2,true,1,90,0,1000],[3],[4],[5],[6],[7],[8],[9]],"
		  "\"known\":[1,2,3,4,5,6,7,8,9],\"more\":false,\"nodes\":\"\"}" },
		{ "7_1|FAILED|1:0|NonZeroExitCode|1|20|n1|1000\n7_2|RUNNING|0:0|None|1|Unknown|n1|1000", CAUSE_ERROR,
		  "{\"cancelled\":[],\"known\":[1],\"more\":true,\"nodes\":\"n1\"}" },
		/* what Slurm cancels for its dependency is nobody's wish */
		{ "7_1|COMPLETED|0:0|None|1|20|n1|1000\n"
		  "7_2|CANCELLED by 1000|0:0|DependencyNeverSatisfied|None|90|None assigned|1000", CAUSE_LAUNCH_FAIL,
		  "{\"cancelled\":[],\"known\":[1,2],\"more\":false,\"nodes\":\"\"}" },
		/* another job of that number */
		{ "7_1|COMPLETED|0:0|None|1|20|n1|1000\n7_2|CANCELLED by 1000|0:15|None|1|9|n1|999", CAUSE_COMPLETED,
		  "{\"cancelled\":[],\"known\":[1],\"more\":false,\"nodes\":\"n1\"}" },
		/* a list that was cut */
		{ "7_1|COMPLETED|0:0|None|1|20|n1|1000\n7_[2,...]|CANCELLED by 1000|0:0|None|None|9|None assigned|1000",
		  CAUSE_COMPLETED, "{\"cancelled\":[],\"known\":[1],\"more\":false,\"nodes\":\"n1\"}" },
	};
	/* clang-format on */

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char script[600];
		struct answer got;

		snprintf(script, sizeof(script), "echo '%s'", cases[i].lines);
		got = ask_one(program(script), 60000);
		assert_string_equal(got.body, cases[i].body);
		assert_int_equal(got.cause, cases[i].cause);
	}
}

static void test_hangs(void **state)
{
	(void)state;
	assert_int_equal(ask_one(program("exec sleep 1000"), 100).result, SCHEDULER_DOWN);
	/* its output is closed, and it stays */
	assert_int_equal(ask_one(program("exec sleep 1000 >&-"), 100).result, SCHEDULER_DOWN);
}

static void test_absent(void **state)
{
	(void)state;
	assert_int_equal(ask_one("/nonexistent/sacct", 60000).result, SCHEDULER_DOWN);
}

/* Many that ask share a few calls, and each gets the answer to its own question. */
static void test_many(void **state)
{
	enum { JOBS = 450 };
	static struct job_ref jobs[JOBS];
	static struct answer answers[JOBS];
	char script[512], log[64], text[16] = "";
	int fd;

	(void)state;
	snprintf(log, sizeof(log), "%s/calls", folder);
	snprintf(script, sizeof(script),
		 "printf x >>%s\nIFS=,; for id in $7; do "
		 "[ $((id %% 2)) = 0 ] || echo \"$id|NODE_FAIL|0:0|None|1|2|n$id|1000\"; done",
		 log);
	for (uint32_t i = 0; i < JOBS; i++)
		jobs[i] = (struct job_ref){ .job_id = i + 1, .submit_time = 1000 };
	ask(program(script), 60000, jobs, answers, JOBS);
	for (int i = 0; i < JOBS; i++) {
		char node[16];

		snprintf(node, sizeof(node), "n%d", i + 1);
		assert_int_equal(answers[i].result, (i + 1) % 2 ? SCHEDULER_OK : SCHEDULER_GONE);
		assert_string_equal(answers[i].nodes, (i + 1) % 2 ? node : "");
	}
	fd = open(log, O_RDONLY);
	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	assert_string_equal(text, "xxx");
}

/* Closed in the middle of everything: no answer, no leak. */
static void test_close(void **state)
{
	static const struct job_ref job = { .job_id = 7, .submit_time = 1000 };
	struct answer answer = { 0 };
	struct accounting *a;
	uv_loop_t loop;

	(void)state;
	uv_loop_init(&loop);
	a = accounting_create(&loop, program("exec sleep 1000"), 60000);
	accounting_ask(a, &job, on_answer, &answer);
	uv_run(&loop, UV_RUN_NOWAIT);
	accounting_ask(a, &job, on_answer, &answer);
	is_closed = false;
	accounting_close(a, on_closed, &is_closed);
	while (uv_run(&loop, UV_RUN_ONCE))
		;
	assert_true(is_closed);
	assert_int_equal(answer.count, 0);
	assert_int_equal(uv_loop_close(&loop), 0);
}

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	static const char *const names[] = { "sacct", "calls" };
	char path[64];

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		unlink(path);
	}
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),      cmocka_unit_test(test_who_cancelled),
		cmocka_unit_test(test_torn_lines), cmocka_unit_test(test_programs),
		cmocka_unit_test(test_arrays),     cmocka_unit_test(test_hangs),
		cmocka_unit_test(test_absent),     cmocka_unit_test(test_many),
		cmocka_unit_test(test_close),
	};

	return cmocka_run_group_tests_name("accounting", tests, make_folder, remove_folder);
}
