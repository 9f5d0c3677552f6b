/* SPDX-License-Identifier: MIT */
/* rounded.c - a device that computes in bf16 where there is fp32 only: each operation as it is, and
 * then what it stored is rounded to bf16, in its place of an fp32. Weights are rounded on their way
 * into an operation. Sums, statistics of rows, losses and gradients of weights stay fp32, as on a
 * GPU.
 *
 * On a device that computes in fp32 these are the operations themselves. */
#include "kernels/cpu/device/rounded.h"

#include "kernels/cpu/round.h"

enum { PIECE = 1 << 14 };

struct rounding_task {
	float *to;
	const float *from;
	size_t rows, columns, ld_to, ld, per_task; /* rows a task */
};

static void round_task(const void *args, size_t index, unsigned worker)
{
	const struct rounding_task *t = args;
	size_t end = cpu_min(t->rows, (index + 1) * t->per_task);

	(void)worker;
	for (size_t r = index * t->per_task; r < end; r++) {
		float *to = t->to + r * t->ld_to;
		const float *from = t->from + r * t->ld;
		for (size_t i = 0; i < t->columns; i++)
			to[i] = float_of(round_to_bf16(from[i], ROUND_NEAREST_EVEN, 0));
	}
}

static void round_rows(struct device *dev, float *to, size_t ld_to, const float *from, size_t ld,
		       size_t rows, size_t columns)
{
	if (ld == columns && ld_to == columns) { /* one long row, cut for the threads */
		size_t count = rows * columns, whole = count / PIECE;
		const struct rounding_task t = { to, from, whole, PIECE, PIECE, PIECE, 1 };
		const struct rounding_task rest = {
			to + whole * PIECE, from + whole * PIECE, 1, count - whole * PIECE, 0, 0, 1
		};
		pool_run(dev->pool, whole, round_task, &t);
		round_task(&rest, 0, 0);
		return;
	}
	const struct rounding_task t = {
		to, from, rows, columns, ld_to, ld, cpu_rows_per_task(columns)
	};
	pool_run(dev->pool, cpu_tasks(rows, t.per_task), round_task, &t);
}

/* What an operation has stored. */
static void stored(struct device *dev, void *x, size_t count)
{
	if (dev->rounds && x)
		round_rows(dev, x, count, x, count, 1, count);
}

/* A piece of weights as an operation sees it; NULL without memory. */
static const float *seen(struct device *dev, enum rounded_piece piece, const float *weights,
			 size_t rows, size_t columns, size_t ld)
{
	if (!dev->rounds || !weights)
		return weights;
	float *to = cpu_room(dev, &dev->rounded[piece], rows * columns * sizeof(float),
			     "no memory for weights in bf16");
	if (to)
		round_rows(dev, to, columns, weights, ld, rows, columns);
	return to;
}

void rounded_gemm(struct device *dev, const struct gemm *g)
{
	struct gemm p = *g;
	size_t rows = g->trans_b ? g->n : g->k, columns = g->trans_b ? g->k : g->n;

	if (g->b_is_weight)
		p.b = seen(dev, ROUNDED_MATRIX, g->b, rows, columns, g->ldb);
	if (p.b != g->b)
		p.ldb = columns;
	p.bias = seen(dev, ROUNDED_VECTOR, g->bias, 1, g->n, g->n);
	if (!p.b || (g->bias && !p.bias))
		return;
	cpu_gemm(dev, &p);
	if (dev->rounds && !g->c_is_gradient)
		round_rows(dev, g->c, g->ldc, g->c, g->ldc, g->m, g->n);
	if (dev->rounds && g->then == GEMM_GELU)
		round_rows(dev, g->kept, g->ldc, g->kept, g->ldc, g->m, g->n);
}

void rounded_embed_forward(struct device *dev, void *out, const float *table, const int32_t *tokens,
			   size_t rows, size_t dim)
{
	cpu_embed_forward(dev, out, table, tokens, rows, dim);
	stored(dev, out, rows * dim);
}

void rounded_rmsnorm_forward(struct device *dev, void *out, float *rstd, void *sum, const void *x,
			     const void *delta, const float *weight, size_t rows, size_t dim,
			     float eps)
{
	weight = seen(dev, ROUNDED_VECTOR, weight, 1, dim, dim);
	if (!weight)
		return;
	cpu_rmsnorm_forward(dev, out, rstd, sum, x, delta, weight, rows, dim, eps);
	stored(dev, out, rows * dim);
	stored(dev, delta ? sum : NULL, rows * dim);
}

