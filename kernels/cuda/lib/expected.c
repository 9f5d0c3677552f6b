/* SPDX-License-Identifier: MIT */
/* expected.c - an operand of few bits that is made by the operation which writes it: the largest of its numbers, for
 * products that scale by it; and codes, or codes times their scales, where these are local to a row.
 *
 * A product is told of before its operand is written (expect), the operation asks what is wanted of it
 * (cuda_finishing, by ops/finish.cuh), and the product what there is (expected_codes and the like). What does not fit
 * together on this way is made by passes of its own, with the same bits. LB_CUDA_FUSED=0: all of it. */
#include "kernels/cuda/lib/gemm.h"

#include <string.h>

enum { WARP_LANES = 32, VECTOR_BYTES = 16 };

static bool is_power_of_two(size_t n)
{
	return n > 0 && (n & (n - 1)) == 0;
}

/* Numbers that share a scale lie in a row, and only they decide on it and on the codes. */
static bool is_local(const struct operand_cast *c)
{
	return c->across == 1 && c->along != OPERAND_ALL && c->scale != SCALE_NONE &&
	       c->scale != SCALE_E4M3 && !c->hadamard && !c->four_over_six && c->history == 0 &&
	       c->rounding != ROUND_STOCHASTIC;
}

/* The product reads the operand as it lies: what the operation is to make, and where. */
static void want_numbers(struct device *dev, const struct place *at, const struct gemm *g,
			 size_t nth)
{
	struct expected *e = &dev->gemms->expected;
	struct work_area *own = nth > 0 ? &e->area : NULL;
	struct few_bits f;

	if (e->made.use || !narrow_operand(dev, at, g, e->out, own, &f))
		return;
	bool has_layout = f.values || f.layout == LAYOUT_VEC128;
	if (!has_layout || f.shape.columns % f.use->cast->along != 0)
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
	struct expected *e = &dev->gemms->expected;

	expected_forget(dev->gemms);
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
		if (along_memory && is_local(use->cast))
			want_numbers(dev, at, &product[i], i);
	}
}

bool cuda_finishing(struct device *dev, const struct place *at, const void *out, size_t count,
		    size_t unit, struct finishing *f)
{
	struct expected *e = &dev->gemms->expected;
	const struct few_bits *m = &e->made;

	*f = (struct finishing){ 0 };
	if (!e->out || e->out != out)
		return false;
	if (m->use) {
		size_t each = VECTOR_BYTES / compute_bytes(dev->compute);
		size_t lanes = m->use->cast->along / each, run = unit % m->use->cast->along;
		bool fits = m->shape.rows * m->shape.columns == count && run == 0 &&
			    is_power_of_two(lanes) && lanes <= WARP_LANES &&
			    lanes * each == m->use->cast->along;
		if (!fits)
			e->made.use = NULL;
	}
	f->amax = e->amax;
	f->made = e->made;
	e->count = count;
	e->is_made = f->amax || f->made.use;
	if (f->amax)
		cuda_zero(dev, f->amax, sizeof(*f->amax));
	(void)at;
	return e->is_made;
}

/* --- what products ask ------------------------------------------------------------------------ */

void expected_forget(struct gemm_state *s)
{
	const struct work_area area = s->expected.area;

	s->expected = (struct expected){ .area = area };
}

void expected_overwritten(struct gemm_state *s, const void *by)
{
	if (s->expected.out == by)
		s->expected.is_made = false;
}

void expected_read(struct gemm_state *s)
{
	struct expected *e = &s->expected;

	if (e->products <= 1) {
		expected_forget(s);
		return;
	}
	e->products--;
	if (e->nth == 0)
		e->made.use = NULL; /* the next product makes its operands there */
}

bool expected_ahead(struct device *dev, const struct place *at, const struct gemm *next,
		    const void *in, struct few_bits *f)
{
	struct expected *e = &dev->gemms->expected;
	bool is_in = e->is_made && e->out == in;

	return !(is_in && e->made.use) && !next->only_faster &&
	       narrow_operand(dev, at, next, in, &e->area, f);
}

void expected_put(struct gemm_state *s, const struct few_bits *f)
{
	struct expected *e = &s->expected;

	if (!e->is_made || e->out != f->in) {
		expected_forget(s);
		e->products = 1;
	}
	e->out = f->in;
	e->count = f->shape.rows * f->shape.columns;
	e->is_made = true;
	e->use = *f->use;
	e->made = *f;
	e->made.use = &e->use;
	e->nth = 1;
}

static bool is_there(const struct expected *e, const void *in, const struct stored *shape)
{
	return e->is_made && e->out == in && shape->ld == shape->columns &&
	       shape->rows * shape->columns == e->count;
}

bool expected_amax(const struct gemm_state *s, const void *in, const struct stored *shape,
		   const struct operand_use *use)
{
	return is_there(&s->expected, in, shape) && use->amax && s->expected.amax == use->amax;
}

const struct few_bits *expected_numbers(const struct gemm_state *s, const struct few_bits *f)
{
	const struct expected *e = &s->expected;
	const struct stored *a = &f->shape, *b = &e->made.shape;

	if (!e->made.use || !is_there(e, f->in, a) || e->made.use->cast != f->use->cast ||
	    a->rows != b->rows || a->columns != b->columns ||
	    a->k_along_memory != b->k_along_memory || !f->values != !e->made.values ||
	    (!f->values && f->layout != e->made.layout))
		return NULL;
	return &e->made;
}
