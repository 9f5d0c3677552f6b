/* SPDX-License-Identifier: MIT */
/* layernorm.cu - y = (x - u) r w + b with u = mean(x), r = 1/sqrt(mean((x - u)^2) + eps), per row.
 *
 * Backward, with g = dy w, n = (x - u) r and D = width:
 *   dx += r (g - mean(g) - n mean(g n))
 *   dw (+)= sum over rows of dy n, db (+)= sum over rows of dy
 *
 * Threads as in rmsnorm.cu; the block's shared memory holds its parts of dw and db. */
#include "kernels/cuda/kernel.cuh"

enum { ROWS_MIN = 8, BLOCKS_MAX = 1056 };

struct forward {
	void *out;
	float *mean, *rstd;
	void *sum;
	const void *x, *delta;
	const float *weight, *bias;
	size_t dim;
	float eps;
};

template <typename T, int V> static __global__ void layernorm_forward(struct forward f)
{
	size_t row = blockIdx.x, vectors = f.dim / V, first = row * vectors;
	const void *x = f.delta ? f.sum : f.x;
	float sum = 0.0f, squares = 0.0f;

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
			sum += v[j];
	}
	float mean = block_sum(sum) / (float)f.dim;
	for (size_t i = threadIdx.x; i < vectors; i += blockDim.x) {
		float v[V];
		load<T, V>(v, x, first + i);
#pragma unroll
		for (int j = 0; j < V; j++)
			squares += (v[j] - mean) * (v[j] - mean);
	}
	float rstd = 1.0f / sqrtf(block_sum(squares) / (float)f.dim + f.eps);
	if (threadIdx.x == 0) {
		f.mean[row] = mean;
		f.rstd[row] = rstd;
	}
	for (size_t i = threadIdx.x; i < vectors; i += blockDim.x) {
		float v[V];
		load<T, V>(v, x, first + i);
#pragma unroll
		for (int j = 0; j < V; j++)
			v[j] = (v[j] - mean) * rstd * f.weight[i * V + j] + f.bias[i * V + j];
		store<T, V>(f.out, first + i, v);
	}
}

extern "C" void cuda_layernorm_forward(struct device *dev, void *out, float *mean, float *rstd,
				       void *sum, const void *x, const void *delta,
				       const float *weight, const float *bias, size_t rows,
				       size_t dim, float eps)
{
	bool wide = is_wide(dev, dim, out, sum, x, delta);
	struct forward f = { out, mean, rstd, sum, x, delta, weight, bias, dim, eps };
	launch(dev, AT("layernorm_forward", rows, dim, 0, 0), PICK(dev, wide, layernorm_forward),
	       rows, threads_for(dim / vector_of(dev, wide), BLOCK_MAX), 0, f);
}

struct backward {
	void *dx;
	float *partial;			/* [blocks, 2, dim]: dw, then db */
	const void *dout, *x;
	const float *mean, *rstd, *weight;
	size_t rows, dim, rows_per_block;
};

template <typename T, int V> DEVICE void backward_row(const struct backward &b, size_t row,
						       float *dweight, float *dbias)
{
	size_t vectors = b.dim / V, first = row * vectors;
	float mean = b.mean[row], r = b.rstd[row], sum = 0.0f, along = 0.0f;

	for (size_t i = threadIdx.x; i < vectors; i += blockDim.x) {
		float d[V], x[V];
		load<T, V>(d, b.dout, first + i);
		load<T, V>(x, b.x, first + i);
#pragma unroll
		for (int j = 0; j < V; j++) {
			float g = d[j] * b.weight[i * V + j], n = (x[j] - mean) * r;
			sum += g;
			along += g * n;
			dweight[i * V + j] += d[j] * n;
			dbias[i * V + j] += d[j];
		}
	}
	float level = block_sum(sum) / (float)b.dim, back = block_sum(along) / (float)b.dim;
	for (size_t i = threadIdx.x; i < vectors; i += blockDim.x) {
		float d[V], x[V], dx[V];
		load<T, V>(d, b.dout, first + i);
		load<T, V>(x, b.x, first + i);
		load<T, V>(dx, b.dx, first + i);
#pragma unroll
		for (int j = 0; j < V; j++)
			dx[j] += r * (d[j] * b.weight[i * V + j] - level -
				      (x[j] - mean) * r * back);
		store<T, V>(b.dx, first + i, dx);
	}
}

template <typename T, int V> static __global__ void layernorm_backward(struct backward b)
{
	SHARED_FLOATS(part);		/* [2, dim] */
	size_t row = blockIdx.x * b.rows_per_block;
	size_t end = row + b.rows_per_block < b.rows ? row + b.rows_per_block : b.rows;

	for (size_t i = threadIdx.x; i < b.dim / V; i += blockDim.x)
		for (int j = 0; j < V; j++)
			part[i * V + j] = part[b.dim + i * V + j] = 0.0f;
	for (; row < end; row++)
		backward_row<T, V>(b, row, part, part + b.dim);
	for (size_t i = threadIdx.x; i < b.dim / V; i += blockDim.x)
		for (int j = 0; j < V; j++) {
			size_t to = blockIdx.x * 2 * b.dim + i * V + j;
			b.partial[to] = part[i * V + j];
			b.partial[to + b.dim] = part[b.dim + i * V + j];
		}
}

extern "C" void cuda_layernorm_backward(struct device *dev, void *dx, float *dweight,
					float *dbias, const void *dout, const void *x,
					const float *mean, const float *rstd, const float *weight,
					size_t rows, size_t dim, bool accumulate)
{
	const struct place at = AT("layernorm_backward", rows, dim, 0, 0);
	bool wide = is_wide(dev, dim, dx, dout, x);
	size_t per_block = blocks_for(rows, BLOCKS_MAX);
	per_block = per_block < ROWS_MIN ? (size_t)ROWS_MIN : per_block;
	size_t blocks = blocks_for(rows, per_block);
	float *partial = (float *)cuda_scratch(dev, &at, blocks * 2 * dim * sizeof(float));
	struct backward b = { dx, partial, dout, x, mean, rstd, weight, rows, dim, per_block };
	if (!partial)
		return;
	launch(dev, at, PICK(dev, wide, layernorm_backward), blocks,
	       threads_for(dim / vector_of(dev, wide), BLOCK_MAX), 2 * dim * sizeof(float), b);
	cuda_column_sum(dev, dweight, partial, blocks, 2 * dim, dim, accumulate);
	cuda_column_sum(dev, dbias, partial + dim, blocks, 2 * dim, dim, accumulate);
}
