/* SPDX-License-Identifier: MIT */
/* keep.c - what an optimizer keeps beside fp32 moments: moments of 8 bits, weights of 16, the
 * weights' mean over steps; formulas stand in backend.h.
 *
 * A task owns BLOCK elements, which is a multiple of what shares a scale. */
#include "kernels/cpu/round.h"

#include <math.h>

enum { BLOCK = 65536, PIECE = 256 };

/* --- moments ---------------------------------------------------------------------------------- */

struct getting {
	float *x;
	const uint8_t *codes;
	const float *scales;
	size_t count;
	const float *map;
};

struct putting {
	const float *x;
	uint8_t *codes;
	float *scales;
	size_t count;
	const float *map;
};

static void get_task(const void *args, size_t index, unsigned worker)
{
	const struct getting *k = args;
	size_t end = cpu_min(k->count, (index + 1) * BLOCK);

	(void)worker;
	for (size_t i = index * BLOCK; i < end; i++)
		k->x[i] = k->map[k->codes[i]] * k->scales[i / MOMENTS_SHARE];
}

/* The nearest number of the map, which rises; of two as near the larger. */
static uint8_t nearest_code(const float *map, float x)
{
	unsigned code = 0;

	for (unsigned step = MOMENTS_CODES / 2; step > 0; step /= 2)
		code += x >= map[code + step] ? step : 0;
	unsigned up = code + 1 < MOMENTS_CODES ? code + 1 : code;
	return (uint8_t)(x - map[code] >= (map[up] - map[code]) * 0.5f ? up : code);
}

static void put_task(const void *args, size_t index, unsigned worker)
{
	const struct putting *k = args;
	size_t end = cpu_min(k->count, (index + 1) * BLOCK);

	(void)worker;
	for (size_t at = index * BLOCK; at < end; at += MOMENTS_SHARE) {
		size_t count = cpu_min(MOMENTS_SHARE, end - at);
		float most = 1e-12f;
		for (size_t i = at; i < at + count; i++)
			most = fabsf(k->x[i]) > most ? fabsf(k->x[i]) : most;
		k->scales[at / MOMENTS_SHARE] = most;
		for (size_t i = at; i < at + count; i++)
			k->codes[i] = nearest_code(k->map, k->x[i] / most);
	}
}

void cpu_moments_get(struct device *dev, float *to, const uint8_t *codes, const float *scales,
		     size_t count, const float *map)
{
	const struct getting k = { to, codes, scales, count, map };

	pool_run(dev->pool, cpu_tasks(count, BLOCK), get_task, &k);
}

void cpu_moments_put(struct device *dev, uint8_t *codes, float *scales, const float *from,
		     size_t count, const float *map)
{
	const struct putting k = { from, codes, scales, count, map };

	pool_run(dev->pool, cpu_tasks(count, BLOCK), put_task, &k);
}

/* --- weights ---------------------------------------------------------------------------------- */

struct widening {
	float *w;
	const uint16_t *lost;
	size_t count;
};

struct narrowing {
	float *w;
	uint16_t *lost;
	size_t count;
	const struct encoding *how;
};

static void widen_task(const void *args, size_t index, unsigned worker)
{
	const struct widening *n = args;
	size_t end = cpu_min(n->count, (index + 1) * BLOCK);

	(void)worker;
	for (size_t i = index * BLOCK; i < end; i++)
		n->w[i] += float_of((uint32_t)n->lost[i] << 16);
}

static void narrow_task(const void *args, size_t index, unsigned worker)
{
	const struct narrowing *n = args;
	size_t end = cpu_min(n->count, (index + 1) * BLOCK);
	bool by_chance = n->how->how.rounding == ROUND_STOCHASTIC;

	(void)worker;
	for (size_t at = index * BLOCK; at < end; at += PIECE) {
		size_t count = cpu_min(PIECE, end - at);
		uint32_t random[PIECE] = { 0 };
		if (by_chance)
			random_words(random, &n->how->random, n->how->first + at, count);
		for (size_t i = 0; i < count; i++) {
			float x = n->w[at + i];
			float near = float_of(round_to_bf16(x, ROUND_NEAREST_EVEN, 0));
			n->w[at + i] = by_chance ? float_of(round_to_bf16(x, ROUND_STOCHASTIC,
									  random[i]))
						 : near;
			if (n->lost)
				n->lost[at + i] = (uint16_t)(round_to_bf16(x - near,
									   ROUND_NEAREST_EVEN, 0) >>
							     16);
		}
	}
}

void cpu_weights_widen(struct device *dev, float *w, const uint16_t *lost, size_t count)
{
	const struct widening n = { w, lost, count };

	pool_run(dev->pool, cpu_tasks(count, BLOCK), widen_task, &n);
}

void cpu_weights_narrow(struct device *dev, float *w, uint16_t *lost, size_t count,
			const struct encoding *how)
{
	const struct narrowing n = { w, lost, count, how };

	pool_run(dev->pool, cpu_tasks(count, BLOCK), narrow_task, &n);
}

/* --- the mean of weights ---------------------------------------------------------------------- */

struct averaging {
	float *mean;
	const float *w;
	size_t count;
	float share;
};

static void average_task(const void *args, size_t index, unsigned worker)
{
	const struct averaging *a = args;
	size_t end = cpu_min(a->count, (index + 1) * BLOCK);

	(void)worker;
	for (size_t i = index * BLOCK; i < end; i++)
		a->mean[i] += a->share * (a->w[i] - a->mean[i]);
}

void cpu_average(struct device *dev, float *mean, const float *w, size_t count, float share)
{
	const struct averaging a = { mean, w, count, share };

	pool_run(dev->pool, cpu_tasks(count, BLOCK), average_task, &a);
}
