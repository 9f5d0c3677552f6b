/* SPDX-License-Identifier: MIT */
/* rope.c - rotary positions (Su et al. 2021), half-rotate as Hugging Face stores Llama:
 *   (x[i], x[i+R/2]) -> (x[i] cos - x[i+R/2] sin, x[i+R/2] cos + x[i] sin),  i < R/2
 * R is the head, or its first part (GPT-NeoX turns a quarter of each).
 *
 * A task owns some rows of qkv and turns all their query and key heads in place. */
#include "kernels/cpu/cpu.h"

struct rope {
	float *qkv;
	const float *table;
	struct attention shape;
	size_t rows_per_task;
	float sign; /* -1: the inverse rotation */
};

CPU_INLINE void turn(float *restrict head, const float *restrict table, size_t half, float sign)
{
	for (size_t i = 0; i < half; i++) {
		float c = table[2 * i], s = sign * table[2 * i + 1];
		float x = head[i], y = head[i + half];
		head[i] = x * c - y * s;
		head[i + half] = y * c + x * s;
	}
}

static void rope_task(const void *args, size_t index, unsigned worker)
{
	const struct rope *r = args;
	const struct attention *a = &r->shape;
	const struct cpu_heads at = cpu_heads(a);
	size_t stride = (a->heads + 2 * a->kv_heads) * a->head_dim;
	size_t turned = a->rotary ? a->rotary : a->head_dim;
	size_t row = index * r->rows_per_task;
	size_t end = cpu_min(row + r->rows_per_task, a->batch * a->seq);

	(void)worker;
	for (; row < end; row++) {
		const float *table = r->table + row % a->seq * turned;
		float *qkv = r->qkv + row * stride;
		for (size_t h = 0; h < a->heads; h++)
			turn(qkv + at.query + h * at.step, table, turned / 2, r->sign);
		for (size_t h = 0; h < a->kv_heads; h++)
			turn(qkv + at.key + h * at.step, table, turned / 2, r->sign);
	}
}

void cpu_rope(struct device *dev, void *qkv, const float *table, const struct attention *a,
	      bool inverse)
{
	size_t per_task = cpu_rows_per_task((a->heads + a->kv_heads) * a->head_dim);
	const struct rope r = { qkv, table, *a, per_task, inverse ? -1.0f : 1.0f };
	pool_run(dev->pool, cpu_tasks(a->batch * a->seq, per_task), rope_task, &r);
}
