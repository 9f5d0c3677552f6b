/* SPDX-License-Identifier: MIT */
/* emulate.h - the part of CUDA C++ that our kernels use, on the host, so that they run where there
 * is no GPU: included before each .cu file when it is compiled by a C++ compiler.
 *
 * Blocks run one after the other. Threads of a block are fibers that change at barriers and
 * shuffles; in a flat launch, which has neither, a plain loop. LB_EMULATION_ORDER=reverse lets them
 * run last to first: a result that changes with it lacks a barrier. What cannot be seen here: two
 * warps at the same time, memory models, and speed. */
#ifndef TESTS_EMULATION_EMULATE_H
#define TESTS_EMULATION_EMULATE_H

#define LB_EMULATED 1

#include <functional>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kernels/cuda/cuda.h"

#undef __global__
#undef __device__
#undef __shared__
#define __global__
#define __device__
#define __shared__ static /* blocks run one by one: one instance serves them all */
#define DEVICE static inline
#define KERNEL(threads) static void
#define SHARED_FLOATS(name) float *name = static_cast<float *>(emulated_shared())

struct emulated_index {
	unsigned x;
};
extern emulated_index threadIdx, blockIdx, blockDim;

void *emulated_shared(void);
void emulated_barrier(void);
/* All 32 lanes give a word; each gets that of lane ^ other. */
uint32_t emulated_exchange(uint32_t word, int other);
void emulated_launch(const std::function<void()> &kernel, size_t blocks, unsigned threads,
		     size_t shared_bytes, bool flat);

static inline void __syncthreads(void)
{
	emulated_barrier();
}

template <typename T> static inline T __shfl_xor_sync(unsigned, T x, int other)
{
	uint32_t word;
	static_assert(sizeof(T) == sizeof(word), "words only");
	memcpy(&word, &x, sizeof(word));
	word = emulated_exchange(word, other);
	memcpy(&x, &word, sizeof(word));
	return x;
}

template <typename T> static inline T atomicAdd(T *at, T x)
{
	T before = *at;
	*at += x;
	return before;
}

template <typename T> static inline T atomicMax(T *at, T x)
{
	T before = *at;
	*at = x > before ? x : before;
	return before;
}

static inline void refuse_early(struct device *dev, const struct place &at)
{
	if (dev->begins_early && !cuda_waits_for_earlier())
		cuda_fail(dev, &at, "a grid began early that does not wait");
}

template <typename A>
static void launch(struct device *dev, const struct place &at, void (*kernel)(A), size_t blocks,
		   unsigned threads, size_t shared_bytes, const A &arguments)
{
	refuse_early(dev, at);
	if (blocks == 0 || dev->error[0] != '\0')
		return;
	cuda_range_push(dev, at.operation);
	emulated_launch([=] { kernel(arguments); }, blocks, threads, shared_bytes, false);
	cuda_range_pop(dev);
	cuda_ok(dev, &at, cudaGetLastError());
}

template <typename A>
static void launch_flat(struct device *dev, const struct place &at, void (*kernel)(A),
			size_t threads, const A &arguments)
{
	const unsigned block = 256;

	refuse_early(dev, at);
	if (threads == 0 || dev->error[0] != '\0')
		return;
	cuda_range_push(dev, at.operation);
	emulated_launch([=] { kernel(arguments); }, (threads + block - 1) / block, block, 0, true);
	cuda_range_pop(dev);
	cuda_ok(dev, &at, cudaGetLastError());
}

#endif
