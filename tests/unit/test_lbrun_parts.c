/* SPDX-License-Identifier: MIT */
/* test_lbrun_parts.c - small readers: host lists, control groups, names of checkpoints; and the
 * file `order`. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/files.h"
#include "common/run/order.h"
#include "common/base/paths.h"
#include "common/run/hosts.h"
#include "common/checkpoint/interval.h"
#include "worker/lbrun/checkpoint/asking.h"
#include "worker/lbrun/trainer/slurm_command.h"
#include "worker/lbrun/watch/oom.h"

static void test_hosts(void **state)
{
	static const struct {
		const char *text, *names;
	} cases[] = {
		{ "", "[]" },
		{ "n1", "[\"n1\"]" },
		{ "n[1-3,07]x,b", "[\"n1x\",\"n2x\",\"n3x\",\"n07x\",\"b\"]" },
		{ "a,n[08-11]", "[\"a\",\"n08\",\"n09\",\"n10\",\"n11\"]" },
		{ "r[1-2]n[3,05]", "[\"r1n3\",\"r1n05\",\"r2n3\",\"r2n05\"]" },
		{ "n[5-2]", "[\"n[5-2]\"]" },
		{ "n[1-2,]", "[\"n[1-2,]\"]" },
		{ "n[]", "[\"n[]\"]" },
		{ "n[1-1234567890]", "[\"n[1-1234567890]\"]" },
		{ "n[1", "[\"n[1\"]" },
		{ "n[a-b]", "[\"n[a-b]\"]" },
		{ ",,", "[]" },
		{ NULL, "[]" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *list = hosts_expand(cases[i].text);
		char *names = json_dumps(list, JSON_COMPACT);

		assert_string_equal(names, cases[i].names);
		free(names);
		json_decref(list);
	}
}

static void test_hosts_folded(void **state)
{
	static const struct {
		const char *names, *text;
		size_t limit;
	} cases[] = {
		{ "[]", "", 99 },
		{ "[\"a\"]", "a", 99 },
		{ "[\"n1\",\"n2\",\"n3\"]", "n[1-3]", 99 },
		{ "[\"n1\",\"n3\",\"n4\",\"m5\",7,\"m\"]", "n1,n[3-4],m5,m", 99 },
		{ "[\"n8\",\"n9\",\"n10\"]", "n[8-10]", 99 },
		{ "[\"n08\",\"n09\",\"n10\",\"n011\"]", "n[08-10],n011", 99 },
		{ "[\"n1\",\"n1\"]", "n1,n1", 99 },
		{ "[\"n12345678901\",\"n12345678902\"]", "n12345678901,n12345678902", 99 },
		{ "[\"abc1\",\"x2\",\"y\"]", "abc1,y", 6 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *list = json_loads(cases[i].names, 0, NULL);
		char *text = hosts_fold(list, cases[i].limit);

		assert_string_equal(text, cases[i].text);
		free(text);
		json_decref(list);
	}
}

static void test_hosts_bounded(void **state)
{
	json_t *list = hosts_expand("n[0-999999999]");

	(void)state;
	assert_int_equal(json_array_size(list), HOSTS_MAX);
	assert_true(hosts_have("a,n[1-3]", "n2") && hosts_have("a,n[1-3]", "a"));
	assert_false(hosts_have("a,n[1-3]", "n") || hosts_have("a,n[1-3]", "n[1-3]"));
	assert_false(hosts_have("", "") || hosts_have(NULL, "a"));
	json_decref(list);
	list = hosts_expand("a[1-99]b[0-999999999][1-2]");
	assert_int_equal(json_array_size(list), HOSTS_MAX);
	json_decref(list);
}

static char *write_file(const char *name, const char *text)
{
	char *path = path_join("./%s", name);
	char *parent = path_join("%.*s", (int)(strrchr(path, '/') - path), path);

	folder_make(parent, 0700, NULL);
	assert_int_equal(file_write_atomic(path, text, strlen(text), 0600, NULL), 0);
	free(parent);
	return path;
}

static void test_oom(void **state)
{
	char *v2 = write_file("self2", "0::/job_1/step\n");
	char *v1 = write_file("self1", "9:cpu:/x\n8:cpuset,memory:/slurm/job\n0::/none\n");
	char *none = write_file("self0", "garbage\n:\n::\n");

	(void)state;
	free(write_file("job_1/step/memory.events", "low 0\noom 5\noom_kill 3\n"));
	free(write_file("memory/slurm/job/memory.oom_control", "under_oom 0\noom_kill 2\n"));
	assert_int_equal(oom_kills(v2, "."), 3);
	assert_int_equal(oom_kills(v1, "."), 2);
	assert_int_equal(oom_kills(none, "."), -1);
	assert_int_equal(oom_limit_mb("16384", "2048", "4"), 16384);
	assert_int_equal(oom_limit_mb(NULL, "2048", "4"), 8192);
	assert_int_equal(oom_limit_mb(NULL, "2048", NULL), 0);
	assert_int_equal(oom_limit_mb("0", NULL, "4"), 0);
	assert_int_equal(oom_kills("/no/such/file", "."), -1);
	free(v2);
	free(v1);
	free(none);
}

static void test_order(void **state)
{
	struct attempt_order in = { .order = ORDER_KILL_NOW,
				    .by = "ada",
				    .text = "too \"slow\"\n" };
	struct attempt_order out;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(attempt_order_read(".", &out, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	assert_int_equal(out.order, ORDER_RUN);
	assert_int_equal(attempt_order_write(".", &in, NULL), 0);
	assert_int_equal(attempt_order_read(".", &out, NULL), 0);
	assert_int_equal(out.order, ORDER_KILL_NOW);
	assert_string_equal(out.by, "ada");
	assert_string_equal(out.text, "too \"slow\"\n");
	assert_false(out.goes_on);
	in = (struct attempt_order){ .order = ORDER_STOP, .by = "lbd", .goes_on = true };
	assert_int_equal(attempt_order_write(".", &in, NULL), 0);
	assert_int_equal(attempt_order_read(".", &out, NULL), 0);
	assert_true(out.goes_on);
	free(write_file("order", "{\"version\":1,\"order\":\"kill\",\"goes_on\":true}"));
	assert_int_equal(attempt_order_read(".", &out, NULL), 0);
	assert_false(out.goes_on);

	free(write_file("order", "{\"version\":1,\"order\":\"run\"}"));
	err = (struct err){ 0 };
	assert_int_equal(attempt_order_read(".", &out, &err), -1);
	assert_int_equal(err.code, ERR_USAGE);
	free(write_file("order", "garbage"));
	err = (struct err){ 0 };
	assert_int_equal(attempt_order_read(".", &out, &err), -1);
	assert_int_equal(err.code, ERR_USAGE);
}

/* --- asking for checkpoints ------------------------------------------------------------------- */

