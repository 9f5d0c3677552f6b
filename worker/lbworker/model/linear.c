/* SPDX-License-Identifier: MIT */
/* linear.c - the three products of a matrix of weights, and what a recipe makes of their operands.
 *
 * Nowhere else do numbers of few bits come in. */
#include "worker/lbworker/model/layer.h"

static enum module module_of(enum param weight)
{
	switch (weight) {
	case PARAM_QKV:
		return MODULE_QKV;
	case PARAM_OUT:
		return MODULE_OUT;
	case PARAM_UP:
		return MODULE_UP;
	default:
		return MODULE_DOWN;
	}
}

struct linear linear_of(const struct model *m, size_t l, enum param weight, enum param bias,
			size_t in, size_t out, float scale)
{
	const struct model_layer *layer = &m->layer[l];

	return (struct linear){ .weight = layer->at[weight],
				.bias = layer->at[bias],
				.in = in,
				.out = out,
				.in_out = m->family->in_out,
				.scale = scale,
				.layer = l,
				.module = module_of(weight) };
}

size_t linear_matrices(const struct model *m, size_t l, struct linear_matrix out[MODULE_COUNT])
{
	static const enum param weights[] = { PARAM_QKV, PARAM_OUT, PARAM_UP, PARAM_DOWN };
	const size_t count = sizeof(weights) / sizeof(weights[0]);
	const struct model_unit u = m->unit[1 + l];

	if (m->shape.umup.enable || model_has_experts(m->shape.family))
		return 0;
	for (size_t i = 0; i < count; i++) {
		size_t at = m->layer[l].at[weights[i]], end = u.first + u.count;
		for (size_t k = 0; k < count; k++) {
			size_t other = m->layer[l].at[weights[k]];
			end = other > at && other < end ? other : end;
		}
		out[i] = (struct linear_matrix){ module_of(weights[i]), { at, end - at } };
	}
	return count;
}

/* Outputs that share a scale; one piece, or two halves. */
struct piece {
	size_t at, count; /* outputs */
	size_t weight;    /* where their weights begin, and their gradients */
	float scale;
};

static int pieces_of(const struct linear *w, struct piece piece[2])
{
	size_t half = w->out / 2;
	size_t behind = w->weight + half * (w->in_out ? 1 : w->in);

	if (w->first_half == 0.0f || w->first_half == w->scale) {
		piece[0] = (struct piece){ 0, w->out, w->weight, w->scale };
		return 1;
	}
	piece[0] = (struct piece){ 0, half, w->weight, w->first_half };
	piece[1] = (struct piece){ half, half, behind, w->scale };
	return 2;
}

/* Bytes to the piece's first output in a row of y or dy. */
static size_t bytes_to(const struct model *m, const struct piece *p)
{
	return p->at * compute_bytes(m->options.compute);
}

/* Operand 0 and 1 of the product (recipe.h) as A and B, with what their recipe makes of them. */
static void by_recipe(const struct model *m, const struct linear *w, enum product product,
		      struct gemm *g, struct operand_use use[OPERANDS], bool swapped)
{
	for (int i = 0; i < OPERANDS; i++)
		if (precision_use(m->precision, w->layer, w->module, product, i, &use[i]))
			*((i == 0) != swapped ? &g->use_a : &g->use_b) = &use[i];
	g->only_faster = precision_only_faster(m->precision);
}

void linear_forward(const struct model *m, const struct linear *w, void *y, const void *x,
		    size_t rows, float beta)
{
	struct operand_use use[OPERANDS];
	struct piece piece[2];
	int pieces = pieces_of(w, piece);

	for (int i = 0; i < pieces; i++) {
		const struct piece *p = &piece[i];
		struct gemm g = { .m = rows,
				  .n = p->count,
				  .k = w->in,
				  .a = x,
				  .lda = w->in,
				  .b = m->weights + p->weight,
				  .ldb = w->in_out ? w->out : w->in,
				  .b_is_weight = true,
				  .trans_b = !w->in_out,
				  .c = (char *)y + bytes_to(m, p),
				  .ldc = w->out,
				  .alpha = p->scale,
				  .beta = beta,
				  .then = w->kept ? GEMM_GELU : GEMM_PLAIN,
				  .gelu = m->family->gelu,
				  .kept = w->kept,
				  .bias = w->bias == ABSENT ? NULL : m->weights + w->bias + p->at };
		by_recipe(m, w, PRODUCT_FORWARD, &g, use, false);
		m->backend->gemm(m->device, &g);
	}
}

/* dx = scale dy W, times the slope of a GELU that made x */
void linear_backward_input(const struct model *m, const struct linear *w, void *dx, const void *dy,
			   size_t rows)
{
	struct operand_use use[OPERANDS];
	struct piece piece[2];
	int pieces = pieces_of(w, piece);

	for (int i = 0; i < pieces; i++) {
		const struct piece *p = &piece[i];
		struct gemm g = { .m = rows,
				  .n = w->in,
				  .k = p->count,
				  .a = (const char *)dy + bytes_to(m, p),
				  .lda = w->out,
				  .b = m->weights + p->weight,
				  .ldb = w->in_out ? w->out : w->in,
				  .b_is_weight = true,
				  .trans_b = w->in_out,
				  .c = dx,
				  .ldc = w->in,
				  .alpha = p->scale,
				  .beta = i > 0 ? 1.0f : 0.0f,
				  .then = w->kept ? GEMM_GELU_BACKWARD : GEMM_PLAIN,
				  .gelu = m->family->gelu,
				  .kept = w->kept,
				  .shared = pieces == 1 ? dy : NULL };
		by_recipe(m, w, PRODUCT_INPUT, &g, use, false);
		m->backend->gemm(m->device, &g);
	}
}

/* Aside, until the caller joins: dW (+)= scale dy^T x, or x^T dy where it is stored so; dbias (+)= sum of dy */
void linear_backward_weight(const struct model *m, const struct linear *w, const void *dy,
			    const void *x, size_t rows, bool accumulate)
{
	struct operand_use use[OPERANDS];
	struct piece piece[2];
	int pieces = pieces_of(w, piece);
	float *bias = w->bias == ABSENT ? NULL : model_grad(m, w->bias);
	bool narrow = w->weight >= m->narrow && w->weight < m->narrow_end;

	for (int i = 0; i < pieces; i++) {
		const struct piece *p = &piece[i];
		const void *part = (const char *)dy + bytes_to(m, p);
		struct gemm g = { .m = p->count,
				  .n = w->in,
				  .k = rows,
				  .a = part,
				  .lda = w->out,
				  .trans_a = true,
				  .b = x,
				  .ldb = w->in,
				  .c = model_grad(m, p->weight),
				  .c_is_gradient = !narrow,
				  .aside = true,
				  .shared = pieces == 1 ? dy : NULL,
				  .is_first = true, /* the input's gradient comes next */
				  .ldc = w->in,
				  .alpha = p->scale,
				  .beta = accumulate ? 1.0f : 0.0f,
				  .sum_a = bias };
		if (w->in_out) {
			g.m = w->in, g.a = x, g.lda = w->in;
			g.n = p->count, g.b = part, g.ldb = g.ldc = w->out;
			g.sum_a = NULL, g.sum_b = bias;
		}
		by_recipe(m, w, PRODUCT_WEIGHT, &g, use, w->in_out);
		m->backend->gemm(m->device, &g);
	}
}
