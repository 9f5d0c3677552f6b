/* SPDX-License-Identifier: MIT */
/* pack.c - panels: by runs where an operand lies as the panel does, else by squares that are turned
 * in registers.
 *
 * Widths are constants where the functions are inlined. */
#include "kernels/cpu/products/pack.h"

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/products/micro.h"

/* Rows turned together: more are more streams than a CPU prefetches, fewer are less than a line of
 * the panel. Columns copied together: the same rows of more panels would meet in the same places
 * of the first cache. */
enum { LINE = 16, AHEAD = 4, GROUP = MICRO_COLUMNS % 16 == 0 ? 16 : MICRO_COLUMNS, RUN = 32 };

/* Panels that lie side by side, a row of memory at a time. */
CPU_INLINE void copy_run(float *restrict to, const float *restrict from, size_t ld, size_t panels,
			 size_t width, size_t k, float alpha)
{
	for (size_t p = 0; p < k; p++, from += ld) {
		for (size_t i = 0; i < panels * width; i += LINE)
			__builtin_prefetch(from + AHEAD * ld + i);
		for (size_t panel = 0; panel < panels; panel++)
			for (size_t i = 0; i < width; i++)
				to[(panel * k + p) * width + i] = alpha * from[panel * width + i];
	}
}

/* Whole panels. */
CPU_INLINE void copy_runs(float *to, const float *from, size_t ld, size_t panels, size_t width,
			  size_t k, float alpha)
{
	const size_t some = width < RUN ? RUN / width : 1;
	size_t panel = 0;

	for (; panel + some <= panels; panel += some)
		copy_run(to + panel * width * k, from + panel * width, ld, some, width, k, alpha);
	for (; panel < panels; panel++)
		copy_run(to + panel * width * k, from + panel * width, ld, 1, width, k, alpha);
}

#if defined(__AVX2__)
enum { SIDE = 8 };
#else
enum { SIDE = 4 };
#endif
typedef float side __attribute__((vector_size(sizeof(float) * SIDE)));
typedef int32_t side_lanes __attribute__((vector_size(sizeof(float) * SIDE)));

#if defined(__clang__)
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (side_lanes){ __VA_ARGS__ })
#endif

/* Single elements of two rows in turn, of the lower or upper half of each four; then pairs of them;
 * then fours. */
CPU_INLINE void interleave(side *low, side *high, side a, side b)
{
#if defined(__AVX2__)
	*low = SHUFFLE(a, b, 0, 8, 1, 9, 4, 12, 5, 13);
	*high = SHUFFLE(a, b, 2, 10, 3, 11, 6, 14, 7, 15);
#else
	*low = SHUFFLE(a, b, 0, 4, 1, 5);
	*high = SHUFFLE(a, b, 2, 6, 3, 7);
#endif
}

