/* SPDX-License-Identifier: MIT */
/* ops_fused.c - operands of few bits that are made by the operation which writes them (backend.h:
 * expect): the products that read them, and the largest numbers of past steps, have the bits that
 * passes of their own give, for every recipe. */
#include "tests/gpu/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "worker/lbworker/recipes/recipe.h"

enum { USES_MAX = 4, HISTORY_FLOATS = AMAX_PAST + AMAX_HISTORY_MAX, STEPS_MAX = 3 };

/* An operation and the products that read what it writes: one, of a layer's input; or two, of a
 * gradient. */
struct scene {
	struct suite *s;
	struct tensors all;
	size_t rows, width,
		outputs; /* width: of what is written, the outputs of the layer that read it */
	struct tensor *x, *delta, *weight, *out, *stats, *matrix, *history, *past, *amax, *c[2];
	struct tensor *attended, *lse, *table;
	struct attention attention;
	struct operand_cast cast[USES_MAX];
	struct operand_use use[USES_MAX];
	struct gemm product[2];
	size_t products, uses;
	int steps;
};

static void rmsnorm(struct scene *v)
{
	v->s->be->rmsnorm_forward(v->s->gpu, v->out->gpu, v->stats->gpu, v->delta->gpu, v->x->gpu,
				  v->x->gpu, v->weight->gpu, v->rows, v->width, 1e-5f);
}

static void layernorm(struct scene *v)
{
	float *stats = v->stats->gpu, *weight = v->weight->gpu;

	v->s->be->layernorm_forward(v->s->gpu, v->out->gpu, stats, stats + v->rows, NULL, v->x->gpu,
				    NULL, weight, weight + v->width, v->rows, v->width, 1e-5f);
}

static void swiglu(struct scene *v)
{
	v->s->be->swiglu_forward(v->s->gpu, v->out->gpu, v->x->gpu, v->rows, v->width);
}

static void geglu(struct scene *v)
{
	v->s->be->geglu_forward(v->s->gpu, v->out->gpu, v->x->gpu, v->rows, v->width);
}

static void gelu(struct scene *v)
{
	v->s->be->gelu_forward(v->s->gpu, v->out->gpu, v->x->gpu, v->rows * v->width, GELU_TANH);
}

static void swiglu_backward(struct scene *v)
{
	v->s->be->swiglu_backward(v->s->gpu, v->out->gpu, v->delta->gpu, v->x->gpu, v->rows,
				  v->width / 2);
}

static void geglu_backward(struct scene *v)
{
	v->s->be->geglu_backward(v->s->gpu, v->out->gpu, v->delta->gpu, v->x->gpu, v->rows,
				 v->width / 2);
}

static void gelu_backward(struct scene *v)
{
	v->s->be->gelu_backward(v->s->gpu, v->out->gpu, v->delta->gpu, v->x->gpu,
				v->rows * v->width, GELU_ERF);
}

/* Of what the library leaves of heads, in bf16; shared or not, mixed or not, turned, in part or
 * not. */
static void attention_backward(struct scene *v)
{
	v->s->be->attention_backward(v->s->gpu, v->out->gpu, v->delta->gpu, v->attended->gpu,
				     v->lse->gpu, v->x->gpu, v->table ? v->table->gpu : NULL,
				     &v->attention);
}

static void make_attention(struct scene *v)
{
	struct suite *s = v->s;
	size_t share = v->width % 48 == 0 ? 3 : 4, dim = v->width / share;

	if (dim % 16 == 0 && draw(s) % 2)
		dim /= 2;
	size_t heads = v->width / dim, keys = share == 3 ? heads / 3 : heads / 4;
	v->attention = (struct attention){ .batch = 1,
					   .seq = v->rows,
					   .heads = heads - 2 * keys,
					   .kv_heads = keys,
					   .head_dim = dim,
					   .rotary = dim % 32 == 0 && draw(s) % 2 ? dim / 2 : 0,
					   .interleaved = share == 3 && draw(s) % 2 };
	v->attended = poisoned(s, &v->all, v->rows * v->width, true);
	v->lse = poisoned(s, &v->all, v->rows * heads, false);
	v->table = draw(s) % 3 ? random_tensor(s, &v->all, v->rows * dim, false, 1) : NULL;
	s->be->attention_forward(s->gpu, v->attended->gpu, v->lse->gpu, v->x->gpu, &v->attention);
}

