/* SPDX-License-Identifier: MIT */
/* normal.c - normal numbers, each a function of its place (kernels/normal.h). A task owns BLOCK of
 * them. */
#include "kernels/normal.h"

#include "kernels/cpu/cpu.h"

enum { BLOCK = 1 << 14 };

struct draw {
	float *to;
	size_t count;
	const struct normal *n;
};

static void draw_task(const void *args, size_t index, unsigned worker)
{
	const struct draw *d = args;
	const struct normal *n = d->n;
	const uint32_t key[2] = { (uint32_t)n->key, (uint32_t)(n->key >> 32) };
	size_t end = cpu_min((index + 1) * BLOCK, d->count);

	(void)worker;
	for (size_t i = index * BLOCK; i < end; i += 4) {
		uint64_t four = (n->first + i) / 4;
		const uint32_t counter[4] = { (uint32_t)four, (uint32_t)(four >> 32), n->tensor,
					      n->step };
		uint32_t words[4];
		float x[4];
		philox4x32_10(words, counter, key);
		normal_of_words(x, words, n->std);
		memcpy(d->to + i, x, cpu_min(4, end - i) * sizeof(float));
	}
}

void cpu_normal(struct device *dev, float *to, size_t count, const struct normal *n)
{
	const struct draw d = { to, count, n };

	pool_run(dev->pool, cpu_tasks(count, BLOCK), draw_task, &d);
}
