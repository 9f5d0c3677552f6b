/* SPDX-License-Identifier: MIT */
/* linear.c - the three products of a matrix of weights, and what a recipe makes of their operands.
 *
 * Nowhere else do numbers of few bits come in. */
#include "worker/lbworker/model/layer.h"

/* Above the numbers that precision_use() gives to tensors. */
enum { CHUNK_BIT = 20 };

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

/* A product, and what its recipe makes of its operands. */
struct product_of_layer {
	struct gemm gemm;
	struct operand_use use[OPERANDS];
};

/* Operand 0 and 1 of the product (recipe.h) are A and B, or the other way round. The largest number
 * of an operand stays known from product to product of a pass; not where a product reads a half of
 * it, or other passes come between. Each chunk of rows has random numbers of its own. */
static void by_recipe(const struct model *m, const struct linear *w, enum product product,
		      struct product_of_layer *p, bool swapped)
{
	struct piece piece[2];
	bool is_whole = pieces_of(w, piece) == 1 && m->options.pipeline.depth <= 1;

	for (int i = 0; i < OPERANDS; i++) {
		struct operand_use *use = &p->use[i];
		if (!precision_use(m->precision, w->layer, w->module, product, i, use))
			continue;
		use->random.tensor += (uint32_t)w->chunk << CHUNK_BIT;
		if (!is_whole)
			use->amax = NULL;
		*((i == 0) != swapped ? &p->gemm.use_a : &p->gemm.use_b) = use;
	}
	p->gemm.only_faster = precision_only_faster(m->precision);
}

static void forward_of(const struct model *m, const struct linear *w, const struct piece *p,
		       void *y, const void *x, size_t rows, float beta,
		       struct product_of_layer *out)
{
	out->gemm = (struct gemm){ .m = rows,
				   .n = p->count,
				   .k = w->in,
				   .a = x,
				   .lda = w->in,
				   .b = m->weights + p->weight,
				   .ldb = w->in_out ? w->out : w->in,
				   .b_is_weight = true,
				   .trans_b = !w->in_out,
				   .c = y ? (char *)y + bytes_to(m, p) : NULL,
				   .ldc = w->out,
				   .alpha = p->scale,
				   .beta = beta,
				   .then = w->kept ? GEMM_GELU : GEMM_PLAIN,
				   .gelu = m->family->gelu,
				   .kept = w->kept,
				   .bias = w->bias == ABSENT ? NULL
							     : m->weights + w->bias + p->at };
	by_recipe(m, w, PRODUCT_FORWARD, out, false);
}

/* dx = scale dy W, times the slope of a GELU that made x */
static void input_of(const struct model *m, const struct linear *w, const struct piece *p, void *dx,
		     const void *dy, size_t rows, struct product_of_layer *out)
{
	bool is_whole = p->count == w->out;

	out->gemm = (struct gemm){ .m = rows,
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
				   .beta = p->at > 0 ? 1.0f : 0.0f,
				   .then = w->kept ? GEMM_GELU_BACKWARD : GEMM_PLAIN,
				   .gelu = m->family->gelu,
				   .kept = w->kept,
				   .shared = is_whole ? dy : NULL };
	by_recipe(m, w, PRODUCT_INPUT, out, false);
}

/* dW (+)= scale dy^T x, or x^T dy where it is stored so; dbias (+)= sum of dy */
static void weight_of(const struct model *m, const struct linear *w, const struct piece *p,
		      const void *dy, const void *x, size_t rows, bool accumulate,
		      struct product_of_layer *out)
{
	float *bias = w->bias == ABSENT ? NULL : model_grad(m, w->bias);
	bool narrow = w->weight >= m->narrow && w->weight < m->narrow_end;
	const void *part = (const char *)dy + bytes_to(m, p);

	out->gemm = (struct gemm){ .m = p->count,
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
				   .shared = p->count == w->out ? dy : NULL,
				   .is_first = true, /* the input's gradient comes next */
				   .ldc = w->in,
				   .alpha = p->scale,
				   .beta = accumulate ? 1.0f : 0.0f,
				   .sum_a = bias };
	if (w->in_out) {
		struct gemm *g = &out->gemm;
		g->m = w->in, g->a = x, g->lda = w->in;
		g->n = p->count, g->b = part, g->ldb = g->ldc = w->out;
		g->sum_a = NULL, g->sum_b = bias;
	}
	by_recipe(m, w, PRODUCT_WEIGHT, out, w->in_out);
}

void linear_forward(const struct model *m, const struct linear *w, void *y, const void *x,
		    size_t rows, float beta)
{
	struct product_of_layer product;
	struct piece piece[2];
	int pieces = pieces_of(w, piece);

	for (int i = 0; i < pieces; i++) {
		forward_of(m, w, &piece[i], y, x, rows, beta, &product);
		m->backend->gemm(m->device, &product.gemm);
	}
}

void linear_backward_input(const struct model *m, const struct linear *w, void *dx, const void *dy,
			   size_t rows)
{
	struct product_of_layer product;
	struct piece piece[2];
	int pieces = pieces_of(w, piece);

	for (int i = 0; i < pieces; i++) {
		input_of(m, w, &piece[i], dx, dy, rows, &product);
		m->backend->gemm(m->device, &product.gemm);
	}
}

/* Aside, until the caller joins. */
void linear_backward_weight(const struct model *m, const struct linear *w, const void *dy,
			    const void *x, size_t rows, bool accumulate)
{
	struct product_of_layer product, next;
	struct piece piece[2];
	int pieces = pieces_of(w, piece);

	for (int i = 0; i < pieces; i++) {
		weight_of(m, w, &piece[i], dy, x, rows, accumulate, &product);
		input_of(m, w, &piece[i], NULL, dy, rows, &next);
		product.gemm.next = pieces == 1 ? &next.gemm : NULL;
		m->backend->gemm(m->device, &product.gemm);
	}
}

/* --- operands that are about to be written ---------------------------------------------------- */

static bool expects(const struct model *m, const struct linear *w, struct piece piece[2])
{
	return m->precision && m->backend->expect && pieces_of(w, piece) == 1;
}

void linear_expect_input(const struct model *m, const struct linear *w, const void *x, size_t rows)
{
	struct product_of_layer product;
	struct piece piece[2];

	if (!expects(m, w, piece))
		return;
	forward_of(m, w, &piece[0], NULL, x, rows, 0, &product);
	m->backend->expect(m->device, x, &product.gemm, 1);
}

void linear_expect_gradient(const struct model *m, const struct linear *w, const void *dy,
			    const void *x, size_t rows)
{
	struct product_of_layer product[2];
	struct piece piece[2];

	if (!expects(m, w, piece))
		return;
	weight_of(m, w, &piece[0], dy, x, rows, false, &product[0]);
	input_of(m, w, &piece[0], NULL, dy, rows, &product[1]);
	const struct gemm both[] = { product[0].gemm, product[1].gemm };
	m->backend->expect(m->device, dy, both, 2);
}
