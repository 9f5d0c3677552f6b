/* SPDX-License-Identifier: MIT */
/* adamw.cu - one pass over weight, both moments and gradient; the formula stands in backend.h. The
 * clip of the gradient's norm is its grad_scale. Vectors get their narrow copy on the way; matrices
 * that lie in two halves (split.cu) are put together, updated, and split again.
 *
 * A thread owns a group of eight elements whose index in the whole array starts at a multiple of
 * eight: one Philox call per moment serves them all. A group that is cut by the ends of the range,
 * or memory that is not aligned, goes element by element. */
#include "kernels/cuda/ops/kernel.cuh"

#include "kernels/cuda/ops/halves.cuh"
#include "kernels/philox.h"

enum { GROUP = 8 };

struct update {
	float *weight;
	uint16_t *narrow; /* NULL: none is kept */
	uint16_t *lower;  /* beside narrow, in place of weight; NULL: not split */
	void *m, *v;
	const void *grad;
	size_t count;
	float beta1, beta2, eps, weight_decay, rate;
	uint64_t first, key;
	const struct step_control *control;
	bool wide;
	/* of the decision, once a thread has read it */
	float lr, grad_scale, to_m_hat, to_v_hat;
	uint32_t step;
};

/* Moments: fp32 as they are; bf16 up or down by 16 random bits, Inf and NaN as they are. */
DEVICE void put_by_chance(float &to, float x, uint32_t)
{
	to = x;
}

DEVICE void put_by_chance(bf16 &to, float x, uint32_t random16)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	if ((bits & 0x7f800000u) == 0x7f800000u)
		to.bits = (uint16_t)(bits >> 16 | ((bits & 0xffffu) != 0));
	else
		to.bits = (uint16_t)((bits + random16) >> 16);
}

DEVICE uint32_t piece_of(const uint32_t words[4], int piece)
{
	return words[piece / 2] >> 16 * (piece % 2) & 0xffffu;
}

struct one {
	float weight, m, v;
};

/* Of moments in bf16 the last bits of a root and a quotient are far below what was rounded. */
template <typename M> DEVICE float quotient(float m_hat, float v_hat, float eps)
{
	return sizeof(M) < sizeof(float) ? m_hat * fast_reciprocal(fast_sqrt(v_hat) + eps)
					 : m_hat / (sqrtf(v_hat) + eps);
}

template <typename M> DEVICE struct one updated(const struct update &u, struct one x, float grad)
{
	float g = grad * u.grad_scale;

	x.m = u.beta1 * x.m + (1.0f - u.beta1) * g;
	x.v = u.beta2 * x.v + (1.0f - u.beta2) * g * g;
	float direction = quotient<M>(x.m * u.to_m_hat, x.v * u.to_v_hat, u.eps);
	x.weight -= u.lr * (direction + u.weight_decay * x.weight);
	return x;
}

template <typename M>
DEVICE void random_words(const struct update &u, uint64_t group, uint32_t of_m[4], uint32_t of_v[4])
{
	const uint32_t key[2] = { (uint32_t)u.key, (uint32_t)(u.key >> 32) };
	uint32_t counter[4] = { (uint32_t)group, (uint32_t)(group >> 32), 0, u.step };

	if (sizeof(M) == sizeof(float))
		return; /* nothing is rounded */
	philox4x32_10(of_m, counter, key);
	counter[2] = 1;
	philox4x32_10(of_v, counter, key);
}

DEVICE float weight_at(const struct update &u, size_t i)
{
	return u.lower ? float_of_halves({ u.narrow[i], u.lower[i] }) : u.weight[i];
}

DEVICE void put_weight(const struct update &u, size_t i, float x)
{
	struct halves h = halves_of_float(x);

	if (u.lower) {
		u.narrow[i] = h.narrow;
		u.lower[i] = h.lower;
		return;
	}
	u.weight[i] = x;
	if (u.narrow)
		((bf16 *)u.narrow)[i] = narrow(x);
}

/* Element i of the range, with the random numbers of its group. */
template <typename M, typename G>
DEVICE void update_one(const struct update &u, size_t i, const uint32_t of_m[4],
		       const uint32_t of_v[4])
{
	M *m = (M *)u.m + i, *v = (M *)u.v + i;
	int piece = (int)((u.first + i) % GROUP);
	struct one x = { weight_at(u, i), widen(*m), widen(*v) };

	x = updated<M>(u, x, widen(((const G *)u.grad)[i]));
	put_weight(u, i, x.weight);
	put_by_chance(*m, x.m, piece_of(of_m, piece));
	put_by_chance(*v, x.v, piece_of(of_v, piece));
}

/* Eight weights by vectors of 16 bytes. */
DEVICE void load_weights(const struct update &u, size_t group, float (&w)[GROUP])
{
	if (!u.lower) {
		load<float, GROUP>(w, u.weight, group);
		return;
	}
	vector<uint16_t, GROUP> narrow = ((const vector<uint16_t, GROUP> *)u.narrow)[group];
	vector<uint16_t, GROUP> lower = ((const vector<uint16_t, GROUP> *)u.lower)[group];
#pragma unroll
	for (int j = 0; j < GROUP; j++)
		w[j] = float_of_halves({ narrow.v[j], lower.v[j] });
}

