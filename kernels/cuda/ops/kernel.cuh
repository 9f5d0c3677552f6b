/* SPDX-License-Identifier: MIT */
/* kernel.cuh - how kernels are written here: elements of either type in vectors of 16 bytes, sums
 * over a block in a fixed order, and the launch.
 *
 * The same source also compiles for the host with LB_EMULATED (tests/emulation): there threads of a
 * block are fibers, so that barriers and shuffles mean what they mean on a GPU. */
#ifndef KERNELS_CUDA_KERNEL_CUH
#define KERNELS_CUDA_KERNEL_CUH

#include <math.h>
#include <string.h>

#ifdef LB_HIP
#include <hip/hip_runtime.h>
/* Of 64 lanes the half that a warp is here. */
#define __shfl_xor_sync(lanes, x, other) __shfl_xor(x, other, 32)
#elif !defined(LB_EMULATED)
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#endif

#include "kernels/cuda/cuda.h"
#include "kernels/step_control.h"

#ifndef LB_EMULATED
#define DEVICE static __device__ __forceinline__
/* A kernel for blocks of at most so many threads. The compiler takes at most the 64 registers that
 * leave room for 1024 threads on a multiprocessor: one block, or several that are smaller. */
#define KERNEL(threads) static __global__ void __launch_bounds__(threads, 1024 / (threads))
/* The block's dynamic shared memory. */
#define SHARED_FLOATS(name) extern __shared__ __align__(16) float name[]
#endif

enum { WARP = 32, BLOCK = 256, BLOCK_MAX = 1024 };

/* The first statement of every kernel. A grid may begin before the one queued in front of it is
 * through (programmatic dependent launch, from 9.0 on): here it lets the next one begin likewise,
 * and waits until all of the earlier one is written. What is saved is the time from a grid's last
 * block to the first of the next. */
DEVICE void after_earlier(void)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
	asm volatile("griddepcontrol.launch_dependents;\n\tgriddepcontrol.wait;" ::: "memory");
#endif
}

/* --- elements --------------------------------------------------------------------------------- */

struct bf16 {
	uint16_t bits;
};

DEVICE float widen(float x)
{
	return x;
}

DEVICE float widen(bf16 x)
{
	uint32_t bits = (uint32_t)x.bits << 16;
	float y;
	memcpy(&y, &bits, sizeof(y));
	return y;
}

/* To nearest, ties to even; NaN stays NaN. */
DEVICE bf16 narrow(float x)
{
#ifdef __CUDA_ARCH__
	__nv_bfloat16 y = __float2bfloat16_rn(x);
	bf16 out;
	memcpy(&out, &y, sizeof(out));
	return out;
#else
	uint32_t bits;
	memcpy(&bits, &x, sizeof(bits));
	if ((bits & 0x7fffffffu) > 0x7f800000u)
		return bf16{ 0x7fff };
	return bf16{ (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16) };
#endif
}

DEVICE void put(float &to, float x)
{
	to = x;
}

DEVICE void put(bf16 &to, float x)
{
	to = narrow(x);
}

template <typename T> DEVICE float rounded(float x)
{
	T y;
	put(y, x);
	return widen(y);
}

/* What one instruction reads; more of them follow one another. */
template <typename T, int V> struct alignas(sizeof(T) * V < 16 ? sizeof(T) * V : 16) vector {
	T v[V];
};

/* The i-th vector of V elements. */
template <typename T, int V> DEVICE void load(float (&to)[V], const void *from, size_t i)
{
	vector<T, V> x = ((const vector<T, V> *)from)[i];
#pragma unroll
	for (int j = 0; j < V; j++)
		to[j] = widen(x.v[j]);
}

template <typename T, int V> DEVICE void store(void *to, size_t i, const float (&from)[V])
{
	vector<T, V> x;
#pragma unroll
	for (int j = 0; j < V; j++)
		put(x.v[j], from[j]);
	((vector<T, V> *)to)[i] = x;
}

/* The instance for the device's type. */
#define EITHER(dev, kernel) ((dev)->compute == COMPUTE_BF16 ? kernel<bf16> : kernel<float>)

/* The same in vectors of 16 bytes where `wide`, else one by one. */
#define PICK(dev, wide, kernel) \
	((dev)->compute == COMPUTE_BF16 ? ((wide) ? kernel<bf16, 8> : kernel<bf16, 1>) \
					: ((wide) ? kernel<float, 4> : kernel<float, 1>))

/* Elements in such a vector. */
static inline size_t vector_of(const struct device *dev, bool wide)
{
	return wide ? 16 / compute_bytes(dev->compute) : 1;
}

/* Whether `columns` of all these can be read in vectors of 16 bytes; NULL does not mind. */
template <typename... P>
static bool is_wide(const struct device *dev, size_t columns, const P *...pointers)
{
	uintptr_t bits = 0;
	((bits |= (uintptr_t)pointers), ...);
	return bits % 16 == 0 && columns % vector_of(dev, true) == 0;
}

/* --- arithmetic ------------------------------------------------------------------------------- */

/* 2^x, 1/x and the root as the special function unit gives them (PTX ISA: ex2.approx and
 * rcp.approx within 2^-22 of the result, sqrt.approx within 2^-23): of values that are rounded to
 * bf16 or only compared within a tolerance. */
DEVICE float fast_exp2(float x)
{
#ifdef __CUDA_ARCH__
	float y;
	asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
	return y;
#else
	return exp2f(x);
#endif
}

DEVICE float fast_sqrt(float x)
{
#ifdef __CUDA_ARCH__
	float y;
	asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
	return y;
#else
	return sqrtf(x);
#endif
}

