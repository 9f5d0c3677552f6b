/* SPDX-License-Identifier: MIT */
/* heads_backward.cu - makes the gradient of qkv of what cuDNN's backward pass leaves, in one pass:
 * with grouped heads cuDNN leaves dk and dv of every query head, and those that share a key head
 * are added in order, in fp32, and rounded once; and queries and keys are turned back by their
 * position (positions.cu has the formula).
 *
 * A thread owns V neighbouring pairs of HEADS heads of one row, whose angles it reads once; behind
 * the part of a head that is turned, any two vectors of V. Where the largest of all is wanted
 * (finish.cuh) it also reads what stays as it is. */
#include "kernels/cuda/ops/finish.cuh"

#include "kernels/cuda/heads.h"

/* Elements in a vector: more of them, with their angles, are too many for the registers of a
 * thread. Of AT_ONCE heads all is asked for before anything is written. */
enum { HEADS = 8, WIDE = 4, AT_ONCE = 2 };

struct left {
	struct heads_left from;
	void *dqkv;
	struct attention a;
	struct heads at;
	uint32_t vectors, half; /* of a head; of them, R/2: those that turn are 2 half; 0: none */
	uint32_t owners;        /* threads for a head */
	uint32_t first, end;    /* heads: H queries, then G keys, then G values */
	uint32_t groups;        /* of HEADS of them */
	struct finish finish;
};

/* Where that head lies in dqkv, in elements. */
DEVICE size_t place_of(const struct left &s, size_t row, uint32_t head)
{
	uint32_t queries = (uint32_t)s.a.heads, keys = (uint32_t)s.a.kv_heads;
	size_t at = head < queries          ? s.at.query + head * s.at.step
		    : head < queries + keys ? s.at.key + (head - queries) * s.at.step
					    : s.at.value + (head - queries - keys) * s.at.step;

	return row * s.at.row + at;
}

template <int V>
DEVICE void read(const struct left &s, size_t row, uint32_t head, uint32_t vector, float (&x)[V])
{
	uint32_t queries = (uint32_t)s.a.heads, keys = (uint32_t)s.a.kv_heads;
	uint32_t group = queries / keys, shared = (head - queries) % keys;
	const void *each = head < queries ? NULL : head < queries + keys ? s.from.dk : s.from.dv;
	float y[V];

	if (!each) {
		load<bf16, V>(x, s.dqkv, place_of(s, row, head) / V + vector);
		return;
	}
#pragma unroll
	for (int k = 0; k < V; k++)
		x[k] = 0.0f;
	for (uint32_t j = 0; j < group; j++) { /* [batch,T,H,C] */
		load<bf16, V>(y, each, (row * queries + shared * group + j) * s.vectors + vector);
#pragma unroll
		for (int k = 0; k < V; k++)
			x[k] += y[k];
	}
}

/* Vectors of a head that are not what they were, or lie elsewhere. */
DEVICE bool is_new(const struct left &s, uint32_t head, bool turns)
{
	uint32_t queries = (uint32_t)s.a.heads, keys = (uint32_t)s.a.kv_heads;

	return head < queries          ? turns
	       : head < queries + keys ? turns || s.from.dk
				       : s.from.dv != NULL;
}

template <int V> DEVICE unsigned largest_rounded(const float (&x)[V], unsigned most)
{
#pragma unroll
	for (int k = 0; k < V; k++) {
		unsigned bits = bits_of(rounded<bf16>(x[k])) & 0x7fffffffu;
		most = bits > most ? bits : most;
	}
	return most;
}

template <int V> DEVICE void turn_back(float (&x)[V], float (&y)[V], const float (&turn)[2 * V])
{
#pragma unroll
	for (int j = 0; j < V; j++) {
		float c = turn[2 * j], s = turn[2 * j + 1], before = x[j];
		x[j] = before * c + y[j] * s;
		y[j] = y[j] * c - before * s;
	}
}

