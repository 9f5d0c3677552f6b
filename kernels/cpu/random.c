/* SPDX-License-Identifier: MIT */
/* random.c - random words of consecutive elements: the blocks of philox.h in vectors.
 *
 * A lane of 64 bits holds a word of a block in its lower half, which is all that a multiplication
 * of 32 by 32 bits looks at. So a product is the block's next word as it stands, and, moved down, a
 * part of another; what stands in upper halves is never cleared. */
#include "kernels/cpu/round.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

/* ORDER: the even lanes are the first half of a vector's blocks, so that unpacking puts words in
 * order. */
#if defined(__AVX512F__)
enum { LANES = 8 };
#define ORDER 0, 4, 1, 5, 2, 6, 3, 7
#elif defined(__AVX2__)
enum { LANES = 4 };
#define ORDER 0, 2, 1, 3
#else
enum { LANES = 2 };
#define ORDER 0, 1
#endif
/* Two vectors, so that one multiplies while the other waits. */
enum { ROUNDS = 10, WORDS = 4, VECTORS = 2, BLOCKS = LANES * VECTORS, GROUP = BLOCKS * WORDS };

typedef uint64_t lanes __attribute__((vector_size(sizeof(uint64_t) * LANES)));

/* The products of the lower halves; and the even and the odd lanes of two vectors, in turn. */
#if defined(__AVX512F__)
CPU_INLINE lanes products(lanes a, lanes b)
{
	return (lanes)_mm512_mul_epu32((__m512i)a, (__m512i)b);
}
CPU_INLINE lanes even_of(lanes a, lanes b)
{
	return (lanes)_mm512_unpacklo_epi64((__m512i)a, (__m512i)b);
}
CPU_INLINE lanes odd_of(lanes a, lanes b)
{
	return (lanes)_mm512_unpackhi_epi64((__m512i)a, (__m512i)b);
}
#elif defined(__AVX2__)
CPU_INLINE lanes products(lanes a, lanes b)
{
	return (lanes)_mm256_mul_epu32((__m256i)a, (__m256i)b);
}
CPU_INLINE lanes even_of(lanes a, lanes b)
{
	return (lanes)_mm256_unpacklo_epi64((__m256i)a, (__m256i)b);
}
CPU_INLINE lanes odd_of(lanes a, lanes b)
{
	return (lanes)_mm256_unpackhi_epi64((__m256i)a, (__m256i)b);
}
#else
CPU_INLINE lanes products(lanes a, lanes b)
{
#if defined(__SSE2__)
	return (lanes)_mm_mul_epu32((__m128i)a, (__m128i)b);
#else
	return (a & UINT32_MAX) * (b & UINT32_MAX);
#endif
}
CPU_INLINE lanes even_of(lanes a, lanes b)
{
	return (lanes){ a[0], b[0] };
}
CPU_INLINE lanes odd_of(lanes a, lanes b)
{
	return (lanes){ a[1], b[1] };
}
#endif

CPU_INLINE void philox_lanes(lanes c[WORDS][VECTORS], uint64_t key)
{
	const lanes m0 = (lanes){ 0 } + 0xD2511F53u, m1 = (lanes){ 0 } + 0xCD9E8D57u;
	lanes k0 = (lanes){ 0 } + (key & UINT32_MAX), k1 = (lanes){ 0 } + (key >> 32);

#pragma GCC unroll 10
	for (int round = 0; round < ROUNDS; round++) {
#pragma GCC unroll 2
		for (size_t v = 0; v < VECTORS; v++) {
			lanes p0 = products(c[0][v], m0), p1 = products(c[2][v], m1);
			c[0][v] = (p1 >> 32) ^ c[1][v] ^ k0;
			c[1][v] = p1;
			c[2][v] = (p0 >> 32) ^ c[3][v] ^ k1;
			c[3][v] = p0;
		}
		k0 += 0x9E3779B9u;
		k1 += 0xBB67AE85u;
	}
}

/* The words of BLOCKS blocks. */
static void group_words(uint32_t words[GROUP], const struct random_stream *stream, uint64_t block)
{
	lanes c[WORDS][VECTORS], pairs[2];

	for (size_t v = 0; v < VECTORS; v++) {
		c[0][v] = (lanes){ ORDER } + block + v * LANES;
		c[1][v] = c[0][v] >> 32;
		c[2][v] = (lanes){ 0 } + stream->tensor;
		c[3][v] = (lanes){ 0 } + stream->step;
	}
	philox_lanes(c, stream->key);
	for (size_t v = 0; v < VECTORS; v++, words += LANES * WORDS) {
		for (size_t i = 0; i < 2; i++)
			pairs[i] = (c[2 * i][v] & UINT32_MAX) | c[2 * i + 1][v] << 32;
		const lanes first = even_of(pairs[0], pairs[1]),
			    second = odd_of(pairs[0], pairs[1]);
		memcpy(words, &first, sizeof(first));
		memcpy(words + LANES * WORDS / 2, &second, sizeof(second));
	}
}

void random_words(uint32_t *words, const struct random_stream *stream, uint64_t first, size_t count)
{
	size_t skip = first % WORDS;
	uint32_t some[GROUP] = { 0 };

	for (size_t done = 0; done < count; skip = 0) {
		size_t more = cpu_min(count - done, GROUP - skip);
		bool is_whole = more == GROUP;
		group_words(is_whole ? words + done : some, stream, (first + done) / WORDS);
		if (!is_whole)
			memcpy(words + done, some + skip, more * sizeof(*words));
		done += more;
	}
}