enum { DAY = 24 * 60 * 60 * 1000, MINUTE = 60 * 1000 };

static void test_asking_by_the_clock(void **state)
{
	struct asking a = { .every_ms = 15 * MINUTE };

	(void)state;
	asking_begin(&a, 1000);
	assert_int_equal(asking_due_ms(&a), 1000 + 15 * MINUTE);
	asking_saved(&a, 3, 5000); /* its own */
	asking_saved(&a, 3, 9000); /* the same, brought from the stage */
	assert_int_equal(asking_due_ms(&a), 5000 + 15 * MINUTE);
	a.every_ms = 0;
	assert_int_equal(asking_due_ms(&a), INT64_MAX);
}

/* The second is asked for when Daly's interval is over, of the first one's cost. */
static void test_asking_as_loses_least(void **state)
{
	struct asking told = { .every_ms = SAVE_EVERY_AUTO, .mtbf_ms = DAY };
	struct asking timed = told;
	int64_t best_ms = (int64_t)(save_interval_s(20, 86400) * 1000);

	(void)state;
	asking_begin(&told, 0);
	assert_int_equal(asking_due_ms(&told), MINUTE);
	assert_true(asking_asked(&told, MINUTE));
	asking_phase(&told, true, MINUTE + 1000);
	assert_int_equal(asking_due_ms(&told), INT64_MAX); /* it is at it */
	asking_saved(&told, 7, MINUTE + 15000);
	asking_phase(&told, false, MINUTE + 21000);
	assert_int_equal(asking_due_ms(&told), MINUTE + 15000 + best_ms);

	/* without phases: from order to end */
	asking_begin(&timed, 0);
	assert_true(asking_asked(&timed, MINUTE));
	asking_saved(&timed, 7, MINUTE + 20000);
	assert_int_equal(asking_due_ms(&timed), MINUTE + 20000 + best_ms);

	/* a copy that costs nothing, and writing that takes long */
	timed = (struct asking){ .every_ms = SAVE_EVERY_AUTO, .mtbf_ms = DAY };
	asking_begin(&timed, 0);
	assert_true(asking_asked(&timed, MINUTE));
	asking_phase(&timed, true, MINUTE);
	asking_phase(&timed, false, MINUTE);
	asking_saved(&timed, 7, 11 * MINUTE);
	assert_int_equal(asking_due_ms(&timed), 111 * MINUTE);
}

/* Each order has ten minutes; behind the third of them it is known. */
static void test_asking_in_vain(void **state)
{
	struct asking a = { .every_ms = MINUTE };

	(void)state;
	asking_begin(&a, 0);
	for (int64_t at = MINUTE; at <= 21 * MINUTE; at += 10 * MINUTE) {
		assert_int_equal(asking_due_ms(&a), at);
		assert_true(asking_asked(&a, at));
	}
	assert_int_equal(asking_due_ms(&a), 31 * MINUTE);
	assert_false(asking_asked(&a, 31 * MINUTE));
	assert_int_equal(asking_due_ms(&a), INT64_MAX);
	asking_begin(&a, 40 * MINUTE);
	assert_int_equal(asking_due_ms(&a), 41 * MINUTE);
}

/* More than a pipe holds. */
static void test_long_output(void **state)
{
	char *text = slurm_command_output((const char *[]){ "seq", "100000", NULL }, "/");
	char *none = slurm_command_output((const char *[]){ "sh", "-c", "echo no; exit 1", NULL },
					  "/");

	(void)state;
	assert_int_equal(strlen(text), 588895);
	assert_string_equal(none, "");
	free(text);
	free(none);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hosts),
		cmocka_unit_test(test_hosts_folded),
		cmocka_unit_test(test_hosts_bounded),
		cmocka_unit_test(test_oom),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_asking_by_the_clock),
		cmocka_unit_test(test_asking_as_loses_least),
		cmocka_unit_test(test_asking_in_vain),
		cmocka_unit_test(test_long_output),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
