/* SPDX-License-Identifier: MIT */
/* boxes.cuh - scales of a byte in the order in which Blackwell's matrix units read them
 * (kernels/formats/modes.h), and what multiplies a product whose scales have two levels.
 *
 * A thread owns four bytes, a row's of a box; neighbours write neighbours. */
#ifndef KERNELS_CUDA_BOXES_CUH
#define KERNELS_CUDA_BOXES_CUH

#include "kernels/cuda/ops/quantize.cuh"

struct boxing {
	const struct scale *scale;
	uint32_t *out; /* a row's four of a box */
	float *tensor; /* S, behind them; NULL: e8m0 */
	const unsigned *most;
	struct scale_rule rule;
	struct tiles tiles;
	bool k_along_memory;
	size_t others, blocks, count; /* rows of what is not summed over, blocks along, of out */
	size_t boxes;                 /* beside each other */
	size_t tile_across, tile_along, block; /* elements */
};

DEVICE uint32_t boxed_scale(const struct boxing &b, size_t row, size_t block, float tensor)
{
	if (row >= b.others || block >= b.blocks)
		return 0;
	size_t across = row / b.tile_across, along = block * b.block / b.tile_along;
	size_t at = b.k_along_memory ? across * b.tiles.right + along
				     : along * b.tiles.right + across;
	float scale = b.scale[at].scale;
	return b.tensor ? level_code(scale, tensor) : e8m0_code(scale);
}

KERNEL(BLOCK) box_scales(struct boxing b)
{
	after_earlier();
	size_t i = flat_index(), box = i / BOX_ROWS, place = i % BOX_ROWS;
	float tensor = 0;
	uint32_t four = 0;

	if (i >= b.count)
		return;
	if (b.tensor)
		tensor = tensor_scale_by_rule(&b.rule, float_of(*b.most));
	if (b.tensor && i == 0)
		*b.tensor = tensor;
	size_t row = box / b.boxes * BOX_ROWS + place % BOX_BLOCKS * 32 + place / BOX_BLOCKS;
	size_t block = box % b.boxes * BOX_BLOCKS;
#pragma unroll
	for (size_t j = 0; j < BOX_BLOCKS; j++)
		four |= boxed_scale(b, row, block + j, tensor) << 8 * j;
	b.out[i] = four;
}

struct factors {
	float *out;
	const float *a, *b;
	float alpha, beta;
};

KERNEL(BLOCK) set_factors(struct factors f)
{
	after_earlier();
	if (threadIdx.x == 0) {
		f.out[0] = f.alpha * (*f.a * *f.b);
		f.out[1] = f.beta;
	}
}

/* --- launches --------------------------------------------------------------------------------- */

static size_t others_of(const struct stored *shape)
{
	return shape->k_along_memory ? shape->rows : shape->columns;
}

static size_t summed_over(const struct stored *shape)
{
	return shape->k_along_memory ? shape->columns : shape->rows;
}

static size_t box_bytes(enum scale_layout layout, const struct stored *shape)
{
	size_t down = blocks_for(others_of(shape), BOX_ROWS);
	size_t right = blocks_for(summed_over(shape), layout_block(layout) * BOX_BLOCKS);

	return down * right * BOX_BYTES;
}

static void lay_boxes(struct device *dev, const struct place &at, const struct few_bits *f,
		      const struct scale *scale, const unsigned *most)
{
	const struct stored *shape = &f->shape;
	const struct tiles t = tiles_of(f->use->cast, shape);
	struct boxing b;

	b.scale = scale;
	b.out = (uint32_t *)f->scales;
	b.tensor = f->layout == LAYOUT_E4M3 ? cuda_tensor_scale(f->scales, shape) : NULL;
	b.most = most;
	b.rule = scale_rule_of(f->use->cast);
	b.tiles = t;
	b.k_along_memory = shape->k_along_memory;
	b.others = others_of(shape);
	b.block = layout_block(f->layout);
	b.blocks = blocks_for(summed_over(shape), b.block);
	b.boxes = blocks_for(b.blocks, BOX_BLOCKS);
	b.tile_across = b.k_along_memory ? t.rows : t.columns;
	b.tile_along = b.k_along_memory ? t.columns : t.rows;
	b.count = box_bytes(f->layout, shape) / BOX_BLOCKS;
	launch_flat(dev, at, box_scales, b.count, b);
}

#endif
