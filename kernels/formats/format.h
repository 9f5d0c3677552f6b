/* SPDX-License-Identifier: MIT */
/* formats/ - numbers of few bits: what each code means, and how fp32 is rounded to one.
 *
 * format.h - a format is a row of a table, or comes from its name ("e3m4"). Here is the definition,
 * a number at a time, in whole numbers; kernels/cpu/round.h has the same in vectors, to the bit.
 *
 * With Y bits of mantissa and the bias b, a code of sign s, exponent e and mantissa m means
 *     e > 0:  (-1)^s 2^(e-b) (1 + m/2^Y)        e = 0:  (-1)^s 2^(1-b) (m/2^Y)
 * Sources: IEEE 754-2019; OCP 8-bit Floating Point Specification 1.0 (e4m3fn, e5m2); OCP
 * Microscaling Formats (MX) Specification 1.0 (e3m2, e2m3, e2m1, e8m0); fnuz: Noune et al. 2022. */
#ifndef KERNELS_FORMATS_FORMAT_H
#define KERNELS_FORMATS_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/formats/random.h"

#ifdef __cplusplus
extern "C" {
#endif

enum format_kind {
	FORMAT_IEEE,    /* the largest exponent is Inf (m = 0) and NaN */
	FORMAT_FN,      /* all ones below the sign is NaN; no Inf */
	FORMAT_FNUZ,    /* only 10...0 is NaN; no Inf, no negative zero */
	FORMAT_FINITE,  /* every code is a number */
	FORMAT_INTEGER, /* two's complement */
	FORMAT_SCALE    /* e8m0: powers of two from 2^-127 on, without sign and zero; 255 is NaN */
};

enum { FORMAT_NAME_BYTES = 12 };

struct format {
	char name[FORMAT_NAME_BYTES];
	enum format_kind kind;
	uint8_t bits, exponent, mantissa; /* exponent + mantissa + 1 sign = bits, but for e8m0 */
	int16_t bias;
};

/* Which of the two nearest numbers it is to be. STOCHASTIC: the one farther from zero where u < the
 * distance from the nearer one, as a share of the gap; u = the upper 24 random bits / 2^24. */
enum rounding { ROUND_NEAREST_EVEN, ROUND_STOCHASTIC, ROUND_TOWARD_ZERO, ROUNDING_COUNT };

struct format_cast {
	enum rounding rounding;
	/* Beyond the largest number comes that number; else Inf, or NaN where there is none, or
	 * still that number where there is neither. Toward zero finite numbers never leave. */
	bool saturate;
};

/* The row of a name, or of any eXmY of at most 8 bits: with 8 bits as IEEE 754 has it where X > 1
 * and Y > 0, shorter ones have numbers only; "fn" behind it: finite but for NaN, which only 8 bits
 * have; or "fnuz". These are the names of ml_dtypes. false: there is none of that name. */
bool format_find(const char *name, struct format *out);
/* The i-th row; NULL behind the last. */
const struct format *format_row(unsigned i);
/* What format_find takes, for messages. A fixed text. */
const char *format_names(void);

/* x as a code; `random`: 32 bits, looked at by ROUND_STOCHASTIC only. NaN stays NaN; where there is
 * none it becomes the largest number, so that it does not hide as zero. e8m0 has neither zero nor
 * negative numbers: NaN. */
uint32_t format_encode(const struct format *f, float x, const struct format_cast *how,
		       uint32_t random);
/* What a code means; bits above format->bits are not looked at. */
float format_decode(const struct format *f, uint32_t code);
/* The largest number, and its code. */
float format_max(const struct format *f);
uint32_t format_max_code(const struct format *f);
/* The exponent of the largest power of two: emax in the MX specification. */
int format_emax(const struct format *f);

/* Codes of a vector, as backend.h's encode makes them. */
struct encoding {
	struct format format;
	struct format_cast how;
	struct random_stream random;
	uint64_t first; /* the random number of element 0 is that of this one */
};

#ifdef __cplusplus
}
#endif

#endif
