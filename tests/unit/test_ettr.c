/* SPDX-License-Identifier: MIT */
/* test_ettr.c - the arithmetic of ETTR, by months whose outcome one can tell by hand: for the
 * account, for the two peers, and for lbd's real engine. */
#include "tests/unit/unit.h"

#include "common/base/log.h"
#include "tests/sim/ettr/lbd_month.h"
#include "tests/sim/ettr/peers.h"

enum { INTERVAL = 30 * MINUTE, START = 5 * MINUTE, OVERHEAD = 10 * SECOND };

static const struct circumstances plain = {
	.start_ms = START,
	.interval_ms = INTERVAL,
	.repair_ms = 4 * HOUR,
	.person_ms = HOUR,
};

static struct month month_of(const struct circumstances *c, struct trouble_at *troubles,
			     size_t count)
{
	struct month m = { .c = *c, .seed = 1, .troubles = troubles, .count = count };

	for (int i = 0; i < NODE_COUNT; i++)
		m.order[i] = i;
	return m;
}

static int64_t sum(const struct account *a)
{
	int64_t ms = 0;

	for (int i = 0; i < WHERE_COUNT; i++)
		ms += a->ms[i];
	return ms;
}

static struct account lived(const struct peer *peer, const struct month *m)
{
	struct account a = { 0 };

	if (peer)
		peer_live(peer, m, &a);
	else
		lbd_live(m, &lbd_by_default, &a, NULL);
	assert_int_equal(sum(&a), MONTH_MS);
	return a;
}

/* lbd's own time for a submission, and to see that a job is over. */
static void about(int64_t got_ms, int64_t want_ms, int64_t more_ms)
{
	if (got_ms < want_ms || got_ms > want_ms + more_ms)
		fail_msg("%lld ms, not %lld to %lld", (long long)got_ms, (long long)want_ms,
			 (long long)(want_ms + more_ms));
}

/* --- the account
 * ---------------------------------------------------------------------------------- */

static void work_and_checkpoints_take_turns(void **state)
{
	static const struct {
		int64_t from, to, kept, saving, redone; /* minutes; interval 30, saving 2 */
		bool is_torn;
	} rows[] = {
		{ 0, 0, 0, 0, 0, false },    { 10, 30, 0, 0, 20, false },
		{ 10, 40, 0, 0, 30, false }, { 0, 31, 0, 1, 30, true },
		{ 0, 32, 30, 2, 0, false },  { 0, 100, 90, 6, 4, false },
		{ 5, 132, 90, 7, 30, true },
	};
	struct circumstances c = { .interval_ms = 30 * MINUTE, .save_ms = 2 * MINUTE };

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct account a = { 0 };
		bool torn = account_train(&a, &c, TROUBLE_OWN, rows[i].from * MINUTE,
					  rows[i].to * MINUTE);

		assert_int_equal(torn, rows[i].is_torn);
		assert_int_equal(a.ms[WHERE_KEPT], rows[i].kept * MINUTE);
		assert_int_equal(a.ms[WHERE_SAVING], rows[i].saving * MINUTE);
		assert_int_equal(a.ms[WHERE_REDONE], rows[i].redone * MINUTE);
		assert_int_equal(a.lost_ms[TROUBLE_OWN], rows[i].redone * MINUTE);
		assert_int_equal(sum(&a), (rows[i].to - rows[i].from) * MINUTE);
	}
}

/* Interval 30, copies 2, drained 10 minutes later: 100 minutes are three rounds and four
 * minutes. */
static void what_is_not_drained_goes_with_its_nodes(void **state)
{
	struct circumstances c = { .interval_ms = 30 * MINUTE,
				   .save_ms = 2 * MINUTE,
				   .drain_ms = 10 * MINUTE };
	struct account gone = { 0 }, outlived = { 0 };

	(void)state;
	account_train(&gone, &c, TROUBLE_NODE, 0, 100 * MINUTE);
	assert_int_equal(gone.ms[WHERE_KEPT], 60 * MINUTE);
	assert_int_equal(gone.ms[WHERE_REDONE], 34 * MINUTE);
	assert_int_equal(gone.ms[WHERE_SAVING], 6 * MINUTE);
	account_train(&outlived, &c, TROUBLE_HANG, 0, 100 * MINUTE);
	assert_int_equal(outlived.ms[WHERE_KEPT], 90 * MINUTE);
	assert_int_equal(sum(&outlived), 100 * MINUTE);
}

static void what_goes_on_at_the_end_is_kept(void **state)
{
	struct circumstances c = { .interval_ms = 30 * MINUTE, .save_ms = 2 * MINUTE };
	struct account a = { 0 };

	(void)state;
	assert_false(account_train(&a, &c, TROUBLE_NONE, MONTH_MS - 42 * MINUTE, MONTH_MS));
	assert_int_equal(a.ms[WHERE_KEPT], 40 * MINUTE);
	assert_int_equal(a.ms[WHERE_REDONE], 0);
	account_span(&a, WHERE_WAIT, TROUBLE_OWN, MONTH_MS - MINUTE, MONTH_MS + HOUR);
	assert_int_equal(a.ms[WHERE_WAIT], MINUTE);
	assert_int_equal(a.lost_ms[TROUBLE_OWN], MINUTE);
}

