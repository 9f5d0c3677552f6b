/* SPDX-License-Identifier: MIT */
/* decide.cu - whether a step's update is made, and by how much its gradient is scaled down, from
 * the sums of losses and of squares that the step left in device memory. One thread: it is a
 * handful of operations, in fp64 as on the CPU; but they happen here so that nobody waits for the
 * host. */
#include "kernels/cuda/ops/kernel.cuh"

struct decide {
	struct step_control *d;
};

KERNEL(BLOCK) decide(struct decide c)
{
	after_earlier();
	if (flat_index() == 0)
		*c.d = step_control_decide(*c.d);
}

extern "C" void cuda_decide(struct device *dev, struct step_control *d)
{
	const struct place at = AT("decide", 1, 0, 0, 0);
	struct decide c = { d };

	/* Behind a decision weights are written. A checkpoint's copy must be out of our way by
	 * then: the last one there is when this runs, so a recording waits for an event outside of
	 * it. */
	cuda_ok(dev, &at,
		cudaStreamWaitEvent(dev->stream, dev->fetched,
				    dev->is_recording ? cudaEventWaitExternal : 0));
	launch_flat(dev, at, decide, 1, c);
}

extern "C" const char *cuda_code(int *generation)
{
	cudaFuncAttributes of = {};
	cudaError_t status = cudaFuncGetAttributes(&of, (const void *)decide);

	*generation = of.ptxVersion ? of.ptxVersion : of.binaryVersion;
	if (status == cudaSuccess)
		return NULL;
	(void)cudaGetLastError();
	return cudaGetErrorString(status);
}

/* PTX of an older generation, which a driver compiles for a GPU that came after this library, lacks
 * them: there a grid that began early would read what the one in front has not written. */
extern "C" bool cuda_waits_for_earlier(void)
{
	int generation;

	return !cuda_code(&generation) && generation >= 90;
}
