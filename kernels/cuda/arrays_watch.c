/* SPDX-License-Identifier: MIT */
/* arrays_watch.c - the thread that looks at exchanges that are under way, and what is wrong with
 * them. */
#include "kernels/cuda/arrays_watch.h"

#include <stdio.h>
#include <time.h>

enum { LOOK_MS = 20, LEAVE_MS = 500 };

int64_t arrays_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The first failure is kept. */
void arrays_fail(struct arrays *a, enum comm_result result, const char *text)
{
	pthread_mutex_lock(&a->lock);
	if (a->result == COMM_OK) {
		a->result = result;
		snprintf(a->why, sizeof(a->why), "%s", text);
	}
	pthread_mutex_unlock(&a->lock);
}

bool arrays_are_well(struct arrays *a)
{
	pthread_mutex_lock(&a->lock);
	bool well = a->result == COMM_OK;
	pthread_mutex_unlock(&a->lock);
	return well;
}

void arrays_fail_call(struct arrays *a, const char *what, enum nccl_result result)
{
	const char *last = a->nccl->last_error ? a->nccl->last_error(NULL) : NULL;
	char text[COMM_TEXT_BYTES];

	snprintf(text, sizeof(text), "NCCL: %s: %s%s%.120s", what, a->nccl->error_string(result),
		 last && last[0] ? ": " : "", last ? last : "");
	arrays_fail(a, COMM_FAILED, text);
}

/* What has ended is counted; false: nothing is under way. */
static bool count_done(struct arrays *a)
{
	pthread_mutex_lock(&a->lock);
	while (a->done < a->queued &&
	       cudaEventQuery(a->event[a->done % UNDER_WAY]) != cudaErrorNotReady) {
		a->done++;
		a->moved_ms = arrays_now_ms();
	}
	bool is_idle = a->done == a->queued && !a->is_calling;
	if (is_idle)
		a->moved_ms = arrays_now_ms();
	pthread_mutex_unlock(&a->lock);
	return !is_idle;
}

static bool is_late(struct arrays *a)
{
	pthread_mutex_lock(&a->lock);
	bool late = (double)(arrays_now_ms() - a->moved_ms) * 1e-3 > a->options.deadline_s;
	pthread_mutex_unlock(&a->lock);
	return late;
}

/* Of the library's own; it may know before anything stands still. Never asked by two threads at
 * once: from NCCL 2.26 on that joins, and frees, the thread of a group that is through. Who is in a
 * call asks by himself. */
static bool has_error(struct arrays *a)
{
	enum nccl_result result = NCCL_SUCCESS;

	if (pthread_mutex_trylock(&a->call) != 0)
		return false;
	bool is_told = a->comm && a->nccl->async_error(a->comm, &result) == NCCL_SUCCESS;
	pthread_mutex_unlock(&a->call);
	if (!is_told || result == NCCL_SUCCESS || result == NCCL_IN_PROGRESS)
		return false;
	arrays_fail_call(a, "while arrays were under way", result);
	return true;
}

/* True when something is wrong, which is then kept. */
static bool look(struct arrays *a)
{
	char text[COMM_TEXT_BYTES];

	if (!arrays_are_well(a) || has_error(a))
		return true;
	if (!count_done(a))
		return false;
	if (a->options.is_told && a->options.is_told(a->options.arg, text)) {
		arrays_fail(a, COMM_TOLD, text);
		return true;
	}
	if (!is_late(a))
		return false;
	snprintf(text, sizeof(text), "NCCL: nothing has moved for %.0f s", a->options.deadline_s);
	arrays_fail(a, COMM_LATE, text);
	return true;
}

/* A call that is under way in the other thread gets a moment to come back. The library returns when
 * all recorded programs with exchanges in them are gone: those are the other thread's, which must
 * not wait for us. */
static void abort_comm(struct arrays *a)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += LEAVE_MS * 1000000L;
	until.tv_sec += until.tv_nsec / 1000000000L;
	until.tv_nsec %= 1000000000L;
	bool has_call = pthread_mutex_timedlock(&a->call, &until) == 0;
	nccl_comm comm = a->comm;
	a->comm = NULL;
	if (has_call)
		pthread_mutex_unlock(&a->call);
	if (comm)
		a->nccl->abort(comm);
}

void *arrays_watch(void *arg)
{
	const struct timespec pause = { 0, LOOK_MS * 1000000L };
	struct arrays *a = arg;
	bool ends = false;

	cudaSetDevice(a->dev->gpu);
	while (!ends && !look(a)) {
		nanosleep(&pause, NULL);
		pthread_mutex_lock(&a->lock);
		ends = a->ends;
		pthread_mutex_unlock(&a->lock);
	}
	if (arrays_are_well(a))
		return NULL;
	if (a->result == COMM_FAILED) /* nobody writes it any more */
		a->options.tell(a->options.arg, a->why);
	abort_comm(a);
	return NULL;
}

void arrays_set_calling(struct arrays *a, bool is_calling)
{
	pthread_mutex_lock(&a->lock);
	a->is_calling = is_calling;
	if (a->done == a->queued)
		a->moved_ms = arrays_now_ms();
	pthread_mutex_unlock(&a->lock);
}
