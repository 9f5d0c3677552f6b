/* SPDX-License-Identifier: MIT */
/* program.c - sequences of operations as CUDA graphs.
 *
 * The first run of a program goes operation by operation: algorithms are measured, plans are made,
 * areas get their final size. The second is captured and run as a graph, later ones are the graph.
 * When an area must move, all graphs are forgotten. */
#include "kernels/cuda/cuda.h"

static struct program *find(struct device *dev, uint64_t number, bool make)
{
	for (size_t i = 0; i < PROGRAMS; i++) {
		struct program *p = &dev->program[i];
		if (p->seen == 0 && make) {
			p->number = number;
			return p;
		}
		if (p->seen > 0 && p->number == number)
			return p;
	}
	return NULL;
}

bool cuda_replay(struct device *dev, uint64_t number)
{
	const struct program *p = find(dev, number, false);

	if (!p || !p->recorded || dev->error[0] != '\0')
		return false;
	return cuda_ok(dev, AT("replay", number, 0, 0, 0),
		       cudaGraphLaunch(p->recorded, dev->stream));
}

void cuda_record(struct device *dev, uint64_t number)
{
	const struct program *p = find(dev, number, true);

	if (!p || p->seen == 0 || dev->waits_always || dev->error[0] != '\0')
		return;
	dev->is_recording = cuda_ok(dev, AT("record", number, 0, 0, 0),
				    cudaStreamBeginCapture(dev->stream,
							   cudaStreamCaptureModeThreadLocal));
}

void cuda_record_end(struct device *dev, uint64_t number)
{
	const struct place *at = AT("record", number, 0, 0, 0);
	struct program *p = find(dev, number, true);
	cudaGraph_t graph = NULL;

	if (!p)
		return;
	p->seen++;
	if (!dev->is_recording)
		return;
	dev->is_recording = false;
	if (!cuda_ok(dev, at, cudaStreamEndCapture(dev->stream, &graph)))
		return;
	if (cuda_ok(dev, at, cudaGraphInstantiate(&p->recorded, graph, 0)))
		cuda_ok(dev, at, cudaGraphLaunch(p->recorded, dev->stream));
	cudaGraphDestroy(graph);
}

void cuda_programs_clear(struct device *dev)
{
	for (size_t i = 0; i < PROGRAMS; i++) {
		if (dev->program[i].recorded)
			cudaGraphExecDestroy(dev->program[i].recorded);
		dev->program[i] = (struct program){ 0 };
	}
}
