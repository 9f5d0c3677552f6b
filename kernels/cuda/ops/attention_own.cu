/* SPDX-License-Identifier: MIT */
/* attention_own.cu - causal attention for what cuDNN does not do here: fp32, odd shapes, windows,
 * documents and softcaps, and a backward pass whose bits never change. Plain rather than fast;
 * nothing is added by atomics.
 *
 *   p = softmax(scale q k^T)     out = p v        lse = log sum exp of a row of scores
 *   dv = p^T dout     dp = dout v^T     ds = p (dp - dout . out) scale     dq = ds k     dk = ds^T
 * q
 *
 * Forward and dq: a block owns one query; a thread takes every blockDim-th key for the scores,
 * which lie in shared memory, ROOM of them at a time, then every blockDim-th channel of the output.
 * dk and dv: a block owns one key, and its threads split the queries behind it the same way. */
#include "kernels/cuda/ops/kernel.cuh"

#include "kernels/cuda/heads.h"

enum { THREADS = 128, ROOM = 32 * THREADS, CHANNELS_MAX = 1024 };

struct pass {
	struct attention a;
	struct heads at;
	float scale;
	const void *qkv, *dout, *saved;
	void *out;          /* forward: out; backward: dqkv */
	float *lse, *along; /* [B,H,T]; along: dout . out */
};

template <typename T> DEVICE const T *row_of(const struct pass &p, size_t batch, size_t t)
{
	return (const T *)p.qkv + (batch * p.a.seq + t) * p.at.row;
}

/* out and dout: [B,T,H,C] */
DEVICE size_t out_at(const struct pass &p, size_t batch, size_t t, size_t head)
{
	return ((batch * p.a.seq + t) * p.a.heads + head) * p.a.head_dim;
}

template <typename T> DEVICE float dot(const T *x, const T *y, size_t count)
{
	float sum = 0.0f;

	for (size_t i = 0; i < count; i++)
		sum += widen(x[i]) * widen(y[i]);
	return sum;
}

/* The first key that query t sees: what struct attention says of window and begin. */
DEVICE size_t sight(const struct pass &p, size_t batch, size_t t)
{
	size_t first = p.a.window > 0 && t >= p.a.window ? t - p.a.window + 1 : 0;
	size_t given = p.a.begin ? (size_t)p.a.begin[batch * p.a.seq + t] : 0;

	return first > given ? first : given;
}

/* Behind the last query that sees key s: sights never fall. */
DEVICE size_t seen_until(const struct pass &p, size_t batch, size_t s)
{
	size_t t = s + 1;

	if (p.a.window == 0 && !p.a.begin)
		return p.a.seq;
	while (t < p.a.seq && sight(p, batch, t) <= s)
		t++;
	return t;
}

DEVICE float capped(const struct pass &p, float score)
{
	return p.a.softcap > 0.0f ? p.a.softcap * tanhf(score / p.a.softcap) : score;
}

DEVICE size_t room_end(size_t first, size_t end)
{
	return end - first > ROOM ? first + ROOM : end;
}

/* blockIdx = (batch, head, t), t fastest */
DEVICE void split(const struct pass &p, size_t heads, size_t *batch, size_t *head, size_t *t)
{
	*t = blockIdx.x % p.a.seq;
	*head = blockIdx.x / p.a.seq % heads;
	*batch = blockIdx.x / p.a.seq / heads;
}

template <typename T>
DEVICE float score_of(const struct pass &p, size_t batch, size_t head, size_t t, size_t s)
{
	size_t shared_head = head / (p.a.heads / p.a.kv_heads);
	const T *q = row_of<T>(p, batch, t) + p.at.query + head * p.at.step;
	const T *k = row_of<T>(p, batch, s) + p.at.key + shared_head * p.at.step;

	return capped(p, dot(q, k, p.a.head_dim) * p.scale);
}

/* to [C] += the sum over keys first <= s < end of weight[s - first] times what stands at `at` of
 * their rows. All threads have written weights before, and may write the next ones behind it. */
