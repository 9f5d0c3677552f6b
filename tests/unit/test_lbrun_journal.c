/* SPDX-License-Identifier: MIT */
/* The spool on an ill disk: what fails once is tried again, and then lines are taken as before. */
#include "tests/unit/unit.h"

#include "common/clock.h"
#include "common/failpoint.h"
#include "common/json.h"
#include "worker/lbrun/journal.h"

static void fail_once_at(const char *point)
{
	struct err err = {0};

	setenv("LB_FAILPOINT", point, 1);
	assert_int_equal(failpoint_init("lbrun", &err), 0);
	unsetenv("LB_FAILPOINT");
}

static int64_t tell(struct journal *j)
{
	json_t *line = json_pack("{s:s, s:i}", "type", "step", "step", 1);
	struct err err = {0};
	int64_t seq = journal_trainer(j, 1, line, &err);

	json_decref(line);
	return seq;
}

static void after_a_failed_sync(void **state)
{
	struct journal j;

	(void)state;
	fail_once_at("spool.sync:error");
	journal_open(&j, "sync.jsonl", NULL, "run");
	assert_int_equal(tell(&j), 1);
	assert_false(journal_sync(&j));
	assert_int_equal(tell(&j), -1);		/* one try a second */
	assert_true(journal_next_ms(&j) <= clock_mono_ms() + JOURNAL_RETRY_MS);
	journal_turn(&j, clock_mono_ms() + JOURNAL_RETRY_MS);
	assert_int_equal(tell(&j), 2);
	assert_true(journal_sync(&j));
	journal_close(&j);
}

static void after_a_failed_write(void **state)
{
	struct journal j;

	(void)state;
	fail_once_at("spool.before:error@2");
	journal_open(&j, "write.jsonl", NULL, "run");
	assert_int_equal(tell(&j), 1);
	assert_int_equal(tell(&j), -1);
	journal_turn(&j, clock_mono_ms() + JOURNAL_RETRY_MS);
	assert_int_equal(tell(&j), 2);
	journal_close(&j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(after_a_failed_sync), cmocka_unit_test(after_a_failed_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
