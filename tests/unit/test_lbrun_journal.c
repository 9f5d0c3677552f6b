/* SPDX-License-Identifier: MIT */
/* test_lbrun_journal.c - the spool on an ill disk: what fails once is tried again, and then lines
 * are taken as before. */
#include "tests/unit/unit.h"

#include "common/base/clock.h"
#include "common/base/failpoint.h"
#include "common/base/json.h"
#include "worker/lbrun/trainer/journal.h"

enum { LONG_MS = 3600 * 1000 };

static void fail_once_at(const char *point)
{
	struct err err = { 0 };

	setenv("LB_FAILPOINT", point, 1);
	assert_int_equal(failpoint_init("lbrun", &err), 0);
	unsetenv("LB_FAILPOINT");
}

static int64_t tell(struct journal *j)
{
	json_t *line = json_pack("{s:s, s:i}", "type", "step", "step", 1);
	struct err err = { 0 };
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
	j.retry_ms = clock_mono_ms() + LONG_MS;
	assert_int_equal(tell(&j), 0); /* one try a second; kept */
	j.retry_ms = clock_mono_ms() + JOURNAL_RETRY_MS;
	assert_true(journal_next_ms(&j) <= clock_mono_ms() + JOURNAL_RETRY_MS);
	journal_turn(&j, clock_mono_ms() + JOURNAL_RETRY_MS);
	assert_int_equal(tell(&j), 3);
	assert_true(journal_sync(&j));
	journal_close(&j);
}

static void after_a_failed_write(void **state)
{
	struct journal j;

	(void)state;
	fail_once_at("spool.before:error@2");
	journal_open(&j, "write.jsonl", NULL, "run");
	assert_int_equal(j.failed_ms, INT64_MIN);
	assert_int_equal(tell(&j), 1);
	assert_int_equal(tell(&j), 0);
	assert_true(j.failed_ms > INT64_MIN);
	journal_turn(&j, clock_mono_ms() + JOURNAL_RETRY_MS);
	assert_int_equal(tell(&j), 3);
	journal_close(&j);
}

static const char *said;

static void hear(void *arg, const char *text)
{
	(void)arg;
	said = strstr(text, "too many") ? "too many" : said;
}

struct seen {
	int64_t lines, step;
	char refused[300];
};

static int see(const struct spool_line *line, void *arg)
{
	struct seen *seen = arg;

	assert_int_equal(line->seq, ++seen->lines);
	if (line->from_trainer)
		assert_int_equal(js_int(line->line, "step", -1), seen->step++);
	else
		snprintf(seen->refused, sizeof(seen->refused), "%s",
			 js_str(line->line, "text", ""));
	return 0;
}

static int64_t tell_step(struct journal *j, int64_t step)
{
	json_t *line = json_pack("{s:s, s:I}", "type", "step", "step", (json_int_t)step);
	int64_t seq = journal_trainer(j, 1, line, NULL);

	json_decref(line);
	return seq;
}

/* All that fits is kept and written in order, once; how many did not is written behind it. */
static void more_than_is_kept(void **state)
{
	struct seen seen = { 0 };
	struct journal j;
	int64_t offset = 0;

	(void)state;
	fail_once_at("spool.before:error");
	journal_open(&j, "full.jsonl", NULL, "run");
	j.say = hear;
	assert_int_equal(tell_step(&j, 0), 0);
	j.retry_ms = clock_mono_ms() + LONG_MS; /* however slow this machine is */
	for (int64_t step = 1; step < JOURNAL_KEPT_LINES; step++)
		assert_int_equal(tell_step(&j, step), 0);
	assert_null(said);
	for (int i = 0; i < 7; i++)
		assert_int_equal(tell_step(&j, -1), -1);
	assert_string_equal(said, "too many");
	journal_turn(&j, clock_mono_ms() + LONG_MS);
	while (spool_read("full.jsonl", &offset, INT64_MAX, see, NULL, &seen, NULL) > 0)
		continue;
	assert_int_equal(seen.step, JOURNAL_KEPT_LINES);
	assert_non_null(strstr(seen.refused, "7 lines of the trainer"));
	assert_int_equal(tell_step(&j, JOURNAL_KEPT_LINES), JOURNAL_KEPT_LINES + 2);
	journal_close(&j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(after_a_failed_sync),
		cmocka_unit_test(after_a_failed_write),
		cmocka_unit_test(more_than_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
