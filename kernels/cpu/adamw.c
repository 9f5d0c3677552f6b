/* SPDX-License-Identifier: MIT */
/* adamw.c - one pass over weight, both moments and gradient; the formula stands in backend.h.
 *
 * A task owns BLOCK consecutive elements; the pass is bound by memory, not by arithmetic. Moments
 * in bf16 are widened, updated, and rounded up or down by chance. */
#include "kernels/cpu/cpu.h"

#include <math.h>

#include "kernels/philox.h"

enum { BLOCK = 65536 };

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

static float widen(uint16_t narrow)
{
	uint32_t bits = (uint32_t)narrow << 16;
	float x;

	memcpy(&x, &bits, sizeof(x));
	return x;
}

/* bf16 is the upper half of fp32: adding 16 random bits below carries up with the right chance. */
static uint16_t narrow_by_chance(float x, uint32_t random16)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	if ((bits & 0x7f800000u) == 0x7f800000u) /* Inf and NaN stay what they are */
		return (uint16_t)(bits >> 16 | ((bits & 0xffffu) != 0));
	return (uint16_t)((bits + random16) >> 16);
}

/* The 16 bits of piece i mod 8. */
static uint32_t random16(const struct update *u, uint64_t element, uint32_t tensor)
{
	const uint64_t i = (u->first + element) / 8;
	const uint32_t piece = (uint32_t)((u->first + element) % 8);
	const uint32_t counter[4] = { (uint32_t)i, (uint32_t)(i >> 32), tensor, u->step };
	const uint32_t key[2] = { (uint32_t)u->key, (uint32_t)(u->key >> 32) };
	uint32_t words[4];

	philox4x32_10(words, counter, key);
	return words[piece / 2] >> 16 * (piece % 2) & 0xffffu;
}

static void adamw_bf16_task(const void *args, size_t index, unsigned worker)
{
	const struct update u = *(const struct update *)args;
	size_t first = index * BLOCK, end = first + cpu_min(BLOCK, u.count - first);
	uint16_t *m = u.m, *v = u.v;

	(void)worker;
	for (size_t i = first; i < end; i++) {
		float g = u.grad[i] * u.grad_scale;
		float mi = u.beta1 * widen(m[i]) + (1.0f - u.beta1) * g;
		float vi = u.beta2 * widen(v[i]) + (1.0f - u.beta2) * g * g;
		float direction = mi * u.to_m_hat / (sqrtf(vi * u.to_v_hat) + u.eps);
		u.weight[i] -= u.lr * (direction + u.weight_decay * u.weight[i]);
		m[i] = narrow_by_chance(mi, random16(&u, i, 0));
		v[i] = narrow_by_chance(vi, random16(&u, i, 1));
	}
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
