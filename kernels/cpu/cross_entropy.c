/* SPDX-License-Identifier: MIT */
/* cross_entropy.c - loss = log sum_j e^(z_j) - z_target per row, and dz_j = scale (p_j - [j =
 * target]).
 *
 * The maximum is taken out first; a row with NaN or Inf gives a loss that is not finite, on
 * purpose. With the terms of struct loss_terms, L = log sum_j e^(z_j):
 *   loss = L - (1-e) z_target - e mean(z) + y L^2
 *   dz_j = scale (p_j (1 + 2 y L) - (1-e)[j = target] - e/V), times 1 - (z_j/cap)^2
 * A task owns one row: rows are as long as the vocabulary. */
#include "kernels/cpu/cpu.h"

#include <math.h>

struct head {
	float *loss, *logits;
	const int32_t *targets;
	size_t vocab;
	float scale;
	struct loss_terms terms;
};

enum { MAX_LANES = 64 };

CPU_INLINE float row_max(const float *z, size_t count)
{
	float lane[MAX_LANES];
	size_t i = 0;

	for (int l = 0; l < MAX_LANES; l++)
		lane[l] = z[0];
	for (; i + MAX_LANES <= count; i += MAX_LANES)
#pragma omp simd
		for (int l = 0; l < MAX_LANES; l++)
			lane[l] = z[i + l] > lane[l] ? z[i + l] : lane[l];
	for (; i < count; i++)
		lane[0] = z[i] > lane[0] ? z[i] : lane[0];
	for (int l = 1; l < MAX_LANES; l++)
		lane[0] = lane[l] > lane[0] ? lane[l] : lane[0];
	return lane[0];
}

/* Sum of e^(z - max) without writing it: the gradient pass computes it again, which costs less
 * than a second trip of the row through memory. */
CPU_INLINE float sum_exp(const float *z, size_t count, float max)
{
	struct vec16 sum = { 0 };
	float e[CPU_LANES], lane[CPU_LANES];
	size_t i = 0;

	for (; i + CPU_LANES <= count; i += CPU_LANES) {
#pragma omp simd
		for (int l = 0; l < CPU_LANES; l++)
			e[l] = cpu_exp(z[i + l] - max);
		sum = vec16_add(sum, vec16_load(e));
	}
	vec16_store(lane, sum);
	for (size_t l = 0; i < count; i++, l++)
		lane[l] += cpu_exp(z[i] - max);
	return cpu_lanes_sum(lane);
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
	const struct head h = { loss, logits, targets, vocab, scale, { 0, 0, 0 } };
	pool_run(dev->pool, rows, cross_entropy_task, &h);
}

/* --- with more terms -------------------------------------------------------------------------- */

enum { CAP_BLOCK = 16384 };

struct capped {
	float *x;
	size_t count;
	float cap;
};

static void softcap_task(const void *args, size_t index, unsigned worker)
{
	const struct capped *c = args;
	size_t first = index * CAP_BLOCK, end = cpu_min(first + CAP_BLOCK, c->count);
	float cap = c->cap, inverse = 1.0f / cap;

	(void)worker;
#pragma omp simd
	for (size_t i = first; i < end; i++)
		c->x[i] = cap * cpu_tanh(c->x[i] * inverse);
}

void cpu_softcap(struct device *dev, void *x, size_t count, float cap)
{
	const struct capped c = { x, count, cap };
	pool_run(dev->pool, cpu_tasks(count, CAP_BLOCK), softcap_task, &c);
}

/* The gradient of what went into a softcap, from that of what came out of it. */
static void through_softcap(float *restrict dz, const float *restrict z, size_t count, float cap)
{
	float inverse = 1.0f / cap;

	for (size_t i = 0; i < count; i++) {
		float t = z[i] * inverse;
		dz[i] *= 1.0f - t * t;
	}
}

enum { BLOCK = 256 };

/* z becomes its gradient, BLOCK elements at a time: a softcap needs them once more behind that. */
static void terms_backward(float *z, const struct head *h, size_t target, float max, float sum)
{
	const struct loss_terms *t = &h->terms;
	float lse = max + logf(sum), even = t->smoothing / (float)h->vocab * h->scale;
	float to_p = h->scale / sum * (1.0f + 2.0f * t->z_loss * lse), block[BLOCK];

	for (size_t at = 0; at < h->vocab; at += BLOCK) {
		size_t count = cpu_min(BLOCK, h->vocab - at);
		for (size_t i = 0; i < count; i++)
			block[i] = cpu_exp(z[at + i] - max) * to_p - even;
		if (target >= at && target < at + count)
			block[target - at] -= h->scale * (1.0f - t->smoothing);
		if (t->softcap > 0)
			through_softcap(block, z + at, count, t->softcap);
		memcpy(z + at, block, count * sizeof(*z));
	}
}

static void terms_task(const void *args, size_t index, unsigned worker)
{
	const struct head *h = args;
	const struct loss_terms *t = &h->terms;
	float *z = h->logits + index * h->vocab;
	size_t target = (size_t)h->targets[index];
	float max = row_max(z, h->vocab), sum = sum_exp(z, h->vocab, max), lse = max + logf(sum);
	float loss = lse - z[target];

	(void)worker;
	if (t->smoothing > 0)
		loss += t->smoothing * (z[target] - cpu_sum(z, h->vocab) / (float)h->vocab);
	h->loss[index] = loss + t->z_loss * lse * lse;
	if (h->scale != 0.0f)
		terms_backward(z, h, target, max, sum);
}

void cpu_cross_entropy_with(struct device *dev, float *loss, void *logits, const int32_t *targets,
			    size_t rows, size_t vocab, float scale, const struct loss_terms *terms)
{
	const struct head h = { loss, logits, targets, vocab, scale, *terms };
	pool_run(dev->pool, rows, terms_task, &h);
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
	/* cppcheck-suppress invalidFunctionArg ; there is at least one slice, so sum > 0 */
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