static const struct {
	const char *name;
	void (*run)(struct scene *v);
	bool of_gradient;
} producers[] = {
	{ "rmsnorm", rmsnorm, false },
	{ "layernorm", layernorm, false },
	{ "swiglu", swiglu, false },
	{ "geglu", geglu, false },
	{ "gelu", gelu, false },
	{ "swiglu_backward", swiglu_backward, true },
	{ "geglu_backward", geglu_backward, true },
	{ "gelu_backward", gelu_backward, true },
	{ "attention_backward", attention_backward, true },
};

/* In the order of recipe.h's slots, but of a gradient that of a pass: the weight's product
 * first. */
static void take_slots(struct scene *v, const struct recipe_row *row, bool of_gradient)
{
	static const int slots[][USES_MAX] = { { 0, 1 }, { 4, 5, 2, 3 } };
	struct err err = { 0 };

	v->uses = of_gradient ? 4 : 2;
	for (size_t i = 0; i < v->uses; i++)
		if (slot_parse(&v->cast[i], row->slot[slots[of_gradient][i]], &err))
			exit(1);
}

static void make_products(struct scene *v, bool of_gradient)
{
	size_t n = v->outputs;

	v->products = of_gradient ? 2 : 1;
	v->product[0] = (struct gemm){ .m = v->rows,
				       .n = n,
				       .k = v->width,
				       .a = v->out->gpu,
				       .lda = v->width,
				       .b = v->matrix->gpu,
				       .ldb = v->width,
				       .b_is_weight = true,
				       .trans_b = true,
				       .c = v->c[0]->gpu,
				       .ldc = n,
				       .alpha = 1 };
	if (!of_gradient)
		return;
	v->product[1] = v->product[0];
	v->product[1].shared = v->out->gpu;
	v->product[1].c = v->c[1]->gpu;
	v->product[1].ldb = n;
	v->product[1].trans_b = false;
	v->product[0] = (struct gemm){ .m = v->width,
				       .n = n,
				       .k = v->rows,
				       .a = v->out->gpu,
				       .lda = v->width,
				       .trans_a = true,
				       .b = v->delta->gpu,
				       .ldb = n,
				       .c = v->c[0]->gpu,
				       .c_is_gradient = true,
				       .ldc = n,
				       .alpha = 1,
				       .shared = v->out->gpu,
				       .is_first = true };
}

/* knows: as a layer does it, the largest of what is read twice is kept from product to product. */
static void set_uses(struct scene *v, bool knows)
{
	for (size_t i = 0; i < v->uses; i++) {
		bool is_gradient = v->products == 2 && i % 2 == 0;
		v->use[i] = (struct operand_use){ .cast = &v->cast[i],
						  .random = { 77, (uint32_t)i, 9 },
						  .notes = true };
		v->use[i].history = (float *)v->history->gpu + i * HISTORY_FLOATS;
		v->use[i].amax = knows ? (float *)v->amax->gpu + (is_gradient ? 0 : i) : NULL;
		v->use[i].amax_known = knows && is_gradient && i == 2 &&
				       operand_asks_amax(&v->cast[0]);
		const struct operand_use *use = v->cast[i].format.bits ? &v->use[i] : NULL;
		if (i % 2 == 0)
			v->product[i / 2].use_a = use;
		else
			v->product[i / 2].use_b = use;
	}
}

/* What steps before these left: nothing, or as many as are looked at, or less; the older, the
 * larger. */
static void make_past(struct scene *v)
{
	float *past = v->past->cpu;

	for (size_t i = 0; i < v->past->count; i++)
		past[i] = fabsf(past[i]) * (float)(i % HISTORY_FLOATS) / 16;
	for (size_t i = 0; i < v->uses; i++) {
		size_t length = v->cast[i].history;
		const size_t filled[] = { 0, length, draw(v->s) % (length + 1) };
		past[i * HISTORY_FLOATS + AMAX_NOW] = 0;
		past[i * HISTORY_FLOATS + AMAX_FILLED] = (float)filled[draw(v->s) % 3];
	}
}

