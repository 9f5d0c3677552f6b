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
	struct finish finish;
};

template <typename T, int V, bool FINISH> KERNEL(BLOCK_MAX) rmsnorm_forward(struct forward f)
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
	unsigned past = FINISH ? most_of_past(f.finish) : 0, most = 0;
	for (size_t at = 0; at < vectors; at += blockDim.x) {
		size_t i = at + threadIdx.x;
		float v[V] = { 0 }, w[V];
		if (i < vectors) {
			load<T, V>(v, x, first + i); /* this thread wrote it, or the caller */
			load<float, V>(w, f.weight, i);
#pragma unroll
			for (int j = 0; j < V; j++)
				v[j] *= rstd * w[j];
			store<T, V>(f.out, first + i, v);
		}
		if (FINISH)
			most = larger(most, finish_vector<T, V>(f.finish, past, v, (first + i) * V,
								i < vectors));
	}
	if (FINISH)
		finish_amax(f.finish, most);
}

extern "C" void cuda_rmsnorm_forward(struct device *dev, void *out, float *rstd, void *sum,
				     const void *x, const void *delta, const float *weight,
				     size_t rows, size_t dim, float eps)
{
	const struct place at = AT("rmsnorm_forward", rows, dim, 0, 0);
	bool wide = is_wide(dev, dim, out, sum, x, delta, weight);
	struct forward f = { out, rstd, sum, x, delta, weight, dim, eps, {} };
	bool finish = finish_begins(dev, out, rows * dim, dim, wide, &f.finish);

	launch(dev, at, PICK_FINISH(dev, wide, finish, rmsnorm_forward), rows,
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

/* The block's rows where a thread has one vector of each, if any: its columns' gradient of the
 * weights stays in its registers until the end. */
template <typename T, int V> DEVICE void backward_by_vector(const struct backward &b)
{
	size_t vectors = b.dim / V, i = threadIdx.x, end = end_row(b.runs);
	bool is_there = i < vectors;
	float w[V] = { 0 }, dw[V] = { 0 };
	struct asked<T, V> now = {}, next = now;

	if (is_there) {
		load<float, V>(w, b.weight, i);
		ask<T, V>(next, b.dout, b.x, b.dx, first_row(b.runs) * vectors + i);
	}
	for (size_t row = first_row(b.runs); row < end; row++) {
		float r = b.rstd[row], along = 0.0f, dx[V];
		now = next;
		if (is_there && row + 1 < end)
			ask<T, V>(next, b.dout, b.x, b.dx, (row + 1) * vectors + i);
#pragma unroll
		for (int j = 0; j < V; j++) {
			float d = widen(now.dout.v[j]), x = widen(now.x.v[j]);
			along += d * w[j] * x;
			dw[j] += d * x * r;
		}
		float back = block_sum(along) / (float)b.dim * r * r * r;
#pragma unroll
		for (int j = 0; j < V; j++)
			dx[j] = widen(now.dx.v[j]) +
				(widen(now.dout.v[j]) * w[j] * r - widen(now.x.v[j]) * back);
		if (is_there)
			store<T, V>(b.dx, row * vectors + i, dx);
	}
	if (is_there)
		store<float, V>(b.partial + blockIdx.x * b.dim, i, dw);
}

template <typename T, int V> KERNEL(BLOCK_MAX) rmsnorm_backward(struct backward b)
{
	after_earlier();
	SHARED_FLOATS(dweight); /* [dim] */

	if (b.dim / V <= blockDim.x) {
		backward_by_vector<T, V>(b);
		return;
	}

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

/* --- of query and key heads: each by itself, or all of a row as one ------------------------------
 *
 * A piece is what is normed as one. Forward, and dx, which replaces dy: a block owns a piece of a
 * row, forward one more the row's values. dw: a block owns a run of rows, a thread always the same
 * columns. */

struct qk {
	void *qkv;      /* backward: dqkv */
	float *rstd;    /* [rows, stats] */
	float *partial; /* [blocks, query_width + key_width] */
	const void *raw;
	const float *query_weight, *key_weight;
	size_t queries, keys;          /* elements of all heads in a row */
	size_t query_width, key_width; /* of a piece */
	size_t query_pieces, stats;    /* pieces of queries in a row, of both */
	struct runs runs;
	float eps;
};

/* Where a piece lies in a row, and its weights. */
struct piece {
	size_t at, width;
	const float *weight;
};

DEVICE struct piece piece_of(const struct qk &q, size_t p)
{
	if (p < q.query_pieces)
		return { p * q.query_width, q.query_width, q.query_weight };
	return { q.queries + (p - q.query_pieces) * q.key_width, q.key_width, q.key_weight };
}

template <typename T> KERNEL(BLOCK) qk_forward(struct qk q)
{
	after_earlier();
	size_t row = blockIdx.x / (q.stats + 1), p = blockIdx.x % (q.stats + 1);
	size_t first = row * (q.queries + 2 * q.keys);
	const T *raw = (const T *)q.raw + first;
	T *out = (T *)q.qkv + first;
	float squares = 0.0f;

	if (p == q.stats) { /* the same for all threads of the block */
		for (size_t i = threadIdx.x; i < q.keys; i += blockDim.x)
			out[q.queries + q.keys + i] = raw[q.queries + q.keys + i];
		return;
	}
	const struct piece s = piece_of(q, p);
	for (size_t i = threadIdx.x; i < s.width; i += blockDim.x) {
		float x = widen(raw[s.at + i]);
		squares += x * x;
	}
	float rstd = 1.0f / sqrtf(block_sum(squares) / (float)s.width + q.eps);
	if (threadIdx.x == 0)
		q.rstd[row * q.stats + p] = rstd;
	for (size_t i = threadIdx.x; i < s.width; i += blockDim.x)
		put(out[s.at + i], widen(raw[s.at + i]) * rstd * s.weight[i]);
}

template <typename T> KERNEL(BLOCK) qk_input_backward(struct qk q)
{
	after_earlier();
	size_t row = blockIdx.x / q.stats, p = blockIdx.x % q.stats;
	const struct piece s = piece_of(q, p);
	size_t first = row * (q.queries + 2 * q.keys) + s.at;
	const T *raw = (const T *)q.raw + first;
	T *d = (T *)q.qkv + first;
	float r = q.rstd[blockIdx.x], along = 0.0f;

	for (size_t i = threadIdx.x; i < s.width; i += blockDim.x)
		along += widen(d[i]) * s.weight[i] * widen(raw[i]);
	float back = block_sum(along) / (float)s.width * r * r * r;
	for (size_t i = threadIdx.x; i < s.width; i += blockDim.x)
		put(d[i], widen(d[i]) * s.weight[i] * r - widen(raw[i]) * back);
}

template <typename T> KERNEL(BLOCK) qk_weight_backward(struct qk q)
{
	after_earlier();
	size_t columns = q.query_width + q.key_width;

	for (size_t i = threadIdx.x; i < columns; i += blockDim.x) {
		bool is_query = i < q.query_width;
		size_t from = is_query ? 0 : q.query_pieces;
		size_t to = is_query ? q.query_pieces : q.stats;
		size_t column = is_query ? i : i - q.query_width;
		float sum = 0.0f;
		for (size_t row = first_row(q.runs); row < end_row(q.runs); row++)
			for (size_t p = from; p < to; p++) {
				size_t at = row * (q.queries + 2 * q.keys) + piece_of(q, p).at +
					    column;
				sum += widen(((const T *)q.qkv)[at]) *
				       widen(((const T *)q.raw)[at]) * q.rstd[row * q.stats + p];
			}
		q.partial[blockIdx.x * columns + i] = sum;
	}
}

static struct qk qk_of(const struct qk_norm *n, const float *query_weight, const float *key_weight)
{
	struct qk q = {};

	q.query_weight = query_weight;
	q.key_weight = key_weight;
	q.queries = n->heads * n->head_dim;
	q.keys = n->kv_heads * n->head_dim;
	q.query_width = n->whole ? q.queries : n->head_dim;
	q.key_width = n->whole ? q.keys : n->head_dim;
	q.query_pieces = n->whole ? 1 : n->heads;
	q.stats = q.query_pieces + (n->whole ? 1 : n->kv_heads);
	q.runs = runs_of(n->rows, BLOCK);
	q.eps = n->eps;
	return q;
}

extern "C" void cuda_qk_norm_forward(struct device *dev, void *qkv, float *rstd, const void *raw,
				     const float *query_weight, const float *key_weight,
				     const struct qk_norm *n)
{
	struct qk q = qk_of(n, query_weight, key_weight);

	q.qkv = qkv;
	q.rstd = rstd;
	q.raw = raw;
	launch(dev, AT("qk_norm_forward", n->rows, n->heads, n->head_dim, 0),
	       EITHER(dev, qk_forward), n->rows * (q.stats + 1), threads_for(q.query_width, BLOCK),
	       0, q);
}

extern "C" void cuda_qk_norm_backward(struct device *dev, void *dqkv, float *dquery_weight,
				      float *dkey_weight, const void *raw, const float *rstd,
				      const float *query_weight, const float *key_weight,
				      const struct qk_norm *n, bool accumulate)
{
	const struct place at = AT("qk_norm_backward", n->rows, n->heads, n->head_dim, 0);
	struct qk q = qk_of(n, query_weight, key_weight);
	size_t columns = q.query_width + q.key_width;

	q.qkv = dqkv;
	q.rstd = (float *)rstd; /* only read */
	q.raw = raw;
	q.partial = (float *)cuda_scratch(dev, &at, q.runs.blocks * columns * sizeof(float));
	if (!q.partial)
		return;
	launch(dev, at, EITHER(dev, qk_weight_backward), q.runs.blocks, BLOCK, 0, q);
	cuda_column_sum(dev, dquery_weight, q.partial, q.runs.blocks, columns, q.query_width,
			accumulate);
	cuda_column_sum(dev, dkey_weight, q.partial + q.query_width, q.runs.blocks, columns,
			q.key_width, accumulate);
	launch(dev, at, EITHER(dev, qk_input_backward), n->rows * q.stats,
	       threads_for(q.query_width, BLOCK), 0, q);
}
