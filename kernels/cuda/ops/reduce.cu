/* SPDX-License-Identifier: MIT */
/* reduce.cu - sums in a fixed order: squares of a flat array and losses in fp64, and columns of
 * partial sums.
 *
 * Squares: a block adds PIECE elements, thread t every 256th group of EACH from the t-th on, the
 * threads by a tree, and leaves one partial sum; one block then adds those, thread t every 1024th
 * from t on, and the threads by a tree. The order depends on the count only.
 *
 * Columns: a block owns COLUMNS of them, of which a warp reads ROWS rows at once; the lanes of a
 * column, then every ROWS-th warp, then those again, are added by trees. */
#include "kernels/cuda/ops/kernel.cuh"

enum { PIECE = 16384, EACH = 8 };
/* Of columns: a warp reads so many of so many rows at once. */
enum { COLUMNS = 8, ROWS = WARP / COLUMNS, WARPS = BLOCK_MAX / WARP };

struct squares {
	const void *x;
	double *partial, *sum;
	size_t count;
	bool accumulate;
};

/* By halves through shared memory; thread 0 gets the sum. */
DEVICE double block_sum_fp64(double x)
{
	__shared__ double of_thread[BLOCK_MAX];

	of_thread[threadIdx.x] = x;
	__syncthreads();
	for (unsigned width = blockDim.x / 2; width > 0; width /= 2) {
		if (threadIdx.x < width)
			of_thread[threadIdx.x] += of_thread[threadIdx.x + width];
		__syncthreads();
	}
	return of_thread[0];
}

/* A whole piece, by vectors; their loads do not wait for one another. */
template <typename T> DEVICE double squares_of_vectors(const struct squares &s, size_t first)
{
	double sum = 0;
	float x[EACH];

#pragma unroll 4
	for (unsigned i = threadIdx.x; i < PIECE / EACH; i += BLOCK) {
		load<T, EACH>(x, s.x, first / EACH + i);
#pragma unroll
		for (int j = 0; j < EACH; j++)
			sum += (double)x[j] * (double)x[j];
	}
	return sum;
}

/* The same, in the same order, one by one as far as there are any. */
template <typename T> DEVICE double squares_of_elements(const struct squares &s, size_t first)
{
	size_t end = first + PIECE < s.count ? first + PIECE : s.count;
	double sum = 0;

	for (size_t i = first + threadIdx.x * EACH; i < end; i += BLOCK * EACH)
		for (size_t j = i; j < i + EACH && j < end; j++) {
			double x = (double)widen(((const T *)s.x)[j]);
			sum += x * x;
		}
	return sum;
}

template <typename T> KERNEL(BLOCK) squares_of_pieces(struct squares s)
{
	after_earlier();
	size_t first = (size_t)blockIdx.x * PIECE;
	bool wide = (uintptr_t)s.x % 16 == 0 && first + PIECE <= s.count;
	double sum = wide ? squares_of_vectors<T>(s, first) : squares_of_elements<T>(s, first);

	sum = block_sum_fp64(sum);
	if (threadIdx.x == 0)
		s.partial[blockIdx.x] = sum;
}

/* *sum = the sum of `count` partial ones */
KERNEL(BLOCK_MAX) sum_of_pieces(struct squares s)
{
	after_earlier();
	double sum = 0;

#pragma unroll 8
	for (size_t i = threadIdx.x; i < s.count; i += blockDim.x)
		sum += s.partial[i];
	sum = block_sum_fp64(sum);
	if (threadIdx.x == 0)
		*s.sum = s.accumulate ? *s.sum + sum : sum;
}

extern "C" void cuda_sum_squares(struct device *dev, double *sum, const void *x, size_t count,
				 bool narrow, bool accumulate)
{
	const struct place at = AT("sum_squares", count, 0, 0, 0);
	size_t pieces = blocks_for(count, PIECE);
	double *partial = (double *)cuda_scratch(dev, &at, (pieces + 1) * sizeof(double));
	struct squares s = { x, partial, sum, count, accumulate };

	if (!partial)
		return;
	launch(dev, at,
	       narrow && dev->compute == COMPUTE_BF16 ? squares_of_pieces<bf16>
						      : squares_of_pieces<float>,
	       pieces, BLOCK, 0, s);
	s.count = pieces;
	launch(dev, at, sum_of_pieces, 1, BLOCK_MAX, 0, s);
}

extern "C" void cuda_piece_squares(struct device *dev, double *sums, const float *x, size_t count)
{
	static_assert((int)PIECE == (int)SQUARES_PIECE, "a block sums up one piece");
	struct squares s = { x, sums, NULL, count, false };

	launch(dev, AT("piece_squares", count, 0, 0, 0), squares_of_pieces<float>,
	       blocks_for(count, PIECE), BLOCK, 0, s);
}

struct losses {
	double *sum;
	const float *loss;
	size_t rows;
	bool accumulate;
};

/* One block: thread t adds every 1024th from t on, then the threads by a tree. */
KERNEL(BLOCK_MAX) sum_losses(struct losses l)
{
	after_earlier();
	double sum = 0;

	for (size_t i = threadIdx.x; i < l.rows; i += blockDim.x)
		sum += (double)l.loss[i];
	sum = block_sum_fp64(sum);
	if (threadIdx.x == 0)
		*l.sum = l.accumulate ? *l.sum + sum : sum;
}

extern "C" void cuda_sum_losses(struct device *dev, double *sum, const float *loss, size_t rows,
				bool accumulate)
{
	struct losses l = { sum, loss, rows, accumulate };
	launch(dev, AT("sum_losses", rows, 0, 0, 0), sum_losses, 1, BLOCK_MAX, 0, l);
}

/* Lanes of one column. */
DEVICE float sum_of_rows(float x)
{
#pragma unroll
	for (int width = COLUMNS; width < WARP; width *= 2)
		x += __shfl_xor_sync(0xffffffffu, x, width);
	return x;
}

struct columns {
	float *out;
	const float *partial;
	size_t rows, stride, columns;
	bool accumulate;
};

KERNEL(BLOCK_MAX) column_sum(struct columns c)
{
	after_earlier();
	__shared__ float of_warp[WARPS][COLUMNS];
	unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, own = lane % COLUMNS;
	size_t column = (size_t)blockIdx.x * COLUMNS + own, row = warp * ROWS + lane / COLUMNS;
	float sum = 0.0f;

	if (column < c.columns)
#pragma unroll 8
		for (; row < c.rows; row += WARPS * ROWS)
			sum += c.partial[row * c.stride + column];
	sum = sum_of_rows(sum);
	if (lane < COLUMNS)
		of_warp[warp][lane] = sum;
	__syncthreads();
	if (warp != 0)
		return;
	sum = 0.0f;
#pragma unroll
	for (unsigned w = lane / COLUMNS; w < WARPS; w += ROWS)
		sum += of_warp[w][own];
	sum = sum_of_rows(sum);
	if (lane < COLUMNS && column < c.columns)
		c.out[column] = c.accumulate ? c.out[column] + sum : sum;
}

extern "C" void cuda_column_sum(struct device *dev, float *out, const float *partial, size_t rows,
				size_t stride, size_t columns, bool accumulate)
{
	struct columns c = { out, partial, rows, stride, columns, accumulate };
	launch(dev, AT("column_sum", rows, columns, 0, 0), column_sum, blocks_for(columns, COLUMNS),
	       BLOCK_MAX, 0, c);
}
