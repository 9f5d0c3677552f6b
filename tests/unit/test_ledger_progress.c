/* SPDX-License-Identifier: MIT */
/* test_ledger_progress.c - checkpoints, metrics, events and nodes in the ledger. */
#include "tests/unit/ledger_home.h"

#include "sql/metric_batch.h"

/* --- checkpoints, metrics, events, nodes ------------------------------------------------------ */
static void the_newest_valid_checkpoint(void **state)
{
	static const struct {
		int64_t step;
		const char *path;
		bool valid;
		int64_t newest; /* step of the newest, this one put */
	} cases[] = {
		{ 10, "a", false, 10 }, { 20, "b", false, 20 }, { 5, "c", true, 5 },
		{ 30, "d", false, 5 },  { 10, "a", true, 10 },  { 10, "a", false, 5 },
		{ 5, "c", false, 30 },
	};
	struct ledger *l = open_ledger();
	int64_t run = add_run(l, "r", RUN_RUNNING);
	struct ledger_checkpoint c;
	struct err err = { 0 };
	size_t i;

	(void)state;
	assert_int_equal(ledger_checkpoint_newest(l, run, &c, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	err_clear(&err);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		c = (struct ledger_checkpoint){ .run_id = run,
						.step = cases[i].step,
						.attempt = 2,
						.path = cases[i].path,
						.valid = cases[i].valid,
						.text = "why",
						.time_ms = 8 };
		ok(ledger_checkpoint_put(l, &c, &err), &err);
		ok(ledger_checkpoint_newest(l, run, &c, &err), &err);
		assert_int_equal(c.step, cases[i].newest);
	}
	assert_string_equal(c.path, "d");
	assert_string_equal(c.text, "why");
	assert_int_equal(c.attempt, 2);
	assert_int_equal(c.time_ms, 8);
	assert_false(c.valid);
	commit(l);
	ledger_close(l);
	assert_int_equal(ask_int("SELECT count(*) FROM checkpoints"), 4);
}

static int see_metric(const struct ledger_metric *m, void *arg)
{
	struct seen *seen = arg;

	assert_int_equal(m->launch, 1);
	assert_int_equal(m->step, m->seq * 10);
	assert_int_equal(m->time_ms, 99);
	assert_same_number(m->loss, 0.5);
	assert_string_equal(m->fields, "{\"lr\":0.1}");
	seen->ids[seen->count++] = m->id;
	return seen->count == seen->stop_at;
}

static void a_metric_counts_once(void **state)
{
	struct ledger *l = open_ledger();
	int64_t run = add_run(l, "r", RUN_RUNNING), other = add_run(l, "o", RUN_RUNNING), last;
	int64_t a1 = add_attempt(l, run, 1), a2 = add_attempt(l, run, 2);
	int64_t b1 = add_attempt(l, other, 1);
	struct ledger_metric again = {
		.run_id = run, .attempt_id = a1, .seq = 1, .step = 999, .fields = "{\"late\":1}"
	};
	struct seen seen = { 0 }, rest = { 0 };
	struct err err = { 0 };

	(void)state;
	ok(ledger_metric_last(l, run, &last, &err), &err);
	assert_int_equal(last, 0);
	ok(put_metric(l, run, a1, 1, &err), &err);
	ok(put_metric(l, other, b1, 1, &err), &err);
	ok(put_metric(l, run, a1, 2, &err), &err);
	ok(put_metric(l, run, a1, 2, &err), &err);
	commit(l);
	ok(ledger_metric_put(l, &again, &err), &err);
	ok(put_metric(l, run, a2, 1, &err), &err);
	commit(l);
	ok(ledger_metric_each(l, run, 0, 100, see_metric, &seen, &err), &err);
	assert_int_equal(seen.count, 3);
	assert_true(seen.ids[0] < seen.ids[1] && seen.ids[1] < seen.ids[2]);
	ok(ledger_metric_each(l, run, seen.ids[0], 1, see_metric, &rest, &err), &err);
	assert_int_equal(rest.count, 1);
	assert_int_equal(rest.ids[0], seen.ids[1]);
	ok(ledger_metric_last(l, run, &last, &err), &err);
	assert_int_equal(last, seen.ids[2]);
	rest = (struct seen){ .stop_at = 1 };
	assert_int_equal(ledger_metric_each(l, run, 0, 100, see_metric, &rest, &err), -1);
	assert_int_equal(err.code, ERR_NONE);
	ledger_close(l);
}

static void a_metric_without_loss(void **state)
{
	struct ledger *l = open_ledger();
	int64_t run = add_run(l, "r", RUN_RUNNING), attempt = add_attempt(l, run, 1);
	struct ledger_metric m = {
		.run_id = run, .attempt_id = attempt, .seq = 1, .loss = NAN, .fields = "{}"
	};
	struct err err = { 0 };

	(void)state;
	ok(ledger_metric_put(l, &m, &err), &err);
	commit(l);
	ledger_close(l);
	assert_int_equal(ask_int("SELECT count(*) FROM metrics WHERE loss IS NULL"), 1);
}

struct points {
	int64_t count, first, last, widest; /* gap between two neighbours */
	int64_t dense;                      /* neighbouring steps at the end */
};

static int see_point(const struct ledger_metric *m, void *arg)
{
	struct points *p = arg;
	int64_t gap = m->step - p->last;

	if (p->count++ == 0)
		p->first = m->step;
	else if (gap > p->widest)
		p->widest = gap;
	p->dense = gap == 1 ? p->dense + 1 : 1;
	p->last = m->step;
	return 0;
}

/* Far more steps than there is room for, thinned as the ingest does it. */
static void the_metrics_of_a_long_run_are_thinned(void **state)
{
	enum { STEPS = 60000, BATCH = 500 };
	struct ledger *l = open_ledger();
	int64_t run = add_run(l, "r", RUN_RUNNING), other = add_run(l, "o", RUN_RUNNING);
	int64_t a = add_attempt(l, run, 1), b = add_attempt(l, other, 1);
	struct ledger_metric m = { .run_id = run, .attempt_id = a, .fields = "{}" };
	struct points p = { 0 }, q = { 0 };
	struct err err = { 0 };

	(void)state;
	for (int i = 0; i < LEDGER_METRICS_MAX; i++)
		ok(put_metric(l, other, b, i, &err), &err);
	for (m.step = m.seq = 1; m.step <= STEPS; m.step = ++m.seq) {
		ok(ledger_metric_put(l, &m, &err), &err);
		if (m.step % BATCH == 0)
			ok(ledger_metric_thin(l, run, &err), &err);
	}
	commit(l);
	ok(ledger_metric_each(l, run, 0, STEPS, see_point, &p, &err), &err);
	assert_in_range(p.count, LEDGER_METRICS_DENSE + 1000, LEDGER_METRICS_MAX - BATCH);
	assert_in_range(p.first, 1, 32);
	assert_int_equal(p.last, STEPS);
	assert_true(p.dense >= LEDGER_METRICS_DENSE);
	assert_in_range(p.widest, 2, 64); /* nowhere a hole: stretches of 32 steps */
	ok(ledger_metric_each(l, other, 0, STEPS, see_point, &q, &err), &err);
	assert_int_equal(q.count, LEDGER_METRICS_MAX); /* nobody else's */
	ledger_close(l);
}

/* So many lines at once that most of their points would be left out again: they never go in, and
 * what remains is as if they had. */
static void many_points_at_once(void **state)
{
	enum { STEPS = 60000 };
	struct ledger *l = open_ledger();
	int64_t run = add_run(l, "r", RUN_RUNNING), a = add_attempt(l, run, 1);
	struct ledger_metric m = { .run_id = run, .attempt_id = a };
	struct metric_batch batch = { 0 };
	struct points p = { 0 };
	struct err err = { 0 };
	char text[32];

	(void)state;
	ok(metric_batch_write(&batch, l, &err), &err); /* none */
	for (m.step = m.seq = 1; m.step <= STEPS; m.step = ++m.seq) {
		int len = snprintf(text, sizeof(text), "{\"step\":%lld}", (long long)m.step);

		metric_batch_add(&batch, &m, text, (size_t)len);
		assert_in_range(batch.count, 1, LEDGER_METRICS_MAX);
	}
	ok(metric_batch_write(&batch, l, &err), &err);
	assert_int_equal(batch.count, 0);
	ok(ledger_metric_thin(l, run, &err), &err);
	commit(l);
	ok(ledger_metric_each(l, run, 0, STEPS, see_point, &p, &err), &err);
	assert_in_range(p.count, LEDGER_METRICS_DENSE + 1000, LEDGER_METRICS_MAX);
	assert_in_range(p.first, 1, 32);
	assert_int_equal(p.last, STEPS);
	assert_true(p.dense >= LEDGER_METRICS_DENSE);
	assert_in_range(p.widest, 2, 64);
	ledger_close(l);
	assert_int_equal(
		ask_int("SELECT count(*) FROM metrics WHERE fields <> '{\"step\":' || step || '}'"),
		0);
}

static int see_event(const struct ledger_event *e, void *arg)
{
	struct seen *seen = arg;
	size_t len = strlen(seen->names);

	assert_int_equal(e->time_ms, 1234);
	assert_string_equal(e->actor, "lbd");
	assert_string_equal(e->text, "text");
	assert_int_equal(e->attempt, 3);
	seen->ids[seen->count++] = e->id;
	snprintf(seen->names + len, sizeof(seen->names) - len, "%s:%lld:%s ", e->kind,
		 (long long)e->run_id, e->run);
	return 0;
}

static void events_of_one_run_and_of_all(void **state)
{
	struct ledger *l = open_ledger();
	struct ledger_event e = { .time_ms = 1234, .actor = "lbd", .text = "text", .attempt = 3 };
	struct seen all = { 0 }, one = { 0 }, rest = { 0 };
	struct err err = { 0 };

	(void)state;
	add_run(l, "a", RUN_RUNNING);
	add_run(l, "b", RUN_RUNNING);
	e.kind = "started";
	ok(ledger_event_put(l, &e, &err), &err);
	e.kind = "queued";
	for (e.run_id = 1; e.run_id <= 2; e.run_id++)
		ok(ledger_event_put(l, &e, &err), &err);
	e.kind = "running";
	e.run_id = 1;
	ok(ledger_event_put(l, &e, &err), &err);
	ok(ledger_event_each(l, 0, 0, 100, see_event, &all, &err), &err);
	assert_string_equal(all.names, "started:0: queued:1:a queued:2:b running:1:a ");
	ok(ledger_event_each(l, 1, 0, 100, see_event, &one, &err), &err);
	assert_string_equal(one.names, "queued:1:a running:1:a ");
	ok(ledger_event_each(l, 0, all.ids[1], 1, see_event, &rest, &err), &err);
	assert_string_equal(rest.names, "queued:2:b ");
	e.run_id = 99;
	assert_int_equal(ledger_event_put(l, &e, &err), -1);
	assert_int_equal(err.code, ERR_INTERNAL);
	ledger_close(l);
}

static void nodes_are_remembered(void **state)
{
	struct ledger *l = open_ledger();
	struct err err = { 0 };
	char row[96];
	unsigned cause;

	(void)state;
	for (cause = CAUSE_COMPLETED; cause < CAUSE_COUNT; cause++)
		ok(ledger_node_attempt_ended(l, "n1", (enum cause)cause, cause, &err), &err);
	commit(l);
	ledger_close(l);
	ask("SELECT format('%d %d %s %d %d', attempts, suspect, last_cause, last_ms, suspect_ms)"
	    " FROM nodes WHERE name = 'n1'",
	    row, sizeof(row));
	assert_string_equal(row, "12 4 lost 12 9");
}

/* A node may be mistrusted before any attempt has ended on it. */
static void a_node_can_be_known_first(void **state)
{
	struct ledger *l = open_ledger();
	struct err err = { 0 };
	char row[96];

	(void)state;
	assert_int_equal(ledger_node_set_score(l, "n2", 1, 0.5, 5, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	err = (struct err){ 0 };
	ok(ledger_node_know(l, "n2", 5, &err), &err);
	ok(ledger_node_set_score(l, "n2", 1, 0.5, 5, &err), &err);
	ok(ledger_node_attempt_ended(l, "n2", CAUSE_CRASH, 7, &err), &err);
	ok(ledger_node_know(l, "n2", 9, &err), &err); /* nothing changes any more */
	commit(l);
	ledger_close(l);
	ask("SELECT format('%d %d %s %d %.1f %d', attempts, suspect, last_cause, last_ms, score, "
	    "score_ms) FROM nodes WHERE name = 'n2'",
	    row, sizeof(row));
	assert_string_equal(row, "1 1 crash 7 1.0 5");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(the_newest_valid_checkpoint), TEST(a_metric_counts_once),
		TEST(a_metric_without_loss),       TEST(the_metrics_of_a_long_run_are_thinned),
		TEST(many_points_at_once),         TEST(events_of_one_run_and_of_all),
		TEST(nodes_are_remembered),        TEST(a_node_can_be_known_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
