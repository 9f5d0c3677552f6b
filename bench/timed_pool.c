/* SPDX-License-Identifier: MIT */
/* timed_pool.c - in place of kernels/cpu/pool.c: one thread, which tells the CPU time of each
 * task. */
#include "bench/timed_pool.h"

#include <stdlib.h>
#include <time.h>

#include "kernels/cpu/pool.h"

struct pool {
	unsigned threads;
};

double thread_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void pool_run(struct pool *pool, size_t count, pool_task *task, const void *args)
{
	(void)pool;
	for (size_t i = 0; i < count; i++) {
		double start = thread_s();
		task(args, i, 0);
		task_took(thread_s() - start);
	}
}

struct pool *pool_create(unsigned threads)
{
	struct pool *pool = calloc(1, sizeof(*pool));

	if (pool)
		pool->threads = threads;
	return pool;
}

void pool_destroy(struct pool *pool)
{
	free(pool);
}
