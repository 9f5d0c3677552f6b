/* SPDX-License-Identifier: MIT */
/* backend.c - opening a GPU, and the table of what it does. */
#include "kernels/cuda/few_bits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* bf16 in the matrix units; from this generation on grids may begin early */
enum { CAPABILITY_MIN = 80, EARLY = 9 };

/* --- open and close --------------------------------------------------------------------------- */

static void cuda_close(struct device *dev)
{
	if (!dev)
		return;
	if (dev->stream)
		cudaStreamSynchronize(dev->stream);
	cuda_programs_clear(dev);
	cuda_attention_close(dev);
	cuda_gemm_close(dev);
	expected_close(dev);
	cuda_marks_destroy(dev);
	for (size_t i = 0; i < STAGES; i++) {
		if (dev->stage[i].memory)
			cudaFreeHost(dev->stage[i].memory);
		if (dev->stage[i].passed)
			cudaEventDestroy(dev->stage[i].passed);
	}
	cuda_give(dev, dev->scratch.memory);
	if (dev->computed)
		cudaEventDestroy(dev->computed);
	if (dev->fetched)
		cudaEventDestroy(dev->fetched);
	if (dev->forked)
		cudaEventDestroy(dev->forked);
	if (dev->joined)
		cudaEventDestroy(dev->joined);
	if (dev->beside)
		cudaStreamDestroy(dev->beside);
	if (dev->fetches)
		cudaStreamDestroy(dev->fetches);
	if (dev->stream)
		cudaStreamDestroy(dev->stream);
	free(dev->block);
	free(dev);
}

/* Which one: a launcher either shows each rank its own GPU only, or all of them and a number. */
static int index_of(const struct backend_options *options, int count)
{
	const char *rank = getenv("LOCAL_RANK");

	if (options->index >= 0)
		return options->index;
	return count > 1 && rank ? (int)strtol(rank, NULL, 10) : 0;
}

