/* SPDX-License-Identifier: MIT */
/* test_lbrun_heartbeat.c - a datagram, a lease, who is silent; and worlds in which datagrams are
 * lost and delayed and either side is frozen: no rank runs once its node was called lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "worker/lbrun/heartbeat/beat.h"

enum { TIMEOUT = 8000, LEASE = 5000, EVERY = 1000 };

static const unsigned char secret[BEAT_SECRET_BYTES] = "sixteen  bytes.";
static const struct sockaddr_in nowhere = { .sin_family = AF_INET };

static void test_datagram(void **state)
{
	static const struct beat full = { .kind = BEAT_ALIVE,
					  .launch = 3,
					  .rank = 4095,
					  .ranks = 4096,
					  .sent_ms = INT64_C(1) << 40,
					  .node = "gpu-node-001" };
	unsigned char data[BEAT_BYTES + 1], other[BEAT_SECRET_BYTES] = "sixteen  bytes?";
	struct beat read;

	(void)state;
	beat_write(&full, secret, data);
	assert_true(beat_read(data, BEAT_BYTES, secret, &read));
	assert_int_equal(read.kind, full.kind);
	assert_int_equal(read.launch, full.launch);
	assert_int_equal(read.rank, full.rank);
	assert_int_equal(read.ranks, full.ranks);
	assert_int_equal(read.sent_ms, full.sent_ms);
	assert_string_equal(read.node, full.node);
	assert_false(beat_read(data, BEAT_BYTES - 1, secret, &read));
	assert_false(beat_read(data, BEAT_BYTES + 1, secret, &read));
	assert_false(beat_read(data, BEAT_BYTES, other, &read));
	for (size_t at = 0; at < 8; at++) { /* another version, another kind */
		beat_write(&full, secret, data);
		data[at] ^= 0x80;
		assert_true(beat_read(data, BEAT_BYTES, secret, &read) == (at > 4));
	}
	beat_write(&full, secret, data);
	memset(data + BEAT_BYTES - BEAT_NODE_BYTES, 'n', BEAT_NODE_BYTES);
	assert_true(beat_read(data, BEAT_BYTES, secret, &read));
	assert_int_equal(strlen(read.node), BEAT_NODE_BYTES);
	memset(data + BEAT_BYTES - BEAT_NODE_BYTES, 0, BEAT_NODE_BYTES);
	assert_false(beat_read(data, BEAT_BYTES, secret, &read));
}

/* clang-format off */
static const struct {
	const char *when;
	struct lease lease;
	int64_t now_ms;
	enum lease_step step;
	int64_t next_ms;
} leases[] = {
	{"nobody ever answered", {TIMEOUT, -1, -1, false}, 900000, LEASE_RUN, INT64_MAX},
	{"answered", {TIMEOUT, 1000, -1, false}, 1000 + LEASE - 1, LEASE_RUN, 1000 + LEASE},
	{"its end", {TIMEOUT, 1000, -1, false}, 1000 + LEASE, LEASE_STOP, 1000 + LEASE},
	{"it stands still", {TIMEOUT, 1000, 1000 + LEASE, false}, 1000 + LEASE + 1, LEASE_STOP, 1000 + TIMEOUT},
	{"and for too long", {TIMEOUT, 1000, 1000 + LEASE, false}, 1000 + TIMEOUT, LEASE_KILL, 1000 + TIMEOUT},
	{"frozen for an hour: it asks first", {TIMEOUT, 1000, -1, false}, 3600000, LEASE_STOP, 1000 + LEASE},
	{"and waits for the answer", {TIMEOUT, 1000, 3600000, false}, 3600000 + TIMEOUT - LEASE - 1, LEASE_STOP,
	 3600000 + TIMEOUT - LEASE},
	{"that does not come", {TIMEOUT, 1000, 3600000, false}, 3600000 + TIMEOUT - LEASE, LEASE_KILL,
	 3600000 + TIMEOUT - LEASE},
	{"that comes", {TIMEOUT, 3600001, 3600000, false}, 3600002, LEASE_RUN, 3600001 + TIMEOUT},
	{"the launch is over", {TIMEOUT, 1000, -1, true}, 1001, LEASE_KILL, INT64_MAX},
};
/* clang-format on */