void rounded_rmsnorm_backward(struct device *dev, void *dx, float *dweight, const void *dout,
			      const void *x, const float *rstd, const float *weight, size_t rows,
			      size_t dim, bool accumulate)
{
	weight = seen(dev, ROUNDED_VECTOR, weight, 1, dim, dim);
	if (!weight)
		return;
	cpu_rmsnorm_backward(dev, dx, dweight, dout, x, rstd, weight, rows, dim, accumulate);
	stored(dev, dx, rows * dim);
}

void rounded_layernorm_forward(struct device *dev, void *out, float *mean, float *rstd, void *sum,
			       const void *x, const void *delta, const float *weight,
			       const float *bias, size_t rows, size_t dim, float eps)
{
	weight = seen(dev, ROUNDED_VECTOR, weight, 1, dim, dim);
	bias = seen(dev, ROUNDED_BIAS, bias, 1, dim, dim);
	if (!weight || !bias)
		return;
	cpu_layernorm_forward(dev, out, mean, rstd, sum, x, delta, weight, bias, rows, dim, eps);
	stored(dev, out, rows * dim);
	stored(dev, delta ? sum : NULL, rows * dim);
}

void rounded_layernorm_backward(struct device *dev, void *dx, float *dweight, float *dbias,
				const void *dout, const void *x, const float *mean,
				const float *rstd, const float *weight, size_t rows, size_t dim,
				bool accumulate)
{
	weight = seen(dev, ROUNDED_VECTOR, weight, 1, dim, dim);
	if (!weight)
		return;
	cpu_layernorm_backward(dev, dx, dweight, dbias, dout, x, mean, rstd, weight, rows, dim,
			       accumulate);
	stored(dev, dx, rows * dim);
}

void rounded_bias_forward(struct device *dev, void *y, const float *bias, size_t rows, size_t dim)
{
	bias = seen(dev, ROUNDED_BIAS, bias, 1, dim, dim);
	if (!bias)
		return;
	cpu_bias_forward(dev, y, bias, rows, dim);
	stored(dev, y, rows * dim);
}

void rounded_positions_forward(struct device *dev, void *x, const float *table, size_t rows,
			       size_t seq, size_t dim)
{
	table = seen(dev, ROUNDED_MATRIX, table, seq, dim, dim);
	if (!table)
		return;
	cpu_positions_forward(dev, x, table, rows, seq, dim);
	stored(dev, x, rows * dim);
}

/* Floats of a row of qkv. */
static size_t qkv_width(const struct attention *a)
{
	return (a->heads + 2 * a->kv_heads) * a->head_dim;
}

void rounded_rope(struct device *dev, void *qkv, const float *table, const struct attention *a,
		  bool inverse)
{
	cpu_rope(dev, qkv, table, a, inverse);
	stored(dev, qkv, a->batch * a->seq * qkv_width(a));
}

void rounded_attention_forward(struct device *dev, void *out, float *lse, const void *qkv,
			       const struct attention *a)
{
	cpu_attention_forward(dev, out, lse, qkv, a);
	stored(dev, out, a->batch * a->seq * a->heads * a->head_dim);
}

void rounded_attention_backward(struct device *dev, void *dqkv, const void *dout, const void *out,
				const float *lse, const void *qkv, const float *table,
				const struct attention *a)
{
	cpu_attention_backward(dev, dqkv, dout, out, lse, qkv, table, a);
	stored(dev, dqkv, a->batch * a->seq * qkv_width(a));
}

void rounded_swiglu_forward(struct device *dev, void *out, const void *gate_up, size_t rows,
			    size_t width)
{
	cpu_swiglu_forward(dev, out, gate_up, rows, width);
	stored(dev, out, rows * width);
}

void rounded_swiglu_backward(struct device *dev, void *dgate_up, const void *dout,
			     const void *gate_up, size_t rows, size_t width)
{
	cpu_swiglu_backward(dev, dgate_up, dout, gate_up, rows, width);
	stored(dev, dgate_up, 2 * rows * width);
}

void rounded_gelu_forward(struct device *dev, void *out, const void *x, size_t count,
			  enum gelu_form form)
{
	cpu_gelu_forward(dev, out, x, count, form);
	stored(dev, out, count);
}

void rounded_gelu_backward(struct device *dev, void *dx, const void *dout, const void *x,
			   size_t count, enum gelu_form form)
{
	cpu_gelu_backward(dev, dx, dout, x, count, form);
	stored(dev, dx, count);
}

void rounded_cross_entropy(struct device *dev, float *loss, void *logits, const int32_t *targets,
			   size_t rows, size_t vocab, float scale)
{
	cpu_cross_entropy(dev, loss, logits, targets, rows, vocab, scale);
	stored(dev, scale != 0.0f ? logits : NULL, rows * vocab);
}