/* Not for x of 2^126 and above, whose reciprocal is no normal number: those give 0. */
DEVICE float fast_reciprocal(float x)
{
#ifdef __CUDA_ARCH__
	float y;
	asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
	return y;
#else
	return 1.0f / x;
#endif
}

/* 1/(1 + e^-x) */
DEVICE float sigmoid(float x)
{
	const float log2_e = 1.44269504f;

	return fast_reciprocal(1.0f + fast_exp2(-log2_e * x));
}

/* --- over a block ------------------------------------------------------------------------- */

/* Every thread gets the sum; by halves, so the order is fixed. */
DEVICE float warp_sum(float x)
{
#pragma unroll
	for (int width = WARP / 2; width > 0; width /= 2)
		x += __shfl_xor_sync(0xffffffffu, x, width);
	return x;
}

DEVICE float warp_max(float x)
{
#pragma unroll
	for (int width = WARP / 2; width > 0; width /= 2)
		x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, width));
	return x;
}

DEVICE unsigned larger(unsigned a, unsigned b)
{
	return a > b ? a : b;
}

DEVICE unsigned warp_most(unsigned x)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
	return __reduce_max_sync(0xffffffffu, x);
#else
	for (int width = WARP / 2; width > 0; width /= 2) {
		unsigned other = __shfl_xor_sync(0xffffffffu, x, width);
		x = other > x ? other : x;
	}
	return x;
#endif
}

/* The same over the block: blockDim.x is a multiple of a warp. */
DEVICE float block_sum(float x)
{
	__shared__ float of_warp[WARP];

	x = warp_sum(x);
	if (threadIdx.x % WARP == 0)
		of_warp[threadIdx.x / WARP] = x;
	__syncthreads();
	x = threadIdx.x % WARP < blockDim.x / WARP ? of_warp[threadIdx.x % WARP] : 0.0f;
	x = warp_sum(x);
	__syncthreads();
	return x;
}

DEVICE float block_max(float x)
{
	__shared__ float of_warp[WARP];

	x = warp_max(x);
	if (threadIdx.x % WARP == 0)
		of_warp[threadIdx.x / WARP] = x;
	__syncthreads();
	x = threadIdx.x % WARP < blockDim.x / WARP ? of_warp[threadIdx.x % WARP] : -INFINITY;
	x = warp_max(x);
	__syncthreads();
	return x;
}

/* --- the launch --------------------------------------------------------------------------- */

static inline size_t blocks_for(size_t count, size_t per_block)
{
	return (count + per_block - 1) / per_block;
}

/* Threads for a row of `vectors`: whole warps, no more than there is work for. */
static inline unsigned threads_for(size_t vectors, unsigned most)
{
	size_t threads = blocks_for(vectors, WARP) * WARP;
	return threads < most ? (threads ? (unsigned)threads : (unsigned)WARP) : most;
}

#ifdef LB_HIP
template <typename A>
static void queue(struct device *dev, const struct place &, void (*kernel)(A), unsigned blocks,
		  unsigned threads, size_t shared_bytes, const A &arguments)
{
	kernel<<<blocks, threads, shared_bytes, dev->stream>>>(arguments);
}
#elif !defined(LB_EMULATED)
template <typename A>
static void queue(struct device *dev, const struct place &at, void (*kernel)(A), unsigned blocks,
		  unsigned threads, size_t shared_bytes, const A &arguments)
{
	cudaLaunchAttribute early = {};
	cudaLaunchConfig_t how = {};

	early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
	early.val.programmaticStreamSerializationAllowed = 1;
	how.gridDim = dim3(blocks);
	how.blockDim = dim3(threads);
	how.dynamicSmemBytes = shared_bytes;
	how.stream = dev->stream;
	how.attrs = &early;
	how.numAttrs = dev->begins_early ? 1 : 0;
	cuda_ok(dev, &at, cudaLaunchKernelEx(&how, kernel, arguments));
}
#endif

#ifndef LB_EMULATED
/* Threads meet at barriers. A grid or block of nothing is no launch. */
template <typename A>
static void launch(struct device *dev, const struct place &at, void (*kernel)(A), size_t blocks,
		   unsigned threads, size_t shared_bytes, const A &arguments)
{
	/* A block has 48 KiB without asking, for its arrays of fixed size, too: those stay below 16
	 * (tests/gpu/objects.sh). */
	const size_t plain = 32 * 1024, most = 0x7fffffff;

	if (blocks == 0 || dev->error[0] != '\0')
		return;
	if (blocks > most) {
		cuda_fail(dev, &at, "more than a grid can hold");
		return;
	}
	if (shared_bytes > plain &&
	    !cuda_ok(dev, &at,
		     cudaFuncSetAttribute((const void *)kernel,
					  cudaFuncAttributeMaxDynamicSharedMemorySize,
					  (int)shared_bytes)))
		return;
	cuda_range_push(dev, at.operation);
	queue(dev, at, kernel, (unsigned)blocks, threads, shared_bytes, arguments);
	cuda_range_pop(dev);
	cuda_ok(dev, &at, cudaGetLastError());
}

/* Threads have nothing to do with one another. */
template <typename A>
static void launch_flat(struct device *dev, const struct place &at, void (*kernel)(A),
			size_t threads, const A &arguments)
{
	launch(dev, at, kernel, blocks_for(threads, BLOCK), BLOCK, 0, arguments);
}
#endif

/* The thread's number in a flat launch. */
DEVICE size_t flat_index(void)
{
	return (size_t)blockIdx.x * blockDim.x + threadIdx.x;
}

#endif