static void test_lease(void **state)
{
	(void)state;
	assert_int_equal(beat_lease_ms(TIMEOUT), LEASE);
	assert_int_equal(beat_every_ms(TIMEOUT), EVERY);
	for (size_t i = 0; i < sizeof(leases) / sizeof(leases[0]); i++) {
		if (lease_step(&leases[i].lease, leases[i].now_ms) != leases[i].step ||
		    lease_next_ms(&leases[i].lease) != leases[i].next_ms)
			fail_msg("%s: %d, next %lld", leases[i].when,
				 lease_step(&leases[i].lease, leases[i].now_ms),
				 (long long)lease_next_ms(&leases[i].lease));
	}
}

/* --- who is silent ---------------------------------------------------------------------------- */

static int64_t ranks; /* that a launch has, as each rank says */

static enum beat_kind say(struct beats *b, enum beat_kind kind, int64_t rank, const char *node,
			  int64_t now_ms)
{
	struct beat beat = { .kind = kind, .launch = 1, .rank = rank, .ranks = ranks };

	snprintf(beat.node, sizeof(beat.node), "%s", node);
	return beats_hear(b, &beat, &nowhere, now_ms);
}

static void until(struct beats *b, int64_t *now_ms, int64_t end_ms)
{
	for (; *now_ms < end_ms; *now_ms += EVERY)
		beats_turn(b, *now_ms);
	*now_ms = end_ms;
	beats_turn(b, end_ms);
}

static void test_silence(void **state)
{
	struct beats b = { .timeout_ms = TIMEOUT };
	int64_t now_ms = 1000000;
	const char *lost;

	(void)state;
	ranks = 3;
	assert_int_equal(say(&b, BEAT_ALIVE, 0, "n1", now_ms), BEAT_OVER);
	beats_open(&b, 1);
	assert_int_equal(say(&b, BEAT_HELLO, 3, "n4", now_ms), BEAT_ANSWER);
	for (int rank = 0; rank < 3; rank++)
		assert_int_equal(say(&b, BEAT_ALIVE, rank, rank < 2 ? "n1" : "n2", now_ms),
				 BEAT_ANSWER);
	until(&b, &now_ms, 1000000 + TIMEOUT - 1);
	assert_null(beats_lost(&b, now_ms));
	say(&b, BEAT_ALIVE, 1, "n1", now_ms);
	until(&b, &now_ms, now_ms + 1);
	lost = beats_lost(&b, now_ms); /* rank 0 is silent, but its node is not */
	assert_non_null(lost);
	assert_string_equal(lost, "n2");
	assert_null(beats_lost(&b, now_ms)); /* once; and n4 had no lease */
	assert_false(beats_are_over(&b, now_ms));
	beats_close(&b);
	assert_int_equal(say(&b, BEAT_ALIVE, 2, "n2", now_ms), BEAT_OVER); /* it wakes up */
	assert_int_equal(say(&b, BEAT_ENDED, 2, "n2", now_ms), BEAT_ANSWER);
	assert_false(beats_are_over(&b, now_ms));
	say(&b, BEAT_ENDED, 1, "n1", now_ms);
	assert_true(beats_are_over(&b, now_ms));
	beats_clear(&b);
}

