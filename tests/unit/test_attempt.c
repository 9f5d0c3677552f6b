/* SPDX-License-Identifier: MIT */
/* test_attempt.c - the files of an attempt: what one release writes, another reads or refuses. */
#include "tests/unit/unit.h"

#include <unistd.h>

#include "common/run/attempt.h"
#include "common/run/attempt_params.h"
#include "common/base/files.h"

#define TOKEN "0123456789abcdef0123456789abcdef"

static void test_params(void **state)
{
	char *command[] = { TEXT("python"), TEXT("a b;c\n"), TEXT("\xff\x01"), TEXT(""), NULL };
	char *errors[] = { TEXT("Xid"), TEXT("ECC"), NULL };
	char *srun[] = { TEXT("--mpi=pmix"), NULL }, *torchrun[] = { TEXT("torchrun"), NULL };
	int64_t codes[] = { 3, 77 };
	struct attempt_params p = { .run = TEXT("brisk-otter-39"),
				    .token = TOKEN,
				    .number = 4,
				    .command = command,
				    .srun = srun,
				    .torchrun = torchrun,
				    .workdir = TEXT("/w\xff"),
				    .run_dir = TEXT("/r"),
				    .checkpoint_dir = TEXT("/c"),
				    .launcher = TEXT("srun"),
				    .in_place = 2,
				    .without_progress = 1,
				    .max_without_progress = 4,
				    .kill_grace_ms = 1500,
				    .stop_grace_ms = 9000,
				    .resume = TEXT("/c/step-00000005"),
				    .never_on_cause[CAUSE_OOM] = true,
				    .warn_ms = 120000,
				    .never_on_exit_codes = codes,
				    .never_count = 2,
				    .watch = { .setup_ms = 1,
					       .step_ms = 2,
					       .checkpoint_ms = 3,
					       .eval_ms = 4,
					       .output_ms = 5,
					       .progress_regex = TEXT("(?<step>.)"),
					       .node_errors = errors },
				    .pattern = TEXT("s-{step}"),
				    .complete_when = TEXT("manifest") };
	struct attempt_params out;
	struct err err = { 0 };

	(void)state;
	folder_make("p", 0700, NULL);
	assert_int_equal(attempt_params_write("p", &p, &err), 0);
	if (attempt_params_read("p", &out, &err) < 0)
		fail_msg("%s", err.text);
	assert_string_equal(out.run, p.run);
	assert_string_equal(out.token, TOKEN);
	assert_int_equal(out.number, 4);
	for (int i = 0; i < 4; i++)
		assert_string_equal(out.command[i], command[i]);
	assert_null(out.command[4]);
	assert_string_equal(out.srun[0], "--mpi=pmix");
	assert_string_equal(out.torchrun[0], "torchrun");
	assert_null(out.torchrun[1]);
	assert_null(out.profiler);
	assert_string_equal(out.workdir, "/w\xff");
	assert_string_equal(out.checkpoint_dir, "/c");
	assert_null(out.lbd_socket);
	assert_string_equal(out.launcher, "srun");
	assert_int_equal(out.in_place, 2);
	assert_int_equal(out.without_progress, 1);
	assert_int_equal(out.max_without_progress, 4);
	assert_int_equal(out.kill_grace_ms, 1500);
	assert_int_equal(out.stop_grace_ms, 9000);
	assert_string_equal(out.resume, "/c/step-00000005");
	assert_true(out.never_on_cause[CAUSE_OOM]);
	assert_false(out.never_on_cause[CAUSE_CRASH]);
	assert_int_equal(out.warn_ms, 120000);
	assert_int_equal(out.never_count, 2);
	assert_int_equal(out.never_on_exit_codes[1], 77);
	assert_memory_equal(&out.watch, &p.watch, offsetof(struct attempt_watch, progress_regex));
	assert_string_equal(out.watch.progress_regex, "(?<step>.)");
	assert_string_equal(out.watch.node_errors[1], "ECC");
	assert_null(out.watch.node_errors[2]);
	assert_string_equal(out.pattern, "s-{step}");
	assert_string_equal(out.complete_when, "manifest");
	attempt_params_clear(&out);
	attempt_params_clear(&out);
}

#define HEAD "{\"version\":1,\"token\":\"" TOKEN "\",\"run\":\"x\",\"number\":1,"
#define DIRS "\"workdir\":\"/\",\"run_dir\":\"/\",\"checkpoint_dir\":\"/\""

static void test_bad_params(void **state)
{
	static const struct {
		const char *text, *part;
	} cases[] = {
		{ "", "bad JSON" },
		{ "[]", "\"version\" is missing" },
		{ "{\"version\":2}", "version 2 is newer" },
		{ "{\"version\":1}", "\"token\"" },
		{ "{\"version\":1,\"token\":\"XYZ\"}", "\"token\"" },
		{ HEAD DIRS "}", "\"command\"" },
		{ HEAD DIRS ",\"command\":[]}", "\"command\"" },
		{ HEAD DIRS ",\"command\":[1]}", "item 0" },
		{ HEAD DIRS ",\"command\":[\"x\"],\"srun\":\"-l\"}", "\"srun\"" },
		{ HEAD "\"command\":[\"x\"]}", "\"workdir\"" },
		{ HEAD DIRS ",\"command\":[\"x\"],\"launcher\":\"ssh\"}", "\"launcher\"" },
		{ HEAD DIRS ",\"command\":[\"x\"],\"in_place\":-1}", "\"in_place\"" },
		{ HEAD DIRS ",\"command\":[\"x\"],\"never_on_exit_codes\":[\"a\"]}", "never_on" },
		{ HEAD DIRS ",\"command\":[\"x\"],\"watch\":{\"eval_timeout_ms\":-1}}", "\"eval_" },
	};

	(void)state;
	folder_make("b", 0700, NULL);
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct attempt_params out;
		struct err err = { 0 };

		write_text("b/attempt.json", cases[i].text);
		assert_int_equal(attempt_params_read("b", &out, &err), -1);
		assert_contains(err.text, "b/attempt.json: ");
		assert_contains(err.text, cases[i].part);
		assert_null(out.command);
	}
}

