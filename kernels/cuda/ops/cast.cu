/* SPDX-License-Identifier: MIT */
/* cast.cu - fp32 to bf16; and weights, as products read them, to codes for other ranks and back, to
 * the bit as kernels/cpu/narrow/sent.c.
 *
 * A thread owns eight elements, or one. The largest of weights: a warp's by a tree, then one
 * atomicMax on the bits, which order as the numbers do where none is negative; a maximum knows no
 * order, so the result is always the same. NaN has the largest bits of all and is not lost. */
#include "kernels/cuda/ops/kernel.cuh"

#include "kernels/cuda/few_bits.h"
#include "kernels/formats/sent.h"

enum { EACH = 8 };

struct cast {
	void *to;
	const void *from;
	size_t vectors;
};

template <int V> KERNEL(BLOCK) cast_bf16(struct cast c)
{
	after_earlier();
	size_t i = flat_index();
	float x[V];

	if (i >= c.vectors)
		return;
	load<float, V>(x, c.from, i);
	store<bf16, V>(c.to, i, x);
}

extern "C" void cuda_cast_bf16(struct device *dev, uint16_t *to, const float *from, size_t count)
{
	bool wide = ((uintptr_t)to | (uintptr_t)from) % 16 == 0 && count % EACH == 0;
	struct cast c = { to, from, wide ? count / EACH : count };

	launch_flat(dev, AT("cast_bf16", count, 0, 0, 0), wide ? cast_bf16<EACH> : cast_bf16<1>,
		    c.vectors, c);
}

/* --- weights for other ranks (kernels/formats/sent.h) ----------------------------------------- */

struct sending {
	void *weights;
	uint8_t *codes;
	float *amax;
	size_t count;
	struct sent_rule rule;
};

template <typename T> KERNEL(BLOCK) weights_amax(struct sending s)
{
	after_earlier();
	size_t first = flat_index() * EACH;
	size_t end = first + EACH < s.count ? first + EACH : s.count;
	unsigned most = 0;

	for (size_t i = first; i < end; i++)
		most = larger(most, bits_of(widen(((const T *)s.weights)[i])) & 0x7fffffffu);
	most = warp_most(most);
	if (threadIdx.x % WARP == 0)
		atomicMax((unsigned *)s.amax, most);
}

template <typename T> KERNEL(BLOCK) weights_encode(struct sending s)
{
	after_earlier();
	size_t first = flat_index() * EACH;
	size_t end = first + EACH < s.count ? first + EACH : s.count;
	const struct scale scale = sent_scale(&s.rule, *s.amax);

	for (size_t i = first; i < end; i++)
		s.codes[i] = sent_code(&s.rule, &scale, widen(((const T *)s.weights)[i]));
}

template <typename T> KERNEL(BLOCK) weights_decode(struct sending s)
{
	after_earlier();
	size_t first = flat_index() * EACH;
	size_t end = first + EACH < s.count ? first + EACH : s.count;
	float amax = *s.amax;
	const struct scale scale = sent_scale(&s.rule, amax);

	for (size_t i = first; i < end; i++)
		put(((T *)s.weights)[i], sent_number(&s.rule, &scale, amax, s.codes[i]));
}

struct largest {
	float *to;
	const float *from;
	size_t count;
};

KERNEL(BLOCK) largest_of(struct largest l)
{
	after_earlier();
	size_t i = flat_index();

	if (i < l.count && bits_of(l.from[i]) > bits_of(l.to[i]))
		l.to[i] = l.from[i];
}

static struct sending sending_of(struct device *dev, const struct place &at, const float *weights,
				 size_t count)
{
	struct sending s = {};

	s.weights = (void *)cuda_table(dev, &at, weights);
	s.count = count;
	return s;
}

extern "C" void cuda_weights_amax(struct device *dev, float *amax, const float *weights,
				  size_t count)
{
	const struct place at = AT("weights_amax", count, 0, 0, 0);
	struct sending s = sending_of(dev, at, weights, count);

	s.amax = amax;
	launch(dev, at, EITHER(dev, weights_amax), blocks_for(count, (size_t)BLOCK * EACH), BLOCK,
	       0, s);
}

extern "C" void cuda_weights_encode(struct device *dev, uint8_t *codes, const float *weights,
				    size_t count, const struct operand_cast *cast,
				    const float *amax)
{
	const struct place at = AT("weights_encode", count, 0, 0, 0);
	struct sending s = sending_of(dev, at, weights, count);

	s.codes = codes;
	s.amax = (float *)amax;
	s.rule = sent_rule_of(cast);
	launch_flat(dev, at, EITHER(dev, weights_encode), blocks_for(count, EACH), s);
}

extern "C" void cuda_weights_decode(struct device *dev, float *weights, const uint8_t *codes,
				    size_t count, const struct operand_cast *cast,
				    const float *amax)
{
	const struct place at = AT("weights_decode", count, 0, 0, 0);
	struct sending s = sending_of(dev, at, weights, count);

	s.codes = (uint8_t *)codes;
	s.amax = (float *)amax;
	s.rule = sent_rule_of(cast);
	launch_flat(dev, at, EITHER(dev, weights_decode), blocks_for(count, EACH), s);
}

extern "C" void cuda_largest(struct device *dev, float *to, const float *from, size_t count)
{
	struct largest l = { to, from, count };
	launch_flat(dev, AT("largest", count, 0, 0, 0), largest_of, count, l);
}
