/* SPDX-License-Identifier: MIT */
/* meter.c - counting operations, and asking the machine. */
#include "worker/lbworker/telemetry/meter.h"

#include <math.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "kernels/machine/cpus.h"
#include "kernels/machine/peak.h"
#include "worker/lbworker/base/narrow.h"

struct token_flop meter_flop(const struct model_shape *s, uint64_t parameters, uint64_t multiplied,
			     size_t seq)
{
	size_t width = s->head_dim ? s->heads * s->head_dim : s->dim;
	double attention = (double)s->layers * (double)width * (double)seq;
	double linear = 6 * (double)multiplied, all = (double)parameters;

	return (struct token_flop){ .palm = linear + 12 * attention,
				    .causal = linear + 6 * attention,
				    .handbook = 6 * all,
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
		const struct gemm g = { .m = side,
					.n = side,
					.k = side,
					.a = a,
					.b = b,
					.c = c,
					.lda = side,
					.ldb = side,
					.ldc = side,
					.trans_b = true,
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

static double seconds_of(struct timeval t)
{
	return (double)t.tv_sec + 1e-6 * (double)t.tv_usec;
}

static double cpu_s(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_SELF, &usage) != 0)
		return 0;
	return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
}

/* Others are at work when the threads together had clearly less than all of the time. */
static double measure_cpu(int threads, bool *busy)
{
	const double share_of_idle_machine = 0.9;
	int64_t start_ms = clock_mono_ms();
	double cpu = cpu_s(), peak = peak_fma_flops(threads);
	double wall = 1e-3 * (double)(clock_mono_ms() - start_ms);

	*busy = cpu_s() - cpu < share_of_idle_machine * wall * (double)threads;
	return peak;
}

static void measure_first(struct meter *meter, const struct model *m, int64_t threads)
{
	enum { TRIES = 20 };
	bool busy = false;

	if (m->backend->mark) {
		meter->peak_flops = peak_gemm_flops(m) * meter->times;
		return;
	}
	int64_t granted = cpus_granted();
	meter->threads = (int)(threads > 0 && threads < granted ? threads : granted);
	meter->measure = measure_cpu;
	meter->peak_flops = measure_cpu(meter->threads, &busy) * meter->times;
	meter->tries = busy ? TRIES : 0;
}

bool meter_hold_against(struct meter *meter, double flops)
{
	const double noise = 1.02;
	double before = meter->peak_flops, again = 0;
	bool cannot_be = flops > before, busy = false;

	if (!meter->measure || before <= 0 || (!cannot_be && meter->tries == 0))
		return false;
	again = meter->measure(meter->threads, &busy) * meter->times;
	meter->tries = !busy || meter->tries == 0 ? 0 : meter->tries - 1;
	if (again > meter->peak_flops)
		meter->peak_flops = again;
	if (flops > meter->peak_flops)
		meter->peak_flops = flops;
	return meter->peak_flops > before * noise;
}

void meter_init(struct meter *meter, const struct model *m, const struct meter_peak *peak)
{
	const struct model *whole = model_whole(m);

	meter->model = m;
	meter->flop = meter_flop(&whole->shape, model_active(whole), model_multiplied(whole),
				 m->options.seq);
	meter->peak_flops = peak->tflops * 1e12;
	meter->times = peak->times;
	if (!(peak->tflops > 0))
		measure_first(meter, m, peak->threads);
}

double meter_mfu(const struct meter *meter, double flop_per_token, double tokens_per_s)
{
	return meter->peak_flops > 0 ? flop_per_token * tokens_per_s / meter->peak_flops : NAN;
}

static uint64_t resident_bytes(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_SELF, &usage) == 0 ? (uint64_t)usage.ru_maxrss * 1024 : 0;
}

uint64_t meter_memory_bytes(struct meter *meter, bool asks)
{
	const struct model *m = meter->model;
	struct memory_use use;
	uint64_t held = 0;

	if (!m->backend->memory)
		return resident_bytes();
	if (!asks && meter->most_held_bytes > 0)
		return meter->most_held_bytes;
	m->backend->memory(m->device, &use);
	for (size_t i = 0; i < use.count; i++)
		held += use.held[i].bytes;
	meter->most_held_bytes = held > meter->most_held_bytes ? held : meter->most_held_bytes;
	return meter->most_held_bytes;
}