template <typename T>
DEVICE void add_keys(const struct pass &p, size_t batch, size_t first, size_t end,
		     const float *weight, size_t at, float *to)
{
	__syncthreads();
	for (size_t i = threadIdx.x; i < p.a.head_dim; i += blockDim.x) {
		float x = to[i];
		for (size_t s = first; s < end; s++)
			x += weight[s - first] * widen(row_of<T>(p, batch, s)[at + i]);
		to[i] = x;
	}
	__syncthreads();
}

template <typename T> KERNEL(THREADS) own_forward(struct pass p)
{
	after_earlier();
	SHARED_FLOATS(score); /* [ROOM], then out [C] */
	float *out = score + ROOM, max = -INFINITY, sum = 0.0f;
	size_t batch, head, t, c = p.a.head_dim;

	split(p, p.a.heads, &batch, &head, &t);
	size_t value = p.at.value + head / (p.a.heads / p.a.kv_heads) * p.at.step;
	size_t from = sight(p, batch, t);
	for (size_t s = from + threadIdx.x; s <= t; s += blockDim.x) {
		float x = score_of<T>(p, batch, head, t, s);
		if (s - from < ROOM) /* the others are computed once more */
			score[s - from] = x;
		max = fmaxf(max, x);
	}
	max = block_max(max);
	for (size_t i = threadIdx.x; i < c; i += blockDim.x)
		out[i] = 0.0f;
	for (size_t first = from, end; first <= t; first = end) {
		end = room_end(first, t + 1);
		for (size_t s = first + threadIdx.x; s < end; s += blockDim.x) {
			float x = first == from ? score[s - first]
						: score_of<T>(p, batch, head, t, s);
			score[s - first] = expf(x - max);
			sum += score[s - first];
		}
		add_keys<T>(p, batch, first, end, score, value, out);
	}
	sum = block_sum(sum);
	if (threadIdx.x == 0)
		p.lse[(batch * p.a.heads + head) * p.a.seq + t] = max + logf(sum);
	for (size_t i = threadIdx.x; i < c; i += blockDim.x)
		put(((T *)p.out)[out_at(p, batch, t, head) + i], out[i] / sum);
}

template <typename T> KERNEL(BLOCK) own_along(struct pass p)
{
	after_earlier();
	size_t i = flat_index(), t = i % p.a.seq, head = i / p.a.seq % p.a.heads;
	size_t batch = i / p.a.seq / p.a.heads;

	if (batch >= p.a.batch)
		return;
	size_t at = out_at(p, batch, t, head);
	p.along[i] = dot((const T *)p.dout + at, (const T *)p.saved + at, p.a.head_dim);
}

/* ds of one (query, key); *probability is p. */
template <typename T>
DEVICE float slope(const struct pass &p, size_t batch, size_t head, size_t t, size_t s,
		   float *probability)
{
	size_t shared_head = head / (p.a.heads / p.a.kv_heads), c = p.a.head_dim;
	size_t at = (batch * p.a.heads + head) * p.a.seq + t;
	const T *value = row_of<T>(p, batch, s) + p.at.value + shared_head * p.at.step;
	const T *dout = (const T *)p.dout + out_at(p, batch, t, head);

	float score = score_of<T>(p, batch, head, t, s);
	float share = p.a.softcap > 0.0f ? score / p.a.softcap : 0.0f; /* of the cap */
	*probability = expf(score - p.lse[at]);
	return *probability * (dot(dout, value, c) - p.along[at]) * p.scale *
	       (1.0f - share * share);
}

template <typename T> KERNEL(THREADS) own_query_backward(struct pass p)
{
	after_earlier();
	SHARED_FLOATS(ds); /* [ROOM], then dq [C] */
	float *dq = ds + ROOM, unused;
	size_t batch, head, t, c = p.a.head_dim;

	split(p, p.a.heads, &batch, &head, &t);
	size_t key = p.at.key + head / (p.a.heads / p.a.kv_heads) * p.at.step;
	size_t query = p.at.query + head * p.at.step;
	for (size_t i = threadIdx.x; i < c; i += blockDim.x)
		dq[i] = 0.0f;
	for (size_t first = sight(p, batch, t), end; first <= t; first = end) {
		end = room_end(first, t + 1);
		for (size_t s = first + threadIdx.x; s < end; s += blockDim.x)
			ds[s - first] = slope<T>(p, batch, head, t, s, &unused);
		add_keys<T>(p, batch, first, end, ds, key, dq);
	}
	for (size_t i = threadIdx.x; i < c; i += blockDim.x)
		put(((T *)p.out)[(batch * p.a.seq + t) * p.at.row + query + i], dq[i]);
}

