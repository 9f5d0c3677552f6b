/* SPDX-License-Identifier: MIT */
/* pool.c - threads that take task indices from one atomic counter.
 *
 * A round starts by a new `round` number. Who waits for one, or for its end, spins a little before
 * it sleeps: a training step has some hundred rounds a second apart by microseconds, and a sleep
 * costs more than that. Where other programs want our cores, spinning takes time from them that the
 * kernel then takes from us, in whole slices and in the midst of a task: there we sleep at once,
 * and are woken before those who never sleep. Being thrown off a core tells that it is so. */
#include "kernels/cpu/pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "kernels/machine/cpus.h"

enum { SPINS = 4000, SPINS_SHARED = 50, ROUNDS_A_LOOK = 128 };

struct helper {
	struct pool *pool;
	pthread_t thread;
	unsigned worker;
};

struct pool {
	bool is_bound;          /* each thread to a core */
	struct helper *helpers; /* threads - 1 of them */
	unsigned started;

	pool_task *task; /* of the present round */
	const void *args;
	size_t count;
	atomic_size_t next; /* index to be taken */
	atomic_uint busy;   /* helpers still in the round */
	atomic_uint round;
	atomic_bool ending;
	atomic_int spins; /* before a sleep */
	unsigned rounds;  /* since the caller looked at */
	long thrown_off;  /* how often it had been thrown off its core */

	pthread_mutex_t lock; /* only for the two sleeps below */
	pthread_cond_t begun, done;
};

static void take_tasks(struct pool *pool, unsigned worker)
{
	for (;;) {
		size_t index = atomic_fetch_add(&pool->next, 1);
		if (index >= pool->count)
			return;
		pool->task(pool->args, index, worker);
	}
}

static void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#endif
}

static unsigned wait_for_round(struct pool *pool, unsigned seen)
{
	for (int i = 0; i < atomic_load(&pool->spins); i++) {
		unsigned round = atomic_load(&pool->round);
		if (round != seen)
			return round;
		relax();
	}
	pthread_mutex_lock(&pool->lock);
	while (atomic_load(&pool->round) == seen)
		pthread_cond_wait(&pool->begun, &pool->lock);
	pthread_mutex_unlock(&pool->lock);
	return atomic_load(&pool->round);
}

static void *helper_main(void *arg)
{
	struct helper *self = arg;
	struct pool *pool = self->pool;
	unsigned seen = 0;

	if (pool->is_bound)
		(void)cpus_bind(self->worker);
	for (;;) {
		seen = wait_for_round(pool, seen);
		if (atomic_load(&pool->ending))
			return NULL;
		take_tasks(pool, self->worker);
		if (atomic_fetch_sub(&pool->busy, 1) == 1) {
			pthread_mutex_lock(&pool->lock);
			pthread_cond_signal(&pool->done);
			pthread_mutex_unlock(&pool->lock);
		}
	}
}

static void begin_round(struct pool *pool)
{
	pthread_mutex_lock(&pool->lock);
	atomic_fetch_add(&pool->round, 1);
	pthread_cond_broadcast(&pool->begun);
	pthread_mutex_unlock(&pool->lock);
}

static void wait_for_helpers(struct pool *pool)
{
	for (int i = 0; i < atomic_load(&pool->spins); i++) {
		if (atomic_load(&pool->busy) == 0)
			return;
		relax();
	}
	pthread_mutex_lock(&pool->lock);
	while (atomic_load(&pool->busy) != 0)
		pthread_cond_wait(&pool->done, &pool->lock);
	pthread_mutex_unlock(&pool->lock);
}

/* Are our cores shared at present? The caller's own fate stands for all of us. */
static void look_around(struct pool *pool)
{
	struct rusage usage;

	if (pool->rounds++ % ROUNDS_A_LOOK != 0 || getrusage(RUSAGE_THREAD, &usage) != 0)
		return;
	atomic_store(&pool->spins, usage.ru_nivcsw > pool->thrown_off ? SPINS_SHARED : SPINS);
	pool->thrown_off = usage.ru_nivcsw;
}

void pool_run(struct pool *pool, size_t count, pool_task *task, const void *args)
{
	if (pool->started == 0 || count <= 1) {
		for (size_t i = 0; i < count; i++)
			task(args, i, 0);
		return;
	}
	look_around(pool);
	pool->task = task;
	pool->args = args;
	pool->count = count;
	atomic_store(&pool->next, 0);
	atomic_store(&pool->busy, pool->started);
	begin_round(pool);
	take_tasks(pool, 0);
	wait_for_helpers(pool);
}

struct pool *pool_create(unsigned threads)
{
	struct pool *pool = calloc(1, sizeof(*pool));
	if (!pool)
		return NULL;
	atomic_store(&pool->spins, SPINS);
	pool->is_bound = threads == cpus_cores() && cpus_bind(0);
	pool->helpers = calloc(threads, sizeof(*pool->helpers));
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->begun, NULL);
	pthread_cond_init(&pool->done, NULL);
	for (unsigned i = 0; pool->helpers && i + 1 < threads; i++) {
		struct helper *h = &pool->helpers[i];
		*h = (struct helper){ .pool = pool, .worker = i + 1 };
		if (pthread_create(&h->thread, NULL, helper_main, h) != 0)
			break;
		pool->started++;
	}
	if (!pool->helpers || pool->started + 1 < threads) {
		pool_destroy(pool);
		return NULL;
	}
	return pool;
}

void pool_destroy(struct pool *pool)
{
	if (!pool)
		return;
	atomic_store(&pool->ending, true);
	begin_round(pool);
	for (unsigned i = 0; i < pool->started; i++)
		pthread_join(pool->helpers[i].thread, NULL);
	pthread_cond_destroy(&pool->begun);
	pthread_cond_destroy(&pool->done);
	pthread_mutex_destroy(&pool->lock);
	if (pool->is_bound)
		cpus_unbind();
	free(pool->helpers);
	free(pool);
}
