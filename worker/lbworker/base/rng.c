/* SPDX-License-Identifier: MIT */
/* rng.c - what is drawn from Philox. */
#include "worker/lbworker/base/rng.h"

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