/* What queries first <= t < end of a head add to the key's dk [C], dv [C]. */
template <typename T>
DEVICE void add_queries(const struct pass &p, size_t batch, size_t head, size_t s, size_t first,
			size_t end, float *dkv)
{
	SHARED_FLOATS(ds); /* [ROOM], then p [ROOM] */
	float *probability = ds + ROOM;
	size_t query = p.at.query + head * p.at.step;
	uint32_t count = (uint32_t)(end - first), c = (uint32_t)p.a.head_dim;

	for (uint32_t t = threadIdx.x; t < count; t += blockDim.x)
		ds[t] = slope<T>(p, batch, head, first + t, s, &probability[t]);
	__syncthreads();
	for (uint32_t i = threadIdx.x; i < c; i += blockDim.x)
		for (uint32_t t = 0; t < count; t++) {
			dkv[i] += ds[t] * widen(row_of<T>(p, batch, first + t)[query + i]);
			dkv[c + i] +=
				probability[t] *
				widen(((const T *)p.dout)[out_at(p, batch, first + t, head) + i]);
		}
	__syncthreads(); /* the next ones are written over these */
}

template <typename T> KERNEL(THREADS) own_key_backward(struct pass p)
{
	after_earlier();
	__shared__ float dkv[2 * CHANNELS_MAX]; /* dk, dv, added up over heads */
	size_t batch, kv_head, s, group = p.a.heads / p.a.kv_heads, c = p.a.head_dim;

	split(p, p.a.kv_heads, &batch, &kv_head, &s);
	size_t until = seen_until(p, batch, s);
	for (size_t i = threadIdx.x; i < c; i += blockDim.x)
		dkv[i] = dkv[c + i] = 0.0f;
	for (size_t head = kv_head * group; head < (kv_head + 1) * group; head++)
		for (size_t first = s; first < until; first += ROOM)
			add_queries<T>(p, batch, head, s, first, room_end(first, until), dkv);
	T *row = (T *)p.out + (batch * p.a.seq + s) * p.at.row + kv_head * p.at.step;
	for (size_t i = threadIdx.x; i < c; i += blockDim.x) {
		put(row[p.at.key + i], dkv[i]);
		put(row[p.at.value + i], dkv[c + i]);
	}
}

extern "C" void cuda_own_attention_forward(struct device *dev, void *out, float *lse,
					   const void *qkv, const struct attention *a)
{
	const struct place at = AT("attention_forward", a->batch, a->seq, a->heads, a->head_dim);
	struct pass p = { *a, heads_of(a), attention_scale(a), qkv, NULL, NULL, out, lse, NULL };

	launch(dev, at, EITHER(dev, own_forward), a->batch * a->heads * a->seq, THREADS,
	       (ROOM + a->head_dim) * sizeof(float), p);
}

extern "C" void cuda_own_attention_backward(struct device *dev, void *dqkv, const void *dout,
					    const void *out, const float *lse, const void *qkv,
					    const struct attention *a)
{
	const struct place at = AT("attention_backward", a->batch, a->seq, a->heads, a->head_dim);
	size_t queries = a->batch * a->heads * a->seq;
	float *along = (float *)cuda_scratch(dev, &at, queries * sizeof(float));
	struct pass p = { *a,  heads_of(a), attention_scale(a), qkv,  dout,
			  out, dqkv,        (float *)lse,       along };

	if (!along)
		return;
	if (a->head_dim > CHANNELS_MAX) {
		cuda_fail(dev, &at, "heads are wider than 1024");
		return;
	}
	launch_flat(dev, at, EITHER(dev, own_along), queries, p);
	launch(dev, at, EITHER(dev, own_query_backward), queries, THREADS,
	       (ROOM + a->head_dim) * sizeof(float), p);
	launch(dev, at, EITHER(dev, own_key_backward), a->batch * a->kv_heads * a->seq, THREADS,
	       2 * ROOM * sizeof(float), p);
}
