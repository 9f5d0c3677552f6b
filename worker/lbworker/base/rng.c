/* SPDX-License-Identifier: MIT */
/* rng.c - what is drawn from Philox. */
#include "worker/lbworker/base/rng.h"

#include <math.h>

static const double PI = 3.14159265358979323846;

enum { FEISTEL_ROUNDS = 6 };

uint64_t rng_key(const struct rng *rng)
{
	return rng->seed ^ (uint64_t)rng->stream << 56;
}

void rng_words(const struct rng *rng, uint64_t element, uint32_t out[4])
{
	const uint64_t both = rng_key(rng);
	const uint32_t key[2] = { (uint32_t)both, (uint32_t)(both >> 32) };
	const uint32_t counter[4] = { (uint32_t)element, (uint32_t)(element >> 32), rng->tensor,
				      rng->step };
	philox4x32_10(out, counter, key);
}

/* Two uniform words to two normal numbers; the first is moved into (0, 1]. */
static void box_muller(uint32_t a, uint32_t b, double out[2])
{
	double radius = sqrt(-2.0 * log(((double)a + 1.0) / 4294967296.0));
	double angle = 2.0 * PI * ((double)b / 4294967296.0);
	out[0] = radius * cos(angle);
	out[1] = radius * sin(angle);
}

void rng_normal(const struct rng *rng, float *to, size_t count, double std)
{
	for (size_t i = 0; i < count; i += 4) {
		uint32_t words[4];
		double normal[4];
		rng_words(rng, i / 4, words);
		box_muller(words[0], words[1], normal);
		box_muller(words[2], words[3], normal + 2);
		for (size_t j = 0; j < 4 && i + j < count; j++)
			to[i + j] = (float)(normal[j] * std);
	}
}

static uint64_t feistel(const struct rng *rng, uint64_t value, unsigned half_bits)
{
	uint64_t mask = ((uint64_t)1 << half_bits) - 1;
	uint64_t left = value >> half_bits, right = value & mask;

	for (uint32_t round = 0; round < FEISTEL_ROUNDS; round++) {
		struct rng keyed = *rng;
		uint32_t words[4];
		keyed.tensor = round;
		rng_words(&keyed, right, words);
		uint64_t mixed = ((uint64_t)words[1] << 32 | words[0]) & mask;
		uint64_t swap = left ^ mixed;
		left = right;
		right = swap;
	}
	return left << half_bits | right;
}

uint64_t rng_permute(const struct rng *rng, uint64_t index, uint64_t size)
{
	unsigned half_bits = 1;

	while (half_bits < 32 && (uint64_t)1 << (2 * half_bits) < size)
		half_bits++;
	do
		index = feistel(rng, index, half_bits);
	while (index >= size);
	return index;
}
