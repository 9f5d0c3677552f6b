/* SPDX-License-Identifier: MIT */
/* sent.c - weights to codes for other ranks, and back (kernels/formats/sent.h). A task owns BLOCK
 * elements. */
#include "kernels/formats/sent.h"

#include "kernels/cpu/cpu.h"

enum { BLOCK = 65536, TASKS_MAX = 256 };

struct sending {
	struct sent_rule rule;
	struct scale scale;
	float amax;
	float *weights;
	const float *from;
	uint8_t *codes;
	const uint8_t *came;
	size_t count, each;
	uint32_t *most; /* one a task */
	bool rounds;    /* products read weights in bf16 */
};

CPU_INLINE float as_read(const struct sending *s, float x)
{
	return s->rounds ? float_of(round_to_bf16(x, ROUND_NEAREST_EVEN, 0)) : x;
}

static size_t end_of(const struct sending *s, size_t index)
{
	return cpu_min(s->count, (index + 1) * s->each);
}

/* Of the bits below the sign: NaN is larger than all numbers. */
static void amax_task(const void *args, size_t index, unsigned worker)
{
	const struct sending *s = args;
	uint32_t most = 0;

	(void)worker;
	for (size_t i = index * s->each; i < end_of(s, index); i++) {
		uint32_t bits = bits_of(as_read(s, s->from[i])) & 0x7fffffffu;
		most = bits > most ? bits : most;
	}
	s->most[index] = most;
}

static void encode_task(const void *args, size_t index, unsigned worker)
{
	const struct sending *s = args;
	const struct sent_rule rule = s->rule;
	const struct scale scale = s->scale;

	(void)worker;
	for (size_t i = index * s->each; i < end_of(s, index); i++)
		s->codes[i] = sent_code(&rule, &scale, as_read(s, s->from[i]));
}

static void decode_task(const void *args, size_t index, unsigned worker)
{
	const struct sending *s = args;
	const struct sent_rule rule = s->rule;
	const struct scale scale = s->scale;

	(void)worker;
	for (size_t i = index * s->each; i < end_of(s, index); i++)
		s->weights[i] = sent_number(&rule, &scale, s->amax, s->came[i]);
}

void cpu_weights_amax(struct device *dev, float *amax, const float *weights, size_t count)
{
	uint32_t most[TASKS_MAX] = { 0 }, all = bits_of(*amax);
	struct sending s = { .from = weights, .count = count, .most = most, .rounds = dev->rounds };

	s.each = cpu_tasks(count, TASKS_MAX);
	s.each = s.each > BLOCK ? s.each : BLOCK;
	size_t tasks = cpu_tasks(count, s.each);
	pool_run(dev->pool, tasks, amax_task, &s);
	for (size_t i = 0; i < tasks; i++)
		all = most[i] > all ? most[i] : all;
	*amax = float_of(all);
}

void cpu_weights_encode(struct device *dev, uint8_t *codes, const float *weights, size_t count,
			const struct operand_cast *cast, const float *amax)
{
	struct sending s = { .rule = sent_rule_of(cast),
			     .from = weights,
			     .codes = codes,
			     .count = count,
			     .each = BLOCK,
			     .rounds = dev->rounds };

	s.scale = sent_scale(&s.rule, *amax);
	pool_run(dev->pool, cpu_tasks(count, BLOCK), encode_task, &s);
}

void cpu_weights_decode(struct device *dev, float *weights, const uint8_t *codes, size_t count,
			const struct operand_cast *cast, const float *amax)
{
	struct sending s = { .rule = sent_rule_of(cast),
			     .amax = *amax,
			     .weights = weights,
			     .came = codes,
			     .count = count,
			     .each = BLOCK };

	s.scale = sent_scale(&s.rule, *amax);
	pool_run(dev->pool, cpu_tasks(count, BLOCK), decode_task, &s);
}

void cpu_largest(struct device *dev, float *to, const float *from, size_t count)
{
	(void)dev;
	for (size_t i = 0; i < count; i++)
		to[i] = bits_of(from[i]) > bits_of(to[i]) ? from[i] : to[i];
}
