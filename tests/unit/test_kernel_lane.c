/* SPDX-License-Identifier: MIT */
/* test_kernel_lane.c - exchanges beside what their caller computes: their order, their waits, and
 * what becomes of them behind a failure; and the same bytes between real ranks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/comm.h"

enum { MANY = 100, RANKS = 3, WORDS = 50 };

/* --- a comm that takes its time, and writes down what it is asked ----------------------------- */

static struct {
	size_t seen[MANY];
	int count, fails_at;
	useconds_t pause_us;
} asked;

static enum comm_result slow_exchange(struct comm *comm, const struct comm_part *send,
				      const struct comm_part *receive, char *why)
{
	(void)comm;
	usleep(asked.pause_us);
	if (asked.count == asked.fails_at) {
		snprintf(why, COMM_TEXT_BYTES, "rank 1 is gone");
		return COMM_FAILED;
	}
	asked.seen[asked.count++] = send[1].bytes;
	*(size_t *)receive[1].at = send[1].bytes;
	return COMM_OK;
}

static const struct comm_table slow = { .exchange = slow_exchange };

static struct comm_lane *begin(struct comm *comm, int fails_at, useconds_t pause_us)
{
	*comm = (struct comm){ .rank = 0, .size = 2 };
	memset(&asked, 0, sizeof(asked));
	asked.fails_at = fails_at;
	asked.pause_us = pause_us;
	return comm_lane_open(&slow, comm);
}

/* Number `i` sends i + 1 bytes, and gets to know how many; the parts do not outlive the call. */
static uint64_t begin_one(struct comm_lane *lane, size_t i, size_t *got)
{
	const struct comm_part send[2] = { { NULL, 0 }, { NULL, i + 1 } };
	const struct comm_part receive[2] = { { NULL, 0 }, { &got[i], sizeof(*got) } };

	return comm_lane_begin(lane, send, receive);
}

/* More than the lane has room for, in their order; each wait is for that one and all before. */
static void test_order(void **state)
{
	struct comm_span span[MANY] = { { 0 } };
	char why[COMM_TEXT_BYTES];
	uint64_t ticket[MANY];
	size_t got[MANY] = { 0 };
	struct comm comm;
	struct comm_lane *lane = begin(&comm, -1, 200);

	(void)state;
	assert_int_equal(comm_lane_note(lane, span, MANY - 1), 0);
	for (size_t i = 0; i < MANY; i++)
		ticket[i] = begin_one(lane, i, got);
	for (size_t i = 0; i < MANY; i++) {
		assert_true(ticket[i] > (i ? ticket[i - 1] : 0));
		assert_int_equal(comm_lane_wait(lane, ticket[i], why), COMM_OK);
		assert_int_equal(got[i], i + 1);
		assert_int_equal(asked.seen[i], i + 1);
	}
	assert_int_equal(comm_lane_note(lane, NULL, 0), MANY - 1);
	assert_int_equal(span[7].bytes, 8);
	assert_true(span[7].start_us >= span[6].end_us && span[7].end_us >= span[7].start_us + 200);
	comm_lane_close(lane);
}

/* It begins at once, and returns before it is over; a word behind it waits for it. */
static void test_beside(void **state)
{
	const struct comm_part send[2] = { { NULL, 0 }, { NULL, 9 } };
	char why[COMM_TEXT_BYTES];
	size_t got[2] = { 0 }, word = 0;
	const struct comm_part receive[2] = { { NULL, 0 }, { &word, sizeof(word) } };
	struct comm comm;
	struct comm_lane *lane = begin(&comm, -1, 200000);

	(void)state;
	(void)begin_one(lane, 0, got);
	assert_int_equal(got[0], 0);
	assert_int_equal(comm_lane_exchange(lane, send, receive, why), COMM_OK);
	assert_int_equal(got[0], 1);
	assert_int_equal(word, 9);
	comm_lane_close(lane);
}

/* What was begun is ended before the lane is closed. */
static void test_close(void **state)
{
	size_t got[3] = { 0 };
	struct comm comm;
	struct comm_lane *lane = begin(&comm, -1, 1000);

	(void)state;
	for (size_t i = 0; i < 3; i++)
		(void)begin_one(lane, i, got);
	comm_lane_close(lane);
	assert_int_equal(got[2], 3);
	comm_lane_close(NULL);
}

