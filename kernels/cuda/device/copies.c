/* SPDX-License-Identifier: MIT */
/* copies.c - between the host's memory and the device's.
 *
 * Uploads pass through two pinned stages in turn: while one is on its way the next is filled, and
 * the caller's memory is free when upload returns. Fetches run on a stream of their own. */
#include "kernels/cuda/cuda.h"

#include <stdio.h>
#include <string.h>

enum { STAGE_BYTES = 8 << 20 };

static bool stage_ready(struct device *dev, struct stage *s)
{
	const struct place *at = AT("upload", 0, 0, 0, 0);

	if (!s->memory)
		return cuda_ok(dev, at, cudaMallocHost(&s->memory, STAGE_BYTES)) &&
		       cuda_ok(dev, at,
			       cudaEventCreateWithFlags(&s->passed, cudaEventDisableTiming));
	return cuda_ok(dev, at, cudaEventSynchronize(s->passed));
}

void cuda_upload(struct device *dev, void *to, const void *from, size_t bytes)
{
	const struct place *at = AT("upload", bytes, 0, 0, 0);
	size_t piece;

	for (size_t done = 0; done < bytes; done += piece) {
		struct stage *s = &dev->stage[dev->next_stage++ % STAGES];
		piece = bytes - done < STAGE_BYTES ? bytes - done : STAGE_BYTES;
		if (!stage_ready(dev, s))
			return;
		memcpy(s->memory, (const char *)from + done, piece);
		if (!cuda_ok(dev, at,
			     cudaMemcpyAsync((char *)to + done, s->memory, piece,
					     cudaMemcpyHostToDevice, dev->stream)) ||
		    !cuda_ok(dev, at, cudaEventRecord(s->passed, dev->stream)))
			return;
	}
	const struct weight_range *r = cuda_weights_at(dev, to);
	if (r && r->narrow)
		cuda_cast_bf16(dev, r->narrow + ((float *)to - r->master), to,
			       bytes / sizeof(float), NULL);
}

void cuda_download(struct device *dev, void *to, const void *from, size_t bytes)
{
	const struct place *at = AT("download", bytes, 0, 0, 0);

	if (cuda_ok(dev, at, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, dev->stream)))
		cuda_ok(dev, at, cudaStreamSynchronize(dev->stream));
}

static void widen(float *to, const uint16_t *from, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint32_t bits = (uint32_t)from[i] << 16;
		memcpy(&to[i], &bits, sizeof(bits));
	}
}

void cuda_download_activations(struct device *dev, float *to, const void *from, size_t count)
{
	size_t piece;

	if (dev->compute == COMPUTE_FP32) {
		cuda_download(dev, to, from, count * sizeof(float));
		return;
	}
	for (size_t done = 0; done < count; done += piece) {
		struct stage *s = &dev->stage[dev->next_stage++ % STAGES];
		piece = STAGE_BYTES / sizeof(uint16_t);
		piece = count - done < piece ? count - done : piece;
		if (!stage_ready(dev, s))
			return;
		cuda_download(dev, s->memory, (const uint16_t *)from + done,
			      piece * sizeof(uint16_t));
		widen(to + done, s->memory, piece);
	}
}

void cuda_fetch(struct device *dev, void *to_host, const void *from, size_t bytes)
{
	const struct place *at = AT("fetch", bytes, 0, 0, 0);

	/* The event alone would say that all is there: it would be the one before. */
	if (!cuda_ok(dev, at, cudaEventRecord(dev->computed, dev->stream)) ||
	    !cuda_ok(dev, at, cudaStreamWaitEvent(dev->fetches, dev->computed, 0)) ||
	    !cuda_ok(dev, at,
		     cudaMemcpyAsync(to_host, from, bytes, cudaMemcpyDeviceToHost, dev->fetches)) ||
	    !cuda_ok(dev, at, cudaEventRecord(dev->fetched, dev->fetches)))
		__atomic_store_n(&dev->fetches_lost, 1, __ATOMIC_RELEASE);
}

int cuda_fetched(struct device *dev, char *why)
{
	cudaError_t status = cudaEventSynchronize(dev->fetched);

	if (__atomic_load_n(&dev->fetches_lost, __ATOMIC_ACQUIRE)) {
		snprintf(why, BACKEND_TEXT_BYTES, "cuda: a copy to the host could not be queued");
		return -1;
	}
	if (status == cudaSuccess)
		return 0;
	snprintf(why, BACKEND_TEXT_BYTES, "cuda: a copy to the host failed: %s",
		 cudaGetErrorString(status));
	return -1;
}
