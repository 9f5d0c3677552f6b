/* SPDX-License-Identifier: MIT */
/* rmsnorm.cu - y = x r w with r = 1/sqrt(mean(x^2) + eps), per row; the residual sum in front.
 *
 * Backward, with g = dy w and D = width:
 *   dx += r g - x r^3 (g . x)/D
 *   dw (+)= sum over rows of dy x r
 *
 * Forward: a block owns a row. Backward: a block owns a run of rows and keeps its part of dw in
 * shared memory, a thread always the same columns; the parts are then added in the order of the
 * blocks. The number of blocks depends on the shape only, so results do, too. */
#include "kernels/cuda/kernel.cuh"

enum { ROWS_MIN = 8, BLOCKS_MAX = 1056 };	/* 8 blocks on each of 132 multiprocessors */

struct forward {
	void *out;
	float *rstd;
	void *sum;
	const void *x, *delta;
	const float *weight;
	size_t dim;
	float eps;
};

template <typename T, int V> static __global__ void rmsnorm_forward(struct forward f)
{
	size_t row = blockIdx.x, vectors = f.dim / V, first = row * vectors;
	const void *x = f.delta ? f.sum : f.x;
	float squares = 0.0f;

	for (size_t i = threadIdx.x; i < vectors; i += blockDim.x) {
		float v[V], d[V];
		load<T, V>(v, f.x, first + i);
		if (f.delta) {
			load<T, V>(d, f.delta, first + i);
#pragma unroll
			for (int j = 0; j < V; j++)
				v[j] = rounded<T>(v[j] + d[j]);
			store<T, V>(f.sum, first + i, v);
		}
#pragma unroll
		for (int j = 0; j < V; j++)
			squares += v[j] * v[j];
	}
	float rstd = 1.0f / sqrtf(block_sum(squares) / (float)f.dim + f.eps);
	if (threadIdx.x == 0)
		f.rstd[row] = rstd;
	for (size_t i = threadIdx.x; i < vectors; i += blockDim.x) {
		float v[V];
		load<T, V>(v, x, first + i);	/* this thread wrote it, or the caller */
#pragma unroll
		for (int j = 0; j < V; j++)
			v[j] *= rstd * f.weight[i * V + j];
		store<T, V>(f.out, first + i, v);
	}
}

extern "C" void cuda_rmsnorm_forward(struct device *dev, void *out, float *rstd, void *sum,
				     const void *x, const void *delta, const float *weight,
				     size_t rows, size_t dim, float eps)
{
	bool wide = is_wide(dev, dim, out, sum, x, delta);
	struct forward f = { out, rstd, sum, x, delta, weight, dim, eps };
	launch(dev, AT("rmsnorm_forward", rows, dim, 0, 0), PICK(dev, wide, rmsnorm_forward), rows,
	       threads_for(dim / vector_of(dev, wide), BLOCK_MAX), 0, f);
}

struct backward {
	void *dx;
	float *partial;			/* [blocks, dim] */
	const void *dout, *x;
	const float *rstd, *weight;
	size_t rows, dim, rows_per_block;
};

template <typename T, int V> static __global__ void rmsnorm_backward(struct backward b)
{
	SHARED_FLOATS(dweight);		/* [dim] */
	size_t vectors = b.dim / V, row = blockIdx.x * b.rows_per_block;
	size_t end = row + b.rows_per_block < b.rows ? row + b.rows_per_block : b.rows;

	for (size_t i = threadIdx.x; i < vectors; i += blockDim.x)
		for (int j = 0; j < V; j++)
			dweight[i * V + j] = 0.0f;
	for (; row < end; row++) {
		size_t first = row * vectors;
		float r = b.rstd[row], along = 0.0f;
		for (size_t i = threadIdx.x; i < vectors; i += blockDim.x) {
			float d[V], x[V];
			load<T, V>(d, b.dout, first + i);
			load<T, V>(x, b.x, first + i);
#pragma unroll
			for (int j = 0; j < V; j++) {
				along += d[j] * b.weight[i * V + j] * x[j];
				dweight[i * V + j] += d[j] * x[j] * r;
			}
		}
		float back = block_sum(along) / (float)b.dim * r * r * r;
		for (size_t i = threadIdx.x; i < vectors; i += blockDim.x) {
			float d[V], x[V], dx[V];
			load<T, V>(d, b.dout, first + i);
			load<T, V>(x, b.x, first + i);
			load<T, V>(dx, b.dx, first + i);
#pragma unroll
			for (int j = 0; j < V; j++)
				dx[j] += d[j] * b.weight[i * V + j] * r - x[j] * back;
			store<T, V>(b.dx, first + i, dx);
		}
	}
	for (size_t i = threadIdx.x; i < vectors; i += blockDim.x)
		for (int j = 0; j < V; j++)
			b.partial[blockIdx.x * b.dim + i * V + j] = dweight[i * V + j];
}

extern "C" void cuda_rmsnorm_backward(struct device *dev, void *dx, float *dweight,
				      const void *dout, const void *x, const float *rstd,
				      const float *weight, size_t rows, size_t dim,
				      bool accumulate)
{
	const struct place at = AT("rmsnorm_backward", rows, dim, 0, 0);
	bool wide = is_wide(dev, dim, dx, dout, x);
	size_t per_block = blocks_for(rows, BLOCKS_MAX);
	per_block = per_block < ROWS_MIN ? (size_t)ROWS_MIN : per_block;
	size_t blocks = blocks_for(rows, per_block);
	float *partial = (float *)cuda_scratch(dev, &at, blocks * dim * sizeof(float));
	struct backward b = { dx, partial, dout, x, rstd, weight, rows, dim, per_block };
	if (!partial)
		return;
	launch(dev, at, PICK(dev, wide, rmsnorm_backward), blocks,
	       threads_for(dim / vector_of(dev, wide), BLOCK_MAX), dim * sizeof(float), b);
	cuda_column_sum(dev, dweight, partial, blocks, dim, dim, accumulate);
}
