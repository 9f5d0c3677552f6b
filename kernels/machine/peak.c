/* SPDX-License-Identifier: MIT */
/* peak.c - each thread keeps enough independent vector accumulators in registers to fill the
 * pipelines of any x86 since Haswell; the widest instructions that we use (instructions.h) are
 * chosen at run time. */
#include "kernels/machine/peak.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <pthread.h>
#include <stdbool.h>
#include <time.h>

#include "kernels/machine/cpus.h"
#include "kernels/machine/instructions.h"
#include "kernels/machine/seconds.h"

/* A round takes some 15 ms: in a few, threads that have just begun still share a core. */
enum { CHAINS = 12, ROUNDS = 3, LOOPS = 4000000, MAX_THREADS = 1024 };

static volatile float sink;

/* The chains are unrolled so that they stay in registers. */
/* clang-format off */
#define BURN(name, isa, lanes, set, multiply_add, add, first)				\
	__attribute__((target(isa))) static void name(void)				\
	{										\
		lanes a = set(0.999f), b = set(0.001f), sum = b, chain[CHAINS];		\
											\
		_Pragma("GCC unroll 12")						\
		for (int i = 0; i < CHAINS; i++)					\
			chain[i] = set((float)i);					\
		for (long n = 0; n < LOOPS; n++) {					\
			_Pragma("GCC unroll 12")					\
			for (int i = 0; i < CHAINS; i++)				\
				chain[i] = multiply_add(chain[i], a, b);		\
		}									\
		_Pragma("GCC unroll 12")						\
		for (int i = 0; i < CHAINS; i++)					\
			sum = add(sum, chain[i]);					\
		sink = first(sum);							\
	}
BURN(burn_512, "avx512f", __m512, _mm512_set1_ps, _mm512_fmadd_ps, _mm512_add_ps, _mm512_cvtss_f32)
BURN(burn_256, "avx2,fma", __m256, _mm256_set1_ps, _mm256_fmadd_ps, _mm256_add_ps, _mm256_cvtss_f32)
/* clang-format on */

/* One thread looks at its own time: what others take of its core does not count. */
static double now_s(int threads)
{
	struct timespec now;

	if (threads > 1)
		return seconds();
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

struct burner {
	pthread_t thread;
	unsigned core; /* where it stays; the caller keeps the place it has */
	bool wide;
};

static void burn(bool wide)
{
	if (wide)
		burn_512();
	else
		burn_256();
}

static void *burn_beside(void *arg)
{
	const struct burner *b = arg;

	(void)cpus_bind(b->core);
	burn(b->wide);
	return NULL;
}

/* Seconds of one round, 0 when a thread could not be started. */
static double round_s(int threads, bool wide)
{
	struct burner burner[MAX_THREADS];
	double start = now_s(threads);
	int started = 0;

	for (; started < threads - 1; started++) {
		struct burner *b = &burner[started];
		b->core = (unsigned)started + 1;
		b->wide = wide;
		if (pthread_create(&b->thread, NULL, burn_beside, b) != 0)
			break;
	}
	burn(wide);
	for (int i = 0; i < started; i++)
		pthread_join(burner[i].thread, NULL);
	return started == threads - 1 ? now_s(threads) - start : 0;
}

double peak_fma_flops(int threads)
{
	bool wide = instructions_used() >= INSTRUCTIONS_AVX512;
	double best = 0;

	if (instructions_used() == INSTRUCTIONS_BASE)
		return 0;
	if (threads <= 0)
		threads = (int)cpus_cores();
	if (threads > MAX_THREADS)
		return 0;
	double flop = 2.0 * (wide ? 16 : 8) * CHAINS * LOOPS * (double)threads;
	for (int i = 0; i < ROUNDS; i++) {
		double seconds = round_s(threads, wide);
		double rate = seconds > 0 ? flop / seconds : 0;
		best = rate > best ? rate : best;
	}
	return best;
}

#else

double peak_fma_flops(int threads)
{
	(void)threads;
	return 0;
}

#endif
