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

static void upload_plain(struct device *dev, void *to, const void *from, size_t bytes)
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
}

/* `count` weights, all split or none. */
static void upload_weights(struct device *dev, float *to, const float *from, size_t count,
			   bool is_split)
{
	size_t piece;

	if (!is_split) {
		upload_plain(dev, to, from, count * sizeof(float));
		cuda_narrow_vectors(dev, to, count);
		return;
	}
	for (size_t done = 0; done < count; done += piece) {
		float *whole = cuda_weights_at(dev, to)->whole;
		piece = count - done < JOINED ? count - done : JOINED;
		upload_plain(dev, whole, from + done, piece * sizeof(float));
		cuda_split_weights(dev, to + done, whole, piece);
	}
}

void cuda_upload(struct device *dev, void *to, const void *from, size_t bytes)
{
	size_t count = bytes / sizeof(float), run;
	bool is_split;

	if (!cuda_weights_at(dev, to)) {
		upload_plain(dev, to, from, bytes);
		return;
	}
	/* the area that weights are joined in may be in use by a fetch */
	if (!cuda_ok(dev, AT("upload", bytes, 0, 0, 0), cudaStreamSynchronize(dev->fetches)))
		return;
	for (size_t done = 0; done < count; done += run) {
		run = cuda_run(dev, (float *)to + done, count - done, &is_split);
		upload_weights(dev, (float *)to + done, (const float *)from + done, run, is_split);
	}
}

/* Queued on `stream`; weights that are split are joined on their way. */
static bool copy_down(struct device *dev, const struct place *at, void *to, const void *from,
		      size_t bytes, cudaStream_t stream)
{
	size_t run;
	bool is_split, good = true;

	for (size_t done = 0; good && done < bytes; done += run * sizeof(float)) {
		const float *part = (const float *)(const void *)((const char *)from + done);
		run = cuda_run(dev, part, (bytes - done) / sizeof(float), &is_split);
		if (is_split) {
			float *whole = cuda_weights_at(dev, part)->whole;
			run = run < JOINED ? run : JOINED;
			cuda_join_weights(dev, whole, part, run, stream);
			part = whole;
		}
		size_t piece = is_split ? run * sizeof(float) : bytes - done;
		good = cuda_ok(dev, at,
			       cudaMemcpyAsync((char *)to + done, part, piece,
					       cudaMemcpyDeviceToHost, stream));
		if (!is_split)
			break;
	}
	return good && dev->error[0] == '\0';
}

void cuda_download(struct device *dev, void *to, const void *from, size_t bytes)
{
	const struct place *at = AT("download", bytes, 0, 0, 0);

	/* The area that weights are joined in may be in use by a fetch. */
	if (cuda_weights_at(dev, from) && !cuda_ok(dev, at, cudaStreamSynchronize(dev->fetches)))
		return;
	if (copy_down(dev, at, to, from, bytes, dev->stream))
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
	    !copy_down(dev, at, to_host, from, bytes, dev->fetches) ||
	    !cuda_ok(dev, at, cudaEventRecord(dev->fetched, dev->fetches)))
		__atomic_store_n(&dev->fetches_lost, 1, __ATOMIC_RELEASE);
}

int cuda_fetched(struct device *dev, char *why)
{
	cudaError_t status = cudaSetDevice(dev->gpu); /* another thread's is GPU 0, until it says */

	if (status == cudaSuccess)
		status = cudaEventSynchronize(dev->fetched);
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
