/* SPDX-License-Identifier: MIT */
/* ops_few_bits.c - operands of few bits, for each slot of each recipe: codes, scales and their
 * products with each other have the CPU's bits; and products of such operands. */
#include "tests/gpu/suite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "kernels/formats/scale.h"
#include "worker/lbworker/recipes/recipe.h"

enum { SLOTS_MAX = 64 };

/* An operand on both sides; random numbers are keyed from the device's memory. */
struct operand {
	struct operand_cast cast;
	struct stored shape;
	struct operand_use cpu, gpu;
	struct random_stream *now;
	struct tensor *x, *history;
};

static const struct random_stream stream = { 77, 3, 9 };

/* Numbers of many sizes, and a row that dwarfs the others. */
static struct tensor *operand_tensor(struct suite *s, struct tensors *all,
				     const struct stored *shape, bool is_activation)
{
	struct tensor *t = random_tensor(s, all, shape->rows * shape->ld, is_activation, 1);

	for (size_t i = 0; i < t->count; i++)
		t->cpu[i] = i % 11 == 0 ? 0
					: ldexpf(t->cpu[i], (int)(i * 7 % 13) - 6 +
								    (i / shape->ld == 20 ? 9 : 0));
	to_gpu(s, t);
	return t;
}

static void make(struct suite *s, struct tensors *all, struct operand *o, bool is_activation)
{
	const struct random_stream wrong = { 1, stream.tensor, 2 };
	size_t floats = AMAX_PAST + AMAX_HISTORY_MAX;

	o->x = operand_tensor(s, all, &o->shape, is_activation);
	o->now = s->be->alloc(s->gpu, sizeof(stream), "a test");
	s->be->upload(s->gpu, o->now, &stream, sizeof(stream));
	o->cpu = (struct operand_use){ .cast = &o->cast, .random = stream, .notes = true };
	o->gpu = (struct operand_use){
		.cast = &o->cast, .random = wrong, .now = o->now, .notes = true
	};
	if (o->cast.history == 0)
		return;
	o->history = add(s, all, floats, false);
	memset(o->history->cpu, 0, floats * sizeof(float));
	to_gpu(s, o->history);
	o->cpu.history = o->history->cpu;
	o->gpu.history = o->history->gpu;
}

/* What the CPU makes of it, beside codes times their scales. */
static void compare_codes(struct suite *s, struct tensors *all, const struct operand *o)
{
	const struct stored *h = &o->shape;
	size_t count = h->rows * h->columns, differ = 0, at = 0;
	size_t along = h->k_along_memory ? h->columns : h->rows;
	size_t others = h->k_along_memory ? h->rows : h->columns;
	size_t tile_along = o->cast.along && o->cast.along < along ? o->cast.along : along;
	size_t tile_across = o->cast.across && o->cast.across < others ? o->cast.across : others;
	size_t right = (along + tile_along - 1) / tile_along;
	size_t tiles = right * ((others + tile_across - 1) / tile_across);
	struct tensor *want = poisoned(s, all, count, false),
		      *bytes = poisoned(s, all, count, false);
	struct tensor *scales = poisoned(s, all, tiles, false);
	uint8_t *codes = xmalloc(count + 4);

	backend_cpu()->quantize(s->cpu, want->cpu, o->x->cpu, h, &o->cpu);
	s->be->codes(s->gpu, bytes->gpu, scales->gpu, o->x->gpu, h, &o->gpu);
	s->be->download(s->gpu, codes, bytes->gpu, count);
	s->be->download(s->gpu, scales->got, scales->gpu, tiles * sizeof(float));
	for (size_t i = 0; i < others; i++)
		for (size_t k = 0; k < along; k++) {
			float scale = scales->got[i / tile_across * right + k / tile_along];
			float got = format_decode(&o->cast.format, codes[i * along + k]) * scale;
			size_t place = h->k_along_memory ? i * h->columns + k : k * h->columns + i;
			bool same = o->cast.format.kind == FORMAT_INTEGER /* has one zero */
					    ? got == want->cpu[place]
					    : bits_of(got) == bits_of(want->cpu[place]);
			if (!same && differ++ == 0)
				at = place;
		}
	s->compared++;
	s->failed += differ > 0;
	printf("%-6s %-20s %-9s %-28s %zu of %zu differ, the first at %zu\n",
	       differ ? "not ok" : "ok", "few_bits", "codes", s->shape, differ, count, at);
	free(codes);
}

static void compare_values(struct suite *s, struct tensors *all, const struct operand *o)
{
	struct tensor *out = poisoned(s, all, o->shape.rows * o->shape.columns, false);

	s->be->quantize(s->gpu, out->gpu, o->x->gpu, &o->shape, &o->gpu);
	backend_cpu()->quantize(s->cpu, out->cpu, o->x->cpu, &o->shape, &o->cpu);
	compare_bits(s, "few_bits", "values", out);
}