CPU_INLINE void interleave_pairs(side *low, side *high, side a, side b)
{
#if defined(__AVX2__)
	*low = SHUFFLE(a, b, 0, 1, 8, 9, 4, 5, 12, 13);
	*high = SHUFFLE(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
#else
	*low = SHUFFLE(a, b, 0, 1, 4, 5);
	*high = SHUFFLE(a, b, 2, 3, 6, 7);
#endif
}

/* Four rows of SIDE: column i of each four stands in row[i] then. */
CPU_INLINE void turn_fours(side row[4])
{
	side a, b, c, d;

	interleave(&a, &b, row[0], row[1]);
	interleave(&c, &d, row[2], row[3]);
	interleave_pairs(&row[0], &row[1], a, c);
	interleave_pairs(&row[2], &row[3], b, d);
}

CPU_INLINE void turn_square(side row[SIDE])
{
	turn_fours(row);
#if defined(__AVX2__)
	turn_fours(row + 4);
#pragma GCC unroll 4
	for (int i = 0; i < 4; i++) {
		side a = row[i], b = row[i + 4];
		row[i] = SHUFFLE(a, b, 0, 1, 2, 3, 8, 9, 10, 11);
		row[i + 4] = SHUFFLE(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
	}
#endif
}

/* SIDE columns of `rows` rows, SIDE at most, to SIDE rows of a panel. A row of fewer is written
 * with what stands in the way of the next one, which comes later, but for the panel's last. */
CPU_INLINE void turn(float *restrict to, size_t width, const float *restrict from, size_t ld,
		     size_t rows, float alpha, bool is_last)
{
	side row[SIDE];

#pragma GCC unroll 8
	for (size_t i = 0; i < SIDE; i++) {
		memcpy(&row[i], from + (i < rows ? i : rows - 1) * ld, sizeof(row[i]));
		row[i] *= alpha;
	}
	turn_square(row);
#pragma GCC unroll 8
	for (size_t p = 0; p + 1 < SIDE; p++)
		memcpy(to + p * width, &row[p], sizeof(row[p]));
	to += (SIDE - 1) * width;
	if (is_last)
		memcpy(to, &row[SIDE - 1], rows * sizeof(float));
	else
		memcpy(to, &row[SIDE - 1], sizeof(row[0]));
}

/* A panel, `group` of its rows at a time; all of a line of a row before the next SIDE rows: where
 * rows are a multiple of 4 KiB apart, no more of them stay in the first cache. */
CPU_INLINE void transpose(float *restrict to, const float *restrict from, size_t ld, size_t width,
			  size_t group, size_t k, float alpha)
{
	for (size_t i = 0; i < width; i += group, from += group * ld) {
		size_t p = 0;
		for (; p + SIDE <= k; p += LINE) {
			size_t line = cpu_min(LINE, (k - p) / SIDE * SIDE);
			for (size_t j = 0; j < group; j++)
				__builtin_prefetch(from + (group + j) * ld + p);
#pragma GCC unroll 4
			for (size_t j = 0; j < group; j += SIDE)
				for (size_t q = p; q < p + line; q += SIDE)
					turn(to + q * width + i + j, width, from + j * ld + q, ld,
					     group - j < SIDE ? group - j : SIDE, alpha,
					     q + SIDE == k);
		}
		for (p = k / SIDE * SIDE; p < k; p++)
			for (size_t j = 0; j < group; j++)
				to[p * width + i + j] = alpha * from[j * ld + p];
	}
}

/* The last panel, of `count` < width. */
static void pack_edge(float *to, const struct operand *x, const float *from, size_t count,
		      size_t width, size_t k, float alpha)
{
	size_t to_next_i = x->k_along_memory ? x->ld : 1;
	size_t to_next_p = x->k_along_memory ? 1 : x->ld;

	for (size_t p = 0; p < k; p++)
		for (size_t i = 0; i < width; i++)
			*to++ = i < count ? alpha * from[i * to_next_i + p * to_next_p] : 0.0f;
}

static const float *start_of(const struct operand *x, const struct piece *p)
{
	return x->at +
	       (x->k_along_memory ? p->first * x->ld + p->from : p->from * x->ld + p->first);
}

CPU_INLINE void pack(float *to, const struct operand *x, const struct piece *p, float alpha,
		     size_t width, size_t group)
{
	const float *at = start_of(x, p);
	size_t step = x->k_along_memory ? x->ld : 1, k = p->k;
	size_t panels = p->count / width, i = panels * width;

	if (!x->k_along_memory)
		copy_runs(to, at, x->ld, panels, width, k, alpha);
	for (size_t panel = 0; x->k_along_memory && panel < panels; panel++)
		transpose(to + panel * width * k, at + panel * width * step, x->ld, width, group, k,
			  alpha);
	if (i < p->count)
		pack_edge(to + i * k, x, at + i * step, p->count - i, width, k, alpha);
}

void pack_left(float *to, const struct operand *x, const struct piece *piece, float alpha)
{
	pack(to, x, piece, alpha, MICRO_ROWS, MICRO_ROWS);
}

void pack_right(float *to, const struct operand *x, const struct piece *piece)
{
	pack(to, x, piece, 1.0f, MICRO_COLUMNS, GROUP);
}

struct pack_ahead pack_ahead(const struct operand *x, const struct piece *piece, size_t times)
{
	size_t rows = x->k_along_memory ? piece->count : piece->k;
	size_t lines = cpu_tasks(x->k_along_memory ? piece->k : piece->count, LINE);

	return (struct pack_ahead){ .row = start_of(x, piece),
				    .ld = x->ld,
				    .lines = lines,
				    .left = rows * lines,
				    .at_once = cpu_tasks(rows * lines, times) };
}

/* Without branches that cannot be foreseen: it runs between small products. */
void pack_ask(struct pack_ahead *ahead)
{
	size_t count = cpu_min(ahead->at_once, ahead->left), line = ahead->line;
	const float *row = ahead->row;

	ahead->left -= count;
	for (size_t i = 0; i < count; i++) {
		__builtin_prefetch(row + line * LINE, 0, 2);
		size_t wraps = ++line == ahead->lines;
		row += wraps * ahead->ld;
		line &= wraps - 1;
	}
	ahead->row = row;
	ahead->line = line;
}
