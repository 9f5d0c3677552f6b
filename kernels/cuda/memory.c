/* SPDX-License-Identifier: MIT */
/* memory.c - the device's memory: who holds what, the weights' narrow copies, the area of
 * reductions. */
#include "kernels/cuda/cuda.h"

#include <stdlib.h>
#include <string.h>

/* Room to note one more block; false without memory of the host. */
static bool room_for_block(struct device *dev)
{
	if (dev->blocks < dev->blocks_room)
		return true;
	size_t room = dev->blocks_room ? 2 * dev->blocks_room : 32;
	struct block *grown = realloc(dev->block, room * sizeof(*grown));
	if (!grown)
		return false;
	dev->block = grown;
	dev->blocks_room = room;
	return true;
}

void *cuda_take(struct device *dev, size_t bytes, const char *what)
{
	struct block b = { NULL, bytes ? bytes : 1, what, NULL };
	cudaError_t status = room_for_block(dev) ? cudaMalloc(&b.memory, b.bytes)
						 : cudaErrorMemoryAllocation;

	if (status == cudaSuccess) {
		dev->block[dev->blocks++] = b;
		return b.memory;
	}
	(void)cudaGetLastError();
	b.memory = NULL;
	if (status == cudaErrorMemoryAllocation) /* the caller says what there is no room for */
		dev->refused = b;
	else
		cuda_ok(dev, AT("alloc", b.bytes, 0, 0, 0), status);
	return NULL;
}

void cuda_give(struct device *dev, void *memory)
{
	for (size_t i = 0; memory && i < dev->blocks; i++)
		if (dev->block[i].memory == memory) {
			struct mapping *mapping = dev->block[i].mapping;
			dev->block[i] = dev->block[--dev->blocks];
			if (mapping)
				cuda_unmap(mapping);
			else
				cuda_ok(dev, AT("free", 0, 0, 0, 0), cudaFree(memory));
			return;
		}
}

void *cuda_alloc(struct device *dev, size_t bytes, const char *what)
{
	void *memory = cuda_take(dev, bytes, what);

	if (memory)
		cuda_zero(dev, memory, bytes);
	return memory;
}

void *cuda_take_shares(struct device *dev, size_t bytes, const char *what,
		       const struct byte_run *run, size_t runs)
{
	size_t taken;

	if (runs == 0 || bytes == 0 || !cuda_may_share())
		return cuda_alloc(dev, bytes, what);
	struct mapping *m = room_for_block(dev) ? cuda_map(bytes, run, runs, &taken) : NULL;
	if (!m) {
		dev->refused = (struct block){ .bytes = bytes, .what = what };
		return NULL;
	}
	void *memory = cuda_mapped_at(m);
	dev->block[dev->blocks++] = (struct block){ memory, taken, what, m };
	cuda_zero(dev, memory, bytes);
	return memory;
}

static void add_holding(struct memory_use *use, const struct block *b)
{
	size_t i = 0;

	while (i < use->count && strcmp(use->held[i].what, b->what) != 0)
		i++;
	if (i == HOLDINGS_MAX)
		return;
	if (i == use->count) {
		use->held[i].what = b->what;
		use->count++;
	}
	use->held[i].bytes += b->bytes;
}

void cuda_memory(const struct device *dev, struct memory_use *out)
{
	size_t unused = 0, all = 0;

	*out = (struct memory_use){ .refused = dev->refused.what,
				    .refused_bytes = dev->refused.bytes };
	if (cudaMemGetInfo(&unused, &all) != cudaSuccess)
		(void)cudaGetLastError();
	out->available = unused;
	out->total = all;
	for (size_t i = 0; i < dev->blocks; i++)
		add_holding(out, &dev->block[i]);
}

static struct weight_range *free_range(struct device *dev)
{
	for (size_t i = 0; i < WEIGHT_RANGES; i++)
		if (!dev->weights[i].master)
			return &dev->weights[i];
	return NULL;
}

static void give_range(struct device *dev, struct weight_range *range)
{
	cuda_give(dev, range->master);
	cuda_give(dev, range->narrow);
	cuda_give(dev, range->whole);
	*range = (struct weight_range){ 0 };
}

float *cuda_take_weights(struct device *dev, size_t count, size_t matrices,
			 const struct byte_run *run, size_t runs)
{
	struct weight_range *range = free_range(dev);
	bool narrow = dev->compute == COMPUTE_BF16;

	if (!range || count > SIZE_MAX / sizeof(float) || matrices > count)
		return NULL;
	range->count = count;
	range->split = narrow ? matrices : 0;
	range->master = cuda_take_shares(dev, count * sizeof(float), "weights", run, runs);
	if (narrow)
		range->narrow = cuda_alloc(dev, (count - matrices) * sizeof(uint16_t), "weights");
	if (range->split > 0)
		range->whole = cuda_alloc(dev, JOINED * sizeof(float), "weights");
	if (range->master && (range->narrow || !narrow) && (range->whole || range->split == 0))
		return range->master;
	give_range(dev, range);
	return NULL;
}

