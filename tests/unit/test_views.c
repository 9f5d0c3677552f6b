/* SPDX-License-Identifier: MIT */
/* test_views.c - what lbd answers of a run, from its rows. */
#include "tests/unit/ledger_home.h"

#include "common/base/json.h"
#include "daemon/runs/views.h"

static int64_t put_run(struct ledger *l)
{
	const struct ledger_run run = {
		.name = "r1",
		.owner = "ada",
		.state = RUN_CREATED,
		.text = "",
		.scheduler = "slurm",
		.dir = "/r1",
		.wanted = ORDER_RUN,
		.wanted_by = "",
		.wanted_reason = "",
		.loss = NAN,
		.tokens_per_s = NAN,
		.mfu = NAN,
		.resume_from = "",
		.run_group = "",
		.wanted_switch = "",
	};
	struct err err = { 0 };
	int64_t id;

	ok(ledger_run_insert(l, &run, &id, &err), &err);
	return id;
}

/* One that is preempted every five minutes comes to that in two weeks. */
static void test_all_attempts(void **state)
{
	enum { ATTEMPTS = 5000 };
	struct ledger *l = open_ledger();
	struct ledger_run run;
	struct err err = { 0 };
	int64_t id = put_run(l), attempt;
	const json_t *attempts, *last;
	json_t *o;

	(void)state;
	for (int n = 1; n <= ATTEMPTS; n++) {
		char token[TOKEN_HEX + 1];

		snprintf(token, sizeof(token), "%032d", n);
		ok(ledger_attempt_insert(l, id, n, token, n, &attempt, &err), &err);
	}
	ok(ledger_launch_start(l, attempt, 1, 7, -1, 1, &err), &err);
	ok(ledger_run_find(l, "r1", &run, &err), &err);
	assert_non_null(o = view_run(l, &run, true, &err));
	attempts = json_object_get(o, "attempts");
	assert_int_equal(json_array_size(attempts), ATTEMPTS);
	last = json_array_get(attempts, ATTEMPTS - 1);
	assert_int_equal(js_int(last, "number", 0), ATTEMPTS);
	assert_int_equal(json_array_size(json_object_get(last, "launches")), 1);
	json_decref(o);
	ledger_close(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = { TEST(test_all_attempts) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
