/* SPDX-License-Identifier: MIT */
/* meter.c - counting operations, and asking the machine. */
#include "worker/lbworker/meter.h"

#include <math.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "common/mem.h"
#include "kernels/peak.h"
#include "worker/lbworker/narrow.h"

struct token_flop meter_flop(const struct model_shape *s, uint64_t parameters, uint64_t multiplied,
			     size_t seq)
{
	double attention = (double)s->layers * (double)s->dim * (double)seq;
	double linear = 6 * (double)multiplied, all = (double)parameters;

	return (struct token_flop){ .palm = linear + 12 * attention,
				    .causal = linear + 6 * attention, .handbook = 6 * all,
				    .handbook_again = 8 * all };
}

enum { SIDE_LEAST = 256, SIDE_MOST = 8192, PRODUCTS = 5 };

/* Numbers that are not all alike: products of zeros are faster than a training's. */
static bool fill(const struct model *m, void *memory, size_t bytes)
{
	size_t count = bytes / compute_bytes(m->options.compute);
	float *host = xmalloc(count * sizeof(float));

	for (size_t i = 0; i < count; i++)
		host[i] = (float)((i * 2654435761u >> 8) % 1000) * 1e-3f - 0.5f;
	if (m->options.compute == COMPUTE_BF16)
		narrow_to_bf16((uint16_t *)(void *)host, host, count);
	m->backend->upload(m->device, memory, host, bytes);
	free(host);
	return true;
}

/* Seconds for one product of that side, after one to warm up. */
static double product_s(const struct model *m, const struct gemm *g)
{
	const struct backend *be = m->backend;
	char why[BACKEND_TEXT_BYTES];

	be->marks_clear(m->device);
	be->gemm(m->device, g);
	uint32_t start = be->mark(m->device);
	for (int i = 0; i < PRODUCTS; i++)
		be->gemm(m->device, g);
	uint32_t end = be->mark(m->device);
	if (be->finish(m->device, why))
		return NAN;
	return (be->mark_us(m->device, end) - be->mark_us(m->device, start)) * 1e-6 / PRODUCTS;
}

/* Larger and larger squares until one takes long enough to fill the device; 0 without memory. */
static double peak_gemm_flops(const struct model *m)
{
	const struct backend *be = m->backend;
	const double long_enough_s = 1e-3;
	const char *const what = "measuring";
	double best = 0;

	for (size_t side = SIDE_LEAST; side <= SIDE_MOST; side *= 2) {
		size_t bytes = side * side * compute_bytes(m->options.compute);
		if (be->available(m->device) / 4 < bytes)
			break;
		void *a = be->alloc(m->device, bytes, what), *b = be->alloc(m->device, bytes, what);
		void *c = be->alloc(m->device, bytes, what);
		const struct gemm g = { .m = side, .n = side, .k = side, .a = a, .b = b, .c = c,
					.lda = side, .ldb = side, .ldc = side, .trans_b = true,
					.alpha = 1.0f };
		bool fits = a && b && c && fill(m, a, bytes) && fill(m, b, bytes);
		double seconds = fits ? product_s(m, &g) : NAN;
		be->free(m->device, a);
		be->free(m->device, b);
		be->free(m->device, c);
		if (!(seconds > 0))
			break;
		best = fmax(best, 2.0 * (double)side * (double)side * (double)side / seconds);
		if (seconds > 4 * long_enough_s)
			break;
	}
	be->marks_clear(m->device);
	return best;
}

static double measured(const struct model *m, int64_t threads)
{
	return m->backend->mark ? peak_gemm_flops(m) : peak_fma_flops((int)threads);
}

void meter_init(struct meter *meter, const struct model *m, double peak_tflops, int64_t threads)
{
	meter->flop = meter_flop(&m->shape, m->parameters, model_multiplied(m), m->seq);
	meter->peak_flops = peak_tflops > 0 ? peak_tflops * 1e12 : measured(m, threads);
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
