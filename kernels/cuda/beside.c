/* SPDX-License-Identifier: MIT */
/* beside.c - a second stream, for products that nothing behind them waits for: the gradient of a
 * matrix fills what the gradient of its input leaves idle. Forked from the first stream by one
 * event and joined by another, so that both become branches of one graph. */
#include "kernels/cuda/cuda.h"

/* dev->stream is then the second one, dev->beside the first. */
static void exchange(struct device *dev)
{
	cudaStream_t first = dev->stream;

	dev->stream = dev->beside;
	dev->beside = first;
}

bool cuda_fork(struct device *dev, const struct place *at)
{
	if (!dev->beside || !cuda_ok(dev, at, cudaEventRecord(dev->forked, dev->stream)) ||
	    !cuda_ok(dev, at, cudaStreamWaitEvent(dev->beside, dev->forked, 0)))
		return false;
	dev->is_forked = true;
	exchange(dev);
	return true;
}

void cuda_fork_end(struct device *dev, const struct place *at)
{
	cuda_ok(dev, at, cudaEventRecord(dev->joined, dev->stream));
	exchange(dev);
}

void cuda_join_beside(struct device *dev)
{
	const struct place *at = AT("join", 0, 0, 0, 0);

	if (!dev->is_forked)
		return;
	cuda_ok(dev, at, cudaStreamWaitEvent(dev->stream, dev->joined, 0));
	dev->is_forked = false;
}
