/* SPDX-License-Identifier: MIT */
/* layernorm.c - y = (x - u) r w + b with u = mean(x), r = 1/sqrt(mean((x - u)^2) + eps), per row.
 *
 * Backward, with g = dy w, n = (x - u) r and D = width:
 *   dx += r (g - mean(g) - n mean(g n))        a task owns some rows
 *   dw (+)= sum over rows of dy n, db (+)= sum over rows of dy   some columns, rows in order */
#include "kernels/cpu/cpu.h"

#include <math.h>

enum { COLUMNS_PER_TASK = 64 };

struct forward {
	float *out, *mean, *rstd, *sum;
	const float *x, *delta, *weight, *bias;
	size_t rows, dim, rows_per_task;
	float eps;
};

CPU_INLINE float squared_distance(const float *x, float mean, size_t count)
{
	struct vec16 sum = { 0 };
	float lane[CPU_LANES];
	size_t i = 0;

	for (; i + CPU_LANES <= count; i += CPU_LANES) {
		struct vec16 v = vec16_from_level(vec16_load(x + i), mean, 1.0f);
		sum = vec16_add(sum, vec16_multiply(v, v));
	}
	vec16_store(lane, sum);
	for (size_t l = 0; i < count; i++, l++)
		lane[l] += (x[i] - mean) * (x[i] - mean);
	return cpu_lanes_sum(lane);
}

CPU_INLINE void forward_row(const struct forward *f, size_t row)
{
	const float *restrict weight = f->weight;
	const float *restrict bias = f->bias;
	float *restrict out = f->out + row * f->dim;
	const float *x = cpu_residual(f->delta ? f->sum + row * f->dim : NULL, f->x + row * f->dim,
				      f->delta ? f->delta + row * f->dim : NULL, f->dim);

	float mean = cpu_sum(x, f->dim) / (float)f->dim;
	float rstd = 1.0f / sqrtf(squared_distance(x, mean, f->dim) / (float)f->dim + f->eps);
	f->mean[row] = mean;
	f->rstd[row] = rstd;
	for (size_t i = 0; i < f->dim; i++)
		out[i] = (x[i] - mean) * rstd * weight[i] + bias[i];
}

static void layernorm_forward_task(const void *args, size_t index, unsigned worker)
{
	const struct forward *f = args;
	size_t row = index * f->rows_per_task;
	size_t end = cpu_min(row + f->rows_per_task, f->rows);

	(void)worker;
	for (; row < end; row++)
		forward_row(f, row);
}

void cpu_layernorm_forward(struct device *dev, void *out, float *mean, float *rstd, void *sum,
			   const void *x, const void *delta, const float *weight, const float *bias,
			   size_t rows, size_t dim, float eps)
{
	size_t per_task = cpu_rows_per_task(dim);
	const struct forward f = { out,    mean, rstd, sum, x,        delta,
				   weight, bias, rows, dim, per_task, eps };
	pool_run(dev->pool, cpu_tasks(rows, per_task), layernorm_forward_task, &f);
}

struct backward {
	float *dx, *dweight, *dbias;
	const float *dout, *x, *mean, *rstd, *weight;
	size_t rows, dim, rows_per_task;
	bool accumulate;
};

CPU_INLINE void backward_row(const struct backward *b, size_t row)
{
	const float *restrict x = b->x + row * b->dim;
	const float *restrict dout = b->dout + row * b->dim;
	const float *restrict weight = b->weight;
	float *restrict dx = b->dx + row * b->dim;
	float mean = b->mean[row], r = b->rstd[row];
	struct vec16 sum = { 0 }, along = { 0 };
	float of_sum[CPU_LANES], of_along[CPU_LANES];
	size_t i = 0;

	for (; i + CPU_LANES <= b->dim; i += CPU_LANES) {
		struct vec16 g = vec16_multiply(vec16_load(dout + i), vec16_load(weight + i));
		struct vec16 n = vec16_from_level(vec16_load(x + i), mean, r);
		sum = vec16_add(sum, g);
		along = vec16_add(along, vec16_multiply(g, n));
	}
	vec16_store(of_sum, sum);
	vec16_store(of_along, along);
	for (size_t l = 0; i < b->dim; i++, l++) {
		of_sum[l] += dout[i] * weight[i];
		of_along[l] += dout[i] * weight[i] * ((x[i] - mean) * r);
	}
	float level = cpu_lanes_sum(of_sum) / (float)b->dim;
	float back = cpu_lanes_sum(of_along) / (float)b->dim;
	for (i = 0; i < b->dim; i++)
		dx[i] += r * (dout[i] * weight[i] - level - (x[i] - mean) * r * back);
}

static void layernorm_input_task(const void *args, size_t index, unsigned worker)
{
	const struct backward *b = args;
	size_t row = index * b->rows_per_task;
	size_t end = cpu_min(row + b->rows_per_task, b->rows);

	(void)worker;
	for (; row < end; row++)
		backward_row(b, row);
}

static void layernorm_weight_task(const void *args, size_t index, unsigned worker)
{
	const struct backward *b = args;
	size_t first = index * COLUMNS_PER_TASK;
	size_t count = cpu_min(COLUMNS_PER_TASK, b->dim - first);
	float dw[COLUMNS_PER_TASK] = { 0 }, db[COLUMNS_PER_TASK] = { 0 };

	(void)worker;
	for (size_t row = 0; row < b->rows; row++) {
		const float *restrict x = b->x + row * b->dim + first;
		const float *restrict dout = b->dout + row * b->dim + first;
		float mean = b->mean[row], r = b->rstd[row];
		for (size_t i = 0; i < count; i++) {
			dw[i] += dout[i] * ((x[i] - mean) * r);
			db[i] += dout[i];
		}
	}
	cpu_put_columns(b->dweight + first, dw, count, b->accumulate);
	cpu_put_columns(b->dbias + first, db, count, b->accumulate);
}

void cpu_layernorm_backward(struct device *dev, void *dx, float *dweight, float *dbias,
			    const void *dout, const void *x, const float *mean, const float *rstd,
			    const float *weight, size_t rows, size_t dim, bool accumulate)
{
	size_t per_task = cpu_rows_per_task(dim);
	const struct backward b = { dx,   dweight, dbias, dout, x,        mean,
				    rstd, weight,  rows,  dim,  per_task, accumulate };
	pool_run(dev->pool, cpu_tasks(rows, per_task), layernorm_input_task, &b);
	pool_run(dev->pool, cpu_tasks(dim, COLUMNS_PER_TASK), layernorm_weight_task, &b);
}
