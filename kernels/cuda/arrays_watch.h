/* SPDX-License-Identifier: MIT */
/* arrays_watch.h - exchanges of arrays that are under way (arrays.c), and the watchdog over them.
 *
 * A kernel of NCCL whose peer is gone never ends, and whoever waits for the stream waits with it.
 * So a thread of our own looks at what is under way: the events behind each exchange, the library's
 * own errors, and the words of other ranks. What stands still for too long is aborted, and the
 * reason kept. */
#ifndef KERNELS_CUDA_ARRAYS_WATCH_H
#define KERNELS_CUDA_ARRAYS_WATCH_H

#include <pthread.h>

#include "kernels/comm.h"
#include "kernels/cuda/cuda.h"
#include "kernels/nccl.h"

enum { UNDER_WAY = 64, TICKETS = 32 };

struct arrays {
	struct device *dev;
	struct arrays_options options;
	const struct nccl *nccl;
	nccl_comm comm;
	cudaStream_t lane;
	cudaEvent_t forked, ticket[TICKETS]; /* at number % TICKETS */
	uint64_t tickets;
	struct arrays_span *span; /* to be noted; borrowed, NULL: none */
	size_t spans, span_room;
	pthread_t watchdog;
	pthread_mutex_t call; /* held by a call into NCCL */
	pthread_mutex_t lock; /* of what follows */
	cudaEvent_t event[UNDER_WAY];
	uint64_t queued, done; /* exchanges; events are at number % UNDER_WAY */
	int64_t moved_ms;      /* when `done` last grew, or nothing was under way */
	bool is_calling, ends, has_watchdog;
	enum comm_result result;
	char why[COMM_TEXT_BYTES];
};

/* The first failure is kept. */
void arrays_fail(struct arrays *a, enum comm_result result, const char *text);
void arrays_fail_call(struct arrays *a, const char *what, enum nccl_result result);
bool arrays_are_well(struct arrays *a);

/* A call into NCCL begins or ends: while it lasts something is under way. */
void arrays_set_calling(struct arrays *a, bool is_calling);

/* Of a clock that only goes forward. */
int64_t arrays_now_ms(void);

/* The thread, with a struct arrays; it ends when ->ends is set or something is wrong. */
void *arrays_watch(void *arg);

#endif
