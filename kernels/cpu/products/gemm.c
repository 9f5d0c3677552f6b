/* SPDX-License-Identifier: MIT */
/* gemm.c - C = alpha op(A) op(B) + beta C + bias, cut so that what is read again is near.
 *
 * After Goto & van de Geijn 2008: k is cut into blocks, and both operands are packed into panels
 * (pack.h). The shorter of m and n is the shared side: it is packed once, by all threads. The
 * longer one is cut into strips; a task packs its strip, a block of k at a time, and multiplies it
 * with all of the shared side. So each element is packed once, each thread works on columns or rows
 * of C of its own, and there are two rounds a product whatever its size.
 *
 * A row of panels of B, STRIP columns and a block of k, is 96 KiB and stays in the second cache
 * (256 KiB or more); a panel of A, 6 or 8 KiB, stays in the first while it meets all of them.
 *
 * An element's sum is made of the same blocks in the same order however C is cut: results depend
 * neither on the number of threads nor, where there are fused multiply-adds, on the width of
 * vectors. */
#include <stdlib.h>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/products/finish.h"
#include "kernels/cpu/products/integer_gemm.h"
#include "kernels/cpu/products/micro.h"
#include "kernels/cpu/products/pack.h"

/* STRIP is a multiple of all panels. SHARED_FLOATS, 16 MiB: what is shared has its place in the
 * third cache, or is read from memory once in many multiplications; a longer k is cut into ranges
 * for it. */
enum { BLOCK_K = 256, STRIP = 96, SHARED_FLOATS = 4 << 20, TASKS_A_THREAD = 4 };

/* Columns that all rows meet before the next ones: a panel of B where it stays in the first cache,
 * else it is a panel of A that stays there while it meets a strip. */
enum { B_IS_NEAR = MICRO_COLUMNS <= 16, NEAR_COLUMNS = B_IS_NEAR ? MICRO_COLUMNS : STRIP };

/* Rows that meet all columns of a strip before the next ones do: they stay in the second cache. */
enum { NEAR_ROWS = STRIP * 3 };

/* The next columns of B come from afar: so many floats of them for each term of the last products
 * before them. A line at a time would be more than the third cache delivers beside what a small
 * product of 16 columns reads. */
enum { FLOATS_AHEAD = MICRO_COLUMNS <= 16 ? 4 : 16, PRODUCTS_AHEAD = NEAR_COLUMNS / FLOATS_AHEAD };

struct product {
	const struct gemm *g;
	float *c; /* where sums go: g->c, or g->kept */
	struct operand left, right;
	bool left_is_shared;
	size_t block_k, from, k;        /* the range of the sum that is shared at present */
	float *shared;                  /* panels: of a block of k all, then of the next block */
	size_t shared_count, own_count; /* rows or columns of C, on either side */
	size_t strip, part; /* how much of its side and of the shared one a task takes */
	unsigned threads;
	char **scratch;
};

/* Rows and columns of C that meet in one go, with their panels for one block of k. */
struct meeting {
	const float *a, *b;
	size_t row, rows, column, columns;
	size_t from, k;
	struct piece next; /* what the task packs next; fetched meanwhile */
};

/* Columns of C, and how many small products they are away from the next ones. */
struct columns {
	size_t first, end, products;
};

/* What a product with the panel of A at `a` asks for: the next such panel, or a part of the next
 * columns of B, which is what comes from afar where B is shared. */
static struct micro_ahead ahead_of(const struct product *w, const struct meeting *m, const float *a,
				   const struct columns *c)
{
	const float *b = m->b + c->end * m->k;

	if (w->left_is_shared || c->products > PRODUCTS_AHEAD || c->end >= m->columns)
		return (struct micro_ahead){ a + MICRO_ROWS * m->k, MICRO_ROWS };
	return (struct micro_ahead){ b + (PRODUCTS_AHEAD - c->products) * FLOATS_AHEAD * m->k,
				     FLOATS_AHEAD };
}

/* A panel of A with those columns of C. */
static void panel_product(const struct product *w, const struct meeting *m, size_t row,
			  struct columns columns)
{
	size_t rows = cpu_min(MICRO_ROWS, m->rows - row), ldc = w->g->ldc;
	bool add = m->from > 0 || w->g->beta != 0.0f;
	const float *a = m->a + row * m->k;

	for (size_t j = columns.first; j < columns.end; j += MICRO_COLUMNS, columns.products--) {
		size_t width = cpu_min(MICRO_COLUMNS, columns.end - j);
		const float *b = m->b + j * m->k;
		float *c = w->c + (m->row + row) * ldc + m->column + j;
		struct micro_ahead ahead = ahead_of(w, m, a, &columns);
		if (rows == MICRO_ROWS && width == MICRO_COLUMNS)
			micro_product(m->k, a, MICRO_ROWS, b, MICRO_COLUMNS, c, ldc, add, ahead);
		else
			micro_product_edge(m->k, a, MICRO_ROWS, b, MICRO_COLUMNS, c, ldc, add, rows,
					   width, ahead);
	}
}