/* --- months
 * ---------------------------------------------------------------------------------------- */

static void without_troubles_only_the_start_is_lost(void **state)
{
	struct month m = month_of(&plain, NULL, 0);
	struct account chain = lived(&peer_chain, &m), lbd = lived(NULL, &m);
	double want = (double)(MONTH_MS - START) / (double)MONTH_MS;

	(void)state;
	assert_int_equal(chain.ms[WHERE_KEPT], MONTH_MS - START);
	assert_float_equal(account_ettr(&chain), want, 1e-12);
	about(MONTH_MS - lbd.ms[WHERE_KEPT], START, OVERHEAD);
	assert_int_equal(lbd.ms[WHERE_REDONE] + lbd.ms[WHERE_NOTICE], 0);
}

static void checkpoints_and_the_queue_cost_what_they_take(void **state)
{
	struct circumstances c = plain;
	struct month m;
	struct account chain, lbd;
	int64_t training_ms, rounds, saving_ms, queue_ms;

	(void)state;
	c.save_ms = 2 * MINUTE;
	c.queue_ms = 10 * MINUTE;
	m = month_of(&c, NULL, 0);
	queue_ms = month_queue_ms(&m, 0);
	assert_true(queue_ms > 0);
	training_ms = MONTH_MS - START - queue_ms;
	rounds = training_ms / (INTERVAL + c.save_ms);
	saving_ms = rounds * c.save_ms;
	if (training_ms % (INTERVAL + c.save_ms) > INTERVAL)
		saving_ms += training_ms % (INTERVAL + c.save_ms) - INTERVAL;
	chain = lived(&peer_chain, &m);
	lbd = lived(NULL, &m);
	assert_int_equal(chain.ms[WHERE_WAIT], queue_ms);
	assert_int_equal(chain.ms[WHERE_SAVING], saving_ms);
	assert_int_equal(chain.ms[WHERE_KEPT], training_ms - saving_ms);
	about(lbd.ms[WHERE_WAIT], queue_ms, OVERHEAD);
	about(training_ms - saving_ms - lbd.ms[WHERE_KEPT], 0, OVERHEAD);
}

