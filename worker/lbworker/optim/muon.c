/* SPDX-License-Identifier: MIT */
/* muon.c - Newton and Schulz by the device's products; what goes along the elements, on the host.
 *
 * One factor of the iteration is spared: a X + (b A + c A A) X is (a I + A (b I + c A)) X. A matrix
 * with more rows than columns is iterated from the other side, X^T X, which is the same. */
#include "worker/lbworker/optim/muon.h"

#include <math.h>

static const float A = 3.4445f, B = -4.7750f, C = 2.0315f, EPS = 1e-7f;

void muon_momentum(const struct muon_rules *rules, struct model *m, float *momentum,
		   struct model_unit own, float grad_scale)
{
	const float mu = (float)rules->momentum;
	float *restrict b = momentum + own.first;
	float *restrict g = m->grads + own.first;

	for (size_t i = 0; i < own.count; i++) {
		float clipped = g[i] * grad_scale;
		b[i] = mu * b[i] + clipped;
		g[i] = rules->nesterov ? clipped + mu * b[i] : b[i];
	}
}

/* Squares of `side`, and two matrices: D/|D| and the next one. */
struct iteration {
	const struct model *model;
	size_t rows, columns, side;
	float *x, *next, *gram, *inner, *outer;
};

/* C = A B for squares; fp32, whatever activations are stored in. */
static void square_product(const struct iteration *n, float *c, const float *a, const float *b)
{
	const struct gemm g = { .m = n->side,
				.n = n->side,
				.k = n->side,
				.a = a,
				.lda = n->side,
				.b = b,
				.ldb = n->side,
				.c = c,
				.ldc = n->side,
				.c_is_gradient = true,
				.alpha = 1 };

	n->model->backend->gemm(n->model->device, &g);
}

/* X X^T of the shorter side. */
static void gram(const struct iteration *n)
{
	bool is_tall = n->rows > n->columns;
	const struct gemm g = { .m = n->side,
				.n = n->side,
				.k = is_tall ? n->rows : n->columns,
				.a = n->x,
				.lda = n->columns,
				.trans_a = is_tall,
				.b = n->x,
				.ldb = n->columns,
				.trans_b = !is_tall,
				.c = n->gram,
				.ldc = n->side,
				.c_is_gradient = true,
				.alpha = 1 };

	n->model->backend->gemm(n->model->device, &g);
}

/* next = outer X, or X outer. */
static void step(const struct iteration *n)
{
	bool is_tall = n->rows > n->columns;
	const struct gemm g = { .m = n->rows,
				.n = n->columns,
				.k = n->side,
				.a = is_tall ? n->x : n->outer,
				.lda = n->side,
				.b = is_tall ? n->outer : n->x,
				.ldb = n->columns,
				.c = n->next,
				.ldc = n->columns,
				.c_is_gradient = true,
				.alpha = 1 };

	n->model->backend->gemm(n->model->device, &g);
}

static void add_diagonal(float *square, size_t side, float value)
{
	for (size_t i = 0; i < side; i++)
		square[i * side + i] += value;
}

static void iterate(struct iteration *n, int steps)
{
	for (int i = 0; i < steps; i++) {
		gram(n);
		for (size_t k = 0; k < n->side * n->side; k++)
			n->inner[k] = C * n->gram[k];
		add_diagonal(n->inner, n->side, B);
		square_product(n, n->outer, n->gram, n->inner);
		add_diagonal(n->outer, n->side, A);
		step(n);
		float *x = n->x;
		n->x = n->next;
		n->next = x;
	}
}

static void normalise(const struct iteration *n, const float *d)
{
	size_t count = n->rows * n->columns;
	double squares;

	n->model->backend->sum_squares(n->model->device, &squares, d, count, false, false);
	float norm = (float)sqrt(squares);
	norm = norm > EPS ? norm : EPS;
	for (size_t i = 0; i < count; i++)
		n->x[i] = d[i] / norm;
}

static float rate_of(const struct muon_rules *rules, const struct model *m,
		     const struct model_tensor *t)
{
	bool in_out = m->shape.family == MODEL_GPT2;
	double out = (double)(in_out ? t->columns : t->rows);
	double in = (double)(in_out ? t->rows : t->columns);

	if (rules->rate == MUON_ORIGINAL)
		return (float)sqrt(fmax(1, out / in));
	return (float)(0.2 * sqrt(fmax(out, in)));
}

/* The tensor's elements within `own`. */
static void apply(const struct iteration *n, const struct model_tensor *t, struct model_unit own,
		  float rate, float lr, float weight_decay)
{
	size_t count = n->rows * n->columns, end = own.first + own.count;
	size_t first = own.first > t->offset ? own.first - t->offset : 0;
	float *w = n->model->weights + t->offset;

	if (end < t->offset + count)
		count = end > t->offset ? end - t->offset : 0;
	for (size_t i = first; i < count; i++)
		w[i] -= lr * (weight_decay * w[i] + rate * n->x[i]);
}

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Units between the first, with the embedding, and the last two, with the head and all vectors. */
bool muon_takes(const struct model *m, size_t unit)
{
	return unit > 0 && unit + 2 < m->units;
}

struct model_unit muon_range(const struct model *m)
{
	size_t first = m->unit[1].first;

	return (struct model_unit){ first, m->unit[m->units - 2].first - first };
}

static bool lies_in(const struct model_tensor *t, struct model_unit unit)
{
	return t->offset >= unit.first && t->offset < unit.first + unit.count;
}

/* For the largest matrix of all layers. */
size_t muon_floats(const struct model *m)
{
	size_t floats = 0;

	for (size_t i = 0; i < m->tensors; i++) {
		const struct model_tensor *t = &m->tensor[i];
		size_t side = smaller(t->rows, t->columns);
		size_t needed = 2 * t->rows * t->columns + 3 * side * side;
		bool is_layers = t->columns > 0 && !lies_in(t, m->unit[0]) &&
				 !lies_in(t, m->unit[m->units - 2]);
		if (is_layers && needed > floats)
			floats = needed;
	}
	return floats;
}

void muon_apply(const struct muon_rules *rules, struct model *m, size_t unit, struct model_unit own,
		float lr, float weight_decay, float *work)
{
	for (size_t i = 0; i < m->tensors; i++) {
		const struct model_tensor *t = &m->tensor[i];
		size_t count = t->rows * t->columns, side = smaller(t->rows, t->columns);
		if (!lies_in(t, m->unit[unit]))
			continue;
		float *squares = work + 2 * count;
		struct iteration n = { .model = m,
				       .rows = t->rows,
				       .columns = t->columns,
				       .side = side,
				       .x = work,
				       .next = work + count,
				       .gram = squares,
				       .inner = squares + side * side,
				       .outer = squares + 2 * side * side };
		normalise(&n, m->grads + t->offset);
		iterate(&n, rules->steps);
		apply(&n, t, own, rate_of(rules, m, t), lr, weight_decay);
	}
}