/* Of a rank that was never heard nobody knows whether it has ended. */
static void test_unheard(void **state)
{
	struct beats b = { .timeout_ms = TIMEOUT };
	int64_t now_ms = 1000000;

	(void)state;
	ranks = 3;
	beats_open(&b, 1);
	beats_close(&b);
	until(&b, &now_ms, now_ms + 2 * TIMEOUT);
	assert_false(beats_are_over(&b, now_ms)); /* nobody ever was */
	beats_open(&b, 1);
	say(&b, BEAT_ALIVE, 0, "n1", now_ms);
	say(&b, BEAT_ENDED, 1, "n2", now_ms);
	say(&b, BEAT_HELLO, 2, "n3", now_ms); /* no lease binds it yet */
	assert_false(beats_are_heard(&b));
	beats_close(&b);
	until(&b, &now_ms, now_ms + 2 * TIMEOUT);
	assert_false(beats_are_over(&b, now_ms));
	say(&b, BEAT_ALIVE, 2, "n3", now_ms);
	assert_true(beats_are_heard(&b));
	assert_false(beats_are_over(&b, now_ms));
	until(&b, &now_ms, now_ms + TIMEOUT);
	assert_true(beats_are_over(&b, now_ms));
	ranks = 0; /* how many there are is not known */
	beats_open(&b, 1);
	say(&b, BEAT_ENDED, 0, "n1", now_ms);
	beats_close(&b);
	assert_false(beats_are_over(&b, now_ms));
	beats_clear(&b);
}

/* clang-format off */
/* Ranks 0 to 3 are on n1 to n4, the listener is on n1; when each was heard last. */
static const struct {
	const char *when;
	int64_t heard_ms[4];	/* -1 = its rank has ended */
	const char *lost;
} silences[] = {
	{"one of several", {TIMEOUT, 0, TIMEOUT, TIMEOUT}, "n2"},
	{"one, and another may have lost two beats", {TIMEOUT, 0, 2 * EVERY + 1, 2 * EVERY}, "n2"},
	{"all others, in the order of their beats", {TIMEOUT, 0, EVERY, 2 * EVERY}, ""},
	{"all others, with our own", {0, 0, 0, 0}, "n1"},
	{"our own alone", {0, TIMEOUT, TIMEOUT, TIMEOUT}, "n1"},
	{"the only one that is left", {TIMEOUT, 0, -1, -1}, "n2"},
};
/* clang-format on */

static void test_cut_off(void **state)
{
	static const char *const nodes[] = { "n1", "n2", "n3", "n4" };

	(void)state;
	ranks = 4;
	for (size_t i = 0; i < sizeof(silences) / sizeof(silences[0]); i++) {
		struct beats b = { .timeout_ms = TIMEOUT, .here = "n1" };
		const char *lost = NULL;

		beats_open(&b, 1);
		for (int rank = 0; rank < 4; rank++)
			say(&b, silences[i].heard_ms[rank] < 0 ? BEAT_ENDED : BEAT_ALIVE, rank,
			    nodes[rank], 1000 + silences[i].heard_ms[rank]);
		lost = beats_lost(&b, 1000 + TIMEOUT);
		if (!lost || strcmp(lost, silences[i].lost) != 0)
			fail_msg("%s: %s", silences[i].when, lost ? lost : "none");
		if (!lost[0])
			assert_null(beats_lost(&b, 1000 + 3 * TIMEOUT)); /* told once */
		beats_clear(&b);
	}
}

/* A rank that has ended is no sign of death, and one launch none of another. */
static void test_ended(void **state)
{
	struct beats b = { .timeout_ms = TIMEOUT };
	int64_t now_ms = 1000000;

	(void)state;
	ranks = 1;
	beats_open(&b, 1);
	say(&b, BEAT_ALIVE, 0, "n1", now_ms);
	say(&b, BEAT_ENDED, 0, "n1", now_ms);
	until(&b, &now_ms, now_ms + 10 * TIMEOUT);
	assert_null(beats_lost(&b, now_ms));
	beats_open(&b, 2);
	assert_int_equal(say(&b, BEAT_ALIVE, 0, "n1", now_ms), BEAT_OVER);
	until(&b, &now_ms, now_ms + 10 * TIMEOUT);
	assert_null(beats_lost(&b, now_ms));
	beats_close(&b);
	assert_false(beats_are_over(&b, now_ms)); /* none of the second was heard */
	beats_clear(&b);
}

