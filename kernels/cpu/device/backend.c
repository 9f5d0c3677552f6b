/* SPDX-License-Identifier: MIT */
/* device/ - the CPU as a device.
 *
 * backend.c - its threads and memory, and the table of its operations.
 *
 * Everything is done when a call returns, so finish() only tells what went wrong. */
#include "kernels/cpu/device/rounded.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernels/machine/cpus.h"
#include "kernels/machine/instructions.h"

enum { MAX_THREADS = 1024, HUGE_BYTES = 2 << 20 };

#if defined(__AVX512F__)
static const char instructions[] = "AVX-512";
#elif defined(__AVX2__)
static const char instructions[] = "AVX2";
#elif defined(__aarch64__)
static const char instructions[] = "NEON";
#else
static const char instructions[] = "base instructions: slow";
#endif

static void cpu_close(struct device *dev)
{
	if (!dev)
		return;
	pool_destroy(dev->pool);
	for (unsigned i = 0; dev->scratch && i < dev->threads; i++)
		free(dev->scratch[i]);
	free(dev->scratch);
	free(dev->packed.at);
	free(dev->quantized[0].at);
	free(dev->quantized[1].at);
	for (int i = 0; i < ROUNDED_PIECES; i++)
		free(dev->rounded[i].at);
	free(dev);
}

static struct device *cpu_open(const struct backend_options *options, char *why)
{
	struct device *dev = calloc(1, sizeof(*dev));
	if (options->compute == COMPUTE_BF16) {
		snprintf(why, BACKEND_TEXT_BYTES, "cpu: keeps bf16 in places of fp32 only");
		free(dev);
		return NULL;
	}
	if (!dev) {
		snprintf(why, BACKEND_TEXT_BYTES, "cpu: out of memory");
		return NULL;
	}
	dev->rounds = options->compute == COMPUTE_BF16_WIDE;
#if defined(__AVX512F__)
	dev->has_vnni = instructions_used() >= INSTRUCTIONS_VNNI;
#endif
	dev->threads = options->threads > 0 ? (unsigned)options->threads : cpus_granted();
	if (dev->threads > MAX_THREADS)
		dev->threads = MAX_THREADS;
	dev->scratch = calloc(dev->threads, sizeof(*dev->scratch));
	dev->pool = dev->scratch ? pool_create(dev->threads) : NULL;
	if (!dev->pool) {
		snprintf(why, BACKEND_TEXT_BYTES, "cpu: cannot start %u threads", dev->threads);
		cpu_close(dev);
		return NULL;
	}
	snprintf(dev->text, sizeof(dev->text), "cpu: %u thread%s, %s%s%s", dev->threads,
		 dev->threads == 1 ? "" : "s", instructions, dev->has_vnni ? " with VNNI" : "",
		 dev->rounds ? ", results in bf16" : "");
	return dev;
}

static const char *cpu_describe(const struct device *dev)
{
	return dev->text;
}

static int cpu_finish(struct device *dev, char *why)
{
	if (dev->error[0] == '\0')
		return 0;
	snprintf(why, BACKEND_TEXT_BYTES, "%s", dev->error);
	return -1;
}

struct region {
	char *at;
	size_t bytes;
};

static void touch_task(const void *args, size_t index, unsigned worker)
{
	const struct region *r = args;
	size_t at = index * HUGE_BYTES;

	(void)worker;
	memset(r->at + at, 0, cpu_min(HUGE_BYTES, r->bytes - at));
}

/* Zeroes, by all threads: pages are there before the first step, near the threads that share
 * them. */
static void touch(struct device *dev, void *memory, size_t bytes)
{
	const struct region r = { memory, bytes };

	pool_run(dev->pool, cpu_tasks(bytes, HUGE_BYTES), touch_task, &r);
}

static void *cpu_alloc(struct device *dev, size_t bytes, const char *what)
{
	void *memory = cpu_aligned(bytes);

	(void)what;
	if (memory)
		touch(dev, memory, bytes);
	return memory;
}

/* The kernel's own: 64 KiB on many machines of ARM. */
static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/* Small pages, so that a part of it can go again. */
static void *cpu_reserve(struct device *dev, size_t bytes)
{
	const size_t page = page_bytes();

	(void)dev;
	if (bytes > SIZE_MAX - page)
		return NULL;
	return aligned_alloc(page, cpu_round_up(bytes ? bytes : page, page));
}