/* Rows from `first` to `end` with all columns; each panel asks for a part of what the task packs
 * next, but not where each meets a whole strip: so much at once would keep it waiting for longer
 * than the packing then takes less. */
static void meet_rows(const struct product *w, const struct meeting *m, size_t first, size_t end,
		      struct pack_ahead *next)
{
	for (size_t j = 0; j < m->columns; j += NEAR_COLUMNS)
		for (size_t i = first; i < end; i += MICRO_ROWS) {
			struct columns c = { j, cpu_min(m->columns, j + NEAR_COLUMNS),
					     cpu_tasks(end - i, MICRO_ROWS) *
						     (NEAR_COLUMNS / MICRO_COLUMNS) };
			if (B_IS_NEAR)
				pack_ask(next);
			panel_product(w, m, i, c);
		}
}

static void meet(const struct product *w, const struct meeting *m)
{
	bool is_last = m->from + m->k == w->g->k;
	struct pack_ahead next = pack_ahead(w->left_is_shared ? &w->right : &w->left, &m->next,
					    cpu_tasks(m->rows, MICRO_ROWS) *
						    cpu_tasks(m->columns, NEAR_COLUMNS));

	for (size_t i = 0; i < m->rows; i += NEAR_ROWS)
		meet_rows(w, m, i, cpu_min(m->rows, i + NEAR_ROWS), &next);
	for (size_t j = 0; is_last && j < m->columns; j += STRIP)
		product_finish(w->g, w->c, m->row, m->rows, m->column + j,
			       cpu_min(STRIP, m->columns - j));
}

/* Panels of the shared side, from its `first` on, for a block of k. */
static float *shared_at(const struct product *w, size_t first, size_t from, size_t k)
{
	size_t padded = cpu_round_up(w->shared_count,
				     w->left_is_shared ? MICRO_ROWS : MICRO_COLUMNS);

	return w->shared + (from - w->from) * padded + first * k;
}

/* The block of k that begins at `from`. */
static size_t block_at(const struct product *w, size_t from)
{
	return cpu_min(w->block_k, w->from + w->k - from);
}

/* Packs STRIP of what is shared, a block of k. */
static void share_task(const void *args, size_t index, unsigned worker)
{
	const struct product *w = args;
	size_t strips = cpu_tasks(w->shared_count, STRIP);
	size_t first = index % strips * STRIP, from = w->from + index / strips * w->block_k;
	const struct piece p = { first, cpu_min(STRIP, w->shared_count - first), from,
				 block_at(w, from) };
	float *to = shared_at(w, first, from, p.k);

	(void)worker;
	if (w->left_is_shared)
		pack_left(to, &w->left, &p, w->g->alpha);
	else
		pack_right(to, &w->right, &p);
}

/* What is packed behind p: the next block of the strip, or the first of the strip that this thread
 * is likely to take next. */
static struct piece piece_after(const struct product *w, const struct piece *p)
{
	size_t from = p->from + p->k, first = p->first + w->strip * w->threads;

	if (from < w->from + w->k)
		return (struct piece){ p->first, p->count, from, block_at(w, from) };
	if (first < w->own_count)
		return (struct piece){ first, cpu_min(w->strip, w->own_count - first), w->from,
				       block_at(w, w->from) };
	return (struct piece){ 0 };
}

/* A strip, with a part of what is shared. */
static void strip_task(const void *args, size_t index, unsigned worker)
{
	const struct product *w = args;
	float *own = (float *)(void *)w->scratch[worker];
	size_t strips = cpu_tasks(w->own_count, w->strip);
	size_t part = index / strips * w->part, parted = cpu_min(w->part, w->shared_count - part);
	struct piece p = { .first = index % strips * w->strip, .from = w->from };

	p.count = cpu_min(w->strip, w->own_count - p.first);
	do {
		p.k = block_at(w, p.from);
		struct meeting m = { .from = p.from, .k = p.k, .next = piece_after(w, &p) };
		if (w->left_is_shared) {
			pack_right(own, &w->right, &p);
			m.a = shared_at(w, part, p.from, p.k), m.row = part, m.rows = parted;
			m.b = own, m.column = p.first, m.columns = p.count;
		} else {
			pack_left(own, &w->left, &p, w->g->alpha);
			m.a = own, m.row = p.first, m.rows = p.count;
			m.b = shared_at(w, part, p.from, p.k), m.column = part, m.columns = parted;
		}
		meet(w, &m);
		p.from += p.k;
	} while (p.from < w->from + w->k);
}

