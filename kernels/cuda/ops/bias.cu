/* SPDX-License-Identifier: MIT */
/* bias.cu - y[r] += b for every row, and db (+)= sum over rows of dy[r].
 *
 * Forward: a thread owns one vector. Backward: a block owns 32 columns of a run of rows and leaves
 * one partial sum per column (its warps' sums added in order); reduce.cu adds the runs. */
#include "kernels/cuda/ops/kernel.cuh"

enum { ROW_WARPS = 8, ROWS_PER_BLOCK = 256 };

struct bias {
	void *y;
	const float *bias;
	size_t rows, vectors; /* vectors in a row */
};

template <typename T, int V> KERNEL(BLOCK) bias_forward(struct bias b)
{
	after_earlier();
	size_t i = flat_index();
	float y[V], shift[V];

	if (i >= b.rows * b.vectors)
		return;
	load<T, V>(y, b.y, i);
	load<float, V>(shift, b.bias, i % b.vectors);
#pragma unroll
	for (int j = 0; j < V; j++)
		y[j] += shift[j];
	store<T, V>(b.y, i, y);
}

extern "C" void cuda_bias_forward(struct device *dev, void *y, const float *bias, size_t rows,
				  size_t dim)
{
	bool wide = is_wide(dev, dim, y, bias);
	struct bias b = { y, bias, rows, dim / vector_of(dev, wide) };
	launch_flat(dev, AT("bias_forward", rows, dim, 0, 0), PICK(dev, wide, bias_forward),
		    rows * b.vectors, b);
}

struct backward {
	float *partial; /* [runs, dim] */
	const void *dy;
	size_t rows, dim, across; /* blocks along a row */
};

template <typename T> KERNEL(BLOCK) bias_backward(struct backward b)
{
	after_earlier();
	__shared__ float of_warp[ROW_WARPS][WARP];
	size_t run = blockIdx.x / b.across, first = run * ROWS_PER_BLOCK;
	size_t end = first + ROWS_PER_BLOCK < b.rows ? first + ROWS_PER_BLOCK : b.rows;
	size_t column = blockIdx.x % b.across * WARP + threadIdx.x % WARP;
	float sum = 0.0f;

	if (column < b.dim)
		for (size_t row = first + threadIdx.x / WARP; row < end; row += ROW_WARPS)
			sum += widen(((const T *)b.dy)[row * b.dim + column]);
	of_warp[threadIdx.x / WARP][threadIdx.x % WARP] = sum;
	__syncthreads();
	if (threadIdx.x >= WARP || column >= b.dim)
		return;
	sum = 0.0f;
	for (int w = 0; w < ROW_WARPS; w++)
		sum += of_warp[w][threadIdx.x];
	b.partial[run * b.dim + column] = sum;
}

extern "C" void cuda_bias_backward(struct device *dev, float *dbias, const void *dy, size_t rows,
				   size_t dim, bool accumulate)
{
	const struct place at = AT("bias_backward", rows, dim, 0, 0);
	size_t runs = blocks_for(rows, ROWS_PER_BLOCK), across = blocks_for(dim, WARP);
	float *partial = (float *)cuda_scratch(dev, &at, runs * dim * sizeof(float));
	struct backward b = { partial, dy, rows, dim, across };

	if (!partial)
		return;
	launch(dev, at, EITHER(dev, bias_backward), runs * across, ROW_WARPS * WARP, 0, b);
	cuda_column_sum(dev, dbias, partial, runs, dim, dim, accumulate);
}