/* Whole pages only: of a part the kernel takes all. */
static void cpu_discard(struct device *dev, void *memory, size_t bytes)
{
	const size_t page = page_bytes();
	uintptr_t from = cpu_round_up((uintptr_t)memory, page);
	uintptr_t to = ((uintptr_t)memory + bytes) / page * page;

	(void)dev;
	if (from < to)
		(void)madvise((char *)memory + (from - (uintptr_t)memory), to - from,
			      MADV_DONTNEED);
}

static float *cpu_alloc_weights(struct device *dev, size_t count, size_t matrices)
{
	(void)matrices;
	return count > SIZE_MAX / sizeof(float) ? NULL
						: cpu_alloc(dev, count * sizeof(float), "weights");
}

static void cpu_free(struct device *dev, void *memory)
{
	(void)dev;
	free(memory);
}

static void cpu_copy(struct device *dev, void *to, const void *from, size_t bytes)
{
	(void)dev;
	memcpy(to, from, bytes);
}

static void cpu_download_activations(struct device *dev, float *to, const void *from, size_t count)
{
	cpu_copy(dev, to, from, count * sizeof(float));
}

static void cpu_zero(struct device *dev, void *memory, size_t bytes)
{
	(void)dev;
	memset(memory, 0, bytes);
}

const struct backend backend_cpu_set = {
	.abi_version = BACKEND_ABI,
	.struct_bytes = sizeof(struct backend),
	.name = "cpu",
	.open = cpu_open,
	.close = cpu_close,
	.describe = cpu_describe,
	.finish = cpu_finish,
	.alloc = cpu_alloc,
	.alloc_weights = cpu_alloc_weights,
	.available = cpu_available,
	.free = cpu_free,
	.upload = cpu_copy,
	.download = cpu_copy,
	.download_activations = cpu_download_activations,
	.zero = cpu_zero,
	.normal = cpu_normal,
	.gemm = rounded_gemm,
	.embed_forward = rounded_embed_forward,
	.embed_backward = cpu_embed_backward,
	.rmsnorm_forward = rounded_rmsnorm_forward,
	.rmsnorm_backward = rounded_rmsnorm_backward,
	.layernorm_forward = rounded_layernorm_forward,
	.layernorm_backward = rounded_layernorm_backward,
	.bias_forward = rounded_bias_forward,
	.bias_backward = cpu_bias_backward,
	.positions_forward = rounded_positions_forward,
	.positions_backward = cpu_positions_backward,
	.rope = rounded_rope,
	.attention_forward = rounded_attention_forward,
	.attention_backward = rounded_attention_backward,
	.swiglu_forward = rounded_swiglu_forward,
	.swiglu_backward = rounded_swiglu_backward,
	.gelu_forward = rounded_gelu_forward,
	.gelu_backward = rounded_gelu_backward,
	.cross_entropy = rounded_cross_entropy,
	.sum_squares = cpu_sum_squares,
	.sum_losses = cpu_sum_losses,
	.decide = cpu_decide,
	.adamw = cpu_adamw,
	.encode = cpu_encode,
	.decode = cpu_decode,
	.quantize = cpu_quantize,
	.moments_get = cpu_moments_get,
	.moments_put = cpu_moments_put,
	.weights_widen = cpu_weights_widen,
	.weights_narrow = cpu_weights_narrow,
	.weights_amax = cpu_weights_amax,
	.weights_encode = cpu_weights_encode,
	.weights_decode = cpu_weights_decode,
	.largest = cpu_largest,
	.average = cpu_average,
	.reserve = cpu_reserve,
	.discard = cpu_discard,
	.copy = cpu_copy,
	.add = cpu_add,
	.embed_slice_forward = cpu_embed_slice_forward,
	.embed_slice_backward = cpu_embed_slice_backward,
	.loss_part = cpu_loss_part,
	.loss_merge = cpu_loss_merge,
	.masks_attention = true,
	.scaled_sum = cpu_scaled_sum,
	.qk_norm_forward = cpu_qk_norm_forward,
	.qk_norm_backward = cpu_qk_norm_backward,
	.geglu_forward = cpu_geglu_forward,
	.geglu_backward = cpu_geglu_backward,
	.softcap = cpu_softcap,
	.cross_entropy_with = cpu_cross_entropy_with,
	.route_forward = cpu_route_forward,
	.route_backward = cpu_route_backward,
	.rows_to_experts = cpu_rows_to_experts,
	.rows_from_experts = cpu_rows_from_experts,
	.weigh_experts = cpu_weigh_experts,
};
