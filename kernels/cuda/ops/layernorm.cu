/* SPDX-License-Identifier: MIT */
/* layernorm.cu - y = (x - u) r w + b with u = mean(x), r = 1/sqrt(mean((x - u)^2) + eps), per row.
 *
 * Backward, with g = dy w, n = (x - u) r and D = width:
 *   dx += r (g - mean(g) - n mean(g n))
 *   dw (+)= sum over rows of dy n, db (+)= sum over rows of dy
 *
 * Threads: norm.cuh; the block's shared memory holds its parts of dw and db. */
#include "kernels/cuda/ops/norm.cuh"

struct forward {
	void *out;
	float *mean, *rstd;
	void *sum;
	const void *x, *delta;
	const float *weight, *bias;
	size_t dim;
	float eps;
	struct finish finish;
};

template <typename T, int V, bool FINISH> KERNEL(BLOCK_MAX) layernorm_forward(struct forward f)
{
	after_earlier();
	size_t row = blockIdx.x, vectors = f.dim / V, first = row * vectors;
	const void *x = f.delta ? f.sum : f.x;
	float sum = 0.0f, squares = 0.0f;

	for (size_t i = threadIdx.x; i < vectors; i += blockDim.x) {
		float v[V];
		take_summed<T, V>(v, f.x, f.delta, f.sum, first + i);
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
	unsigned past = FINISH ? most_of_past(f.finish) : 0, most = 0;
	for (size_t at = 0; at < vectors; at += blockDim.x) {
		size_t i = at + threadIdx.x;
		float v[V] = { 0 }, w[V], shift[V];
		if (i < vectors) {
			load<T, V>(v, x, first + i);
			load<float, V>(w, f.weight, i);
			load<float, V>(shift, f.bias, i);
#pragma unroll
			for (int j = 0; j < V; j++)
				v[j] = (v[j] - mean) * rstd * w[j] + shift[j];
			store<T, V>(f.out, first + i, v);
		}
		if (FINISH)
			most = larger(most, finish_vector<T, V>(f.finish, past, v, (first + i) * V,
								i < vectors));
	}
	if (FINISH)
		finish_amax(f.finish, most);
}

extern "C" void cuda_layernorm_forward(struct device *dev, void *out, float *mean, float *rstd,
				       void *sum, const void *x, const void *delta,
				       const float *weight, const float *bias, size_t rows,
				       size_t dim, float eps)
{
	const struct place at = AT("layernorm_forward", rows, dim, 0, 0);
	bool wide = is_wide(dev, dim, out, sum, x, delta, weight, bias);
	struct forward f = { out, mean, rstd, sum, x, delta, weight, bias, dim, eps, {} };
	bool finish = finish_begins(dev, out, rows * dim, dim, wide, &f.finish);

	launch(dev, at, PICK_FINISH(dev, wide, finish, layernorm_forward), rows,
	       threads_for(dim / vector_of(dev, wide), BLOCK_MAX), 0, f);
}

struct backward {
	void *dx;
	float *partial; /* [blocks, 2, dim]: dw, then db */
	const void *dout, *x;
	const float *mean, *rstd, *weight;
	size_t dim;
	struct runs runs;
};

template <typename T, int V>
DEVICE void backward_row(const struct backward &b, size_t row, float *dweight, float *dbias)
{
	size_t vectors = b.dim / V, first = row * vectors;
	float mean = b.mean[row], r = b.rstd[row], sum = 0.0f, along = 0.0f;

	for (size_t i = threadIdx.x; i < vectors; i += blockDim.x) {
		float d[V], x[V], w[V], dw[V], db[V];
		load<T, V>(d, b.dout, first + i);
		load<T, V>(x, b.x, first + i);
		load<float, V>(w, b.weight, i);
		load<float, V>(dw, dweight, i);
		load<float, V>(db, dbias, i);
#pragma unroll
		for (int j = 0; j < V; j++) {
			float g = d[j] * w[j], n = (x[j] - mean) * r;
			sum += g;
			along += g * n;
			dw[j] += d[j] * n;
			db[j] += d[j];
		}
		store<float, V>(dweight, i, dw);
		store<float, V>(dbias, i, db);
	}
	float level = block_sum(sum) / (float)b.dim, back = block_sum(along) / (float)b.dim;
	for (size_t i = threadIdx.x; i < vectors; i += blockDim.x) {
		float d[V], x[V], w[V], dx[V];
		load<T, V>(d, b.dout, first + i);
		load<T, V>(x, b.x, first + i);
		load<T, V>(dx, b.dx, first + i);
		load<float, V>(w, b.weight, i);
#pragma unroll
		for (int j = 0; j < V; j++)
			dx[j] += r * (d[j] * w[j] - level - (x[j] - mean) * r * back);
		store<T, V>(b.dx, first + i, dx);
	}
}

template <typename T, int V>
DEVICE void add_to_parts(const struct asked<T, V> &a, float mean, float r, float *dweight,
			 float *dbias, size_t i)
{
	float sum[V];

	load<float, V>(sum, dweight, i);
#pragma unroll
	for (int j = 0; j < V; j++)
		sum[j] += widen(a.dout.v[j]) * ((widen(a.x.v[j]) - mean) * r);
	store<float, V>(dweight, i, sum);
	load<float, V>(sum, dbias, i);
#pragma unroll
	for (int j = 0; j < V; j++)
		sum[j] += widen(a.dout.v[j]);
	store<float, V>(dbias, i, sum);
}

/* The block's rows where a thread has one vector of each, if any. */
template <typename T, int V>
DEVICE void backward_by_vector(const struct backward &b, float *dweight, float *dbias)
{
	size_t vectors = b.dim / V, i = threadIdx.x, end = end_row(b.runs);
	bool is_there = i < vectors;
	float w[V] = { 0 };
	struct asked<T, V> now = {}, next = now;

	if (is_there) {
		load<float, V>(w, b.weight, i);
		ask<T, V>(next, b.dout, b.x, b.dx, first_row(b.runs) * vectors + i);
	}
	for (size_t row = first_row(b.runs); row < end; row++) {
		float mean = b.mean[row], r = b.rstd[row], sum = 0.0f, along = 0.0f, dx[V];
		now = next;
		if (is_there && row + 1 < end)
			ask<T, V>(next, b.dout, b.x, b.dx, (row + 1) * vectors + i);
#pragma unroll
		for (int j = 0; j < V; j++) {
			float d = widen(now.dout.v[j]), n = (widen(now.x.v[j]) - mean) * r;
			sum += d * w[j];
			along += d * w[j] * n;
		}
		if (is_there)
			add_to_parts<T, V>(now, mean, r, dweight, dbias, i);
		float level = block_sum(sum) / (float)b.dim;
		float back = block_sum(along) / (float)b.dim;
#pragma unroll
		for (int j = 0; j < V; j++)
			dx[j] = widen(now.dx.v[j]) + r * (widen(now.dout.v[j]) * w[j] - level -
							  (widen(now.x.v[j]) - mean) * r * back);
		if (is_there)
			store<T, V>(b.dx, row * vectors + i, dx);
	}
}

template <typename T, int V> KERNEL(BLOCK_MAX) layernorm_backward(struct backward b)
{
	after_earlier();
	SHARED_FLOATS(part); /* dw, then db: [2, dim] */

	clear_parts<V>(part, b.dim, 2);
	if (b.dim / V <= blockDim.x)
		backward_by_vector<T, V>(b, part, part + b.dim);
	else
		for (size_t row = first_row(b.runs); row < end_row(b.runs); row++)
			backward_row<T, V>(b, row, part, part + b.dim);
	leave_parts<V>(b.partial, part, b.dim, 2);
}

extern "C" void cuda_layernorm_backward(struct device *dev, void *dx, float *dweight, float *dbias,
					const void *dout, const void *x, const float *mean,
					const float *rstd, const float *weight, size_t rows,
					size_t dim, bool accumulate)
{
	const struct place at = AT("layernorm_backward", rows, dim, 0, 0);
	bool wide = is_wide(dev, dim, dx, dout, x, weight);
	unsigned threads = threads_for(dim / vector_of(dev, wide), BLOCK_MAX);
	const struct runs runs = runs_of(rows, threads);
	float *partial = (float *)cuda_scratch(dev, &at, runs.blocks * 2 * dim * sizeof(float));
	struct backward b = { dx, partial, dout, x, mean, rstd, weight, dim, runs };
	if (!partial)
		return;
	launch(dev, at, PICK(dev, wide, layernorm_backward), runs.blocks, threads,
	       2 * dim * sizeof(float), b);
	cuda_column_sum(dev, dweight, partial, runs.blocks, 2 * dim, dim, accumulate);
	cuda_column_sum(dev, dbias, partial + dim, runs.blocks, 2 * dim, dim, accumulate);
}
