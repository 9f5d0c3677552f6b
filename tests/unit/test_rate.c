/* SPDX-License-Identifier: MIT */
/* test_rate.c - how often trouble comes, as the ledger has it: fresh, unless that takes long. */
#include "tests/unit/ledger_home.h"

#include "common/base/clock.h"
#include "daemon/base/rate.h"

static int64_t run_id, attempts;

static void put_run(struct ledger *l)
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

	attempts = 0;
	ok(ledger_run_insert(l, &run, &run_id, &err), &err);
}

/* A launch on these nodes that crashed. */
static void crash(struct ledger *l, const char *nodes)
{
	int64_t now_ms = clock_wall_ms(), id;
	char token[TOKEN_HEX + 1];
	struct err err = { 0 };

	snprintf(token, sizeof(token), "%032lld", (long long)++attempts);
	ok(ledger_attempt_insert(l, run_id, attempts, token, now_ms, &id, &err), &err);
	ok(ledger_attempt_started(l, id, nodes, now_ms, &err), &err);
	ok(ledger_launch_start(l, id, 1, 7, -1, now_ms, &err), &err);
	ok(ledger_launch_end(l, id, 1, CAUSE_NODE_FAIL, 1, 0, "", now_ms, &err), &err);
}

static long seen(struct lbd *lbd)
{
	return lround(rate_of_troubles(lbd, 0)->count);
}

static void test_fresh_where_that_is_cheap(void **state)
{
	enum { LARGE = 300 };
	struct lbd lbd = { .ledger = open_ledger() };

	(void)state;
	put_run(lbd.ledger);
	crash(lbd.ledger, "n1");
	assert_int_equal(seen(&lbd), 1);
	crash(lbd.ledger, "n1");
	lbd.troubles_took_ms = 0; /* however busy the machine is */
	assert_int_equal(seen(&lbd), 2);
	lbd.troubles_took_ms = 0;
	for (int i = 0; i < LARGE; i++)
		crash(lbd.ledger, "n[1-4000]");
	assert_int_equal(seen(&lbd), LARGE + 2);
	crash(lbd.ledger, "n1");
	assert_int_equal(seen(&lbd), LARGE + 2); /* for a moment */
	ledger_close(lbd.ledger);
}

int main(void)
{
	const struct CMUnitTest tests[] = { TEST(test_fresh_where_that_is_cheap) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
