/* SPDX-License-Identifier: MIT */
/* modes.c - formats and scales of two operands beside what matrix units multiply. */
#include "kernels/formats/modes.h"

enum { SIDES = 2, BLOCK_128 = 128, ALIGN = 16, ALIGN_BLOCKS = 32 };
enum { ADA = 89, HOPPER = 90, BLACKWELL = 100 };

static bool is_e5m2(const struct operand_cast *c)
{
	return c->format.kind == FORMAT_IEEE && c->format.exponent == 5 && c->format.mantissa == 2;
}

static bool is_fp8(const struct operand_cast *c)
{
	const struct format *f = &c->format;

	return is_e5m2(c) || (f->kind == FORMAT_FN && f->exponent == 4 && f->mantissa == 3);
}

/* How scales in fp32 are handed over; false: there is no such mode. */
static bool fp32_layout(const struct operand_cast *c, enum scale_layout *layout)
{
	bool is_fp32 = c->scale == SCALE_FP32 || c->scale == SCALE_POW2;

	if (c->along == OPERAND_ALL && c->across == OPERAND_ALL)
		*layout = LAYOUT_SCALAR;
	else if (c->along == OPERAND_ALL && c->across == 1)
		*layout = LAYOUT_VECTOR;
	else if (c->along == BLOCK_128 && c->across == 1)
		*layout = LAYOUT_VEC128;
	else if (c->along == BLOCK_128 && c->across == BLOCK_128)
		*layout = LAYOUT_BLOCKS;
	else
		return false;
	return is_fp32;
}

/* Scales of both sides go together: a scalar beside a vector is repeated. */
static bool fp32_layouts(const struct operand_cast *a, const struct operand_cast *b, int capability,
			 enum scale_layout layout[SIDES])
{
	if (!fp32_layout(a, &layout[0]) || !fp32_layout(b, &layout[1]))
		return false;
	if (layout[0] == LAYOUT_SCALAR && layout[1] == LAYOUT_SCALAR)
		return true;
	if (capability != HOPPER)
		return false;
	for (int i = 0; i < SIDES; i++)
		if (layout[i] == LAYOUT_SCALAR && layout[1 - i] == LAYOUT_VECTOR)
			layout[i] = LAYOUT_VECTOR;
	if (layout[0] == LAYOUT_VECTOR || layout[1] == LAYOUT_VECTOR)
		return layout[0] == layout[1];
	return layout[0] != LAYOUT_SCALAR && layout[1] != LAYOUT_SCALAR &&
	       (layout[0] == LAYOUT_VEC128 || layout[1] == LAYOUT_VEC128);
}

static bool has_e8m0(const struct operand_cast *c)
{
	return is_fp8(c) && c->along % layout_block(LAYOUT_E8M0) == 0 && /* OPERAND_ALL, too */
	       (c->scale == SCALE_POW2 || c->scale == SCALE_FLOOR || c->scale == SCALE_UP ||
		c->scale == SCALE_EVEN);
}

static bool has_e4m3(const struct operand_cast *c)
{
	const struct format *f = &c->format;

	return f->kind == FORMAT_FINITE && f->bits == 4 && f->exponent == 2 &&
	       c->scale == SCALE_E4M3 && c->along == layout_block(LAYOUT_E4M3);
}

static bool layouts_of(const struct operand_cast *a, const struct operand_cast *b, int capability,
		       enum scale_layout layout[SIDES])
{
	const bool fp8 = is_fp8(a) && is_fp8(b) && !(is_e5m2(a) && is_e5m2(b));

	if (fp8 && capability >= ADA && fp32_layouts(a, b, capability, layout))
		return true;
	if (capability < BLACKWELL)
		return false;
	if (fp8 && has_e8m0(a) && has_e8m0(b))
		layout[0] = layout[1] = LAYOUT_E8M0;
	else if (has_e4m3(a) && has_e4m3(b))
		layout[0] = layout[1] = LAYOUT_E4M3;
	else
		return false;
	return true;
}

const char *codes_refused(const struct operand_cast *a, const struct operand_cast *b,
			  const struct product_sizes *s, int capability,
			  enum scale_layout layout[SIDES])
{
	if (!a || !b || a->format.bits == 0 || b->format.bits == 0)
		return "one operand stays as it is";
	if (!layouts_of(a, b, capability, layout))
		return "its matrix units have no such pair of formats and scales";
	bool in_blocks = layout_block(layout[0]) > 0;
	if ((s->m | s->n) % ALIGN == 0 && s->k % (in_blocks ? ALIGN_BLOCKS : ALIGN) == 0)
		return NULL;
	return in_blocks ? "sizes that are no multiples of 16, or, summed over, of 32"
			 : "sizes that are no multiples of 16";
}
