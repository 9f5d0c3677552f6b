/* SPDX-License-Identifier: MIT */
/* rmsnorm.c - y = x r w with r = 1/sqrt(mean(x^2) + eps), per row; the residual sum in front.
 *
 * Backward, with g = dy w and D = width:
 *   dx += r g - x r^3 (g . x)/D            a task owns some rows
 *   dw (+)= sum over rows of dy x r        a task owns some columns, rows in order */
#include "kernels/cpu/cpu.h"

#include <math.h>

enum { COLUMNS_PER_TASK = 64 };

struct forward {
	float *out, *rstd, *sum;
	const float *x, *delta, *weight;
	size_t rows, dim, rows_per_task;
	float eps;
};

CPU_INLINE void forward_row(const struct forward *f, size_t row)
{
	const float *restrict weight = f->weight;
	float *restrict out = f->out + row * f->dim;
	const float *x = cpu_residual(f->delta ? f->sum + row * f->dim : NULL, f->x + row * f->dim,
				      f->delta ? f->delta + row * f->dim : NULL, f->dim);

	float rstd = 1.0f / sqrtf(cpu_dot(x, x, f->dim) / (float)f->dim + f->eps);
	f->rstd[row] = rstd;
	for (size_t i = 0; i < f->dim; i++)
		out[i] = x[i] * rstd * weight[i];
}

static void rmsnorm_forward_task(const void *args, size_t index, unsigned worker)
{
	const struct forward *f = args;
	size_t row = index * f->rows_per_task;
	size_t end = cpu_min(row + f->rows_per_task, f->rows);

	(void)worker;
	for (; row < end; row++)
		forward_row(f, row);
}

void cpu_rmsnorm_forward(struct device *dev, void *out, float *rstd, void *sum, const void *x,
			 const void *delta, const float *weight, size_t rows, size_t dim, float eps)
{
	size_t per_task = cpu_rows_per_task(dim);
	const struct forward f = { out, rstd, sum, x, delta, weight, rows, dim, per_task, eps };
	pool_run(dev->pool, cpu_tasks(rows, per_task), rmsnorm_forward_task, &f);
}

struct backward {
	float *dx, *dweight;
	const float *dout, *x, *rstd, *weight;
	size_t rows, dim, rows_per_task;
	bool accumulate;
};

/* sum d[i] weight[i] x[i] */
CPU_INLINE float weighted_dot(const float *d, const float *weight, const float *x, size_t count)
{
	struct vec16 sum = { 0 };
	float lane[CPU_LANES];
	size_t i = 0;

	for (; i + CPU_LANES <= count; i += CPU_LANES) {
		struct vec16 g = vec16_multiply(vec16_load(d + i), vec16_load(weight + i));
		sum = vec16_add(sum, vec16_multiply(g, vec16_load(x + i)));
	}
	vec16_store(lane, sum);
	for (size_t l = 0; i < count; i++, l++)
		lane[l] += d[i] * weight[i] * x[i];
	return cpu_lanes_sum(lane);
}

static void rmsnorm_input_task(const void *args, size_t index, unsigned worker)
{
	const struct backward *b = args;
	size_t row = index * b->rows_per_task;
	size_t end = cpu_min(row + b->rows_per_task, b->rows);

	(void)worker;
	for (; row < end; row++) {
		const float *restrict x = b->x + row * b->dim;
		const float *restrict dout = b->dout + row * b->dim;
		const float *restrict weight = b->weight;
		float *restrict dx = b->dx + row * b->dim;
		float r = b->rstd[row];
		float back = weighted_dot(dout, weight, x, b->dim) / (float)b->dim * r * r * r;
		for (size_t i = 0; i < b->dim; i++)
			dx[i] += dout[i] * weight[i] * r - x[i] * back;
	}
}

static void rmsnorm_weight_task(const void *args, size_t index, unsigned worker)
{
	const struct backward *b = args;
	size_t first = index * COLUMNS_PER_TASK;
	size_t count = cpu_min(COLUMNS_PER_TASK, b->dim - first);
	float sum[COLUMNS_PER_TASK] = { 0 };

	(void)worker;
	for (size_t row = 0; row < b->rows; row++) {
		const float *restrict x = b->x + row * b->dim + first;
		const float *restrict dout = b->dout + row * b->dim + first;
		float r = b->rstd[row];
		for (size_t i = 0; i < count; i++)
			sum[i] += dout[i] * x[i] * r;
	}
	cpu_put_columns(b->dweight + first, sum, count, b->accumulate);
}

void cpu_rmsnorm_backward(struct device *dev, void *dx, float *dweight, const void *dout,
			  const void *x, const float *rstd, const float *weight, size_t rows,
			  size_t dim, bool accumulate)
{
	size_t per_task = cpu_rows_per_task(dim);
	const struct backward b = { dx,     dweight, dout, x,        rstd,
				    weight, rows,    dim,  per_task, accumulate };
	pool_run(dev->pool, cpu_tasks(rows, per_task), rmsnorm_input_task, &b);
	pool_run(dev->pool, cpu_tasks(dim, COLUMNS_PER_TASK), rmsnorm_weight_task, &b);
}

/* --- of query and key heads (Dehghani et al. 2023) -----------------------------------------------
 *
 * A piece is what is normed as one: a head, or all heads of a row. Backward: the weights first, a
 * task owns some columns and walks all pieces in order; then dqkv in place, a task owns some
 * rows. */

/* Queries, or keys, in each row. */
struct qk_side {
	const float *weight;
	float *dweight;
	size_t at;            /* of the first piece in a row */
	size_t pieces, width; /* pieces in a row, elements of one */
	size_t stat;          /* of the first piece in a row of rstd */
};

