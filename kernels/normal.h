/* SPDX-License-Identifier: MIT */
/* normal.h - normal numbers that are the same bits on every device: Box & Muller 1958 on Philox's
 * words, its logarithm, sine and cosine in nothing but additions, products, one quotient and one
 * root of fp64, each of which IEEE 754 rounds in one way. Compile without contraction: a fused
 * multiply-add rounds once where two operations round twice. */
#ifndef KERNELS_NORMAL_H
#define KERNELS_NORMAL_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kernels/philox.h"

#ifdef __CUDA_ARCH__
#define NORMAL_MUL(a, b) __dmul_rn(a, b)
#define NORMAL_ADD(a, b) __dadd_rn(a, b)
#else
#define NORMAL_MUL(a, b) ((a) * (b))
#define NORMAL_ADD(a, b) ((a) + (b))
#endif

/* 1 + x/d[0] (1 + x/d[1] (1 + …)), from the innermost on; reciprocals of d. */
#define NORMAL_NEST(sum, x, reciprocal) NORMAL_ADD(1.0, NORMAL_MUL(NORMAL_MUL(x, reciprocal), sum))

/* ln of (word + 1) / 2^32, which is in (0, 1]: 2 atanh((m - 1)/(m + 1)) + e ln 2, m in [0.7, 1.5).
 * The series ends behind s^19: below 2^-52 of the result. */
PHILOX_INLINE double normal_ln(uint32_t word)
{
	double x = NORMAL_ADD((double)word, 1.0), square, sum = 1.0 / 19;
	uint64_t bits;

	memcpy(&bits, &x, sizeof(bits));
	int exponent = (int)(bits >> 52) - 1023 - 32;
	bits = (bits & 0xfffffffffffffu) | (uint64_t)1023 << 52;
	memcpy(&x, &bits, sizeof(x));
	if (x > 1.41421356237309505) {
		x = NORMAL_MUL(x, 0.5);
		exponent++;
	}
	x = NORMAL_ADD(x, -1.0) / NORMAL_ADD(x, 1.0);
	square = NORMAL_MUL(x, x);
	sum = NORMAL_ADD(NORMAL_MUL(sum, square), 1.0 / 17);
	sum = NORMAL_ADD(NORMAL_MUL(sum, square), 1.0 / 15);
	sum = NORMAL_ADD(NORMAL_MUL(sum, square), 1.0 / 13);
	sum = NORMAL_ADD(NORMAL_MUL(sum, square), 1.0 / 11);
	sum = NORMAL_ADD(NORMAL_MUL(sum, square), 1.0 / 9);
	sum = NORMAL_ADD(NORMAL_MUL(sum, square), 1.0 / 7);
	sum = NORMAL_ADD(NORMAL_MUL(sum, square), 1.0 / 5);
	sum = NORMAL_ADD(NORMAL_MUL(sum, square), 1.0 / 3);
	sum = NORMAL_ADD(NORMAL_MUL(sum, square), 1.0);
	return NORMAL_ADD(NORMAL_MUL(NORMAL_MUL(2.0, x), sum),
			  NORMAL_MUL((double)exponent, 0.693147180559945309));
}

/* Cosine and sine of 2 pi word / 2^32: of the rest to the nearest quarter by Taylor's series,
 * |rest| <= pi/4, and turned by whole quarters without rounding. */
PHILOX_INLINE void normal_turn(uint32_t word, double *cosine, double *sine)
{
	uint32_t quarter = (word + (1u << 29)) >> 30;
	double x = NORMAL_MUL((double)(int32_t)(word - (quarter << 30)),
			      6.28318530717958648 / 4294967296.0);
	double square = NORMAL_MUL(x, x), c = 1.0, s = 1.0;

	c = NORMAL_NEST(c, square, -1.0 / (15 * 16));
	c = NORMAL_NEST(c, square, -1.0 / (13 * 14));
	c = NORMAL_NEST(c, square, -1.0 / (11 * 12));
	c = NORMAL_NEST(c, square, -1.0 / (9 * 10));
	c = NORMAL_NEST(c, square, -1.0 / (7 * 8));
	c = NORMAL_NEST(c, square, -1.0 / (5 * 6));
	c = NORMAL_NEST(c, square, -1.0 / (3 * 4));
	c = NORMAL_NEST(c, square, -1.0 / (1 * 2));
	s = NORMAL_NEST(s, square, -1.0 / (16 * 17));
	s = NORMAL_NEST(s, square, -1.0 / (14 * 15));
	s = NORMAL_NEST(s, square, -1.0 / (12 * 13));
	s = NORMAL_NEST(s, square, -1.0 / (10 * 11));
	s = NORMAL_NEST(s, square, -1.0 / (8 * 9));
	s = NORMAL_NEST(s, square, -1.0 / (6 * 7));
	s = NORMAL_NEST(s, square, -1.0 / (4 * 5));
	s = NORMAL_NEST(s, square, -1.0 / (2 * 3));
	s = NORMAL_MUL(s, x);
	*cosine = quarter & 1 ? s : c;
	*sine = quarter & 1 ? c : s;
	if (quarter == 1 || quarter == 2)
		*cosine = -*cosine;
	if (quarter == 2 || quarter == 3)
		*sine = -*sine;
}

/* Four normal numbers times std, from four words. */
PHILOX_INLINE void normal_of_words(float out[4], const uint32_t words[4], double std)
{
	for (int i = 0; i < 4; i += 2) {
		double radius = sqrt(NORMAL_MUL(-2.0, normal_ln(words[i]))), cosine, sine;
		normal_turn(words[i + 1], &cosine, &sine);
		out[i] = (float)NORMAL_MUL(NORMAL_MUL(radius, cosine), std);
		out[i + 1] = (float)NORMAL_MUL(NORMAL_MUL(radius, sine), std);
	}
}

#endif