/* Ten hours and ten minutes after the start: the last checkpoint is five minutes old. */
static void a_trouble_costs_what_was_not_saved_and_what_follows(void **state)
{
	static const struct {
		enum trouble kind;
		int64_t requeue_s, chain_s, lbd_s; /* besides 5 min redone and two starts */
		int64_t lbd_more_s;
	} rows[] = {
		{ TROUBLE_OWN, 120, 0, 0, 10 },
		{ TROUBLE_HANG, 600 + 120, 600, 60, 10 },
		/* another job: lbd sees within a look at the spool that it is needed */
		{ TROUBLE_NODE, 300 + 120, 300, 300, 60 },
		{ TROUBLE_GPU, 120, 0, 0, 60 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct trouble_at t = { 10 * (int64_t)HOUR + 10 * MINUTE, 5, rows[i].kind };
		struct month m = month_of(&plain, &t, 1);
		struct account requeue = lived(&peer_requeue, &m), chain = lived(&peer_chain, &m),
			       lbd = lived(NULL, &m);
		int64_t lost_ms = 5 * MINUTE + 2 * START;

		assert_int_equal(MONTH_MS - requeue.ms[WHERE_KEPT],
				 lost_ms + rows[i].requeue_s * SECOND);
		assert_int_equal(MONTH_MS - chain.ms[WHERE_KEPT],
				 lost_ms + rows[i].chain_s * SECOND);
		assert_int_equal(chain.lost_ms[rows[i].kind],
				 lost_ms - START + rows[i].chain_s * SECOND);
		about(MONTH_MS - lbd.ms[WHERE_KEPT], lost_ms + rows[i].lbd_s * SECOND,
		      rows[i].lbd_more_s * SECOND + OVERHEAD);
		assert_int_equal(lbd.count[rows[i].kind], 1);
		assert_int_equal(chain.count[rows[i].kind], 1);
	}
}

static void a_torn_checkpoint_stops_the_peers_only(void **state)
{
	struct circumstances c = plain;
	struct trouble_at t = { START + INTERVAL + MINUTE, 5, TROUBLE_OWN };
	struct month m;
	struct account chain, lbd;

	(void)state;
	c.save_ms = 2 * MINUTE;
	m = month_of(&c, &t, 1);
	chain = lived(&peer_chain, &m);
	lbd = lived(NULL, &m);
	assert_int_equal(chain.count[TROUBLE_TORN], 1);
	assert_int_equal(chain.lost_ms[TROUBLE_TORN], c.person_ms + START);
	assert_int_equal(lbd.count[TROUBLE_TORN], 0);
	assert_int_equal(lbd.ms[WHERE_REDONE], INTERVAL);
}

/* A node that breaks its GPU again every six hours: lbd's next job is without it, and stays so. */
static void lbd_leaves_a_bad_node(void **state)
{
	enum { OFTEN = 100 };
	struct trouble_at list[OFTEN];
	struct month m;
	struct account chain, lbd;

	(void)state;
	for (int i = 0; i < OFTEN; i++)
		list[i] = (struct trouble_at){ (i + 1) * 6 * (int64_t)HOUR, 7, TROUBLE_GPU };
	m = month_of(&plain, list, OFTEN);
	chain = lived(&peer_chain, &m);
	lbd = lived(NULL, &m);
	assert_int_equal(chain.count[TROUBLE_GPU], OFTEN);
	assert_int_equal(lbd.count[TROUBLE_GPU], 1);
}

/* Once a job has shown that the queue is long, the one behind it waits in line already: where no
 * other nodes are to be avoided than before, it begins at once. */
static void the_next_job_has_waited_in_line(void **state)
{
	struct lbd_abilities can = lbd_by_default;
	struct circumstances c = plain;
	int64_t waited_ms[2];

	(void)state;
	log_init("test_ettr", LOG_LEVEL_ERROR); /* each that is made anew would be told of */
	c.per_node_day = 0.05;
	c.queue_ms = 20 * MINUTE;
	for (int ages = 0; ages < 2; ages++) {
		struct account a = { 0 };
		struct month m;

		month_draw(&m, &c, 7);
		can.ages_held = ages;
		lbd_live(&m, &can, &a, NULL);
		assert_true(account_ettr(&a) > 0.5 && account_ettr(&a) < 1);
		waited_ms[ages] = a.ms[WHERE_WAIT];
		month_fini(&m);
	}
	assert_true(waited_ms[1] < waited_ms[0]);
}

/* A lost node: known sooner by heartbeats, and a spare spares the queue. */
static void a_spare_takes_its_place(void **state)
{
	struct lbd_abilities can = lbd_by_default;
	struct circumstances c = plain;
	int64_t noticed_ms[3], waited_ms[3];

	(void)state;
	c.per_node_day = 0.05;
	c.queue_ms = 20 * MINUTE;
	for (int way = 0; way < 3; way++) {
		struct account a = { 0 };
		struct month m;

		month_draw(&m, &c, 7);
		can.heard_ms = way > 0 ? 30 * SECOND : 0;
		can.spares = way > 1 ? 2 : 0;
		lbd_live(&m, &can, &a, NULL);
		assert_int_equal(sum(&a), MONTH_MS);
		noticed_ms[way] = a.ms[WHERE_NOTICE];
		waited_ms[way] = a.ms[WHERE_WAIT];
		month_fini(&m);
	}
	assert_true(noticed_ms[1] < noticed_ms[0] / 2);
	assert_true(waited_ms[2] < waited_ms[1] / 2);
}

static void no_time_is_lost_or_counted_twice(void **state)
{
	struct circumstances c = plain;

	(void)state;
	c.per_node_day = 0.05;
	c.launch_failure = 0.05;
	c.queue_ms = 5 * MINUTE;
	c.save_ms = 40 * SECOND;
	for (uint64_t seed = 1; seed <= 4; seed++) {
		struct month m;
		struct account a;

		month_draw(&m, &c, seed);
		a = lived(&peer_requeue, &m);
		assert_true(account_ettr(&a) > 0.5 && account_ettr(&a) < 1);
		a = lived(NULL, &m);
		assert_true(account_ettr(&a) > 0.5 && account_ettr(&a) < 1);
		month_fini(&m);
	}
}

static void a_month_has_the_rate_that_was_asked_for(void **state)
{
	enum { MONTHS = 400 };
	struct circumstances c = plain;
	double want = 0.02 * NODE_COUNT * 30, troubles = 0, of_lemons = 0;

	(void)state;
	c.per_node_day = 0.02;
	for (uint64_t seed = 1; seed <= MONTHS; seed++) {
		struct month m;

		month_draw(&m, &c, seed);
		troubles += (double)m.count;
		for (size_t i = 0; i < m.count; i++)
			of_lemons += m.troubles[i].node < LEMONS;
		month_fini(&m);
	}
	assert_float_equal(troubles / MONTHS, want, 0.05 * want);
	assert_float_equal(of_lemons / troubles, 0.5, 0.02);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(work_and_checkpoints_take_turns),
		cmocka_unit_test(what_is_not_drained_goes_with_its_nodes),
		cmocka_unit_test(what_goes_on_at_the_end_is_kept),
		cmocka_unit_test(without_troubles_only_the_start_is_lost),
		cmocka_unit_test(checkpoints_and_the_queue_cost_what_they_take),
		cmocka_unit_test(a_trouble_costs_what_was_not_saved_and_what_follows),
		cmocka_unit_test(a_torn_checkpoint_stops_the_peers_only),
		cmocka_unit_test(lbd_leaves_a_bad_node),
		cmocka_unit_test(the_next_job_has_waited_in_line),
		cmocka_unit_test(a_spare_takes_its_place),
		cmocka_unit_test(no_time_is_lost_or_counted_twice),
		cmocka_unit_test(a_month_has_the_rate_that_was_asked_for),
	};

	log_init("test_ettr", LOG_LEVEL_WARN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
