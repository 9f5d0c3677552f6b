/* SPDX-License-Identifier: MIT */
/* pool.h - the one thread pool of the CPU backend.
 *
 * Work is a number of independent tasks; which thread runs which is left to chance, so a task's
 * result may depend on its index only. That makes every result equal for 1 and for 64 threads. */
#ifndef KERNELS_CPU_POOL_H
#define KERNELS_CPU_POOL_H

#include <stddef.h>

struct pool;

/* `worker` is below the number of threads, and names a scratch area, nothing else. */
typedef void pool_task(const void *args, size_t index, unsigned worker);

/* The calling thread is worker 0; threads-1 more are started. NULL when that fails. With one thread
 * for each core that we may run on, each stays on a core of its own, and so does the caller until
 * pool_destroy; fewer are left to the scheduler, who knows where others run. */
struct pool *pool_create(unsigned threads);
void pool_destroy(struct pool *pool);

/* Runs task(args, 0..count-1) and returns when all are done. One caller at a time. */
void pool_run(struct pool *pool, size_t count, pool_task *task, const void *args);

#endif
