/* SPDX-License-Identifier: MIT */
/* rmsnorm.cu - y = x r w with r = 1/sqrt(mean(x^2) + eps), per row; the residual sum in front.
 *
 * Backward, with g = dy w and D = width:
 *   dx += r g - x r^3 (g . x)/D
 *   dw (+)= sum over rows of dy x r
 *
 * Threads: norm.cuh. */
#include "kernels/cuda/ops/norm.cuh"

struct forward {
	void *out;
	float *rstd;
	void *sum;
	const void *x, *delta;
	const float *weight;
	size_t dim;
	float eps;
};

template <typename T, int V> KERNEL(BLOCK_MAX) rmsnorm_forward(struct forward f)
{
	after_earlier();
	size_t row = blockIdx.x, vectors = f.dim / V, first = row * vectors;
	const void *x = f.delta ? f.sum : f.x;
	float squares = 0.0f;

	for (size_t i = threadIdx.x; i < vectors; i += blockDim.x) {
		float v[V];
		take_summed<T, V>(v, f.x, f.delta, f.sum, first + i);
#pragma unroll
		for (int j = 0; j < V; j++)
			squares += v[j] * v[j];
	}
	float rstd = 1.0f / sqrtf(block_sum(squares) / (float)f.dim + f.eps);
	if (threadIdx.x == 0)
		f.rstd[row] = rstd;
	for (size_t i = threadIdx.x; i < vectors; i += blockDim.x) {
		float v[V], w[V];
		load<T, V>(v, x, first + i); /* this thread wrote it, or the caller */
		load<float, V>(w, f.weight, i);
#pragma unroll
		for (int j = 0; j < V; j++)
			v[j] *= rstd * w[j];
		store<T, V>(f.out, first + i, v);
	}
}

extern "C" void cuda_rmsnorm_forward(struct device *dev, void *out, float *rstd, void *sum,
				     const void *x, const void *delta, const float *weight,
				     size_t rows, size_t dim, float eps)
{
	bool wide = is_wide(dev, dim, out, sum, x, delta, weight);
	struct forward f = { out, rstd, sum, x, delta, weight, dim, eps };
	launch(dev, AT("rmsnorm_forward", rows, dim, 0, 0), PICK(dev, wide, rmsnorm_forward), rows,
	       threads_for(dim / vector_of(dev, wide), BLOCK_MAX), 0, f);
}

struct backward {
	void *dx;
	float *partial; /* [blocks, dim] */
	const void *dout, *x;
	const float *rstd, *weight;
	size_t dim;
	struct runs runs;
};

template <typename T, int V>
DEVICE void backward_row(const struct backward &b, size_t row, float *dweight)
{
	size_t vectors = b.dim / V, first = row * vectors;
	float r = b.rstd[row], along = 0.0f;

	for (size_t i = threadIdx.x; i < vectors; i += blockDim.x) {
		float d[V], x[V], w[V], dw[V];
		load<T, V>(d, b.dout, first + i);
		load<T, V>(x, b.x, first + i);
		load<float, V>(w, b.weight, i);
		load<float, V>(dw, dweight, i);
#pragma unroll
		for (int j = 0; j < V; j++) {
			along += d[j] * w[j] * x[j];
			dw[j] += d[j] * x[j] * r;
		}
		store<float, V>(dweight, i, dw);
	}
	float back = block_sum(along) / (float)b.dim * r * r * r;
	for (size_t i = threadIdx.x; i < vectors; i += blockDim.x) {
		float d[V], x[V], w[V], dx[V];
		load<T, V>(d, b.dout, first + i);
		load<T, V>(x, b.x, first + i);
		load<T, V>(dx, b.dx, first + i);
		load<float, V>(w, b.weight, i);
#pragma unroll
		for (int j = 0; j < V; j++)
			dx[j] += d[j] * w[j] * r - x[j] * back;
		store<T, V>(b.dx, first + i, dx);
	}
}

template <typename T, int V> KERNEL(BLOCK_MAX) rmsnorm_backward(struct backward b)
{
	after_earlier();
	SHARED_FLOATS(dweight); /* [dim] */

	clear_parts<V>(dweight, b.dim, 1);
	for (size_t row = first_row(b.runs); row < end_row(b.runs); row++)
		backward_row<T, V>(b, row, dweight);
	leave_parts<V>(b.partial, dweight, b.dim, 1);
}

extern "C" void cuda_rmsnorm_backward(struct device *dev, void *dx, float *dweight,
				      const void *dout, const void *x, const float *rstd,
				      const float *weight, size_t rows, size_t dim, bool accumulate)
{
	const struct place at = AT("rmsnorm_backward", rows, dim, 0, 0);
	bool wide = is_wide(dev, dim, dx, dout, x, weight);
	unsigned threads = threads_for(dim / vector_of(dev, wide), BLOCK_MAX);
	const struct runs runs = runs_of(rows, threads);
	float *partial = (float *)cuda_scratch(dev, &at, runs.blocks * dim * sizeof(float));
	struct backward b = { dx, partial, dout, x, rstd, weight, dim, runs };
	if (!partial)
		return;
	launch(dev, at, PICK(dev, wide, rmsnorm_backward), runs.blocks, threads,
	       dim * sizeof(float), b);
	cuda_column_sum(dev, dweight, partial, runs.blocks, dim, dim, accumulate);
}
