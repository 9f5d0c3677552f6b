/* SPDX-License-Identifier: MIT */
/* bias.c - y[r] += b for every row, and db (+)= sum over rows of dy[r].
 *
 * Forward: a task owns some rows. Backward: a task owns some columns and walks the rows in
 * order. */
#include "kernels/cpu/cpu.h"

enum { COLUMNS_PER_TASK = 64 };

struct forward {
	float *y;
	const float *bias;
	size_t rows, dim, rows_per_task;
};

void cpu_bias_add(float *restrict y, const float *restrict bias, size_t count)
{
	for (size_t i = 0; i < count; i++)
		y[i] += bias[i];
}

static void bias_forward_task(const void *args, size_t index, unsigned worker)
{
	const struct forward *f = args;
	const float *restrict bias = f->bias;
	size_t row = index * f->rows_per_task;
	size_t end = cpu_min(row + f->rows_per_task, f->rows);

	(void)worker;
	for (; row < end; row++) {
		float *restrict y = f->y + row * f->dim;
		for (size_t i = 0; i < f->dim; i++)
			y[i] += bias[i];
	}
}

void cpu_bias_forward(struct device *dev, void *y, const float *bias, size_t rows, size_t dim)
{
	size_t per_task = cpu_rows_per_task(dim);
	const struct forward f = { y, bias, rows, dim, per_task };
	pool_run(dev->pool, cpu_tasks(rows, per_task), bias_forward_task, &f);
}

struct backward {
	float *dbias;
	const float *dy;
	size_t rows, dim;
	bool accumulate;
};

static void bias_backward_task(const void *args, size_t index, unsigned worker)
{
	const struct backward *b = args;
	size_t first = index * COLUMNS_PER_TASK;
	size_t count = cpu_min(COLUMNS_PER_TASK, b->dim - first);
	float sum[COLUMNS_PER_TASK] = { 0 };

	(void)worker;
	for (size_t row = 0; row < b->rows; row++) {
		const float *restrict dy = b->dy + row * b->dim + first;
		for (size_t i = 0; i < count; i++)
			sum[i] += dy[i];
	}
	cpu_put_columns(b->dbias + first, sum, count, b->accumulate);
}

void cpu_bias_backward(struct device *dev, float *dbias, const void *dy, size_t rows, size_t dim,
		       bool accumulate)
{
	const struct backward b = { dbias, dy, rows, dim, accumulate };
	pool_run(dev->pool, cpu_tasks(dim, COLUMNS_PER_TASK), bias_backward_task, &b);
}
