/* SPDX-License-Identifier: MIT */
/* recipes/ - which operands of which products are of few bits, and when.
 *
 * recipe.h - a recipe is a row of six slots in words, and so is a new one:
 *
 *     forward            y  = x W^T        x and w
 *     input's gradient   dx = g W          g and w
 *     weight's gradient  dW = g^T x        g and x
 *
 * A slot is "-" (the operand stays as it is), or a format, what shares a scale, the scale, and
 * more:
 *     e4m3fn tensor            one scale, fp32
 *     e4m3fn row pow2          one for each row (of what is summed over), a power of two
 *     e4m3fn 128x128           one for 128 across times 128 along; 1x128: 128 along
 *     e4m3fn 1x32 up           powers of two: floor, up or even
 *     e2m1 1x16 e4m3           two levels, as NVFP4
 *     bf16                     no scale
 *     ... stochastic | zero    rounding; else to nearest, ties to even
 *     ... hadamard | four-over-six | delayed:16
 * kernels/formats/operand.h has the formulas and their sources. */
#ifndef LBWORKER_RECIPE_H
#define LBWORKER_RECIPE_H

#include "common/base/err.h"
#include "kernels/formats/operand.h"

enum product { PRODUCT_FORWARD, PRODUCT_INPUT, PRODUCT_WEIGHT, PRODUCT_COUNT };
enum { OPERANDS = 2, SLOTS = PRODUCT_COUNT * OPERANDS, SLOT_BYTES = 64 };

/* In the order of the drawing above. */
extern const char *const recipe_slot_names[SLOTS]; /* "forward.x", ... */

struct recipe {
	char *name; /* owned */
	struct operand_cast slot[SLOTS];
};

struct recipe_row {
	const char *name, *help, *source;
	const char *slot[SLOTS];
};
/* The i-th recipe of the table; NULL behind the last. */
const struct recipe_row *recipe_row(size_t i);

/* By a name of the table, another program's name for it, or the path of a TOML file (a name with a
 * slash, or that ends in .toml):
 *     base = "mxfp8"            a recipe that the rest changes; left out: "none"
 *     [forward]  x = "SLOT"  w = "SLOT"
 *     [input]    g = "SLOT"  w = "SLOT"
 *     [weight]   g = "SLOT"  x = "SLOT"
 * 0, or -1 with what is wrong and what is allowed (ERR_USAGE). Undo with recipe_clear. */
int recipe_find(struct recipe *out, const char *name, struct err *err);
void recipe_clear(struct recipe *recipe); /* a zeroed one is fine */

/* A slot from its words, and back. */
int slot_parse(struct operand_cast *out, const char *text, struct err *err);
const char *slot_print(const struct operand_cast *slot, char out[SLOT_BYTES]);

#endif
