/* SPDX-License-Identifier: MIT */
/* fp8.cu - codes of E4M3 and E5M2, to nearest, by the instruction that makes two of them (from 8.9
 * on; elsewhere by the formulas, which are the same to the bit): as they lie, turned, or both, of
 * scales that are there already.
 *
 * A block owns 64 x 64 elements, a thread 4 x 4: it reads four of each row, lanes side by side, and
 * turns its own bytes in registers; through shared memory goes a word of four rows at a time.
 * Indices are of 32 bits, which makes their quotients cheap. */
#include "kernels/cuda/ops/casting.cuh"

enum { CORNER = 4, CORNERS = SIDE / CORNER };
static_assert(CORNERS * CORNERS == BLOCK, "a thread has one corner of the block");

struct coding {
	struct casting c;
	uint32_t rows, columns, blocks;          /* blocks: in a row */
	uint32_t tile_rows, tile_columns, right; /* right: tiles in a row */
	bool is_one;                             /* all share a scale */
};

/* What to multiply four elements of a row with. */
DEVICE void multipliers(const struct coding &k, uint32_t row, uint32_t column,
			float (&multiply)[CORNER])
{
	uint32_t at = k.is_one ? 0
			       : row / k.tile_rows * k.right +
					 (k.tile_columns == 1 ? column : column / k.tile_columns);
	bool by_column = !k.is_one && k.tile_columns == 1;

#pragma unroll
	for (int j = 0; j < CORNER; j++)
		multiply[j] = k.c.scale[by_column ? at + (uint32_t)j : at].multiply;
}

/* Byte j of the i-th word becomes byte i of the j-th. */
DEVICE void turn(uint32_t (&word)[CORNER])
{
	uint32_t low = bytes_of(word[0], word[1], 0x5140),
		 high = bytes_of(word[0], word[1], 0x7362);
	uint32_t low2 = bytes_of(word[2], word[3], 0x5140);
	uint32_t high2 = bytes_of(word[2], word[3], 0x7362);

	word[0] = bytes_of(low, low2, 0x5410);
	word[1] = bytes_of(low, low2, 0x7632);
	word[2] = bytes_of(high, high2, 0x5410);
	word[3] = bytes_of(high, high2, 0x7632);
}

template <typename T> KERNEL(BLOCK) fp8_codes(struct coding k)
{
	after_earlier();
	__shared__ uint32_t block[SIDE][CORNERS + 1]; /* turned */
	uint32_t top = blockIdx.x / k.blocks * SIDE, left = blockIdx.x % k.blocks * SIDE;
	uint32_t across = threadIdx.x % CORNERS, down = threadIdx.x / CORNERS;
	uint32_t row = top + down * CORNER, column = left + across * CORNER;
	uint32_t code[CORNER] = { 0 };
	float x[CORNER][CORNER], multiply[CORNER];

	if (row < k.rows && column < k.columns) {
#pragma unroll
		for (uint32_t i = 0; i < CORNER; i++)
			load<T, CORNER>(x[i], k.c.in,
					((size_t)(row + i) * k.c.ld + column) / CORNER);
#pragma unroll
		for (uint32_t i = 0; i < CORNER; i++) {
			if (i == 0 || !k.is_one)
				multipliers(k, row + i, column, multiply);
			code[i] = four_fp8(k.c, x[i], multiply);
			if (k.c.codes)
				*(uint32_t *)(k.c.codes + (size_t)(row + i) * k.columns +
					      column) = code[i];
		}
	}
	if (!k.c.turned)
		return;
	turn(code);
#pragma unroll
	for (uint32_t j = 0; j < CORNER; j++)
		block[across * CORNER + j][down] = code[j];
	__syncthreads();
#pragma unroll
	for (uint32_t j = 0; j < CORNER; j++) {
		uint32_t of = j * CORNERS + down,
			 at = top + across * CORNER; /* a column, its rows */
		if (left + of < k.columns && at < k.rows)
			*(uint32_t *)(k.c.turned + (size_t)(left + of) * k.rows +
				      at) = block[of][across];
	}
}

/* --- the launch ------------------------------------------------------------------------------- */

static bool has_tiles_of_four(const struct tiles &t)
{
	return t.columns == 1 || t.columns % CORNER == 0;
}

extern "C" bool cuda_fp8_codes(struct device *dev, const struct place *at, const struct few_bits *f,
			       const struct scale *scale)
{
	const struct operand_cast *cast = f->use->cast;
	const struct format_cast how = { cast->rounding, true };
	const struct stored *s = &f->shape;
	uintptr_t places = (uintptr_t)f->in | (uintptr_t)f->codes | (uintptr_t)f->turned;
	bool fp32 = f->in_fp32 || dev->compute != COMPUTE_BF16;
	struct coding k = {};

	k.c = casting_of(f, scale, grid_of(&cast->format, &how));
	const struct tiles &t = k.c.tiles;
	if (k.c.fp8 == NO_FP8 || places % 16 != 0 || s->rows % CORNER != 0 ||
	    s->columns % CORNER != 0 || s->ld % CORNER != 0 || s->rows > UINT32_MAX / 2 ||
	    s->columns > UINT32_MAX / 2 || t.down * t.right > UINT32_MAX || !has_tiles_of_four(t))
		return false;
	k.c.codes = s->k_along_memory ? f->codes : f->turned;
	k.c.turned = s->k_along_memory ? f->turned : f->codes;
	k.rows = (uint32_t)s->rows;
	k.columns = (uint32_t)s->columns;
	k.blocks = (uint32_t)blocks_for(s->columns, SIDE);
	k.tile_rows = (uint32_t)(t.rows < s->rows ? t.rows : s->rows);
	k.tile_columns = (uint32_t)(t.columns < s->columns ? t.columns : s->columns);
	k.right = (uint32_t)t.right;
	k.is_one = t.down * t.right == 1;
	launch(dev, *at, fp32 ? fp8_codes<float> : fp8_codes<bf16>,
	       blocks_for(s->rows, SIDE) * k.blocks, BLOCK, 0, k);
	return true;
}
