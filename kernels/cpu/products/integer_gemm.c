/* SPDX-License-Identifier: MIT */
/* integer_gemm.c - large products of integers, cut as gemm.c cuts those of fp32, but for k: a panel
 * of bytes is a quarter as long, so all of k goes through the registers at once, and a sum is
 * scaled once, at its end. */
#include "kernels/cpu/products/integer_gemm.h"

#include <assert.h>

#include "kernels/cpu/products/finish.h"
#include "kernels/cpu/products/integer_micro.h"

/* STRIP is a multiple of all panels. K_MAX: 128 128 k stays below 2^31. */
enum { STRIP = 96, TASKS_A_THREAD = 4, K_MAX = 131071 };

struct product {
	const struct gemm *g;
	const struct integer_micro *micro;
	float *c; /* where sums go: g->c, or g->kept */
	struct integer_operand left, right;
	const float *left_scale, *right_scale;
	bool left_is_shared;
	size_t words;
	uint32_t *shared;               /* panels of all of the shared side */
	size_t shared_count, own_count; /* rows or columns of C, on either side */
	size_t strip, part; /* how much of its side and of the shared one a task takes */
	char **scratch;
};

bool integer_gemm_does(const struct gemm *g)
{
	return cpu_is_integer(g->use_a) && cpu_is_integer(g->use_b) && g->k > 1 && g->k <= K_MAX;
}

/* Words that `count` rows (left) or columns take as panels. */
static size_t panel_words(const struct product *w, bool left, size_t count)
{
	size_t width = left ? w->micro->rows : w->micro->columns;

	return cpu_round_up(count, width) * (w->words + (left ? 1 : 0));
}

/* --- the sums of two panels, scaled ----------------------------------------------------------- */

struct place {
	size_t row, rows, column, columns;
};

static void scale_sums(const struct product *w, const int32_t *sum, const struct place *at)
{
	const float *b = w->right_scale + at->column, alpha = w->g->alpha;
	bool add = w->g->beta != 0.0f;

	for (size_t i = 0; i < at->rows; i++, sum += w->micro->columns) {
		float *restrict c = w->c + (at->row + i) * w->g->ldc + at->column;
		float a = w->left_scale[at->row + i];
		if (add)
			for (size_t j = 0; j < at->columns; j++)
				c[j] += alpha * (a * (b[j] * (float)sum[j]));
		else
			for (size_t j = 0; j < at->columns; j++)
				c[j] = alpha * (a * (b[j] * (float)sum[j]));
	}
}

/* Panels of rows and of columns, from a place of C on. */
static void meet(const struct product *w, const uint32_t *a, const uint32_t *b,
		 const struct place *all)
{
	const struct integer_micro *m = w->micro;
	int32_t sum[INTEGER_TILE_MAX];

	for (size_t i = 0; i < all->rows; i += m->rows)
		for (size_t j = 0; j < all->columns; j += m->columns) {
			const struct place at = { all->row + i, cpu_min(m->rows, all->rows - i),
						  all->column + j,
						  cpu_min(m->columns, all->columns - j) };
			m->product(sum, a + i * (w->words + 1), b + j * w->words, w->words);
			scale_sums(w, sum, &at);
		}
	product_finish(w->g, w->c, all->row, all->rows, all->column, all->columns);
}

/* --- tasks ------------------------------------------------------------------------------------ */

static void share_task(const void *args, size_t index, unsigned worker)
{
	const struct product *w = args;
	size_t first = index * STRIP, count = cpu_min(STRIP, w->shared_count - first);
	uint32_t *to = w->shared + panel_words(w, w->left_is_shared, first);

	(void)worker;
	if (w->left_is_shared)
		w->micro->pack_left(to, &w->left, first, count);
	else
		w->micro->pack_right(to, &w->right, first, count);
}

