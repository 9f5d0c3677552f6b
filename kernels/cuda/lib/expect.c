/* SPDX-License-Identifier: MIT */
/* expect.c - what products that come want of an operand of few bits that is about to be written
 * (kernels/cuda/expected.c): the largest of its numbers, where they scale by it; codes, or codes
 * times their scales, where these are local to a row or known from past steps, and the product
 * reads it as it lies. */
#include "kernels/cuda/lib/gemm.h"
#include "kernels/formats/operand.h"

/* Numbers that share a scale lie in a row, and only they decide on it and on the codes. */
static bool is_local(const struct operand_cast *c)
{
	return c->across == 1 && c->along != OPERAND_ALL && c->scale != SCALE_NONE &&
	       c->scale != SCALE_E4M3 && !c->hadamard && !c->four_over_six && c->history == 0 &&
	       c->rounding != ROUND_STOCHASTIC;
}

/* The largest of past steps decides; this one's goes where it is noted from. */
static bool is_delayed(const struct operand_use *u)
{
	const struct operand_cast *c = u->cast;

	return c->history > 0 && u->history && u->amax && operand_asks_amax(c) &&
	       c->scale != SCALE_E4M3 && !c->four_over_six && c->rounding != ROUND_STOCHASTIC &&
	       c->format.exponent != 8;
}

/* The product reads the operand as it lies: what the operation is to make, and where. */
static void want_numbers(struct device *dev, const struct place *at, const struct gemm *g,
			 size_t nth)
{
	struct expected *e = dev->expected;
	struct work_area *own = nth > 0 ? &e->area : NULL;
	struct few_bits f;

	if (e->made.use || !narrow_operand(dev, at, g, e->out, own, &f))
		return;
	const size_t along = f.use->cast->along;
	enum scale_layout layout = along == OPERAND_ALL ? LAYOUT_SCALAR : LAYOUT_VEC128;
	if ((f.codes && f.layout != layout) ||
	    (along != OPERAND_ALL && f.shape.columns % along != 0))
		return;
	e->use = *f.use;
	f.use = &e->use;
	e->made = f;
	e->nth = nth;
}

/* The use that a product has for what lies there; NULL: none, or as it is. */
static const struct operand_use *use_of(const struct gemm *g, const void *in, bool *along_memory)
{
	bool is_a = g->a == in;

	*along_memory = is_a ? !g->trans_a : g->trans_b;
	return is_a ? g->use_a : !g->b_is_weight && g->b == in ? g->use_b : NULL;
}

void cuda_expect(struct device *dev, const void *out, const struct gemm *product, size_t count)
{
	const struct place *at = AT("expect", product->m, product->n, product->k, 0);
	struct expected *e = dev->expected;

	/* what the next product reads is made already. Of this operand one pass makes as much, if
	 * its scales are local, too; under rules that differ from layer to layer passes of its own
	 * find its largest, or make its codes */
	if (e->is_made && e->made.use && e->nth > 0)
		return;
	expected_forget(dev);
	if (!out)
		return;
	e->out = out;
	e->products = count;
	for (size_t i = 0; dev->is_fused && i < count; i++) {
		bool along_memory;
		const struct operand_use *use = use_of(&product[i], out, &along_memory);
		/* what is only made where it is faster may be made of the operand as it is */
		if (!use || product[i].only_faster)
			continue;
		if (operand_asks_amax(use->cast) && use->amax)
			e->amax = use->amax;
		if (along_memory && (is_local(use->cast) || is_delayed(use)))
			want_numbers(dev, at, &product[i], i);
	}
}
