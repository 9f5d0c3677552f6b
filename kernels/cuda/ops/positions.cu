/* SPDX-License-Identifier: MIT */
/* positions.cu - learned positions: x[r] += table[r mod T], and dtable[t] (+)= sum of dx at t.
 * And rotary ones (Su et al. 2021), half-rotate as Hugging Face stores Llama:
 *   (x[i], x[i+R/2]) -> (x[i] cos - x[i+R/2] sin, x[i+R/2] cos + x[i] sin),  i < R/2
 * R is the head, or its first part (GPT-NeoX turns a quarter of each).
 *
 * Learned, forward: a thread owns one vector. Backward: a thread owns one element of the table and
 * adds the sequences of the batch in order. Rotary: a thread owns V neighbouring pairs of HEADS
 * heads of one row: their angles, twice as many bytes as a head's pairs, are read once. */
#include "kernels/cuda/ops/kernel.cuh"

#include "kernels/cuda/heads.h"

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
		    EITHER(dev, positions_backward), seq * dim, b);
}

/* --- rotary ----------------------------------------------------------------------------------- */

enum { HEADS = 8 };

struct rope {
	void *qkv;
	const float *table;
	struct attention shape;
	struct heads at;
	size_t half;   /* R/2, in vectors */
	size_t groups; /* of HEADS heads, in a row */
	float sign;    /* -1: the inverse rotation */
};

template <typename T, int V>
DEVICE void turn_head(const struct rope &r, size_t row, size_t head, size_t pair,
		      const float (&turn)[2 * V])
{
	const struct attention &a = r.shape;
	size_t at = row * r.at.row + (head < a.heads ? r.at.query + head * r.at.step
						     : r.at.key + (head - a.heads) * r.at.step);
	float x[V], y[V];

	load<T, V>(x, r.qkv, at / V + pair);
	load<T, V>(y, r.qkv, at / V + pair + r.half);
#pragma unroll
	for (int j = 0; j < V; j++) {
		float c = turn[2 * j], s = r.sign * turn[2 * j + 1], before = x[j];
		x[j] = before * c - y[j] * s;
		y[j] = y[j] * c + before * s;
	}
	store<T, V>(r.qkv, at / V + pair, x);
	store<T, V>(r.qkv, at / V + pair + r.half, y);
}

template <typename T, int V> KERNEL(BLOCK) rope(struct rope r)
{
	after_earlier();
	size_t turning = r.shape.heads + r.shape.kv_heads, i = flat_index();
	size_t pair = i % r.half, group = i / r.half % r.groups, row = i / r.half / r.groups;
	size_t head = group * HEADS, end = head + HEADS < turning ? head + HEADS : turning;
	float turn[2 * V]; /* cos, sin of each pair */

	if (row >= r.shape.batch * r.shape.seq)
		return;
	load<float, 2 * V>(turn, r.table, row % r.shape.seq * r.half + pair);
	for (; head < end; head++)
		turn_head<T, V>(r, row, head, pair, turn);
}

extern "C" void cuda_rope(struct device *dev, void *qkv, const float *table,
			  const struct attention *a, bool inverse)
{
	size_t turned = a->rotary ? a->rotary : a->head_dim, v = vector_of(dev, true);
	bool wide = is_wide(dev, a->head_dim, qkv, table) && turned / 2 % v == 0;
	struct rope r = { qkv,
			  table,
			  *a,
			  heads_of(a),
			  turned / 2 / (wide ? v : 1),
			  blocks_for(a->heads + a->kv_heads, HEADS),
			  inverse ? -1.0f : 1.0f };
	launch_flat(dev, AT("rope", a->batch, a->seq, a->heads + a->kv_heads, turned),
		    PICK(dev, wide, rope), a->batch * a->seq * r.groups * r.half, r);
}
