/* SPDX-License-Identifier: MIT */
/* rmsnorm.c - y = x r w with r = 1/sqrt(mean(x^2) + eps), per row; the residual sum in front.
 *
 * Backward, with g = dy w and D = width:
 *   dx += r g - x r^3 (g . x)/D            a task owns some rows
 *   dw (+)= sum over rows of dy x r        a task owns some columns, rows in order */
#include "kernels/cpu/cpu.h"

#include <math.h>

enum { COLUMNS_PER_TASK = 64 };

struct forward {
	float *out, *rstd, *sum;
	const float *x, *delta, *weight;
	size_t rows, dim, rows_per_task;
	float eps;
};

CPU_INLINE void forward_row(const struct forward *f, size_t row)
{
	const float *restrict weight = f->weight;
	float *restrict out = f->out + row * f->dim;
	const float *x = cpu_residual(f->delta ? f->sum + row * f->dim : NULL, f->x + row * f->dim,
				      f->delta ? f->delta + row * f->dim : NULL, f->dim);

	float rstd = 1.0f / sqrtf(cpu_dot(x, x, f->dim) / (float)f->dim + f->eps);
	f->rstd[row] = rstd;
	for (size_t i = 0; i < f->dim; i++)
		out[i] = x[i] * rstd * weight[i];
}

static void rmsnorm_forward_task(const void *args, size_t index, unsigned worker)
{
	const struct forward *f = args;
	size_t row = index * f->rows_per_task;
	size_t end = cpu_min(row + f->rows_per_task, f->rows);

	(void)worker;
	for (; row < end; row++)
		forward_row(f, row);
}

void cpu_rmsnorm_forward(struct device *dev, void *out, float *rstd, void *sum, const void *x,
			 const void *delta, const float *weight, size_t rows, size_t dim, float eps)
{
	size_t per_task = cpu_rows_per_task(dim);
	const struct forward f = { out, rstd, sum, x, delta, weight, rows, dim, per_task, eps };
	pool_run(dev->pool, cpu_tasks(rows, per_task), rmsnorm_forward_task, &f);
}

struct backward {
	float *dx, *dweight;
	const float *dout, *x, *rstd, *weight;
	size_t rows, dim, rows_per_task;
	bool accumulate;
};

static void rmsnorm_input_task(const void *args, size_t index, unsigned worker)
{
	const struct backward *b = args;
	size_t row = index * b->rows_per_task;
	size_t end = cpu_min(row + b->rows_per_task, b->rows);

	(void)worker;
	for (; row < end; row++) {
		const float *restrict x = b->x + row * b->dim;
		const float *restrict dout = b->dout + row * b->dim;
		const float *restrict weight = b->weight;
		float *restrict dx = b->dx + row * b->dim;
		float r = b->rstd[row];
		vec16 acc = { 0 }, g, w, v;
		size_t i = 0;
		for (; i + CPU_LANES <= b->dim; i += CPU_LANES) {
			memcpy(&g, dout + i, sizeof(g));
			memcpy(&w, weight + i, sizeof(w));
			memcpy(&v, x + i, sizeof(v));
			acc += g * w * v;
		}
		for (size_t lane = 0; i < b->dim; i++, lane++)
			acc[lane] += dout[i] * weight[i] * x[i];
		float back = cpu_lanes_sum(&acc) / (float)b->dim * r * r * r;
		for (i = 0; i < b->dim; i++)
			dx[i] += dout[i] * weight[i] * r - x[i] * back;
	}
}

static void rmsnorm_weight_task(const void *args, size_t index, unsigned worker)
{
	const struct backward *b = args;
	size_t first = index * COLUMNS_PER_TASK;
	size_t count = cpu_min(COLUMNS_PER_TASK, b->dim - first);
	float sum[COLUMNS_PER_TASK] = { 0 };

	(void)worker;
	for (size_t row = 0; row < b->rows; row++) {
		const float *restrict x = b->x + row * b->dim + first;
		const float *restrict dout = b->dout + row * b->dim + first;
		float r = b->rstd[row];
		for (size_t i = 0; i < count; i++)
			sum[i] += dout[i] * x[i] * r;
	}
	cpu_put_columns(b->dweight + first, sum, count, b->accumulate);
}

void cpu_rmsnorm_backward(struct device *dev, void *dx, float *dweight, const void *dout,
			  const void *x, const float *rstd, const float *weight, size_t rows,
			  size_t dim, bool accumulate)
{
	size_t per_task = cpu_rows_per_task(dim);
	const struct backward b = { dx,     dweight, dout, x,        rstd,
				    weight, rows,    dim,  per_task, accumulate };
	pool_run(dev->pool, cpu_tasks(rows, per_task), rmsnorm_input_task, &b);
	pool_run(dev->pool, cpu_tasks(dim, COLUMNS_PER_TASK), rmsnorm_weight_task, &b);
}
