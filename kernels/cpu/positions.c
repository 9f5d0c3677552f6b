/* SPDX-License-Identifier: MIT */
/* positions.c - learned positions: x[r] += table[r mod T], and dtable[t] (+)= sum of dx at t.
 *
 * Forward: a task owns some rows. Backward: a task owns some positions and adds the sequences of
 * the batch in order. */
#include "kernels/cpu/cpu.h"

struct forward {
	float *x;
	const float *table;
	size_t rows, seq, dim, rows_per_task;
};

static void positions_forward_task(const void *args, size_t index, unsigned worker)
{
	const struct forward *f = args;
	size_t row = index * f->rows_per_task;
	size_t end = cpu_min(row + f->rows_per_task, f->rows);

	(void)worker;
	for (; row < end; row++) {
		const float *restrict from = f->table + row % f->seq * f->dim;
		float *restrict x = f->x + row * f->dim;
		for (size_t i = 0; i < f->dim; i++)
			x[i] += from[i];
	}
}

void cpu_positions_forward(struct device *dev, void *x, const float *table, size_t rows, size_t seq,
			   size_t dim)
{
	size_t per_task = cpu_rows_per_task(dim);
	const struct forward f = { x, table, rows, seq, dim, per_task };
	pool_run(dev->pool, cpu_tasks(rows, per_task), positions_forward_task, &f);
}

struct backward {
	float *dtable;
	const float *dx;
	size_t rows, seq, dim, positions_per_task;
	bool accumulate;
};

static void positions_backward_task(const void *args, size_t index, unsigned worker)
{
	const struct backward *b = args;
	size_t at = index * b->positions_per_task;
	size_t end = cpu_min(at + b->positions_per_task, b->seq);

	(void)worker;
	for (; at < end; at++) {
		float *restrict to = b->dtable + at * b->dim;
		if (!b->accumulate)
			memset(to, 0, b->dim * sizeof(*to));
		for (size_t row = at; row < b->rows; row += b->seq) {
			const float *restrict dx = b->dx + row * b->dim;
			for (size_t i = 0; i < b->dim; i++)
				to[i] += dx[i];
		}
	}
}

void cpu_positions_backward(struct device *dev, float *dtable, const void *dx, size_t rows,
			    size_t seq, size_t dim, bool accumulate)
{
	size_t per_task = cpu_rows_per_task(rows / seq * dim);
	const struct backward b = { dtable, dx, rows, seq, dim, per_task, accumulate };
	pool_run(dev->pool, cpu_tasks(seq, per_task), positions_backward_task, &b);
}
