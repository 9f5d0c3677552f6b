/* SPDX-License-Identifier: MIT */
/* embedding.cu - out[r] = table[token[r]], and its gradient dtable[token[r]] += dout[r], in row
 * order.
 *
 * Forward: a thread owns a vector of 16 bytes. Backward: rows are sorted by token (stable, so rows
 * of one token keep their order), then the first row of each token adds up all of them: no two
 * threads write to the same place, and the sum is that of a plain loop, to the bit.
 *
 * The sort is least-significant-digit radix, 8 bits a pass. A block owns a tile of TILE rows: it
 * counts its digits; one block turns the counts, ordered by (digit, tile), into places; each row
 * then goes to its tile's place plus the number of rows before it in the tile with its digit. */
#include "kernels/cuda/ops/kernel.cuh"

enum { TILE = 1024, DIGITS = 256, DIGIT_BITS = 8, PASSES = 3, AHEAD = 8, COLUMNS = 128 };

struct forward {
	void *out;
	const void *table; /* in the compute type */
	const int32_t *tokens;
	size_t rows, vectors; /* vectors: in a row */
};

template <typename T, int V> KERNEL(BLOCK) embed_forward(struct forward f)
{
	after_earlier();
	size_t i = flat_index(), row = i / f.vectors;

	if (row < f.rows)
		((vector<T, V> *)f.out)[i] =
			((const vector<T, V> *)
				 f.table)[(size_t)f.tokens[row] * f.vectors + i % f.vectors];
}

extern "C" void cuda_embed_forward(struct device *dev, void *out, const float *table,
				   const int32_t *tokens, size_t rows, size_t dim)
{
	const struct place at = AT("embed_forward", rows, dim, 0, 0);
	const void *narrow = cuda_table(dev, &at, table);
	bool wide = is_wide(dev, dim, out, narrow);
	struct forward f = { out, narrow, tokens, rows, dim / vector_of(dev, wide) };

	launch_flat(dev, at, PICK(dev, wide, embed_forward), rows * f.vectors, f);
}

/* One pass: (key, row) pairs from one list to the other. */
struct pass {
	const uint32_t *keys, *rows; /* rows NULL: row i is i */
	uint32_t *keys_out, *rows_out;
	uint32_t *places; /* [DIGITS, tiles] */
	size_t count, tiles;
	unsigned shift;
};

DEVICE uint32_t digit_of(const struct pass &p, uint32_t key)
{
	return key >> p.shift & (DIGITS - 1);
}

KERNEL(TILE) digit_counts(struct pass p)
{
	after_earlier();
	__shared__ uint32_t counts[DIGITS];
	size_t i = flat_index();

	if (threadIdx.x < DIGITS)
		counts[threadIdx.x] = 0;
	__syncthreads();
	if (i < p.count)
		atomicAdd(&counts[digit_of(p, p.keys[i])], 1u);
	__syncthreads();
	if (threadIdx.x < DIGITS)
		p.places[threadIdx.x * p.tiles + blockIdx.x] = counts[threadIdx.x];
}

/* Counts become places: the sum of all before. One block; a thread owns a run of them. */
KERNEL(TILE) digit_places(struct pass p)
{
	after_earlier();
	__shared__ uint32_t sums[TILE];
	size_t all = DIGITS * p.tiles, each = (all + TILE - 1) / TILE;
	size_t first = threadIdx.x * each, end = first + each < all ? first + each : all;
	uint32_t sum = 0;

	for (size_t i = first; i < end; i++)
		sum += p.places[i];
	sums[threadIdx.x] = sum;
	__syncthreads();
	for (unsigned step = 1; step < TILE; step *= 2) {
		uint32_t before = threadIdx.x >= step ? sums[threadIdx.x - step] : 0;
		__syncthreads();
		sums[threadIdx.x] += before;
		__syncthreads();
	}
	uint32_t place = sums[threadIdx.x] - sum;
	for (size_t i = first; i < end; i++) {
		uint32_t count = p.places[i];
		p.places[i] = place;
		place += count;
	}
}