static void test_claim(void **state)
{
	struct attempt_claim c = { .token = TOKEN,
				   .job_id = "17",
				   .restart_count = 1,
				   .host = "n1",
				   .boot_id = "b",
				   .pid = 99,
				   .time_ms = 12345 };
	struct attempt_claim out;
	struct err err = { 0 };

	(void)state;
	folder_make("c", 0700, NULL);
	assert_int_equal(attempt_claim_read("c", &out, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	err_clear(&err);
	assert_int_equal(attempt_claim_take("c", &c, &err), 0);
	c.pid = 100;
	assert_int_equal(attempt_claim_take("c", &c, &err), -1);
	assert_int_equal(err.code, ERR_LOCKED);
	assert_int_equal(attempt_claim_read("c", &out, NULL), 0);
	assert_int_equal(out.pid, 99);
	assert_string_equal(out.job_id, "17");
	assert_string_equal(out.host, "n1");
	assert_int_equal(out.time_ms, 12345);
	write_text("c/claim", "{\"version\":1,\"token\":\"" TOKEN "\",\"job_id\":"
			      "\"123456789012345678901234567890123\"}");
	assert_int_equal(attempt_claim_read("c", &out, NULL), -1);
}

static void test_exit(void **state)
{
	struct attempt_exit e = { .token = TOKEN,
				  .cause = CAUSE_CRASH,
				  .exit_code = -1,
				  .signal = 9,
				  .left_ranks = true,
				  .launches = 3,
				  .last_seq = 50,
				  .time_ms = 5,
				  .text = "killed" };
	struct attempt_exit out;
	struct err err = { 0 };

	(void)state;
	folder_make("e", 0700, NULL);
	assert_int_equal(attempt_exit_read("e", &out, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	assert_int_equal(attempt_exit_write("e", &e, NULL), 0);
	assert_int_equal(attempt_exit_read("e", &out, NULL), 0);
	assert_int_equal(out.cause, CAUSE_CRASH);
	assert_int_equal(out.exit_code, -1);
	assert_int_equal(out.signal, 9);
	assert_true(out.left_ranks);
	assert_int_equal(out.launches, 3);
	assert_int_equal(out.last_seq, 50);
	assert_string_equal(out.text, "killed");
	e.exit_code = 0;
	e.signal = 0;
	e.cause = CAUSE_COMPLETED;
	assert_int_equal(attempt_exit_write("e", &e, NULL), 0);
	assert_int_equal(attempt_exit_read("e", &out, NULL), 0);
	assert_int_equal(out.exit_code, 0);
	assert_int_equal(out.signal, 0);
	write_text("e/exit.json", "{\"version\":1,\"token\":\"" TOKEN "\",\"cause\":\"boredom\"}");
	assert_int_equal(attempt_exit_read("e", &out, NULL), -1);
}

static void test_unheard(void **state)
{
	const struct attempt_unheard u = {
		.token = TOKEN, .launch = 3, .nodes = 64, .silent_ms = 30000
	};
	struct attempt_unheard out;
	struct err err = { 0 };

	(void)state;
	folder_make("u", 0700, NULL);
	assert_int_equal(attempt_unheard_read("u", "n1", &out, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	for (int i = 0; i < 2; i++) /* the folder is there the second time */
		assert_int_equal(attempt_unheard_write("u", "n1", &u, NULL), 0);
	assert_int_equal(attempt_unheard_read("u", "n1", &out, NULL), 0);
	assert_string_equal(out.token, TOKEN);
	assert_int_equal(out.launch, 3);
	assert_int_equal(out.nodes, 64);
	assert_int_equal(out.silent_ms, 30000);
	file_write_atomic("u/unheard/n2", "{\"version\":1}\n", 14, 0600, NULL);
	assert_int_equal(attempt_unheard_read("u", "n2", &out, NULL), -1); /* it has no token */
}

static void test_newest_claim(void **state)
{
	(void)state;
	assert_int_equal(attempt_newest_claim("none"), 0);
	folder_make("n/attempts/1", 0700, NULL);
	folder_make("n/attempts/2", 0700, NULL);
	folder_make("n/attempts/10", 0700, NULL);
	folder_make("n/attempts/99x", 0700, NULL);
	folder_make("n/attempts/0100", 0700, NULL);
	folder_make("n/attempts/12345678901234567890", 0700, NULL);
	assert_int_equal(attempt_newest_claim("n"), 0);
	write_text("n/attempts/2/claim", "");
	assert_int_equal(attempt_newest_claim("n"), 2);
	write_text("n/attempts/99x/claim", "");
	write_text("n/attempts/0100/claim", "");
	write_text("n/attempts/1/claim", "");
	assert_int_equal(attempt_newest_claim("n"), 2);
	write_text("n/attempts/10/claim", "");
	assert_int_equal(attempt_newest_claim("n"), 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_params),       cmocka_unit_test(test_bad_params),
		cmocka_unit_test(test_claim),        cmocka_unit_test(test_exit),
		cmocka_unit_test(test_newest_claim), cmocka_unit_test(test_unheard),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