/* Suspended with all others: nobody is judged by that. */
static void test_sleeper(void **state)
{
	struct beats b = { .timeout_ms = TIMEOUT };

	(void)state;
	beats_open(&b, 1);
	say(&b, BEAT_ALIVE, 0, "n1", 1000);
	beats_turn(&b, 1000);
	beats_turn(&b, 3600000);
	assert_null(beats_lost(&b, 3600000));
	for (int64_t now_ms = 3600000; now_ms < 3600000 + TIMEOUT; now_ms += EVERY)
		beats_turn(&b, now_ms);
	assert_non_null(beats_lost(&b, 3600000 + TIMEOUT));
	beats_clear(&b);
}

/* Frozen for so long that others may have the run: no rank gets a lease before somebody has
 * looked. */
static void test_doubt(void **state)
{
	struct beats b = { .timeout_ms = TIMEOUT };

	(void)state;
	ranks = 1;
	beats_open(&b, 1);
	assert_false(beats_wake(&b, 900000)); /* nobody was there to be heard */
	say(&b, BEAT_ALIVE, 0, "n1", 1000);
	beats_turn(&b, 1000);
	assert_false(beats_wake(&b, 1000 + LEASE - 1));
	assert_int_equal(say(&b, BEAT_ALIVE, 0, "n1", 1000 + LEASE - 1), BEAT_ANSWER);
	assert_true(beats_wake(&b, 1000 + LEASE));
	assert_int_equal(say(&b, BEAT_ALIVE, 0, "n1", 1000 + LEASE), BEAT_NONE);
	assert_int_equal(say(&b, BEAT_HELLO, 1, "n2", 1000 + LEASE), BEAT_NONE);
	assert_int_equal(say(&b, BEAT_ENDED, 0, "n1", 1000 + LEASE), BEAT_ANSWER);
	beats_turn(&b, 1000 + LEASE);
	assert_false(beats_wake(&b, 1001 + LEASE)); /* told once */
	beats_trust(&b);
	assert_int_equal(say(&b, BEAT_ALIVE, 0, "n1", 1002 + LEASE), BEAT_ANSWER);
	beats_wake(&b, 3600000);
	beats_close(&b);
	assert_false(beats_wake(&b, 7200000));
	assert_int_equal(say(&b, BEAT_ALIVE, 0, "n1", 7200000),
			 BEAT_OVER); /* the run is another's */
	beats_open(&b, 2);
	assert_false(b.is_in_doubt);
	beats_clear(&b);
}

/* --- worlds ----------------------------------------------------------------------------------- */

enum { FLYING = 32, WORLD_MS = 120 * 1000, TICK_MS = 10 };

struct flying {
	struct beat beat;
	int64_t at_ms; /* 0 = none */
	bool is_answer;
};

struct world {
	struct beats beats;
	struct lease lease;
	struct flying flying[FLYING];
	int64_t now_ms, next_ms, rank_frozen_ms, listener_frozen_ms;
	int64_t skew_ms; /* the node's clock is another one */
	bool is_lost, is_dead, is_closed;
};

static int64_t draw(int64_t below)
{
	return rand() % below; /* NOLINT(cert-msc30-c,cert-msc50-cpp): worlds must come again */
}

static void post(struct world *w, const struct beat *beat, bool is_answer)
{
	for (size_t i = 0; i < FLYING; i++) {
		if (w->flying[i].at_ms)
			continue;
		if (draw(10) > 0) /* one of ten is lost, some come late */
			w->flying[i] = (struct flying){
				*beat, w->now_ms + 1 + draw(draw(10) ? 20 : 2 * TIMEOUT), is_answer
			};
		return;
	}
}

static void listener_turn(struct world *w)
{
	if (w->now_ms < w->listener_frozen_ms)
		return;
	for (size_t i = 0; i < FLYING; i++) {
		struct flying *f = &w->flying[i];

		if (!f->at_ms || f->is_answer || f->at_ms > w->now_ms)
			continue;
		f->beat.kind = beats_hear(&w->beats, &f->beat, &nowhere, w->now_ms);
		f->at_ms = 0;
		post(w, &f->beat, true);
	}
	beats_turn(&w->beats, w->now_ms);
	if (!w->is_lost && beats_lost(&w->beats, w->now_ms)) {
		w->is_lost = true;
		beats_close(&w->beats);
	}
}