KERNEL(TILE) digit_move(struct pass p)
{
	after_earlier();
	__shared__ uint32_t digits[TILE];
	size_t i = flat_index();
	uint32_t key = i < p.count ? p.keys[i] : 0, digit = digit_of(p, key), before = 0;

	digits[threadIdx.x] = digit;
	__syncthreads();
	if (i >= p.count)
		return;
	for (unsigned j = 0; j < threadIdx.x; j++)
		before += digits[j] == digit;
	size_t place = p.places[digit * p.tiles + blockIdx.x] + before;
	p.keys_out[place] = key;
	p.rows_out[place] = p.rows ? p.rows[i] : (uint32_t)i;
}

struct backward {
	float *dtable;
	const void *dout;
	const uint32_t *keys, *rows; /* sorted */
	size_t count, dim, across;   /* across: blocks along a row */
};

/* Adds the next AHEAD rows of the token in order; false when its last one was among them. The
 * loads do not wait for one another. */
template <typename T>
DEVICE bool add_some(const struct backward &b, size_t at, uint32_t token, size_t column, float *sum)
{
	float x[AHEAD];
	bool is_ours[AHEAD];

#pragma unroll
	for (int j = 0; j < AHEAD; j++) {
		is_ours[j] = at + j < b.count && b.keys[at + j] == token;
		x[j] = is_ours[j] ? widen(((const T *)b.dout)[b.rows[at + j] * b.dim + column])
				  : 0.0f;
	}
#pragma unroll
	for (int j = 0; j < AHEAD; j++)
		if (is_ours[j])
			*sum += x[j];
	return is_ours[AHEAD - 1];
}

template <typename T> KERNEL(COLUMNS) embed_backward(struct backward b)
{
	after_earlier();
	size_t first = blockIdx.x / b.across;
	size_t column = blockIdx.x % b.across * COLUMNS + threadIdx.x;
	uint32_t token = b.keys[first];

	if (column >= b.dim || (first > 0 && b.keys[first - 1] == token))
		return;
	float *to = b.dtable + (size_t)token * b.dim + column, sum = *to;
	for (size_t at = first; add_some<T>(b, at, token, column, &sum);)
		at += AHEAD;
	*to = sum;
}

/* The sorted pairs are in keys[1], rows[1] of the scratch area: an odd number of passes. */
static void sort_rows(struct device *dev, const struct place &at, const int32_t *tokens,
		      uint32_t *area, size_t count, struct backward *out)
{
	uint32_t *keys[2] = { area, area + count },
		 *rows[2] = { area + 2 * count, area + 3 * count };
	struct pass p = { (const uint32_t *)tokens, NULL, keys[1], rows[1], area + 4 * count, count,
			  blocks_for(count, TILE),  0 };

	for (int pass = 0; pass < PASSES; pass++) {
		launch(dev, at, digit_counts, p.tiles, TILE, 0, p);
		launch(dev, at, digit_places, 1, TILE, 0, p);
		launch(dev, at, digit_move, p.tiles, TILE, 0, p);
		out->keys = p.keys_out;
		out->rows = p.rows_out;
		p.keys = out->keys;
		p.rows = out->rows;
		p.keys_out = keys[pass % 2];
		p.rows_out = rows[pass % 2];
		p.shift += DIGIT_BITS;
	}
}

extern "C" void cuda_embed_backward(struct device *dev, float *dtable, const void *dout,
				    const int32_t *tokens, size_t rows, size_t dim)
{
	const struct place at = AT("embed_backward", rows, dim, 0, 0);
	size_t words = 4 * rows + DIGITS * blocks_for(rows, TILE);
	uint32_t *area = (uint32_t *)cuda_scratch(dev, &at, words * sizeof(uint32_t));
	struct backward b = { dtable, dout, NULL, NULL, rows, dim, blocks_for(dim, COLUMNS) };

	if (!area)
		return;
	sort_rows(dev, at, tokens, area, rows, &b);
	launch(dev, at, EITHER(dev, embed_backward), rows * b.across, COLUMNS, 0, b);
}
