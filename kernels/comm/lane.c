/* SPDX-License-Identifier: MIT */
/* lane.c - a thread that makes exchanges one after the other, while who began them computes.
 *
 * Where nothing is under way an exchange that is waited for is made by the caller itself: waking
 * another thread and being woken by it takes longer than a short word. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/comm.h"
#include "kernels/machine/threads.h"

enum { UNDER_WAY = 16 };

struct comm_lane {
	const struct comm_table *table;
	struct comm *comm;
	pthread_t thread;
	bool has_thread;
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t begins, ends_one;
	struct comm_part *part; /* [UNDER_WAY][2][size]: sent, received */
	uint64_t begun, done;   /* exchanges; a ticket is the number of those begun with it */
	bool ends;
	enum comm_result result; /* the first failure */
	char why[COMM_TEXT_BYTES];
	struct comm_span *span;
	size_t spans, room;
};

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return 1e6 * (double)now.tv_sec + 1e-3 * (double)now.tv_nsec;
}

static struct comm_part *parts_of(const struct comm_lane *l, uint64_t number, bool is_received)
{
	return l->part + (number % UNDER_WAY * 2 + is_received) * (size_t)l->comm->size;
}

static size_t bytes_to_others(const struct comm_lane *l, const struct comm_part *send)
{
	size_t bytes = 0;

	for (int r = 0; r < l->comm->size; r++)
		bytes += r != l->comm->rank ? send[r].bytes : 0;
	return bytes;
}

static void end_span(struct comm_lane *l, const struct comm_part *send, double start_us)
{
	if (l->spans < l->room)
		l->span[l->spans++] = (struct comm_span){ start_us, now_us(),
							  bytes_to_others(l, send) };
}

/* With the lock, which is let go meanwhile; after a failure nothing is done. */
static void carry(struct comm_lane *l, const struct comm_part *send,
		  const struct comm_part *receive)
{
	char why[COMM_TEXT_BYTES] = "";
	double start_us = now_us();

	if (l->result != COMM_OK)
		return;
	pthread_mutex_unlock(&l->lock);
	enum comm_result result = l->table->exchange(l->comm, send, receive, why);
	pthread_mutex_lock(&l->lock);
	end_span(l, send, start_us);
	l->result = result;
	snprintf(l->why, sizeof(l->why), "%s", why);
}

static void *run(void *arg)
{
	struct comm_lane *l = arg;

	pthread_mutex_lock(&l->lock);
	for (;;) {
		while (l->begun == l->done && !l->ends)
			pthread_cond_wait(&l->begins, &l->lock);
		if (l->begun == l->done)
			break;
		carry(l, parts_of(l, l->done, false), parts_of(l, l->done, true));
		l->done++;
		pthread_cond_broadcast(&l->ends_one);
	}
	pthread_mutex_unlock(&l->lock);
	return NULL;
}

struct comm_lane *comm_lane_open(const struct comm_table *table, struct comm *comm)
{
	struct comm_lane *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	*l = (struct comm_lane){ .table = table, .comm = comm, .result = COMM_OK };
	l->part = calloc((size_t)comm->size * 2 * UNDER_WAY, sizeof(*l->part));
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->begins, NULL);
	pthread_cond_init(&l->ends_one, NULL);
	if (!l->part) {
		comm_lane_close(l);
		return NULL;
	}
	l->has_thread = !comm->one_thread && threads_start(&l->thread, run, l);
	return l;
}

void comm_lane_close(struct comm_lane *l)
{
	if (!l)
		return;
	pthread_mutex_lock(&l->lock);
	l->ends = true;
	pthread_cond_signal(&l->begins);
	pthread_mutex_unlock(&l->lock);
	if (l->has_thread)
		pthread_join(l->thread, NULL);
	pthread_cond_destroy(&l->begins);
	pthread_cond_destroy(&l->ends_one);
	pthread_mutex_destroy(&l->lock);
	free(l->part);
	free(l);
}

uint64_t comm_lane_begin(struct comm_lane *l, const struct comm_part *send,
			 const struct comm_part *receive)
{
	size_t bytes = (size_t)l->comm->size * sizeof(*send);

	pthread_mutex_lock(&l->lock);
	while (l->begun - l->done == UNDER_WAY)
		pthread_cond_wait(&l->ends_one, &l->lock);
	if (l->has_thread) {
		memcpy(parts_of(l, l->begun, false), send, bytes);
		memcpy(parts_of(l, l->begun, true), receive, bytes);
		pthread_cond_signal(&l->begins);
	} else {
		carry(l, send, receive);
		l->done++;
	}
	uint64_t ticket = ++l->begun;
	pthread_mutex_unlock(&l->lock);
	return ticket;
}

/* With the lock. */
static void wait_for(struct comm_lane *l, uint64_t ticket)
{
	ticket = ticket < l->begun ? ticket : l->begun;
	while (l->done < ticket)
		pthread_cond_wait(&l->ends_one, &l->lock);
}

/* The same. */
static enum comm_result say(const struct comm_lane *l, char *why)
{
	if (l->result != COMM_OK)
		snprintf(why, COMM_TEXT_BYTES, "%s", l->why);
	return l->result;
}

enum comm_result comm_lane_wait(struct comm_lane *l, uint64_t ticket, char *why)
{
	pthread_mutex_lock(&l->lock);
	wait_for(l, ticket);
	enum comm_result result = say(l, why);
	pthread_mutex_unlock(&l->lock);
	return result;
}

enum comm_result comm_lane_exchange(struct comm_lane *l, const struct comm_part *send,
				    const struct comm_part *receive, char *why)
{
	pthread_mutex_lock(&l->lock);
	wait_for(l, l->begun);
	carry(l, send, receive);
	enum comm_result result = say(l, why);
	pthread_mutex_unlock(&l->lock);
	return result;
}

size_t comm_lane_note(struct comm_lane *l, struct comm_span *span, size_t room)
{
	pthread_mutex_lock(&l->lock);
	size_t noted = l->spans;
	l->span = span;
	l->room = span ? room : 0;
	l->spans = 0;
	pthread_mutex_unlock(&l->lock);
	return noted;
}
