/* SPDX-License-Identifier: MIT */
/* fma_peak.c - the fp32 fused-multiply-add rate of this machine, now: the ceiling of a trainer.
 *
 *   fma_peak [threads]  →  prints GFLOP/s, the best of several short rounds
 *
 * Each thread keeps enough independent vector accumulators in registers to fill the pipelines of
 * any x86 since Haswell; the widest instructions the CPU has are chosen at run time. */
#include <immintrin.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ACCUMULATORS = 12, ROUNDS = 8, LOOPS = 4000000, MAX_THREADS = 1024 };

static volatile float sink;

/* The twelve chains are spelled out by the macro so that they stay in registers. */
#define CHAINS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)

__attribute__((target("avx512f"))) static void *burn_512(void *arg)
{
	__m512 a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(0.001f), sum = b;
#define START(i) __m512 c##i = _mm512_set1_ps((float)(i));
#define STEP(i) c##i = _mm512_fmadd_ps(c##i, a, b);
#define ADD(i) sum = _mm512_add_ps(sum, c##i);
	CHAINS(START)
	for (long n = 0; n < LOOPS; n++) {
		CHAINS(STEP)
	}
	CHAINS(ADD)
	sink = _mm512_reduce_add_ps(sum);
#undef START
#undef STEP
#undef ADD
	return arg;
}

__attribute__((target("avx2,fma"))) static void *burn_256(void *arg)
{
	__m256 a = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(0.001f), sum = b;
#define START(i) __m256 c##i = _mm256_set1_ps((float)(i));
#define STEP(i) c##i = _mm256_fmadd_ps(c##i, a, b);
#define ADD(i) sum = _mm256_add_ps(sum, c##i);
	CHAINS(START)
	for (long n = 0; n < LOOPS; n++) {
		CHAINS(STEP)
	}
	CHAINS(ADD)
	sink = _mm256_cvtss_f32(sum);
	return arg;
}

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double round_s(void *(*burn)(void *), int threads)
{
	pthread_t thread[MAX_THREADS];
	double start = now_s();
	int started = 0;

	for (; started < threads - 1; started++)
		if (pthread_create(&thread[started], NULL, burn, NULL) != 0)
			break;
	burn(NULL);
	for (int i = 0; i < started; i++)
		pthread_join(thread[i], NULL);
	return started == threads - 1 ? now_s() - start : 1e9;
}

int main(int argc, char **argv)
{
	long threads = argc > 1 ? strtol(argv[1], NULL, 10) : 1;
	int wide = __builtin_cpu_supports("avx512f");
	double lanes = wide ? 16 : 8, best = 0;

	if (threads < 1 || threads > MAX_THREADS || (!wide && !__builtin_cpu_supports("fma"))) {
		fprintf(stderr, "fma_peak: needs a CPU with FMA, and 1 to %d threads\n",
			MAX_THREADS);
		return 2;
	}
	for (int i = 0; i < ROUNDS; i++) {
		double flop = 2.0 * lanes * ACCUMULATORS * LOOPS * (double)threads;
		double rate = flop / round_s(wide ? burn_512 : burn_256, (int)threads) * 1e-9;
		best = rate > best ? rate : best;
	}
	printf("%.0f\n", best);
	return 0;
}
