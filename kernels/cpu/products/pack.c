/* SPDX-License-Identifier: MIT */
/* pack.c - panels: by runs where an operand lies as the panel does, else by small transpositions.
 *
 * Widths are constants where the functions are inlined, so that the compiler turns the inner loops
 * into vector shuffles. */
#include "kernels/cpu/products/pack.h"

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/products/micro.h"

/* Rows transposed together: more are more streams than a CPU prefetches. */
enum { LINE = 16, AHEAD = 8, GROUP_MAX = 16, GROUP = MICRO_COLUMNS % 16 == 0 ? 16 : MICRO_COLUMNS };

/* Whole panels that lie side by side, a row of memory at a time. */
CPU_INLINE void copy_runs(float *restrict to, const float *restrict from, size_t ld, size_t panels,
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

/* A square of `group` rows by way of a block without gaps, which compilers make shuffles of. */
CPU_INLINE void transpose(float *restrict to, const float *restrict from, size_t ld, size_t width,
			  size_t group, size_t k, float alpha)
{
	float block[LINE * GROUP_MAX];

	for (size_t i = 0; i < width; i += group, from += group * ld)
		for (size_t p = 0; p < k; p += LINE) {
			size_t count = cpu_min(LINE, k - p);
			for (size_t j = 0; j < group; j++)
				__builtin_prefetch(from + (group + j) * ld + p);
			for (size_t q = 0; q < count; q++)
				for (size_t j = 0; j < group; j++)
					block[q * group + j] = alpha * from[j * ld + p + q];
			for (size_t q = 0; q < count; q++)
				memcpy(to + (p + q) * width + i, block + q * group,
				       group * sizeof(float));
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

void pack_ahead(const struct operand *x, const struct piece *piece, size_t part, size_t parts)
{
	size_t rows = x->k_along_memory ? piece->count : piece->k;
	size_t lines = cpu_tasks(x->k_along_memory ? piece->k : piece->count, LINE);
	size_t all = rows * lines, at = part * all / parts, end = (part + 1) * all / parts;

	if (at == end)
		return;
	const float *row = start_of(x, piece) + at / lines * x->ld;
	for (size_t line = at % lines; at < end; at++) {
		__builtin_prefetch(row + line * LINE, 0, 2);
		if (++line == lines)
			line = 0, row += x->ld;
	}
}