struct qk_work {
	struct qk_side query, key;
	float *qkv;        /* backward: dqkv */
	float *rstd;       /* forward */
	const float *kept; /* backward: the same, read */
	const float *raw;
	size_t rows, stride, stats, value, rows_per_task;
	float eps;
	bool accumulate;
};

static struct qk_work qk_work_of(const struct qk_norm *n, const float *query_weight,
				 const float *key_weight)
{
	size_t queries = n->heads * n->head_dim, keys = n->kv_heads * n->head_dim;
	size_t stats = n->whole ? 1 : n->heads;

	return (struct qk_work){
		.query = { query_weight, NULL, 0, stats, n->whole ? queries : n->head_dim, 0 },
		.key = { key_weight, NULL, queries, n->whole ? 1 : n->kv_heads,
			 n->whole ? keys : n->head_dim, stats },
		.rows = n->rows,
		.stride = queries + 2 * keys,
		.stats = stats + (n->whole ? 1 : n->kv_heads),
		.value = queries + keys,
		.rows_per_task = cpu_rows_per_task(queries + keys),
		.eps = n->eps,
	};
}

CPU_INLINE void norm_side(const struct qk_work *w, const struct qk_side *s, size_t row)
{
	for (size_t p = 0; p < s->pieces; p++) {
		size_t at = row * w->stride + s->at + p * s->width;
		const float *restrict x = w->raw + at, *restrict weight = s->weight;
		float *restrict out = w->qkv + at;
		float rstd = 1.0f / sqrtf(cpu_dot(x, x, s->width) / (float)s->width + w->eps);
		w->rstd[row * w->stats + s->stat + p] = rstd;
		for (size_t i = 0; i < s->width; i++)
			out[i] = x[i] * rstd * weight[i];
	}
}

static void qk_forward_task(const void *args, size_t index, unsigned worker)
{
	const struct qk_work *w = args;
	size_t row = index * w->rows_per_task, end = cpu_min(row + w->rows_per_task, w->rows);

	(void)worker;
	for (; row < end; row++) {
		size_t value = row * w->stride + w->value;
		norm_side(w, &w->query, row);
		norm_side(w, &w->key, row);
		memcpy(w->qkv + value, w->raw + value, (w->stride - w->value) * sizeof(float));
	}
}

void cpu_qk_norm_forward(struct device *dev, void *qkv, float *rstd, const void *raw,
			 const float *query_weight, const float *key_weight,
			 const struct qk_norm *n)
{
	struct qk_work w = qk_work_of(n, query_weight, key_weight);

	w.qkv = qkv;
	w.rstd = rstd;
	w.raw = raw;
	pool_run(dev->pool, cpu_tasks(w.rows, w.rows_per_task), qk_forward_task, &w);
}

/* dx = r g - x r^3 (g . x)/width with g = dy w, in place of dy */
CPU_INLINE void side_backward(const struct qk_work *w, const struct qk_side *s, size_t row)
{
	for (size_t p = 0; p < s->pieces; p++) {
		size_t at = row * w->stride + s->at + p * s->width;
		const float *restrict x = w->raw + at, *restrict weight = s->weight;
		float *restrict d = w->qkv + at;
		float r = w->kept[row * w->stats + s->stat + p];
		float back = weighted_dot(d, weight, x, s->width) / (float)s->width * r * r * r;
		for (size_t i = 0; i < s->width; i++)
			d[i] = d[i] * weight[i] * r - x[i] * back;
	}
}

static void qk_input_task(const void *args, size_t index, unsigned worker)
{
	const struct qk_work *w = args;
	size_t row = index * w->rows_per_task, end = cpu_min(row + w->rows_per_task, w->rows);

	(void)worker;
	for (; row < end; row++) {
		side_backward(w, &w->query, row);
		side_backward(w, &w->key, row);
	}
}

static void weight_columns(const struct qk_work *w, const struct qk_side *s, size_t first)
{
	size_t count = cpu_min(COLUMNS_PER_TASK, s->width - first);
	float sum[COLUMNS_PER_TASK] = { 0 };

	for (size_t row = 0; row < w->rows; row++)
		for (size_t p = 0; p < s->pieces; p++) {
			size_t at = row * w->stride + s->at + p * s->width + first;
			const float *restrict x = w->raw + at, *restrict d = w->qkv + at;
			float r = w->kept[row * w->stats + s->stat + p];
			for (size_t i = 0; i < count; i++)
				sum[i] += d[i] * x[i] * r;
		}
	cpu_put_columns(s->dweight + first, sum, count, w->accumulate);
}

static void qk_weight_task(const void *args, size_t index, unsigned worker)
{
	const struct qk_work *w = args;
	size_t of_queries = cpu_tasks(w->query.width, COLUMNS_PER_TASK);
	bool is_query = index < of_queries;

	(void)worker;
	weight_columns(w, is_query ? &w->query : &w->key,
		       (is_query ? index : index - of_queries) * COLUMNS_PER_TASK);
}

void cpu_qk_norm_backward(struct device *dev, void *dqkv, float *dquery_weight, float *dkey_weight,
			  const void *raw, const float *rstd, const float *query_weight,
			  const float *key_weight, const struct qk_norm *n, bool accumulate)
{
	struct qk_work w = qk_work_of(n, query_weight, key_weight);

	w.query.dweight = dquery_weight;
	w.key.dweight = dkey_weight;
	w.qkv = dqkv;
	w.kept = rstd;
	w.raw = raw;
	w.accumulate = accumulate;
	pool_run(dev->pool,
		 cpu_tasks(w.query.width, COLUMNS_PER_TASK) +
			 cpu_tasks(w.key.width, COLUMNS_PER_TASK),
		 qk_weight_task, &w);
	pool_run(dev->pool, cpu_tasks(w.rows, w.rows_per_task), qk_input_task, &w);
}
