/* SPDX-License-Identifier: MIT */
/* cast.cu - fp32 to bf16 and back, and the largest magnitude on the way.
 *
 * A thread owns eight elements. The largest: a block's by a tree, then one atomicMax per block on
 * the bits, which order as the numbers do where none is negative; a maximum knows no order, so the
 * result is always the same. NaN has the largest bits of all and is not lost. */
#include "kernels/cuda/ops/kernel.cuh"

enum { EACH = 8 };

struct cast {
	void *to;
	const void *from;
	size_t count;
	unsigned *amax; /* bits of a float, or NULL */
};

KERNEL(BLOCK) cast_bf16(struct cast c)
{
	after_earlier();
	size_t first = flat_index() * EACH;
	size_t end = first + EACH < c.count ? first + EACH : c.count;
	unsigned top = 0;

	for (size_t i = first; i < end; i++) {
		float x = ((const float *)c.from)[i];
		unsigned bits;
		memcpy(&bits, &x, sizeof(bits));
		bits &= 0x7fffffffu;
		top = bits > top ? bits : top;
		((bf16 *)c.to)[i] = narrow(x);
	}
	if (!c.amax)
		return;
	for (int width = WARP / 2; width > 0; width /= 2) {
		unsigned other = __shfl_xor_sync(0xffffffffu, top, width);
		top = other > top ? other : top;
	}
	if (threadIdx.x % WARP == 0)
		atomicMax(c.amax, top);
}

KERNEL(BLOCK) cast_bf16_wide(struct cast c)
{
	after_earlier();
	size_t i = flat_index();
	float a[EACH / 2], b[EACH / 2], both[EACH];

	if (i * EACH >= c.count)
		return;
	load<float, EACH / 2>(a, c.from, 2 * i);
	load<float, EACH / 2>(b, c.from, 2 * i + 1);
	for (int j = 0; j < EACH / 2; j++) {
		both[j] = a[j];
		both[j + EACH / 2] = b[j];
	}
	store<bf16, EACH>(c.to, i, both);
}

extern "C" void cuda_cast_bf16(struct device *dev, uint16_t *to, const float *from, size_t count,
			       float *amax)
{
	const struct place at = AT("cast_bf16", count, 0, 0, 0);
	struct cast c = { to, from, count, (unsigned *)amax };
	bool wide = ((uintptr_t)to | (uintptr_t)from) % 16 == 0 && count % EACH == 0 && !amax;

	if (amax)
		cuda_zero(dev, amax, sizeof(*amax));
	if (wide)
		launch_flat(dev, at, cast_bf16_wide, count / EACH, c);
	else
		launch(dev, at, cast_bf16, blocks_for(blocks_for(count, EACH), BLOCK), BLOCK, 0, c);
}

KERNEL(BLOCK) cast_fp32(struct cast c)
{
	after_earlier();
	size_t i = flat_index();

	if (i < c.count)
		((float *)c.to)[i] = widen(((const bf16 *)c.from)[i]);
}

extern "C" void cuda_cast_fp32(struct device *dev, float *to, const uint16_t *from, size_t count)
{
	struct cast c = { to, from, count, NULL };
	launch_flat(dev, AT("cast_fp32", count, 0, 0, 0), cast_fp32, count, c);
}
