/* SPDX-License-Identifier: MIT */
/* error.c - the first failure of a device, with the operation and its sizes, kept until finish()
 * tells it. */
#include "kernels/cuda/cuda.h"

#include <stdio.h>

void cuda_fail(struct device *dev, const struct place *at, const char *text)
{
	char sizes[96] = "";
	size_t used = 0;

	if (dev->error[0] != '\0')
		return;
	for (int i = 0; i < PLACE_SIZES && at->size[i] && used < sizeof(sizes) - 24; i++)
		used += (size_t)snprintf(sizes + used, sizeof(sizes) - used, "%s%zu", i ? "x" : " ",
					 at->size[i]);
	snprintf(dev->error, sizeof(dev->error), "cuda: %s%s: %.120s (%s:%d)", at->operation, sizes,
		 text, at->file, at->line);
}

/* Any call may answer for what was queued before it; not with a lack of memory, nor with errors of
 * captures, of which this is the first. */
static void fail_with(struct device *dev, const struct place *at, cudaError_t status)
{
	bool is_own = dev->waits_always || status == cudaErrorMemoryAllocation ||
		      status >= cudaErrorStreamCaptureUnsupported;
	char text[128];

	snprintf(text, sizeof(text), "%s%s", cudaGetErrorString(status),
		 is_own ? "" : ", in this or an operation before it; LB_CUDA_WAIT=1 tells which");
	cuda_fail(dev, at, text);
}

bool cuda_ok(struct device *dev, const struct place *at, cudaError_t status)
{
	dev->last = *at;
	if (status == cudaSuccess && dev->waits_always && !dev->is_recording)
		status = cudaStreamSynchronize(dev->stream);
	if (status == cudaSuccess)
		return true;
	fail_with(dev, at, status);
	return false;
}

int cuda_finish(struct device *dev, char *why)
{
	const struct place last = dev->last;
	cudaError_t status = cudaStreamSynchronize(dev->stream);

	if (status != cudaSuccess)
		fail_with(dev, &last, status);
	if (dev->error[0] == '\0')
		return 0;
	snprintf(why, BACKEND_TEXT_BYTES, "%s", dev->error);
	return -1;
}