/* Two vectors of a head, turned back if they turn; the largest of them, where that is wanted. */
template <int V, bool FINISH>
DEVICE unsigned put_head(const struct left &s, size_t row, uint32_t head, uint32_t one,
			 uint32_t two, float (&x)[V], float (&y)[V], const float (&turn)[2 * V])
{
	bool turns = one < s.half;
	size_t to = place_of(s, row, head) / V;
	bool writes = !FINISH || is_new(s, head, turns);

	if (turns && head < s.a.heads + s.a.kv_heads)
		turn_back<V>(x, y, turn);
	if (writes)
		store<bf16, V>(s.dqkv, to + one, x);
	if (writes && two < s.vectors)
		store<bf16, V>(s.dqkv, to + two, y);
	return FINISH ? largest_rounded<V>(y, largest_rounded<V>(x, 0)) : 0;
}

template <int V, bool FINISH> KERNEL(BLOCK) heads_backward(struct left s)
{
	after_earlier();
	size_t i = flat_index(), each = i / s.owners, row = each / s.groups;
	uint32_t own = (uint32_t)(i - each * s.owners), group = (uint32_t)(each - row * s.groups);
	uint32_t head = s.first + group * HEADS, end = head + HEADS < s.end ? head + HEADS : s.end;
	bool turns = own < s.half, is_there = row < s.a.batch * s.a.seq;
	uint32_t one = turns ? own : 2 * own, two = turns ? own + s.half : one + 1;
	float x[AT_ONCE][V], y[AT_ONCE][V] = { { 0 } }, turn[2 * V] = { 0 };
	unsigned most = 0;

	if (!FINISH && !is_there)
		return;
	if (is_there && turns)
		load<float, 2 * V>(turn, s.from.table, row % s.a.seq * s.half + own);
	for (; is_there && head < end; head += AT_ONCE) {
#pragma unroll
		for (uint32_t k = 0; k < AT_ONCE; k++) {
			if (head + k < end)
				read<V>(s, row, head + k, one, x[k]);
			if (head + k < end && two < s.vectors)
				read<V>(s, row, head + k, two, y[k]);
		}
#pragma unroll
		for (uint32_t k = 0; k < AT_ONCE; k++)
			if (head + k < end)
				most = larger(most, put_head<V, FINISH>(s, row, head + k, one, two,
									x[k], y[k], turn));
	}
	if (FINISH)
		finish_amax(s.finish, most);
}

extern "C" void cuda_heads_backward(struct device *dev, void *dqkv, const struct heads_left *left,
				    const struct attention *a)
{
	size_t turned = !left->table ? 0 : a->rotary ? a->rotary : a->head_dim;
	bool wide = is_wide(dev, a->head_dim, (const void *)dqkv, left->dk, left->dv) &&
		    is_wide(dev, a->head_dim, left->table) && turned / 2 % WIDE == 0;
	size_t v = wide ? WIDE : 1, vectors = a->head_dim / v, half = turned / 2 / v;
	size_t owners = half + blocks_for(vectors - 2 * half, 2);
	size_t queries = a->heads, keys = a->kv_heads, all = queries + 2 * keys;
	const struct place at = AT("heads_backward", a->batch, a->seq, all, a->head_dim);
	struct finish wanted = {};
	bool finish = finish_begins(dev, dqkv, a->batch * a->seq * all * a->head_dim, 0, wide,
				    &wanted);
	size_t first = finish || left->table ? 0 : queries;
	size_t end = finish || left->dk ? all : queries + (left->table ? keys : 0);
	size_t groups = blocks_for(end - first, HEADS);
	const struct left s = { *left,
				dqkv,
				*a,
				heads_of(a),
				(uint32_t)vectors,
				(uint32_t)half,
				(uint32_t)owners,
				(uint32_t)first,
				(uint32_t)end,
				(uint32_t)groups,
				wanted };

	if (groups > 0)
		launch_finishing(dev, at,
				 finish ? heads_backward<WIDE, true>
				 : wide ? heads_backward<WIDE, false>
					: heads_backward<1, false>,
				 a->batch * a->seq * groups * owners, finish, s);
}