/* False where there is none at all: the runtime has one word for both. */
static bool is_old_driver(char *text, size_t bytes)
{
	int driver = 0, runtime = 0;

	cudaDriverGetVersion(&driver);
	cudaRuntimeGetVersion(&runtime);
	snprintf(text, bytes,
		 "cuda: the driver is for CUDA %d.%d, liblbcuda.so for %d.%d: a newer driver, or "
		 "make CUDA_HOME=... with a toolkit of the driver's",
		 driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
	return driver != 0;
}

/* Machine code is for one generation; of PTX a driver of an earlier CUDA makes none. */
static const char *find_code(const struct cudaDeviceProp *gpu, char *text, size_t bytes)
{
	int generation;
	const char *lacks = cuda_code(&generation);

	if (!lacks)
		return NULL;
	snprintf(text, bytes,
		 "cuda: this liblbcuda.so has no code for %.40s (%d.%d): %.80s; make release makes "
		 "one for all GPUs from 8.0 on (LB_CUDA_LIBRARY), or a newer driver",
		 gpu->name, gpu->major, gpu->minor, lacks);
	return text;
}

static const char *find_gpu(const struct backend_options *options, struct cudaDeviceProp *gpu,
			    char *text, size_t bytes)
{
	cudaError_t status;
	int count = 0, index;

	status = cudaGetDeviceCount(&count);
	if (status == cudaSuccess && count == 0)
		status = cudaErrorNoDevice;
	index = index_of(options, count);
	if (status == cudaSuccess && (index < 0 || index >= count)) {
		snprintf(text, bytes, "cuda: there is no GPU %d, visible are %d, from 0 on", index,
			 count);
		return text;
	}
	if (status == cudaErrorInsufficientDriver && is_old_driver(text, bytes))
		return text;
	if (status != cudaSuccess) {
		snprintf(text, bytes, "cuda: no GPU here: %s", cudaGetErrorString(status));
		return text;
	}
	/* one that another process holds for itself alone fails here */
	status = cudaSetDevice(index);
	if (status == cudaSuccess)
		status = cudaGetDeviceProperties(gpu, index);
	if (status != cudaSuccess) {
		snprintf(text, bytes, "cuda: GPU %d does not open: %s", index,
			 cudaGetErrorString(status));
		return text;
	}
	if (gpu->major * 10 + gpu->minor >= CAPABILITY_MIN)
		return find_code(gpu, text, bytes);
	snprintf(text, bytes, "cuda: %.60s has compute capability %d.%d, 8.0 is needed", gpu->name,
		 gpu->major, gpu->minor);
	return text;
}

static bool make_streams(struct device *dev)
{
	const struct place *at = AT("open", 0, 0, 0, 0);
	const char *aside = getenv("LB_CUDA_ASIDE");

	return cuda_ok(dev, at, cudaStreamCreateWithFlags(&dev->stream, cudaStreamNonBlocking)) &&
	       ((aside && strcmp(aside, "0") == 0) ||
		cuda_ok(dev, at, cudaStreamCreateWithFlags(&dev->beside, cudaStreamNonBlocking))) &&
	       cuda_ok(dev, at, cudaEventCreateWithFlags(&dev->forked, cudaEventDisableTiming)) &&
	       cuda_ok(dev, at, cudaEventCreateWithFlags(&dev->joined, cudaEventDisableTiming)) &&
	       cuda_ok(dev, at, cudaStreamCreateWithFlags(&dev->fetches, cudaStreamNonBlocking)) &&
	       cuda_ok(dev, at, cudaEventCreateWithFlags(&dev->computed, cudaEventDisableTiming)) &&
	       cuda_ok(dev, at,
		       cudaEventCreateWithFlags(&dev->fetched,
						cudaEventDisableTiming | cudaEventBlockingSync));
}

static void describe(struct device *dev, const struct cudaDeviceProp *gpu)
{
	char products[32];
	int driver = 0;

	cudaDriverGetVersion(&driver);
	cuda_gemm_version(products, sizeof(products));
	snprintf(dev->text, sizeof(dev->text),
		 "cuda: %.60s, %d multiprocessors, %.1f GiB, %s%s, driver %d.%d, %s", gpu->name,
		 gpu->multiProcessorCount, (double)gpu->totalGlobalMem / (double)((size_t)1 << 30),
		 dev->compute == COMPUTE_BF16 ? "bf16" : "fp32",
		 dev->deterministic ? ", deterministic" : "", driver / 1000, driver % 1000 / 10,
		 products);
}

static struct device *cuda_open(const struct backend_options *options, char *why)
{
	const char *wait = getenv("LB_CUDA_WAIT"), *early = getenv("LB_CUDA_EARLY");
	const char *fused = getenv("LB_CUDA_FUSED");
	struct cudaDeviceProp gpu = { 0 };

	if (find_gpu(options, &gpu, why, BACKEND_TEXT_BYTES))
		return NULL;
	struct device *dev = calloc(1, sizeof(*dev));
	if (!dev) {
		snprintf(why, BACKEND_TEXT_BYTES, "cuda: out of memory");
		return NULL;
	}
	dev->compute = options->compute;
	dev->deterministic = options->deterministic;
	dev->waits_always = wait && strcmp(wait, "1") == 0;
	dev->warn = options->warn;
	dev->begins_early = gpu.major >= EARLY && cuda_waits_for_earlier() &&
			    !(early && strcmp(early, "0") == 0);
	dev->is_fused = !(fused && strcmp(fused, "0") == 0);
	(void)cudaGetDevice(&dev->gpu);
	dev->processors = gpu.multiProcessorCount;
	dev->capability = gpu.major * 10 + gpu.minor;
	snprintf(dev->cache, sizeof(dev->cache), "%s", options->cache ? options->cache : "");
	snprintf(dev->name, sizeof(dev->name), "%.63s", gpu.name);
	if (!make_streams(dev)) {
		snprintf(why, BACKEND_TEXT_BYTES, "%s", dev->error);
		cuda_close(dev);
		return NULL;
	}
	if (!expected_open(dev)) {
		snprintf(why, BACKEND_TEXT_BYTES, "cuda: out of memory");
		cuda_close(dev);
		return NULL;
	}
	if (!cuda_gemm_open(dev, why)) {
		cuda_close(dev);
		return NULL;
	}
	if (dev->compute == COMPUTE_BF16)
		cuda_attention_open(dev); /* without it the first finish() says why */
	describe(dev, &gpu);
	return dev;
}

static const char *cuda_describe(const struct device *dev)
{
	return dev->text;
}

/* What is next there may have the same address: nothing is expected of it. */
static void cuda_free_tensor(struct device *dev, void *memory)
{
	expected_forget(dev);
	cuda_free(dev, memory);
}

/* --- the table ---------------------------------------------------------------------------- */

static const struct backend backend_cuda = {
	.abi_version = BACKEND_ABI,
	.struct_bytes = sizeof(struct backend),
	.name = "cuda",
	.open = cuda_open,
	.close = cuda_close,
	.describe = cuda_describe,
	.finish = cuda_finish,
	.alloc = cuda_alloc,
	.alloc_weights = cuda_alloc_weights,
	.available = cuda_available,
	.free = cuda_free_tensor,
	.upload = cuda_upload,
	.download = cuda_download,
	.download_activations = cuda_download_activations,
	.zero = cuda_zero,
	.normal = cuda_normal,
	.gemm = cuda_gemm,
	.embed_forward = cuda_embed_forward,
	.embed_backward = cuda_embed_backward,
	.rmsnorm_forward = cuda_rmsnorm_forward,
	.rmsnorm_backward = cuda_rmsnorm_backward,
	.layernorm_forward = cuda_layernorm_forward,
	.layernorm_backward = cuda_layernorm_backward,
	.bias_forward = cuda_bias_forward,
	.bias_backward = cuda_bias_backward,
	.positions_forward = cuda_positions_forward,
	.positions_backward = cuda_positions_backward,
	.rope = cuda_rope,
	.attention_forward = cuda_attention_forward,
	.attention_backward = cuda_attention_backward,
	.swiglu_forward = cuda_swiglu_forward,
	.swiglu_backward = cuda_swiglu_backward,
	.gelu_forward = cuda_gelu_forward,
	.gelu_backward = cuda_gelu_backward,
	.cross_entropy = cuda_cross_entropy,
	.sum_squares = cuda_sum_squares,
	.sum_losses = cuda_sum_losses,
	.decide = cuda_decide,
	.adamw = cuda_adamw,
	.quantize = cuda_quantize,
	.codes = cuda_codes,
	.amax_step = cuda_amax_step,
	.expect = cuda_expect,
	.weights_amax = cuda_weights_amax,
	.weights_encode = cuda_weights_encode,
	.weights_decode = cuda_weights_decode,
	.largest = cuda_largest,
	.arrays = &cuda_arrays,
	.weights_wanted = cuda_weights_wanted,
	.weights_came = cuda_weights_came,
	.piece_squares = cuda_piece_squares,
	.reserve = cuda_reserve,
	.discard = cuda_discard,
	.reserve_shares = cuda_reserve_shares,
	.alloc_weights_shares = cuda_alloc_weights_shares,
	.copy = cuda_copy,
	.add = cuda_add,
	.masks_attention = true,
	.scaled_sum = cuda_scaled_sum,
	.qk_norm_forward = cuda_qk_norm_forward,
	.qk_norm_backward = cuda_qk_norm_backward,
	.geglu_forward = cuda_geglu_forward,
	.geglu_backward = cuda_geglu_backward,
	.softcap = cuda_softcap,
	.cross_entropy_with = cuda_cross_entropy_with,
	.join = cuda_join_beside,
	.memory = cuda_memory,
	.alloc_host = cuda_alloc_host,
	.free_host = cuda_free_host,
	.fetch = cuda_fetch,
	.fetched = cuda_fetched,
	.mark = cuda_mark,
	.mark_us = cuda_mark_us,
	.marks_clear = cuda_marks_clear,
	.range_push = cuda_range_push,
	.range_pop = cuda_range_pop,
	.replay = cuda_replay,
	.record = cuda_record,
	.record_end = cuda_record_end,
	.choices = cuda_choices,
	.choose = cuda_choose,
};

const struct backend *lbcuda_backend(void)
{
	return &backend_cuda;
}
