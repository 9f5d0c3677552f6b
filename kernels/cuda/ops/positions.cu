/* SPDX-License-Identifier: MIT */
/* positions.cu - learned positions: x[r] += table[r mod T], and dtable[t] (+)= sum of dx at t.
 *
 * Forward: a thread owns one vector. Backward: a thread owns one element of the table and adds the
 * sequences of the batch in order. */
#include "kernels/cuda/ops/kernel.cuh"

struct positions {
	void *x;
	const void *table;         /* in the compute type */
	size_t rows, seq, vectors; /* vectors in a row */
};

template <typename T, int V> KERNEL(BLOCK) positions_forward(struct positions p)
{
	after_earlier();
	size_t i = flat_index(), row = i / p.vectors;
	float x[V], at[V];

	if (row >= p.rows)
		return;
	load<T, V>(x, p.x, i);
	load<T, V>(at, p.table, row % p.seq * p.vectors + i % p.vectors);
#pragma unroll
	for (int j = 0; j < V; j++)
		x[j] += at[j];
	store<T, V>(p.x, i, x);
}

extern "C" void cuda_positions_forward(struct device *dev, void *x, const float *table, size_t rows,
				       size_t seq, size_t dim)
{
	const struct place at = AT("positions_forward", rows, seq, dim, 0);
	const void *narrow = cuda_table(dev, &at, table);
	bool wide = is_wide(dev, dim, x, narrow);
	struct positions p = { x, narrow, rows, seq, dim / vector_of(dev, wide) };
	launch_flat(dev, at, PICK(dev, wide, positions_forward), rows * p.vectors, p);
}

struct backward {
	float *dtable;
	const void *dx;
	size_t rows, seq, dim;
	bool accumulate;
};

template <typename T> KERNEL(BLOCK) positions_backward(struct backward b)
{
	after_earlier();
	size_t i = flat_index(), at = i / b.dim;

	if (at >= b.seq)
		return;
	float sum = b.accumulate ? b.dtable[i] : 0.0f;
	for (size_t row = at; row < b.rows; row += b.seq)
		sum += widen(((const T *)b.dx)[row * b.dim + i % b.dim]);
	b.dtable[i] = sum;
}

extern "C" void cuda_positions_backward(struct device *dev, float *dtable, const void *dx,
					size_t rows, size_t seq, size_t dim, bool accumulate)
{
	struct backward b = { dtable, dx, rows, seq, dim, accumulate };
	launch_flat(dev, AT("positions_backward", rows, seq, dim, 0),
		    dev->compute == COMPUTE_BF16 ? positions_backward<bf16>
						 : positions_backward<float>,
		    seq * dim, b);
}
