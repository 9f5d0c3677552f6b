/* SPDX-License-Identifier: MIT */
/* program.c - sequences of operations as CUDA graphs.
 *
 * The first run of a program goes operation by operation: algorithms are measured, plans are made,
 * areas get their final size. The second is captured and run as a graph, later ones are the graph.
 * When an area must move, all graphs are forgotten. */
#include "kernels/cuda/cuda.h"

#include <stdio.h>

static struct program *find(struct device *dev, uint64_t number)
{
	for (size_t i = 0; i < PROGRAMS; i++)
		if (dev->program[i].is_used && dev->program[i].number == number)
			return &dev->program[i];
	return NULL;
}

static void forget(struct program *p)
{
	if (p->recorded) /* one that runs is freed when it is through */
		cudaGraphExecDestroy(p->recorded);
	*p = (struct program){ 0 };
}

/* The place of a new one; when all are taken, that of the oldest. */
static struct program *found_or_made(struct device *dev, uint64_t number)
{
	struct program *p = find(dev, number);

	if (p)
		return p;
	p = &dev->program[dev->next_program++ % PROGRAMS];
	forget(p);
	p->number = number;
	p->is_used = true;
	return p;
}

bool cuda_replay(struct device *dev, uint64_t number)
{
	const struct program *p = find(dev, number);
	bool can = p && p->recorded && dev->error[0] == '\0';

	return cuda_arrays_agree(dev, can) && can &&
	       cuda_arrays_launch(dev, AT("replay", number, 0, 0, 0), p->recorded);
}

void cuda_record(struct device *dev, uint64_t number)
{
	struct program *p = found_or_made(dev, number);
	bool can = p->seen > 0 && !p->is_plain && !dev->waits_always && dev->error[0] == '\0';

	if (!cuda_arrays_agree(dev, can))
		return;
	if (p->recorded) /* another rank had to forget its own */
		cudaGraphExecDestroy(p->recorded);
	p->recorded = NULL;
	dev->is_recording = cuda_ok(dev, AT("record", number, 0, 0, 0),
				    cudaStreamBeginCapture(dev->stream,
							   cudaStreamCaptureModeThreadLocal));
}

/* What failed while recording may well run without: it is said, and forgotten. */
static void give_up(struct device *dev, struct program *p)
{
	char text[BACKEND_TEXT_BYTES];

	snprintf(text, sizeof(text),
		 "%.170s; a part of each step is not recorded, it goes call by call", dev->error);
	if (dev->warn)
		dev->warn(text);
	(void)cudaGetLastError();
	dev->error[0] = '\0';
	p->is_plain = true;
}

bool cuda_record_end(struct device *dev, uint64_t number)
{
	const struct place *at = AT("record", number, 0, 0, 0);
	struct program *p = found_or_made(dev, number); /* all are forgotten when an area grows */
	cudaGraph_t graph = NULL;

	p->seen++;
	if (!dev->is_recording)
		return true;
	dev->is_recording = false;
	dev->is_forked = false; /* where it broke off: nobody may wait for an event of it */
	bool good = cuda_ok(dev, at, cudaStreamEndCapture(dev->stream, &graph)) &&
		    dev->error[0] == '\0' &&
		    cuda_ok(dev, at, cudaGraphInstantiate(&p->recorded, graph, 0));
	if (graph)
		cudaGraphDestroy(graph);
	if (cuda_arrays_agree(dev, good)) {
		cuda_arrays_launch(dev, at, p->recorded);
		return true;
	}
	if (p->recorded)
		cudaGraphExecDestroy(p->recorded);
	p->recorded = NULL;
	if (good)
		p->is_plain = true; /* another rank says why */
	else
		give_up(dev, p);
	return false;
}

void cuda_programs_clear(struct device *dev)
{
	for (size_t i = 0; i < PROGRAMS; i++)
		forget(&dev->program[i]);
}
