/* SPDX-License-Identifier: MIT */
/* norm.cuh - what both norms share: the residual sum in front, and the way of a backward block.
 *
 * Forward: a block owns a row. Backward: a block owns a run of rows and keeps its part of the
 * weights' gradients in shared memory, a thread always the same columns; the parts are then added
 * in the order of the blocks. The number of blocks depends on the shape only, so results do,
 * too. */
#ifndef KERNELS_CUDA_NORM_CUH
#define KERNELS_CUDA_NORM_CUH

#include "kernels/cuda/ops/finish.cuh"

/* A vector of each array that a backward pass reads, as it lies in memory. Where a thread has one
 * vector of a row, those of the next row are asked for before its barriers of this one. */
template <typename T, int V> struct asked {
	vector<T, V> dout, x, dx;
};

template <typename T, int V>
DEVICE void ask(struct asked<T, V> &a, const void *dout, const void *x, const void *dx, size_t i)
{
	a.dout = ((const vector<T, V> *)dout)[i];
	a.x = ((const vector<T, V> *)x)[i];
	a.dx = ((const vector<T, V> *)dx)[i];
}

/* The i-th vector of x, or of x + delta, which is rounded and kept in sum. */
template <typename T, int V>
DEVICE void take_summed(float (&v)[V], const void *x, const void *delta, void *sum, size_t i)
{
	float d[V];

	load<T, V>(v, x, i);
	if (!delta)
		return;
	load<T, V>(d, delta, i);
#pragma unroll
	for (int j = 0; j < V; j++)
		v[j] = rounded<T>(v[j] + d[j]);
	store<T, V>(sum, i, v);
}

/* --- the parts of a backward block: `parts` arrays of dim floats one after the other ------ */

struct runs {
	size_t rows, per_block, blocks;
};

/* Blocks that fill 132 multiprocessors of 2048 threads once: the fewer rows a block has to go
 * through, one barrier after the other, the better; but each leaves parts that must be added. */
static inline struct runs runs_of(size_t rows, unsigned threads)
{
	const size_t least = 8, each = 2048 / threads, processors = 132;
	size_t per_block = blocks_for(rows, processors * (each > 16 ? 16 : each));

	per_block = per_block < least ? least : per_block;
	return runs{ rows, per_block, blocks_for(rows, per_block) };
}

DEVICE size_t first_row(const struct runs &r)
{
	return blockIdx.x * r.per_block;
}

DEVICE size_t end_row(const struct runs &r)
{
	size_t end = (blockIdx.x + (size_t)1) * r.per_block;
	return end < r.rows ? end : r.rows;
}

template <int V> DEVICE void clear_parts(float *part, size_t dim, int parts)
{
	const float nothing[V] = { 0 };

	for (size_t i = threadIdx.x; i < dim / V; i += blockDim.x)
		for (int p = 0; p < parts; p++)
			store<float, V>(part + p * dim, i, nothing);
}

/* To partial [blocks, parts, dim]. */
template <int V> DEVICE void leave_parts(float *partial, const float *part, size_t dim, int parts)
{
	float x[V];

	for (size_t i = threadIdx.x; i < dim / V; i += blockDim.x)
		for (int p = 0; p < parts; p++) {
			load<float, V>(x, part + p * dim, i);
			store<float, V>(partial + (blockIdx.x * (size_t)parts + p) * dim, i, x);
		}
}

#endif