/* Three steps of a slot that looks at steps before. */
static void compare_history(struct suite *s, struct tensors *all, const struct operand *o)
{
	for (int step = 0; step < 3; step++) {
		for (size_t i = 0; i < o->x->count; i++)
			o->x->cpu[i] *= step == 1 ? 0.25f : 8;
		to_gpu(s, o->x);
		compare_values(s, all, o);
		all->count--; /* its place is used again; the memory is freed with the others' */
		backend_cpu()->free(s->cpu, all->t[all->count].cpu);
		s->be->free(s->gpu, all->t[all->count].gpu);
		free(all->t[all->count].got);
		amax_into_past(o->history->cpu, o->cast.history);
		s->be->amax_step(s->gpu, o->history->gpu, 1, o->cast.history);
	}
	compare_bits(s, "few_bits", "history", o->history);
}

static void one_slot(struct suite *s, const char *text, bool along)
{
	struct tensors all = { .count = 0 };
	struct operand o = { 0 };
	struct err err = { 0 };
	bool is_even = draw(s) % 2; /* as products by hardware need it, or as it comes */
	size_t rows = is_even ? 16 * between(s, 1, pick(s, 10, 90))
			      : between(s, 1, pick(s, 90, 900));
	size_t columns = is_even ? 16 * between(s, 1, 12) : between(s, 1, 150);

	if (is_even && draw(s) % 4 == 0) { /* more than a block has threads, in 16 each */
		rows = 16;
		columns = 16 * between(s, 33, 300);
	}
	if (slot_parse(&o.cast, text, &err) || o.cast.format.bits == 0)
		return;
	o.shape = (struct stored){ rows, columns,
				   columns + (draw(s) % 2 ? 16
					      : is_even   ? 0
							  : 7),
				   along };
	shape(s, "%zux%zu%s %s", rows, columns, along ? "" : " T", text);
	make(s, &all, &o, false);
	if (o.cast.history)
		compare_history(s, &all, &o);
	else
		compare_values(s, &all, &o);
	s->be->free(s->gpu, o.now);
	release(s, &all);
	make(s, &all, &o, true);
	if (o.cast.format.bits <= 8)
		compare_codes(s, &all, &o);
	s->be->free(s->gpu, o.now);
	release(s, &all);
}

void ops_few_bits(struct suite *s)
{
	const char *seen[SLOTS_MAX];
	size_t count = 0;

	for (size_t r = 0; recipe_row(r); r++)
		for (int i = 0; i < SLOTS; i++) {
			const char *text = recipe_row(r)->slot[i];
			size_t at = 0;
			while (at < count && strcmp(seen[at], text) != 0)
				at++;
			if (at < count || count == SLOTS_MAX)
				continue;
			seen[count++] = text;
			if (!s->only && draw(s) % 4 > 0)
				continue; /* some each round; all when asked for */
			one_slot(s, text, false);
			one_slot(s, text, true);
		}
}

/* --- weights for other ranks ------------------------------------------------------------------ */

/* What operations read of weights. */
static const void *as_read(struct suite *s, const struct tensor *t)
{
	size_t each;

	return is_narrow(s, t) || s->compute == COMPUTE_BF16
		       ? s->be->weights_wanted(s->gpu, t->gpu, &each)
		       : t->gpu;
}

/* What a matrix of weights keeps in bf16: ties away from zero (split.cu). */
static uint16_t upper_half(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return (uint16_t)((bits + 0x8000) >> 16);
}

/* Codes on both devices, and the same again of what they are decoded to. */
void ops_sent(struct suite *s)
{
	struct tensors all = { .count = 0 };
	struct operand_cast cast;
	struct recipe recipe;
	struct err err = { 0 };
	size_t rows = 16 * between(s, 1, pick(s, 9, 90)), columns = 16 * between(s, 1, 12);
	size_t count = rows * columns, first = draw(s) % count;
	const struct stored matrix = { rows, columns, columns, true };
	struct tensor *w = random_weights(s, &all, count, count);
	struct tensor *amax = add(s, &all, 1, false), *scale = add(s, &all, 1, false);
	struct tensor *codes = add(s, &all, count / 4, false),
		      *again = add(s, &all, count / 4, false);

	if (recipe_find(&recipe, "tensorwise", &err))
		exit(1);
	cast = recipe.slot[1];
	const struct operand_use use = { .cast = &cast, .random = stream };
	for (size_t i = 0; s->compute == COMPUTE_BF16 && i < count; i++)
		w->cpu[i] = widen(upper_half(w->cpu[i]));
	shape(s, "%zux%zu, from %zu on", rows, columns, first);
	amax->cpu[0] = 0;
	to_gpu(s, amax);
	/* in two parts, as two ranks have them */
	BOTH(weights_amax, ON(amax), ON(w), first);
	BOTH(weights_amax, ON(amax), (float *)ON(w) + first, count - first);
	compare_bits(s, "sent", "amax", amax);
	BOTH(weights_encode, ON(codes), ON(w), first, &cast, ON(amax));
	BOTH(weights_encode, (uint8_t *)ON(codes) + first, (float *)ON(w) + first, count - first,
	     &cast, ON(amax));
	compare_bits(s, "sent", "codes", codes);
	/* products of what was gathered cast it once more */
	BOTH(weights_decode, ON(w), ON(codes), count, &cast, ON(amax));
	s->be->codes(s->gpu, again->gpu, scale->gpu, as_read(s, w), &matrix, &use);
	memcpy(again->cpu, codes->cpu, count);
	scale->cpu[0] = operand_scale(&cast, amax->cpu[0], 0, format_max(&cast.format)).scale;
	compare_bits(s, "sent", "codes again", again);
	compare_bits(s, "sent", "scale again", scale);
	recipe_clear(&recipe);
	release(s, &all);
}