float *cuda_alloc_weights(struct device *dev, size_t count, size_t matrices)
{
	return cuda_take_weights(dev, count, matrices, NULL, 0);
}

uint64_t cuda_available(const struct device *dev)
{
	size_t unused = 0, all;

	(void)dev;
	return cudaMemGetInfo(&unused, &all) == cudaSuccess ? unused : 0;
}

void cuda_free(struct device *dev, void *memory)
{
	if (!memory)
		return;
	cuda_join_beside(dev); /* memory that is mapped goes at once: nothing may still use it */
	cuda_ok(dev, AT("free", 0, 0, 0, 0), cudaStreamSynchronize(dev->stream));
	for (size_t i = 0; i < WEIGHT_RANGES; i++)
		if (dev->weights[i].master == memory) {
			cuda_programs_clear(dev);
			give_range(dev, &dev->weights[i]);
			return;
		}
	cuda_programs_clear(dev);
	cuda_give(dev, memory);
}

const struct weight_range *cuda_weights_at(const struct device *dev, const void *at)
{
	for (size_t i = 0; i < WEIGHT_RANGES; i++) {
		const struct weight_range *r = &dev->weights[i];
		if (r->master && (const float *)at >= r->master &&
		    (const float *)at < r->master + r->count)
			return r;
	}
	return NULL;
}

const void *cuda_narrow(const struct device *dev, const float *weights)
{
	const struct weight_range *r = cuda_weights_at(dev, weights);

	if (!r || !r->narrow)
		return weights;
	size_t at = (size_t)(weights - r->master);
	return at < r->split ? (const uint16_t *)(const void *)r->master + at
			     : r->narrow + (at - r->split);
}

const void *cuda_table(struct device *dev, const struct place *at, const float *weights)
{
	const void *narrow = cuda_narrow(dev, weights);

	if (dev->compute == COMPUTE_BF16 && narrow == weights && !cuda_lower(dev, weights))
		cuda_fail(dev, at, "its weights do not come from alloc_weights");
	return narrow;
}

uint16_t *cuda_lower(const struct device *dev, const float *weights)
{
	const struct weight_range *r = cuda_weights_at(dev, weights);
	size_t at = r ? (size_t)(weights - r->master) : 0;

	return r && at < r->split ? (uint16_t *)(void *)r->master + r->split + at : NULL;
}

size_t cuda_run(const struct device *dev, const void *at, size_t count, bool *is_split)
{
	const struct weight_range *r = cuda_weights_at(dev, at);
	size_t first = r ? (size_t)((const float *)at - r->master) : 0;

	*is_split = r && first < r->split;
	return *is_split && r->split - first < count ? r->split - first : count;
}

void cuda_zero(struct device *dev, void *memory, size_t bytes)
{
	cuda_ok(dev, AT("zero", bytes, 0, 0, 0), cudaMemsetAsync(memory, 0, bytes, dev->stream));
}

void *cuda_alloc_host(struct device *dev, size_t bytes)
{
	void *memory = NULL;

	(void)dev;
	if (cudaMallocHost(&memory, bytes ? bytes : 1) != cudaSuccess)
		(void)cudaGetLastError();
	return memory;
}

void cuda_free_host(struct device *dev, void *memory)
{
	(void)dev;
	cudaFreeHost(memory);
}

void *cuda_grown(struct device *dev, const struct place *at, struct work_area *area, size_t bytes)
{
	if (bytes <= area->bytes)
		return area->memory;
	if (dev->is_recording) {
		cuda_fail(dev, at, "its area would have to grow in the middle of a recording");
		return NULL;
	}
	cuda_programs_clear(dev);
	if (!cuda_ok(dev, at, cudaStreamSynchronize(dev->stream)))
		return NULL;
	cuda_give(dev, area->memory);
	area->memory = cuda_take(dev, bytes, area->what);
	area->bytes = area->memory ? bytes : 0;
	if (!area->memory)
		cuda_fail(dev, at, "out of memory");
	return area->memory;
}

void *cuda_scratch(struct device *dev, const struct place *at, size_t bytes)
{
	dev->scratch.what = "reductions";
	return cuda_grown(dev, at, &dev->scratch, bytes);
}
