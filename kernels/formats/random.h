/* SPDX-License-Identifier: MIT */
/* random.h - the random number of an element, on hosts and on devices. */
#ifndef KERNELS_FORMATS_RANDOM_H
#define KERNELS_FORMATS_RANDOM_H

#include <stdint.h>

#include "kernels/philox.h"

#if defined(__CUDACC__) || defined(__HIP__)
#define FORMAT_INLINE static __host__ __device__ __forceinline__
#else
#define FORMAT_INLINE static inline __attribute__((always_inline))
#endif

/* The four words of a Philox block (philox.h) are the random numbers of elements 4i..4i+3. */
struct random_stream {
	uint64_t key;
	uint32_t tensor, step; /* the upper half of the counter; the lower half is i */
};

FORMAT_INLINE void random_block(uint32_t words[4], const struct random_stream *s, uint64_t i)
{
	const uint32_t counter[4] = { (uint32_t)i, (uint32_t)(i >> 32), s->tensor, s->step };
	const uint32_t key[2] = { (uint32_t)s->key, (uint32_t)(s->key >> 32) };

	philox4x32_10(words, counter, key);
}

FORMAT_INLINE uint32_t random_word(const struct random_stream *s, uint64_t element)
{
	uint32_t words[4], at = (uint32_t)(element % 4);

	random_block(words, s, element / 4);
	return at < 2 ? (at == 0 ? words[0] : words[1]) : (at == 2 ? words[2] : words[3]);
}

#endif
