/* SPDX-License-Identifier: MIT */
/* adamw.c - one pass over weight, both moments and gradient; the formula stands in backend.h.
 *
 * A task owns BLOCK consecutive elements; the pass is bound by memory, not by arithmetic. */
#include "kernels/cpu/cpu.h"

#include <math.h>

enum { BLOCK = 65536 };

struct update {
	float *weight, *m, *v;
	const float *grad;
	size_t count;
	float lr, beta1, beta2, eps, weight_decay, grad_scale;
	float to_m_hat, to_v_hat;	/* 1/(1-beta^t) */
};

CPU_CLONES static void adamw_task(const void *args, size_t index, unsigned worker)
{
	const struct update u = *(const struct update *)args;
	size_t first = index * BLOCK;
	size_t count = cpu_min(BLOCK, u.count - first);
	float *restrict weight = u.weight + first;
	float *restrict m = u.m + first;
	float *restrict v = u.v + first;
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

void cpu_adamw(struct device *dev, float *weight, float *m, float *v, const float *grad,
	       size_t count, const struct adamw *a)
{
	const struct update u = {
		.weight = weight, .m = m, .v = v, .grad = grad, .count = count,
		.lr = a->lr, .beta1 = a->beta1, .beta2 = a->beta2, .eps = a->eps,
		.weight_decay = a->weight_decay, .grad_scale = a->grad_scale,
		.to_m_hat = (float)(1.0 / (1.0 - pow(a->beta1, (double)a->step))),
		.to_v_hat = (float)(1.0 / (1.0 - pow(a->beta2, (double)a->step))),
	};
	pool_run(dev->pool, cpu_tasks(count, BLOCK), adamw_task, &u);
}