DEVICE void store_weights(const struct update &u, size_t group, const float (&w)[GROUP])
{
	vector<uint16_t, GROUP> narrow, lower;

	if (!u.lower) {
		store<float, GROUP>(u.weight, group, w);
		if (u.narrow)
			store<bf16, GROUP>(u.narrow, group, w);
		return;
	}
#pragma unroll
	for (int j = 0; j < GROUP; j++) {
		struct halves h = halves_of_float(w[j]);
		narrow.v[j] = h.narrow;
		lower.v[j] = h.lower;
	}
	((vector<uint16_t, GROUP> *)u.narrow)[group] = narrow;
	((vector<uint16_t, GROUP> *)u.lower)[group] = lower;
}

/* Eight from a multiple of eight on, by vectors of 16 bytes. */
template <typename M, typename G>
DEVICE void update_group(const struct update &u, size_t i, const uint32_t of_m[4],
			 const uint32_t of_v[4])
{
	vector<M, GROUP> m = ((vector<M, GROUP> *)u.m)[i / GROUP];
	vector<M, GROUP> v = ((vector<M, GROUP> *)u.v)[i / GROUP];
	float w[GROUP], g[GROUP];

	load_weights(u, i / GROUP, w);
	load<G, GROUP>(g, u.grad, i / GROUP);
#pragma unroll
	for (int j = 0; j < GROUP; j++) {
		struct one x = { w[j], widen(m.v[j]), widen(v.v[j]) };
		x = updated<M>(u, x, g[j]);
		w[j] = x.weight;
		put_by_chance(m.v[j], x.m, piece_of(of_m, j));
		put_by_chance(v.v[j], x.v, piece_of(of_v, j));
	}
	((vector<M, GROUP> *)u.m)[i / GROUP] = m;
	((vector<M, GROUP> *)u.v)[i / GROUP] = v;
	store_weights(u, i / GROUP, w);
}

template <typename M, typename G> KERNEL(BLOCK) adamw(struct update u)
{
	after_earlier();
	const struct step_control d = *u.control;
	uint64_t group = u.first / GROUP + flat_index();
	uint64_t begin = group * GROUP, end = begin + GROUP;
	uint32_t of_m[4] = { 0 }, of_v[4] = { 0 };

	if (d.is_left_out || begin >= u.first + u.count)
		return;
	u.lr = d.lr * u.rate;
	u.grad_scale = d.grad_scale;
	u.to_m_hat = d.to_m_hat;
	u.to_v_hat = d.to_v_hat;
	u.step = d.step;
	random_words<M>(u, group, of_m, of_v);
	if (u.wide && begin >= u.first && end <= u.first + u.count) {
		update_group<M, G>(u, begin - u.first, of_m, of_v);
		return;
	}
	begin = begin < u.first ? u.first : begin;
	end = end > u.first + u.count ? u.first + u.count : end;
	for (uint64_t i = begin; i < end; i++)
		update_one<M, G>(u, i - u.first, of_m, of_v);
}

extern "C" void cuda_adamw(struct device *dev, float *weight, void *m, void *v, const void *grad,
			   size_t count, const struct adamw *a, const struct step_control *d)
{
	const struct place at = AT("adamw", count, 0, 0, 0);
	const void *narrow = cuda_narrow(dev, weight);
	uint16_t *lower = cuda_lower(dev, weight);
	struct update u = {};

	u.weight = weight;
	u.narrow = !lower && narrow == weight ? NULL : (uint16_t *)narrow; /* no copy is kept */
	u.lower = lower;
	u.m = m;
	u.v = v;
	u.grad = grad;
	u.count = count;
	u.beta1 = a->beta1;
	u.beta2 = a->beta2;
	u.eps = a->eps;
	u.weight_decay = a->weight_decay;
	u.rate = a->rate;
	u.first = a->first;
	u.key = a->key;
	u.control = d;
	const uintptr_t bits = (uintptr_t)weight | (uintptr_t)m | (uintptr_t)v | (uintptr_t)grad;

	bool is_split, narrow_gradient = a->narrow_gradient && dev->compute == COMPUTE_BF16;
	u.wide = bits % 16 == 0 && ((uintptr_t)u.narrow | (uintptr_t)lower) % 16 == 0 &&
		 a->first % GROUP == 0;
	if (count == 0)
		return;
	if (cuda_run(dev, weight, count, &is_split) < count) {
		cuda_fail(dev, &at, "matrices and vectors in one call");
		return;
	}
	size_t groups = (a->first + count - 1) / GROUP - a->first / GROUP + 1;
	if (a->bf16_moments)
		launch_flat(dev, at, narrow_gradient ? adamw<bf16, bf16> : adamw<bf16, float>,
			    groups, u);
	else
		launch_flat(dev, at, narrow_gradient ? adamw<float, bf16> : adamw<float, float>,
			    groups, u);
}
