/* SPDX-License-Identifier: MIT */
/* stream.c - stream [threads] prints the memory bandwidth of this machine, now, in GB/s: a[i] =
 * b[i] + s c[i] over arrays that no cache holds, two bytes read for each written (McCalpin's
 * triad). */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "kernels/machine/cpus.h"

enum { FLOATS = 16 << 20, ROUNDS = 6, MAX_THREADS = 256 };

struct part {
	pthread_t thread;
	unsigned core;
	size_t first, count;
};

static float *a, *b, *c;

static void *triad(void *arg)
{
	const struct part *p = arg;

	(void)cpus_bind(p->core);
	for (size_t i = p->first; i < p->first + p->count; i++)
		a[i] = b[i] + 0.5f * c[i];
	return NULL;
}

static double round_s(struct part *part, int threads)
{
	struct timespec from, to;

	clock_gettime(CLOCK_MONOTONIC, &from);
	for (int i = 0; i < threads; i++)
		if (pthread_create(&part[i].thread, NULL, triad, &part[i]) != 0)
			exit(1);
	for (int i = 0; i < threads; i++)
		pthread_join(part[i].thread, NULL);
	clock_gettime(CLOCK_MONOTONIC, &to);
	return (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec);
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 1;
	struct part part[MAX_THREADS];
	double best = 0;

	if (threads < 1 || threads > MAX_THREADS)
		return 2;
	a = calloc(FLOATS, sizeof(*a));
	b = malloc(FLOATS * sizeof(*b));
	c = malloc(FLOATS * sizeof(*c));
	if (!a || !b || !c)
		return 1;
	for (size_t i = 0; i < FLOATS; i++)
		b[i] = c[i] = (float)(i % 7);
	for (int i = 0; i < threads; i++)
		part[i] = (struct part){ .core = (unsigned)i,
					 .first = (size_t)i * FLOATS / (size_t)threads,
					 .count = FLOATS / (size_t)threads };
	for (int i = 0; i < ROUNDS; i++) {
		double rate = 3.0 * sizeof(float) * FLOATS / round_s(part, threads);
		best = rate > best ? rate : best;
	}
	printf("%.1f\n", best * 1e-9);
	free(a);
	free(b);
	free(c);
	return 0;
}
