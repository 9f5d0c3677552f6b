/* SPDX-License-Identifier: MIT */
/* rope.cu - rotary positions (Su et al. 2021), half-rotate as Hugging Face stores Llama:
 *   (x[i], x[i+R/2]) -> (x[i] cos - x[i+R/2] sin, x[i+R/2] cos + x[i] sin),  i < R/2
 * R is the head, or its first part (GPT-NeoX turns a quarter of each).
 *
 * A thread owns V neighbouring pairs of HEADS heads of one row: their angles, twice as many bytes as a
 * head's pairs, are read once. */
#include "kernels/cuda/ops/kernel.cuh"

#include "kernels/cuda/heads.h"

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