/* How much of C's side the thread with most of it has, where strips are dealt out in turn. */
static size_t most_of_a_thread(const struct product *w, size_t strip, size_t panel)
{
	size_t whole = w->own_count / strip, rest = cpu_round_up(w->own_count % strip, panel);

	return whole / w->threads * strip + (whole % w->threads ? strip : rest);
}

/* Strips that end together, the longest such; shorter ones where they are too few. */
static size_t strip_of(const struct product *w, size_t wanted)
{
	size_t panel = w->left_is_shared ? MICRO_COLUMNS : MICRO_ROWS, best = STRIP;

	for (size_t strip = STRIP - panel; strip >= STRIP / 2; strip -= panel) {
		size_t most = most_of_a_thread(w, strip, panel);
		size_t least = most_of_a_thread(w, best, panel);
		if (most < least || (most == least && cpu_tasks(w->own_count, best) < wanted))
			best = strip;
	}
	return best;
}

/* Enough tasks for all threads: first shorter strips, then parts of the shared side. */
static void cut(struct product *w)
{
	size_t wanted = w->threads > 1 ? (size_t)w->threads * TASKS_A_THREAD : 1;

	w->strip = strip_of(w, wanted);
	size_t parts = cpu_tasks(wanted, cpu_tasks(w->own_count, w->strip));
	w->part = cpu_round_up(cpu_tasks(w->shared_count, parts), STRIP);
}

/* Ranges of k: one packing of what is shared, one meeting of all strips with it. */
static void multiply(struct device *dev, struct product *w)
{
	size_t padded = cpu_round_up(w->shared_count, STRIP), k = w->g->k;
	size_t blocks = SHARED_FLOATS / padded / w->block_k;
	size_t range = cpu_min(k, (blocks ? blocks : 1) * w->block_k);

	if (!cpu_scratch(dev, STRIP * w->block_k * sizeof(float)) ||
	    !cpu_packed(dev, padded * range * sizeof(float)))
		return;
	w->scratch = dev->scratch;
	w->shared = dev->packed.at;
	w->threads = dev->threads;
	cut(w);
	do {
		w->k = cpu_min(range, k - w->from);
		pool_run(dev->pool, cpu_tasks(w->shared_count, STRIP) * cpu_tasks(w->k, w->block_k),
			 share_task, w);
		pool_run(dev->pool,
			 cpu_tasks(w->own_count, w->strip) * cpu_tasks(w->shared_count, w->part),
			 strip_task, w);
		w->from += w->k;
	} while (w->from < k);
}

static void product_of(struct device *dev, const struct gemm *g)
{
	struct product w = {
		.g = g,
		.c = g->then == GEMM_GELU ? g->kept : g->c,
		.left = { g->a, g->lda, !g->trans_a },
		.right = { g->b, g->ldb, g->trans_b },
		.left_is_shared = g->m <= g->n,
		.shared_count = cpu_min(g->m, g->n),
		.own_count = g->m <= g->n ? g->n : g->m,
	};

	if (g->m == 0 || g->n == 0)
		return;
	/* Blocks of one size: a short last one would cost a pass over C for little. */
	w.block_k = g->k ? cpu_tasks(g->k, cpu_tasks(g->k, BLOCK_K)) : 1;
	multiply(dev, &w);
}

/* The operand of few bits, in memory of the device; NULL without memory. */
static const float *quantized(struct device *dev, int side, const void *x,
			      const struct stored *shape, const struct operand_use *use)
{
	float *out = cpu_quantized(dev, side, shape->rows * shape->columns * sizeof(float));

	if (out)
		cpu_quantize(dev, out, x, shape, use);
	return out;
}

static void multiply_by_uses(struct device *dev, const struct gemm *g)
{
	struct gemm p = *g;
	const struct stored a = { g->trans_a ? g->k : g->m, g->trans_a ? g->m : g->k, g->lda,
				  !g->trans_a };
	const struct stored b = { g->trans_b ? g->n : g->k, g->trans_b ? g->k : g->n, g->ldb,
				  g->trans_b };

	if (g->use_a)
		p.a = quantized(dev, 0, g->a, &a, g->use_a), p.lda = a.columns;
	if (g->use_b)
		p.b = quantized(dev, 1, g->b, &b, g->use_b), p.ldb = b.columns;
	if (p.a && p.b)
		product_of(dev, &p);
}

void cpu_gemm(struct device *dev, const struct gemm *g)
{
	if (integer_gemm_does(g))
		integer_gemm(dev, g);
	else
		multiply_by_uses(dev, g);
	if (g->sum_a)
		cpu_bias_backward(dev, g->sum_a, g->a, g->k, g->m, g->beta != 0.0f);
	if (g->sum_b)
		cpu_bias_backward(dev, g->sum_b, g->b, g->k, g->n, g->beta != 0.0f);
}
