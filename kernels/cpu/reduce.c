/* SPDX-License-Identifier: MIT */
/* reduce.c - sums of two arrays, one of them times a factor; and sum of squares: fp32 within pieces
 * of PIECE elements, fp64 across them, in order.
 *
 * A task owns BLOCK elements and leaves one fp64 partial sum; the caller adds those in order. The
 * split depends on the count only, so the sum is the same for any number of threads. */
#include "kernels/cpu/cpu.h"

enum { PIECE = 1024, BLOCK = 1 << 20, ADDED = 1 << 16 };

struct squares {
	const float *x;
	size_t count;
	double *partial; /* one per task */
};

static void squares_task(const void *args, size_t index, unsigned worker)
{
	const struct squares *s = args;
	size_t at = index * BLOCK;
	size_t end = cpu_min(at + BLOCK, s->count);
	double sum = 0;

	(void)worker;
	for (; at < end; at += PIECE)
		sum += (double)cpu_dot(s->x + at, s->x + at, cpu_min(PIECE, end - at));
	s->partial[index] = sum;
}

void cpu_sum_squares(struct device *dev, double *sum, const void *x, size_t count, bool narrow,
		     bool accumulate)
{
	size_t tasks = cpu_tasks(count, BLOCK);

	(void)narrow; /* fp32 either way */
	if (!accumulate)
		*sum = 0;
	if (!cpu_scratch(dev, tasks * sizeof(double)))
		return;
	const struct squares s = { x, count, (double *)(void *)dev->scratch[0] };
	pool_run(dev->pool, tasks, squares_task, &s);
	for (size_t i = 0; i < tasks; i++)
		*sum += s.partial[i];
}

struct addition {
	float *to;
	const float *from;
	size_t count;
};

static void add_task(const void *args, size_t index, unsigned worker)
{
	const struct addition *a = args;
	size_t at = index * ADDED, end = cpu_min(at + ADDED, a->count);
	float *restrict to = a->to;
	const float *restrict from = a->from;

	(void)worker;
	for (; at < end; at++)
		to[at] += from[at];
}

void cpu_add(struct device *dev, float *to, const float *from, size_t count)
{
	const struct addition a = { to, from, count };

	pool_run(dev->pool, cpu_tasks(count, ADDED), add_task, &a);
}

struct scaled_sum {
	float *out;
	const float *x, *delta;
	size_t count;
	float factor;
};

/* No restrict: out may be x or delta. */
static void scaled_sum_task(const void *args, size_t index, unsigned worker)
{
	const struct scaled_sum *s = args;
	size_t first = index * ADDED, end = cpu_min(first + ADDED, s->count);

	(void)worker;
	if (s->delta)
#pragma omp simd
		for (size_t i = first; i < end; i++)
			s->out[i] = s->x[i] * s->factor + s->delta[i];
	else
#pragma omp simd
		for (size_t i = first; i < end; i++)
			s->out[i] = s->x[i] * s->factor;
}

void cpu_scaled_sum(struct device *dev, void *out, const void *x, float factor, const void *delta,
		    size_t count)
{
	const struct scaled_sum s = { out, x, delta, count, factor };

	pool_run(dev->pool, cpu_tasks(count, ADDED), scaled_sum_task, &s);
}