/* A strip, with a part of what is shared. */
static void strip_task(const void *args, size_t index, unsigned worker)
{
	const struct product *w = args;
	uint32_t *own = (uint32_t *)(void *)w->scratch[worker];
	size_t strips = cpu_tasks(w->own_count, w->strip);
	size_t part = index / strips * w->part, parted = cpu_min(w->part, w->shared_count - part);
	size_t first = index % strips * w->strip, count = cpu_min(w->strip, w->own_count - first);
	const uint32_t *shared = w->shared + panel_words(w, w->left_is_shared, part);

	if (w->left_is_shared) {
		const struct place all = { part, parted, first, count };
		w->micro->pack_right(own, &w->right, first, count);
		meet(w, shared, own, &all);
	} else {
		const struct place all = { first, count, part, parted };
		w->micro->pack_left(own, &w->left, first, count);
		meet(w, own, shared, &all);
	}
}

/* Enough tasks for all threads: first shorter strips, then parts of the shared side. */
static void cut(struct product *w, unsigned threads)
{
	size_t wanted = threads > 1 ? (size_t)threads * TASKS_A_THREAD : 1;

	w->strip = cpu_tasks(w->own_count, STRIP) >= wanted ? STRIP : STRIP / 2;
	size_t parts = cpu_tasks(wanted, cpu_tasks(w->own_count, w->strip));
	w->part = cpu_round_up(cpu_tasks(w->shared_count, parts), STRIP);
}

static void multiply(struct device *dev, struct product *w)
{
	size_t own = panel_words(w, !w->left_is_shared, STRIP) * sizeof(uint32_t);
	size_t shared = panel_words(w, w->left_is_shared, w->shared_count) * sizeof(uint32_t);

	if (!cpu_scratch(dev, own) || !cpu_packed(dev, shared))
		return;
	w->scratch = dev->scratch;
	w->shared = (uint32_t *)(void *)dev->packed.at;
	cut(w, dev->threads);
	pool_run(dev->pool, cpu_tasks(w->shared_count, STRIP), share_task, w);
	pool_run(dev->pool, cpu_tasks(w->own_count, w->strip) * cpu_tasks(w->shared_count, w->part),
		 strip_task, w);
}

/* --- operands --------------------------------------------------------------------------------- */

/* Codes and scales in memory of the device; false without memory. */
static bool quantized(struct device *dev, int side, struct integer_operand *out,
		      const float **scales, const float *x, const struct stored *shape,
		      const struct operand_use *use)
{
	size_t count = shape->rows * shape->columns;
	size_t lines = shape->k_along_memory ? shape->rows : shape->columns;
	struct cpu_integers to = { 0 };

	float *memory = cpu_quantized(dev, side,
				      (count + lines) * sizeof(float) + count * sizeof(int8_t));
	if (!memory)
		return false;
	to.turned = memory;
	to.scales = memory + count;
	to.codes = (int8_t *)(memory + count + lines);
	cpu_quantize_integer(dev, &to, x, shape, use);
	*scales = to.scales;
	*out = (struct integer_operand){ to.codes, shape->columns,
					 shape->k_along_memory ? shape->columns : shape->rows,
					 shape->k_along_memory };
	return true;
}

void integer_gemm(struct device *dev, const struct gemm *g)
{
	const struct stored a = { g->trans_a ? g->k : g->m, g->trans_a ? g->m : g->k, g->lda,
				  !g->trans_a };
	const struct stored b = { g->trans_b ? g->n : g->k, g->trans_b ? g->k : g->n, g->ldb,
				  g->trans_b };
	struct product w = {
		.g = g,
		.micro = &integer_micro_pairs,
		.c = g->then == GEMM_GELU ? g->kept : g->c,
		.left_is_shared = g->m <= g->n,
		.shared_count = cpu_min(g->m, g->n),
		.own_count = g->m <= g->n ? g->n : g->m,
	};

#if defined(__AVX512F__)
	if (dev->has_vnni)
		w.micro = &integer_micro_vnni;
#endif
	assert(w.micro->rows > 0 && w.micro->columns > 0 && w.micro->codes > 0);
	w.words = cpu_tasks(g->k, w.micro->codes);
	if (g->m == 0 || g->n == 0 ||
	    !quantized(dev, 0, &w.left, &w.left_scale, g->a, &a, g->use_a) ||
	    !quantized(dev, 1, &w.right, &w.right_scale, g->b, &b, g->use_b))
		return;
	multiply(dev, &w);
}
