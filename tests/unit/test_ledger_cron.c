/* SPDX-License-Identifier: MIT */
/* test_ledger_cron.c - ticks of periodic jobs in the ledger: each one once. (Tests run in a folder
 * of their own.) */
#include "tests/unit/unit.h"

#include "sql/ledger.h"

static struct ledger *ledger;

static int set_up(void **state)
{
	(void)state;
	remove("ledger.db");
	return ledger_open("ledger.db", &ledger, NULL);
}

static int tear_down(void **state)
{
	(void)state;
	ledger_close(ledger);
	return 0;
}

static int put(int64_t scheduled_s, const char *state, const char *run, struct err *err)
{
	struct ledger_cron_tick tick = { "backup", scheduled_s, state, run, "", 7 };

	return ledger_cron_tick_put(ledger, &tick, err);
}

static void test_each_tick_once(void **state)
{
	struct ledger_cron_tick tick;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(put(60, "submitted", "backup-1", &err), 0);
	assert_int_equal(put(60, "submitted", "backup-2", &err), -1);
	assert_int_equal(err.code, ERR_LOCKED);
	assert_int_equal(ledger_cron_tick_newest(ledger, "backup", "", &tick, NULL), 0);
	assert_string_equal(tick.run, "backup-1");
	assert_int_equal(ledger_commit(ledger, NULL), 0);
}

static void test_a_waiting_tick_is_settled_once(void **state)
{
	struct ledger_cron_tick tick;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(put(120, "waiting", "", &err), 0);
	assert_int_equal(put(180, "waiting", "", &err), 0);
	assert_int_equal(ledger_cron_tick_waiting(ledger, "backup", &tick, NULL), 0);
	assert_int_equal(tick.scheduled_s, 120);
	assert_int_equal(put(120, "submitted", "backup-3", &err), 0);
	assert_int_equal(put(120, "skipped", "", &err), -1);
	assert_int_equal(ledger_cron_tick_waiting(ledger, "backup", &tick, NULL), 0);
	assert_int_equal(tick.scheduled_s, 180);
	assert_int_equal(ledger_cron_tick_newest(ledger, "backup", "submitted", &tick, NULL), 0);
	assert_string_equal(tick.run, "backup-3");
	assert_int_equal(ledger_cron_tick_newest(ledger, "other", "", &tick, &err), -1);
}

/* What is pruned after a month must not make a monthly job look as if it had never worked. */
static void test_success_outlives_its_run(void **state)
{
	struct ledger_removal removal = { .name = "r1", .dir = "/runs/r1", .time_ms = 1 }, next;
	struct ledger_run run;
	struct ledger_cron_tick tick;
	struct err err = { 0 };
	int64_t id = 0, note_id = 0;
	const struct ledger_run fresh = {
		.name = "r1",
		.owner = "ada",
		.state = RUN_RUNNING,
		.text = "",
		.scheduler = "local",
		.dir = "/runs/r1",
		.wanted_by = "",
		.wanted_reason = "",
	};

	(void)state;
	assert_int_equal(ledger_run_insert(ledger, &fresh, &id, NULL), 0);
	assert_int_equal(ledger_commit(ledger, NULL), 0);
	assert_int_equal(put(60, "submitted", "r1", NULL), 0);
	assert_int_equal(ledger_run_remove(ledger, id, &removal, &note_id, &err), -1);
	assert_string_equal(err.text, "it is not over");
	ledger_rollback(ledger);
	assert_int_equal(ledger_run_find(ledger, "r1", &run, NULL), 0);
	assert_int_equal(put(60, "submitted", "r1", NULL), 0);
	assert_int_equal(ledger_run_move(ledger, id, RUN_RUNNING, RUN_COMPLETED, CAUSE_COMPLETED,
					 "", 9, NULL),
			 0);
	assert_int_equal(ledger_run_remove(ledger, id, &removal, &note_id, NULL), 0);
	assert_int_equal(ledger_commit(ledger, NULL), 0);
	assert_int_equal(ledger_run_find(ledger, "r1", &run, NULL), -1);
	assert_int_equal(ledger_cron_tick_succeeded(ledger, "backup", &tick, NULL), 0);
	assert_int_equal(tick.scheduled_s, 60);
	assert_int_equal(ledger_removal_next(ledger, 0, &next, NULL), 0);
	assert_int_equal(next.id, note_id);
	assert_string_equal(next.dir, "/runs/r1");
	assert_int_equal(ledger_removal_done(ledger, note_id, NULL), 0);
	assert_int_equal(ledger_removal_next(ledger, 0, &next, NULL), -1);
}

static void test_a_thousand_are_kept(void **state)
{
	struct ledger_cron_tick tick;

	(void)state;
	assert_int_equal(put(0, "skipped", "", NULL), 0);
	for (int i = 1; i <= 1000; i++)
		assert_int_equal(put(60 * i, "submitted", "x", NULL), 0);
	assert_int_equal(ledger_cron_tick_newest(ledger, "backup", "skipped", &tick, NULL), -1);
	assert_int_equal(put(0, "skipped", "", NULL), 0); /* it had been forgotten */
}

static int note_run(const struct ledger_cron_tick *tick, void *arg)
{
	*(int *)arg += strcmp(tick->run, "kept") == 0;
	return 0;
}

/* A run that is there is a periodic job's for as long as it is there. */
static void test_whose_run_it_is_stays_known(void **state)
{
	const struct ledger_run kept = {
		.name = "kept",
		.owner = "ada",
		.state = RUN_COMPLETED,
		.text = "",
		.scheduler = "local",
		.dir = "/runs/kept",
		.wanted_by = "",
		.wanted_reason = "",
	};
	int64_t id;
	int found = 0;

	(void)state;
	assert_int_equal(ledger_run_insert(ledger, &kept, &id, NULL), 0);
	assert_int_equal(put(0, "submitted", "kept", NULL), 0);
	for (int i = 1; i <= 1100; i++)
		assert_int_equal(put(60 * i, "submitted", "x", NULL), 0);
	assert_int_equal(ledger_cron_tick_runs(ledger, note_run, &found, NULL), 0);
	assert_int_equal(found, 1);
}

static int note(const struct ledger_cron_entry *entry, void *arg)
{
	char *text = arg;

	snprintf(text + strlen(text), 100, "%s %d %s;", entry->name, (int)entry->seen_s,
		 entry->disabled_by);
	return 0;
}

static void test_entries(void **state)
{
	struct ledger_cron_entry b = { "b", 60, "" }, a = { "a", 5, "ann" };
	char text[256] = "";

	(void)state;
	assert_int_equal(ledger_cron_entry_put(ledger, &b, NULL), 0);
	assert_int_equal(ledger_cron_entry_put(ledger, &a, NULL), 0);
	b.seen_s = 120;
	assert_int_equal(ledger_cron_entry_put(ledger, &b, NULL), 0);
	assert_int_equal(ledger_cron_entry_each(ledger, note, text, NULL), 0);
	assert_string_equal(text, "a 5 ann;b 120 ;");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_each_tick_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_waiting_tick_is_settled_once, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_success_outlives_its_run, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_thousand_are_kept, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_whose_run_it_is_stays_known, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_entries, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