/* --- products --------------------------------------------------------------------------------- */

/* One of the three products of a matrix of weights, in the order of recipe.h. */
static struct gemm product_of(enum product product, size_t m, size_t n, size_t k)
{
	return (struct gemm){ .m = m,
			      .n = n,
			      .k = k,
			      .lda = product == PRODUCT_WEIGHT ? m : k,
			      .ldb = product == PRODUCT_FORWARD ? k : n,
			      .ldc = n,
			      .trans_a = product == PRODUCT_WEIGHT,
			      .trans_b = product == PRODUCT_FORWARD,
			      .b_is_weight = product != PRODUCT_WEIGHT,
			      .c_is_gradient = product == PRODUCT_WEIGHT,
			      .alpha = 1 };
}

static void one_product(struct suite *s, const struct recipe_row *row, enum product product)
{
	struct tensors all = { .count = 0 };
	struct operand_cast cast[OPERANDS];
	struct err err = { 0 };
	bool is_even = draw(s) % 3 != 0;
	size_t most = pick(s, 9, 60);
	size_t m = is_even ? 16 * between(s, 1, most) : between(s, 1, 70);
	size_t n = is_even ? 16 * between(s, 1, most) : between(s, 1, 70);
	size_t k = is_even ? 16 * between(s, 1, most + 4) : between(s, 1, 150);
	struct gemm g = product_of(product, m, n, k);
	struct tensor *a = random_tensor(s, &all, m * k, true, 1);
	struct tensor *b = g.b_is_weight ? random_weights(s, &all, k * n, k * n)
					 : random_tensor(s, &all, k * n, true, 1);
	struct tensor *c = poisoned(s, &all, m * n, !g.c_is_gradient);
	struct tensor *sum = poisoned(s, &all, m, false);
	const bool has_sum = product == PRODUCT_WEIGHT && draw(s) % 2;

	for (int i = 0; i < OPERANDS; i++)
		if (slot_parse(&cast[i], row->slot[(int)product * OPERANDS + i], &err))
			exit(1);
	for (size_t i = 0; g.b_is_weight && s->compute == COMPUTE_BF16 && i < b->count; i++)
		b->cpu[i] = widen(narrow(b->cpu[i]));
	const struct operand_use use[OPERANDS] = { { .cast = &cast[0], .random = stream },
						   { .cast = &cast[1], .random = stream } };
	g.use_a = cast[0].format.bits ? &use[0] : NULL;
	g.use_b = cast[1].format.bits ? &use[1] : NULL;
	shape(s, "%zux%zux%zu %s%s", m, n, k, row->name, has_sum ? " sum a" : "");
	g.a = a->gpu, g.b = b->gpu, g.c = c->gpu, g.sum_a = has_sum ? sum->gpu : NULL;
	s->be->gemm(s->gpu, &g);
	g.a = a->cpu, g.b = b->cpu, g.c = c->cpu, g.sum_a = has_sum ? sum->cpu : NULL;
	backend_cpu()->gemm(s->cpu, &g);
	/* Emulated in bf16, code times scale is rounded once more unless the scale is a power of
	 * two. And a matrix unit adds up FP8 with some 14 bits, where ours are 24. */
	bool is_rough = s->compute == COMPUTE_BF16;
	double room = is_rough ? 40 : strstr(s->be->describe(s->gpu), "emulated") ? 1 : 1 << 18;
	compare(s, "few_bits", "c", c, room * (double)k);
	if (has_sum)
		compare(s, "few_bits", "sum", sum, (double)k);
	release(s, &all);
}

void ops_few_bits_products(struct suite *s)
{
	for (size_t r = 1; recipe_row(r); r++)
		for (int p = 0; p < PRODUCT_COUNT; p++)
			if (s->only || draw(s) % 4 == 0)
				one_product(s, recipe_row(r), (enum product)p);
}

