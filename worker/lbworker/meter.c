/* SPDX-License-Identifier: MIT */
/* meter.c - counting operations, and asking the machine. */
#include "worker/lbworker/meter.h"

#include <math.h>
#include <sys/resource.h>

#include "kernels/peak.h"

struct token_flop meter_flop(const struct model_shape *s, uint64_t parameters, uint64_t multiplied,
			     size_t seq)
{
	double attention = (double)s->layers * (double)s->dim * (double)seq;
	double linear = 6 * (double)multiplied, all = (double)parameters;

	return (struct token_flop){ .palm = linear + 12 * attention,
				    .causal = linear + 6 * attention, .handbook = 6 * all,
				    .handbook_again = 8 * all };
}

void meter_init(struct meter *meter, const struct model *m, double peak_tflops, int64_t threads)
{
	meter->flop = meter_flop(&m->shape, m->parameters, model_multiplied(m), m->seq);
	meter->peak_flops = peak_tflops > 0 ? peak_tflops * 1e12 : peak_fma_flops((int)threads);
}

double meter_mfu(const struct meter *meter, double flop_per_token, double tokens_per_s)
{
	return meter->peak_flops > 0 ? flop_per_token * tokens_per_s / meter->peak_flops : NAN;
}

uint64_t meter_memory_bytes(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_SELF, &usage) == 0 ? (uint64_t)usage.ru_maxrss * 1024 : 0;
}
