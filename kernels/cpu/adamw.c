/* SPDX-License-Identifier: MIT */
/* adamw.c - one pass over weight, both moments and gradient; the formula stands in backend.h.
 *
 * A task owns BLOCK consecutive elements; the pass is bound by memory, not by arithmetic. Moments
 * in bf16 are widened, updated, and rounded up or down by chance. */
#include "kernels/cpu/round.h"

#include <math.h>

enum { BLOCK = 65536, PIECE = 256 };

struct update {
	float *weight;
	void *m, *v;
	const float *grad;
	size_t count;
	float lr, beta1, beta2, eps, weight_decay, grad_scale;
	float to_m_hat, to_v_hat; /* 1/(1-beta^t) */
	uint64_t first, key;
	uint32_t step;
};

static void adamw_task(const void *args, size_t index, unsigned worker)
{
	const struct update u = *(const struct update *)args;
	size_t first = index * BLOCK;
	size_t count = cpu_min(BLOCK, u.count - first);
	float *restrict weight = u.weight + first;
	float *restrict m = (float *)u.m + first;
	float *restrict v = (float *)u.v + first;
	const float *restrict grad = u.grad + first;

	(void)worker;
	for (size_t i = 0; i < count; i++) {
		float g = grad[i] * u.grad_scale;
		m[i] = u.beta1 * m[i] + (1.0f - u.beta1) * g;
		v[i] = u.beta2 * v[i] + (1.0f - u.beta2) * g * g;
		float direction = m[i] * u.to_m_hat / (sqrtf(v[i] * u.to_v_hat) + u.eps);
		weight[i] -= u.lr * (direction + u.weight_decay * weight[i]);
	}
}

/* bf16 is the upper half of fp32: adding 16 random bits below carries up with the right chance. Inf
 * and NaN stay what they are. */
CPU_INLINE uint16_t narrow_by_chance(float x, uint32_t random16)
{
	uint32_t bits = bits_of(x);
	bool is_finite = (bits & 0x7f800000u) != 0x7f800000u;
	uint32_t kept = bits >> 16 | ((bits & 0xffffu) != 0);

	return (uint16_t)(is_finite ? (bits + random16) >> 16 : kept);
}

/* The 16 bits of each of `count` elements: two in each word of the stream. */
static void random_halves(uint32_t *halves, const struct random_stream *stream, uint64_t element,
			  size_t count)
{
	size_t odd = element % 2;
	uint32_t words[PIECE / 2 + 1];

	random_words(words, stream, element / 2, (odd + count + 1) / 2);
	for (size_t i = 0; i < count; i++)
		halves[i] = words[(odd + i) / 2] >> 16 * ((odd + i) % 2) & 0xffffu;
}

static void adamw_bf16_piece(const struct update *u, size_t first, size_t count)
{
	const struct random_stream of_m = { u->key, 0, u->step }, of_v = { u->key, 1, u->step };
	const struct update c = *u;
	float *restrict weight = u->weight + first;
	uint16_t *restrict m = (uint16_t *)u->m + first;
	uint16_t *restrict v = (uint16_t *)u->v + first;
	const float *restrict grad = u->grad + first;
	uint32_t random_m[PIECE], random_v[PIECE];

	random_halves(random_m, &of_m, u->first + first, count);
	random_halves(random_v, &of_v, u->first + first, count);
	for (size_t i = 0; i < count; i++) {
		float g = grad[i] * c.grad_scale;
		float mi = c.beta1 * float_of((uint32_t)m[i] << 16) + (1.0f - c.beta1) * g;
		float vi = c.beta2 * float_of((uint32_t)v[i] << 16) + (1.0f - c.beta2) * g * g;
		float direction = mi * c.to_m_hat / (sqrtf(vi * c.to_v_hat) + c.eps);
		weight[i] -= c.lr * (direction + c.weight_decay * weight[i]);
		m[i] = narrow_by_chance(mi, random_m[i]);
		v[i] = narrow_by_chance(vi, random_v[i]);
	}
}

static void adamw_bf16_task(const void *args, size_t index, unsigned worker)
{
	const struct update *u = args;
	size_t end = cpu_min(u->count, (index + 1) * BLOCK);

	(void)worker;
	for (size_t at = index * BLOCK; at < end; at += PIECE)
		adamw_bf16_piece(u, at, cpu_min(PIECE, end - at));
}

void cpu_adamw(struct device *dev, float *weight, void *m, void *v, const void *grad, size_t count,
	       const struct adamw *a, const struct step_control *d)
{
	const struct update u = {
		.weight = weight,
		.m = m,
		.v = v,
		.grad = grad,
		.count = count,
		.lr = d->lr * a->rate,
		.beta1 = a->beta1,
		.beta2 = a->beta2,
		.eps = a->eps,
		.weight_decay = a->weight_decay,
		.grad_scale = d->grad_scale,
		.to_m_hat = d->to_m_hat,
		.to_v_hat = d->to_v_hat,
		.first = a->first,
		.key = a->key,
		.step = d->step,
	};
	if (d->is_left_out)
		return;
	pool_run(dev->pool, cpu_tasks(count, BLOCK), a->bf16_moments ? adamw_bf16_task : adamw_task,
		 &u);
}
