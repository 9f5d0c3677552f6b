/* SPDX-License-Identifier: MIT */
/* decide.cu - whether a step's update is made, and by how much its gradient is scaled down, from the sums
 * of losses and of squares that the step left in device memory. One thread: it is a handful of
 * operations, in fp64 as on the CPU; but they happen here so that nobody waits for the host. */
#include "kernels/cuda/kernel.cuh"

struct decide {
	struct decision *d;
};

static __global__ void decide(struct decide c)
{
	if (flat_index() == 0)
		*c.d = decided(*c.d);
}

extern "C" void cuda_decide(struct device *dev, struct decision *d)
{
	struct decide c = { d };
	launch_flat(dev, AT("decide", 1, 0, 0, 0), decide, 1, c);
}
