/* SPDX-License-Identifier: MIT */
/* rng.h - random numbers that are a function of where they are used, so there is no state to save.
 *
 * Philox4x32-10 (Salmon et al., SC 2011): 128 random bits from a 64-bit key and a 128-bit counter.
 * The key is (seed, stream), the counter (step, tensor, element). */
#ifndef LBWORKER_RNG_H
#define LBWORKER_RNG_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/philox.h"

enum rng_stream { RNG_INIT, RNG_ORDER, RNG_MIX, RNG_GENERATE, RNG_ROUND, RNG_QUANTIZE, RNG_LORA };

/* one place of use */
struct rng {
	uint64_t seed;
	enum rng_stream stream;
	uint32_t step, tensor;
};

/* The key of that seed and stream. */
uint64_t rng_key(const struct rng *rng);

/* The four words of element `element`. */
void rng_words(const struct rng *rng, uint64_t element, uint32_t out[4]);

/* A bijection of 0..size-1 chosen by `rng`; where `index` goes. A six-round Feistel network over
 * the next even number of bits, walked until it lands inside (at most some four steps). */
uint64_t rng_permute(const struct rng *rng, uint64_t index, uint64_t size);

#endif
