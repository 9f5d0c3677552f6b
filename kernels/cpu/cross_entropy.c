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

/* --- in two halves ---------------------------------------------------------------------------- */

struct halves {
	float *loss, *logits;
	const float *read; /* the logits of the first half */
	const int32_t *targets;
	struct loss_part *part;
	const struct loss_part *all; /* of every slice */
	size_t rows;
	struct vocab_slice slice;
	float scale;
};

static void loss_part_task(const void *args, size_t index, unsigned worker)
{
	const struct halves *h = args;
	const float *z = h->read + index * h->slice.count;
	size_t target = (size_t)h->targets[index] - h->slice.first;
	bool is_here = (size_t)h->targets[index] >= h->slice.first && target < h->slice.count;
	float max = row_max(z, h->slice.count);

	(void)worker;
	h->part[index] = (struct loss_part){ max, sum_exp(z, h->slice.count, max),
					     is_here ? z[target] : 0.0f };
}

void cpu_loss_part(struct device *dev, struct loss_part *part, const void *logits,
		   const int32_t *targets, size_t rows, const struct vocab_slice *slice)
{
	const struct halves h = {
		.read = logits, .targets = targets, .part = part, .slice = *slice
	};
	pool_run(dev->pool, rows, loss_part_task, &h);
}

static void loss_merge_task(const void *args, size_t index, unsigned worker)
{
	const struct halves *h = args;
	float *restrict z = h->logits + index * h->slice.count;
	size_t target = (size_t)h->targets[index] - h->slice.first;
	float max = h->all[index].max, sum = 0, at_target = 0;

	(void)worker;
	for (size_t s = 1; s < h->slice.slices; s++) {
		float other = h->all[s * h->rows + index].max;
		max = other > max ? other : max;
	}
	for (size_t s = 0; s < h->slice.slices; s++) {
		const struct loss_part *p = &h->all[s * h->rows + index];
		sum += p->sum * cpu_exp(p->max - max);
		at_target += p->target;
	}
	h->loss[index] = max + logf(sum) - at_target;
	if (h->scale == 0.0f)
		return;
	float to_p = h->scale / sum;
	for (size_t i = 0; i < h->slice.count; i++)
		z[i] = cpu_exp(z[i] - max) * to_p;
	if ((size_t)h->targets[index] >= h->slice.first && target < h->slice.count)
		z[target] -= h->scale;
}

void cpu_loss_merge(struct device *dev, float *loss, void *logits, const int32_t *targets,
		    const struct loss_part *part, size_t rows, const struct vocab_slice *slice,
		    float scale)
{
	const struct halves h = { .loss = loss,
				  .logits = logits,
				  .targets = targets,
				  .all = part,
				  .rows = rows,
				  .slice = *slice,
				  .scale = scale };
	pool_run(dev->pool, rows, loss_merge_task, &h);
}
