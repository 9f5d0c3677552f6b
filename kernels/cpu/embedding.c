/* SPDX-License-Identifier: MIT */
/* embedding.c - out[r] = table[token[r]], and its gradient dtable[token[r]] += dout[r].
 *
 * Forward: a task copies some rows. Backward: a task owns some columns and walks all rows, so that
 * two rows with the same token are added in row order and without locks. A table may be a slice of
 * the vocabulary; then other tokens are zeros, and left alone. */
#include "kernels/cpu/cpu.h"

enum { COLUMNS_PER_TASK = 64 };

struct forward {
	float *out;
	const float *table;
	const int32_t *tokens;
	size_t rows, dim, rows_per_task;
	struct vocab_slice slice;
};

/* Whether the token is of the slice; *at: its place there. */
static bool is_here(const struct vocab_slice *slice, int32_t token, size_t *at)
{
	*at = (size_t)token - slice->first;
	return (size_t)token >= slice->first && *at < slice->count;
}

static void embedding_forward_task(const void *args, size_t index, unsigned worker)
{
	const struct forward *f = args;
	size_t row = index * f->rows_per_task;
	size_t end = cpu_min(row + f->rows_per_task, f->rows), at;

	(void)worker;
	for (; row < end; row++)
		if (is_here(&f->slice, f->tokens[row], &at))
			memcpy(f->out + row * f->dim, f->table + at * f->dim,
			       f->dim * sizeof(float));
		else
			memset(f->out + row * f->dim, 0, f->dim * sizeof(float));
}

void cpu_embed_slice_forward(struct device *dev, void *out, const float *table,
			     const int32_t *tokens, size_t rows, size_t dim,
			     const struct vocab_slice *slice)
{
	size_t per_task = cpu_rows_per_task(dim);
	const struct forward f = { out, table, tokens, rows, dim, per_task, *slice };
	pool_run(dev->pool, cpu_tasks(rows, per_task), embedding_forward_task, &f);
}

static const struct vocab_slice all = { 0, SIZE_MAX, 1 };

void cpu_embed_forward(struct device *dev, void *out, const float *table, const int32_t *tokens,
		       size_t rows, size_t dim)
{
	cpu_embed_slice_forward(dev, out, table, tokens, rows, dim, &all);
}

struct backward {
	float *dtable;
	const float *dout;
	const int32_t *tokens;
	size_t rows, dim;
	struct vocab_slice slice;
};

static void embedding_backward_task(const void *args, size_t index, unsigned worker)
{
	const struct backward *b = args;
	size_t first = index * COLUMNS_PER_TASK;
	size_t count = cpu_min(COLUMNS_PER_TASK, b->dim - first), at;

	(void)worker;
	for (size_t row = 0; row < b->rows; row++) {
		if (!is_here(&b->slice, b->tokens[row], &at))
			continue;
		float *restrict to = b->dtable + at * b->dim + first;
		const float *restrict from = b->dout + row * b->dim + first;
		for (size_t i = 0; i < count; i++)
			to[i] += from[i];
	}
}

void cpu_embed_slice_backward(struct device *dev, float *dtable, const void *dout,
			      const int32_t *tokens, size_t rows, size_t dim,
			      const struct vocab_slice *slice)
{
	const struct backward b = { dtable, dout, tokens, rows, dim, *slice };
	pool_run(dev->pool, cpu_tasks(dim, COLUMNS_PER_TASK), embedding_backward_task, &b);
}

void cpu_embed_backward(struct device *dev, float *dtable, const void *dout, const int32_t *tokens,
			size_t rows, size_t dim)
{
	cpu_embed_slice_backward(dev, dtable, dout, tokens, rows, dim, &all);
}
