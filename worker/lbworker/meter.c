/* SPDX-License-Identifier: MIT */
/* meter.c - counting operations, and asking the machine. */
#include "worker/lbworker/meter.h"

#include <math.h>
#include <sys/resource.h>

#include "kernels/peak.h"

void meter_init(struct meter *meter, const struct model *m, double peak_tflops, int64_t threads)
{
	double attention = (double)m->shape.layers * (double)m->shape.dim * (double)m->seq;
	double linear = 6 * (double)model_multiplied(m);

	meter->palm_flop = linear + 12 * attention;
	meter->causal_flop = linear + 6 * attention;
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