/* Some steps, of which delayed scales look back; then C's are what the last one made. */
static void steps(struct scene *v, void (*run)(struct scene *v), bool expects)
{
	const struct backend *be = v->s->be;
	struct device *dev = v->s->gpu;

	set_uses(v, expects);
	be->upload(dev, v->history->gpu, v->past->cpu, v->past->count * sizeof(float));
	for (size_t i = 0; i < v->products; i++)
		be->zero(dev, v->c[i]->gpu, v->c[i]->count * sizeof(float));
	/* what makes its operands itself can still make that of the next with its own */
	v->product[0].next = expects && v->products == 2 ? &v->product[1] : NULL;
	bool is_told = expects && (v->products == 1 || draw(v->s) % 2);
	struct gemm other = v->product[0];
	other.a = v->x->gpu;
	for (int step = 0; step < v->steps; step++) {
		if (is_told)
			be->expect(dev, v->out->gpu, v->product, v->products);
		run(v);
		for (size_t i = 0; i < v->products; i++) {
			/* as GELU's gradient is, which comes behind the second one */
			if (expects && !is_told && i == 1)
				be->expect(dev, v->x->gpu, &other, 1);
			be->gemm(dev, &v->product[i]);
		}
		for (size_t i = 0; i < v->uses; i++)
			if (v->cast[i].history)
				be->amax_step(dev, v->use[i].history, 1, v->cast[i].history);
	}
}

static void take_as_wanted(struct suite *s, struct tensor *t)
{
	if (is_narrow(s, t))
		s->be->download_activations(s->gpu, t->cpu, t->gpu, t->count);
	else
		s->be->download(s->gpu, t->cpu, t->gpu, t->count * sizeof(float));
}

static void one_scene(struct suite *s, size_t producer, const struct recipe_row *row)
{
	bool of_gradient = producers[producer].of_gradient;
	bool is_attention = producers[producer].run == attention_backward;
	/* with more keys the library adds gradients of queries in any order, unless told */
	size_t tiles = is_attention && !s->deterministic ? 4 : pick(s, 6, 90);
	size_t unit = draw(s) % 3 ? 128 : is_attention ? 48 : 16;
	struct scene v = { .s = s,
			   .steps = (int)between(s, 1, STEPS_MAX),
			   .rows = 16 * between(s, 1, tiles),
			   .width = 2 * unit * between(s, 1, 256 / unit),
			   .outputs = 16 * between(s, 1, 5) };
	if (is_attention && draw(s) % 2) /* a third each: no head is shared */
		v.width = 48 * between(s, 1, 8);
	size_t most = 2 * v.rows * v.width, least = v.rows * v.outputs;

	v.x = random_tensor(s, &v.all, most, true, 2);
	v.delta = random_tensor(s, &v.all, most > least ? most : least, true, 1);
	v.weight = random_tensor(s, &v.all, 2 * v.width, false, 1);
	v.out = poisoned(s, &v.all, v.rows * v.width, true);
	v.stats = poisoned(s, &v.all, 2 * v.rows, false);
	v.matrix = random_weights(s, &v.all, v.outputs * v.width, v.outputs * v.width);
	v.history = poisoned(s, &v.all, (size_t)USES_MAX * HISTORY_FLOATS, false);
	v.past = random_tensor(s, &v.all, v.history->count, false, 1);
	v.amax = poisoned(s, &v.all, USES_MAX, false);
	v.c[0] = poisoned(s, &v.all, (of_gradient ? v.width : v.rows) * v.outputs, !of_gradient);
	v.c[1] = poisoned(s, &v.all, least, true);
	take_slots(&v, row, of_gradient);
	make_past(&v);
	make_products(&v, of_gradient);
	if (is_attention)
		make_attention(&v);
	shape(s, "%zux%zux%zu %s", v.rows, v.width, v.outputs, row->name);
	steps(&v, producers[producer].run, false);
	take_as_wanted(s, v.c[0]);
	take_as_wanted(s, v.c[1]);
	take_as_wanted(s, v.history);
	steps(&v, producers[producer].run, true);
	compare_bits(s, producers[producer].name, "fused c", v.c[0]);
	if (of_gradient)
		compare_bits(s, producers[producer].name, "fused dx", v.c[1]);
	compare_bits(s, producers[producer].name, "history", v.history);
	release(s, &v.all);
}

/* Further than the lanes of a warp. */
static const struct recipe_row looks_far = {
	.name = "delayed:40",
	.slot = { "e4m3fn tensor delayed:40", "e4m3fn tensor delayed:40", "e5m2 tensor delayed:40",
		  "e4m3fn tensor delayed:40", "e5m2 tensor delayed:40",
		  "e4m3fn tensor delayed:40" },
};

static void by_recipe(struct suite *s, const struct recipe_row *row)
{
	for (size_t i = 0; i < sizeof(producers) / sizeof(producers[0]); i++)
		if (s->only || draw(s) % 16 == 0)
			one_scene(s, i, row);
}

void ops_fused(struct suite *s)
{
	for (size_t r = 1; recipe_row(r); r++)
		by_recipe(s, recipe_row(r));
	by_recipe(s, &looks_far);
}