/* --- products that must be exact -------------------------------------------------------------- */

/* x by v on the diagonal: each sum has one term, so that C is codes times scales times v to the
 * bit, by whatever adds up. v and the largest number of x give the upper level of two a power of
 * two. */
static const struct exact {
	const char *x, *one;
	float v, most;
} exacts[] = {
	{ "e4m3fn 1x32 up", "e4m3fn 1x32 up", 1, 0 },
	{ "e4m3fn 32x32 floor", "e4m3fn 1x32 up", 1, 0 },
	{ "e5m2 1x32 even", "e4m3fn 32x32 up", 1, 0 },
	{ "e4m3fn 1x64 up stochastic", "e4m3fn 1x32 up", 1, 0 },
	{ "e4m3fn row pow2", "e4m3fn row pow2", 1, 0 },
	{ "e4m3fn row pow2", "e4m3fn 1x32 up", 1, 0 },
	{ "e2m1 1x16 e4m3", "e2m1 1x16 e4m3", 0x1.5p-1f, 336 },
	{ "e2m1 16x16 e4m3", "e2m1 1x16 e4m3", 0x1.5p-1f, 336 },
	{ "e2m1 1x16 e4m3 stochastic", "e2m1 16x16 e4m3", 0x1.5p-1f, 336 },
};

static void hold_within(struct suite *s, struct tensor *t, float most)
{
	for (size_t i = 0; most > 0 && i < t->count; i++)
		t->cpu[i] = i == 0 ? most : fmaxf(-most, fminf(most, t->cpu[i]));
	to_gpu(s, t);
}

static struct tensor *diagonal(struct suite *s, struct tensors *all, size_t k, float v)
{
	struct tensor *t = add(s, all, k * k, true);

	memset(t->cpu, 0, k * k * sizeof(float));
	for (size_t i = 0; i < k; i++)
		t->cpu[i * k + i] = v;
	to_gpu(s, t);
	return t;
}

/* As numbers: a sum has no negative zero. */
static void compare_exact(struct suite *s, const struct operand *o, const struct tensor *c,
			  const float *want, float v)
{
	size_t k = o->shape.k_along_memory ? o->shape.columns : o->shape.rows;
	size_t differ = 0, at = 0;

	s->be->download(s->gpu, c->got, c->gpu, c->count * sizeof(float));
	for (size_t i = 0; i < c->count; i++) {
		size_t place = o->shape.k_along_memory ? i : i % k * o->shape.columns + i / k;
		if (c->got[i] != want[place] * v && differ++ == 0)
			at = i;
	}
	s->compared++;
	s->failed += differ > 0;
	printf("%-6s %-20s %-9s %-28s %zu of %zu differ, the first at %zu\n",
	       differ ? "not ok" : "ok", "few_bits_exact", "c", s->shape, differ, c->count, at);
}

static void one_exact(struct suite *s, const struct exact *e, bool along)
{
	struct tensors all = { .count = 0 };
	struct operand_cast one;
	struct operand o = { 0 };
	struct err err = { 0 };
	size_t m = 16 * between(s, 1, pick(s, 20, 90)), k = 32 * between(s, 1, 12);

	if (slot_parse(&o.cast, e->x, &err) || slot_parse(&one, e->one, &err))
		exit(1);
	const struct operand_use use = { .cast = &one, .random = stream };
	o.shape = (struct stored){ along ? m : k, along ? k : m, along ? k : m, along };
	shape(s, "%zux%zu%s %s", m, k, along ? "" : " T", e->x);
	make(s, &all, &o, true);
	hold_within(s, o.x, e->most);
	struct tensor *b = diagonal(s, &all, k, e->v), *c = poisoned(s, &all, m * k, false);
	struct tensor *want = add(s, &all, m * k, false);
	const struct gemm g = { .m = m,
				.n = k,
				.k = k,
				.a = o.x->gpu,
				.lda = along ? k : m,
				.trans_a = !along,
				.b = b->gpu,
				.ldb = k,
				.trans_b = draw(s) % 2,
				.c = c->gpu,
				.ldc = k,
				.c_is_gradient = true,
				.alpha = 1,
				.use_a = &o.gpu,
				.use_b = &use };
	s->be->gemm(s->gpu, &g);
	backend_cpu()->quantize(s->cpu, want->cpu, o.x->cpu, &o.shape, &o.cpu);
	compare_exact(s, &o, c, want->cpu, e->v);
	s->be->free(s->gpu, o.now);
	release(s, &all);
}

void ops_few_bits_exact(struct suite *s)
{
	for (size_t i = 0; i < sizeof(exacts) / sizeof(exacts[0]); i++) {
		one_exact(s, &exacts[i], true);
		one_exact(s, &exacts[i], false);
	}
}