/* The first failure is what all others say, and nothing is done behind it. */
static void test_failure(void **state)
{
	char why[COMM_TEXT_BYTES] = "";
	size_t got[5] = { 0 };
	struct comm comm;
	struct comm_lane *lane = begin(&comm, 2, 100);

	(void)state;
	for (size_t i = 0; i < 5; i++)
		(void)begin_one(lane, i, got);
	assert_int_equal(comm_lane_wait(lane, UINT64_MAX, why), COMM_FAILED);
	assert_string_equal(why, "rank 1 is gone");
	asked.fails_at = -1;
	assert_int_equal(comm_lane_exchange(lane, NULL, NULL, why), COMM_FAILED);
	assert_string_equal(why, "rank 1 is gone");
	assert_int_equal(asked.count, 2);
	comm_lane_close(lane);
}

/* Without a thread each is over when it was begun. */
static void test_one_thread(void **state)
{
	char why[COMM_TEXT_BYTES];
	size_t got[1] = { 0 };
	struct comm comm = { .rank = 0, .size = 2, .one_thread = true };

	(void)state;
	memset(&asked, 0, sizeof(asked));
	asked.fails_at = -1;
	struct comm_lane *lane = comm_lane_open(&slow, &comm);
	uint64_t ticket = begin_one(lane, 0, got);
	assert_int_equal(got[0], 1);
	assert_int_equal(comm_lane_wait(lane, ticket, why), COMM_OK);
	comm_lane_close(lane);
}

/* --- ranks as threads, over shared memory ----------------------------------------------------- */

struct rank {
	void *room;
	int rank;
	uint32_t bad;
};

/* What rank `from` says to `to` in its k-th word. */
static uint32_t word_of(int from, int to, int k)
{
	return (uint32_t)(from * 1000000 + to * 10000 + k);
}

/* Words are begun, some are waited for at once, others three later. */
static void *be_rank(void *arg)
{
	struct rank *me = arg;
	const struct comm_options options = { .room = me->room,
					      .rank = me->rank,
					      .deadline_s = 20 };
	uint32_t out[WORDS][RANKS], in[WORDS][RANKS];
	uint64_t ticket[WORDS];
	char why[COMM_TEXT_BYTES];
	struct comm *comm = comm_shared.open(&options, why);
	struct comm_lane *lane = comm_lane_open(&comm_shared, comm);

	for (int k = 0; k < WORDS; k++) {
		struct comm_part send[RANKS], receive[RANKS];
		for (int r = 0; r < RANKS; r++) {
			out[k][r] = word_of(me->rank, r, k);
			send[r] = (struct comm_part){ &out[k][r], sizeof(out[k][r]) };
			receive[r] = (struct comm_part){ &in[k][r], sizeof(in[k][r]) };
		}
		ticket[k] = comm_lane_begin(lane, send, receive);
		usleep((useconds_t)((me->rank * 7 + k * 13) % 5) * 100);
		int ready = k % 4 == 0 ? k : k - 3;
		if (ready < 0 || comm_lane_wait(lane, ticket[ready], why) != COMM_OK)
			continue;
		for (int r = 0; r < RANKS; r++)
			me->bad += in[ready][r] != word_of(r, me->rank, ready);
	}
	me->bad += comm_lane_wait(lane, UINT64_MAX, why) != COMM_OK;
	comm_lane_close(lane);
	comm_shared.close(comm);
	return NULL;
}

static void test_ranks(void **state)
{
	struct rank rank[RANKS];
	pthread_t thread[RANKS];
	void *room = comm_room_make(RANKS);

	(void)state;
	for (int r = 0; r < RANKS; r++) {
		rank[r] = (struct rank){ room, r, 0 };
		assert_int_equal(pthread_create(&thread[r], NULL, be_rank, &rank[r]), 0);
	}
	for (int r = 0; r < RANKS; r++)
		pthread_join(thread[r], NULL);
	for (int r = 0; r < RANKS; r++)
		assert_int_equal(rank[r].bad, 0);
	comm_room_free(room, RANKS);
}

/* A machine has more cores than it has memory for all of their rings, most of which stay empty. */
static void test_room_of_many(void **state)
{
	enum { MANY_RANKS = 1024 }; /* parallelism.local_ranks at most */
	void *room = comm_room_make(MANY_RANKS);

	(void)state;
	assert_non_null(room);
	comm_room_free(room, MANY_RANKS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),        cmocka_unit_test(test_beside),
		cmocka_unit_test(test_close),        cmocka_unit_test(test_failure),
		cmocka_unit_test(test_one_thread),   cmocka_unit_test(test_ranks),
		cmocka_unit_test(test_room_of_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
