/* SPDX-License-Identifier: MIT */
/* expected.c - an operand of few bits that is made by the operation which writes it.
 *
 * What is wanted of it is told before it is written (lib/expect.c), the operation asks for that
 * (ops/finish.cuh), and the product what there is. What does not fit together on this way is made
 * by passes of its own, with the same bits. */
#include "kernels/cuda/few_bits.h"

#include <stdlib.h>

enum { WARP_LANES = 32, VECTOR_BYTES = 16 };

bool expected_open(struct device *dev)
{
	dev->expected = calloc(1, sizeof(*dev->expected));
	return dev->expected != NULL;
}

void expected_close(struct device *dev)
{
	if (dev->expected)
		cuda_give(dev, dev->expected->area.memory);
	free(dev->expected);
	dev->expected = NULL;
}

static bool is_power_of_two(size_t n)
{
	return n > 0 && (n & (n - 1)) == 0;
}

/* What shares a scale ends with a run of `unit`, and is vectors of one warp; or all of it does, by
 * past steps. */
static bool is_finished(const struct device *dev, const struct few_bits *m, size_t count,
			size_t unit)
{
	const struct operand_cast *cast = m->use->cast;
	size_t each = VECTOR_BYTES / compute_bytes(dev->compute), lanes = cast->along / each;

	if (m->shape.rows * m->shape.columns != count || unit == 0)
		return false;
	return cast->history > 0 || (unit % cast->along == 0 && is_power_of_two(lanes) &&
				     lanes <= WARP_LANES && lanes * each == cast->along);
}

bool cuda_finishing(struct device *dev, const void *out, size_t count, size_t unit,
		    struct finishing *f)
{
	struct expected *e = dev->expected;

	*f = (struct finishing){ 0 };
	if (!e->out || e->out != out)
		return false;
	if (e->made.use && !is_finished(dev, &e->made, count, unit))
		e->made.use = NULL;
	f->amax = e->amax;
	f->made = e->made;
	e->count = count;
	e->is_made = f->amax || f->made.use;
	if (f->amax)
		cuda_zero(dev, f->amax, sizeof(*f->amax));
	return e->is_made;
}

/* --- what products ask ------------------------------------------------------------------------ */

void expected_forget(struct device *dev)
{
	const struct work_area area = dev->expected->area;

	*dev->expected = (struct expected){ .area = area };
}

void expected_overwritten(struct device *dev, const void *by)
{
	if (dev->expected->out == by)
		dev->expected->is_made = false;
}

void expected_read(struct device *dev)
{
	struct expected *e = dev->expected;

	if (e->products <= 1) {
		expected_forget(dev);
		return;
	}
	e->products--;
	if (e->nth == 0)
		e->made.use = NULL; /* the next product makes its operands there */
}

void expected_put(struct device *dev, const struct few_bits *f)
{
	struct expected *e = dev->expected;

	if (!e->is_made || e->out != f->in) {
		expected_forget(dev);
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

bool expected_amax(const struct device *dev, const void *in, const struct stored *shape,
		   const struct operand_use *use)
{
	return is_there(dev->expected, in, shape) && use->amax && dev->expected->amax == use->amax;
}

const struct few_bits *expected_numbers(const struct device *dev, const struct few_bits *f)
{
	const struct expected *e = dev->expected;
	const struct stored *a = &f->shape, *b = &e->made.shape;

	if (!e->made.use || !is_there(e, f->in, a) || e->made.use->cast != f->use->cast ||
	    a->rows != b->rows || a->columns != b->columns ||
	    a->k_along_memory != b->k_along_memory || !f->values != !e->made.values ||
	    (!f->values && f->layout != e->made.layout))
		return NULL;
	return &e->made;
}
