/* SPDX-License-Identifier: MIT */
/* cross_entropy.c - loss = log sum_j e^(z_j) - z_target per row, and dz_j = scale (p_j - [j =
 * target]).
 *
 * The maximum is taken out first; a row with NaN or Inf gives a loss that is not finite, on
 * purpose. A task owns one row: rows are as long as the vocabulary. */
#include "kernels/cpu/cpu.h"

#include <math.h>

struct head {
	float *loss, *logits;
	const int32_t *targets;
	size_t vocab;
	float scale;
};

CPU_INLINE float row_max(const float *z, size_t count)
{
	float lane[CPU_LANES];
	size_t i = 0;

	for (int l = 0; l < CPU_LANES; l++)
		lane[l] = z[0];
	for (; i + CPU_LANES <= count; i += CPU_LANES)
		for (int l = 0; l < CPU_LANES; l++)
			lane[l] = z[i + l] > lane[l] ? z[i + l] : lane[l];
	for (; i < count; i++)
		lane[0] = z[i] > lane[0] ? z[i] : lane[0];
	for (int l = 1; l < CPU_LANES; l++)
		lane[0] = lane[l] > lane[0] ? lane[l] : lane[0];
	return lane[0];
}

/* Sum of e^(z - max) without writing it: the gradient pass computes it again, which costs less
 * than a second trip of the row through memory. */
CPU_INLINE float sum_exp(const float *z, size_t count, float max)
{
	vec16 acc = { 0 };
	size_t i = 0;

	for (; i + CPU_LANES <= count; i += CPU_LANES) {
		float e[CPU_LANES];
		vec16 v;
		for (int l = 0; l < CPU_LANES; l++)
			e[l] = cpu_exp(z[i + l] - max);
		memcpy(&v, e, sizeof(v));
		acc += v;
	}
	for (size_t lane = 0; i < count; i++, lane++)
		acc[lane] += cpu_exp(z[i] - max);
	return cpu_lanes_sum(&acc);
}

static void cross_entropy_task(const void *args, size_t index, unsigned worker)
{
	const struct head *h = args;
	float *restrict z = h->logits + index * h->vocab;
	size_t target = (size_t)h->targets[index];
	float max = row_max(z, h->vocab);
	float sum = sum_exp(z, h->vocab, max);

	(void)worker;
	h->loss[index] = max + logf(sum) - z[target];
	if (h->scale == 0.0f)
		return;
	float to_p = h->scale / sum;
	for (size_t i = 0; i < h->vocab; i++)
		z[i] = cpu_exp(z[i] - max) * to_p;
	z[target] -= h->scale;
}

void cpu_cross_entropy(struct device *dev, float *loss, void *logits, const int32_t *targets,
		       size_t rows, size_t vocab, float scale)
{
	const struct head h = { loss, logits, targets, vocab, scale };
	pool_run(dev->pool, rows, cross_entropy_task, &h);
}