/* True: it may run. */
static bool rank_turn(struct world *w)
{
	int64_t clock_ms = w->now_ms + w->skew_ms;

	if (w->now_ms < w->rank_frozen_ms)
		return false;
	for (size_t i = 0; i < FLYING; i++) {
		struct flying *f = &w->flying[i];

		if (!f->at_ms || !f->is_answer || f->at_ms > w->now_ms)
			continue;
		f->at_ms = 0;
		w->lease.is_over |= f->beat.kind == BEAT_OVER;
		if (f->beat.kind == BEAT_ANSWER && f->beat.sent_ms > w->lease.answered_ms)
			w->lease.answered_ms = f->beat.sent_ms;
	}
	enum lease_step step = lease_step(&w->lease, clock_ms);

	w->is_dead |= step == LEASE_KILL;
	if (step == LEASE_STOP && w->lease.stopped_ms < 0)
		w->lease.stopped_ms = clock_ms;
	if (step == LEASE_RUN)
		w->lease.stopped_ms = -1;
	if (!w->is_dead && clock_ms >= w->next_ms) {
		struct beat beat = { .kind = w->lease.answered_ms < 0 ? BEAT_HELLO : BEAT_ALIVE,
				     .launch = 1,
				     .sent_ms = clock_ms,
				     .node = "n1" };

		w->next_ms = clock_ms + EVERY;
		post(w, &beat, false);
	}
	return !w->is_dead && step == LEASE_RUN;
}

/* How often a rank ran on behind the verdict; *lost, *killed: what happened in it. */
static int live(unsigned seed, int64_t rank_timeout_ms, bool *lost, bool *killed)
{
	static struct world w;
	int wrong = 0;

	w = (struct world){ .beats.timeout_ms = TIMEOUT,
			    .lease = { rank_timeout_ms, -1, -1, false },
			    .now_ms = 1000000 };
	srand(seed);
	w.skew_ms = draw(1000000);
	beats_open(&w.beats, 1);
	for (int64_t end_ms = w.now_ms + WORLD_MS; w.now_ms < end_ms; w.now_ms += TICK_MS) {
		if (draw(20000 / TICK_MS) == 0)
			w.rank_frozen_ms = w.now_ms + draw(3 * TIMEOUT);
		if (draw(60000 / TICK_MS) == 0)
			w.listener_frozen_ms = w.now_ms + draw(3 * TIMEOUT);
		listener_turn(&w);
		wrong += rank_turn(&w) && w.is_lost;
	}
	*lost |= w.is_lost;
	*killed |= w.is_dead;
	beats_clear(&w.beats);
	return wrong;
}

static void test_worlds(void **state)
{
	bool lost = false, killed = false;

	(void)state;
	for (unsigned seed = 1; seed <= 100; seed++)
		if (live(seed, TIMEOUT, &lost, &killed) > 0)
			fail_msg("seed %u: it ran on although its node had been called lost", seed);
	assert_true(lost && killed);
}

/* The worlds are such that a lease that is too long is found. */
static void test_control(void **state)
{
	bool lost = false, killed = false;
	int wrong = 0;

	(void)state;
	for (unsigned seed = 1; seed <= 20; seed++)
		wrong += live(seed, 2 * TIMEOUT, &lost, &killed) > 0;
	assert_true(wrong > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_datagram), cmocka_unit_test(test_lease),
		cmocka_unit_test(test_silence),  cmocka_unit_test(test_ended),
		cmocka_unit_test(test_unheard),  cmocka_unit_test(test_cut_off),
		cmocka_unit_test(test_sleeper),  cmocka_unit_test(test_doubt),
		cmocka_unit_test(test_worlds),   cmocka_unit_test(test_control),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
