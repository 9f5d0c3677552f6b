/* SPDX-License-Identifier: MIT */
/* backend.h - the operations a model needs from a device, as one table of functions.
 *
 * kernels/cpu is the definition of truth; every other backend fills the same table and must agree
 * with it per tensor within a written tolerance.
 *
 * Rules that hold for every operation:
 *  - All tensors are row-major fp32 in device memory (alloc), owned by the caller, borrowed for
 *    the call, and may not overlap unless the comment says "in place".
 *  - Operations are queued on the device in call order and may return before they are done. They
 *    return nothing: the first failure sticks to the device and finish() tells it. upload and
 *    download are ordered with them; download returns when the bytes are there.
 *  - Nothing is allocated after the first call with the largest shapes.
 *  - Results depend on the inputs only: not on the number of threads, the time, or the addresses.
 *
 * Letters in shapes: N rows (batch * sequence), T sequence, D model width, H heads, G key/value
 * heads, C width of one head, F width of the feed-forward, V vocabulary. */
#ifndef KERNELS_BACKEND_H
#define KERNELS_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BACKEND_ABI = 2, BACKEND_TEXT_BYTES = 256 };

struct device;			/* one opened device: its memory, its queue, its threads */

struct backend_options {
	int threads;				/* host threads; 0 = as many as we may run on */
	void (*warn)(const char *text);		/* told once what makes us slower; may be NULL */
};

/* C[m,n] = op(A)[m,k] op(B)[k,n] + beta C, where op(X) is X, or X transposed in memory when the
 * flag is set (A is then stored [k,m], B [n,k]). ld* = elements from one stored row to the next.
 * beta is 0 (C is not read) or 1. */
struct gemm {
	size_t m, n, k;
	const float *a, *b;
	float *c;
	size_t lda, ldb, ldc;
	bool trans_a, trans_b;
	float beta;
};

/* Causal self-attention with grouped key/value heads: query head h uses key/value head h/(H/G).
 * qkv [batch*T, (H+2G)*C]: H query heads, then G key heads, then G value heads in each row; when
 * interleaved (G = H, as GPT-NeoX stores it) query, key and value of head 0, then of head 1, ... */
struct attention {
	size_t batch, seq, heads, kv_heads, head_dim;
	size_t rotary;		/* leading elements of a head that rope() turns, even; 0: all */
	bool interleaved;
};

/* Hendrycks & Gimpel 2016: x times the normal distribution function of x, or its approximation by
 * a tanh, which GPT-2 was trained with. */
enum gelu_form { GELU_ERF, GELU_TANH };

/* AdamW as in Loshchilov & Hutter 2019, algorithm 2 (decoupled decay), bias-corrected:
 *   g' = g*grad_scale;  m = b1 m + (1-b1) g';  v = b2 v + (1-b2) g'^2
 *   w -= lr * (m/(1-b1^t) / (sqrt(v/(1-b2^t)) + eps) + weight_decay * w) */
struct adamw {
	float lr, beta1, beta2, eps, weight_decay, grad_scale;
	int64_t step;		/* t, from 1 */
};

struct backend {
	uint32_t abi_version;	/* BACKEND_ABI */
	uint32_t struct_bytes;	/* sizeof(struct backend): an older table is refused, not guessed */
	const char *name;

	/* NULL with a line in why[BACKEND_TEXT_BYTES] when the device cannot be used. */
	struct device *(*open)(const struct backend_options *options, char *why);
	void (*close)(struct device *dev);	/* NULL is fine */
	/* One line for people: threads, instructions, libraries. Borrowed. */
	const char *(*describe)(const struct device *dev);
	/* Waits for everything queued. 0, or -1 with the first failure since open in why. */
	int (*finish)(struct device *dev, char *why);

	/* Zeroed and pre-touched, aligned to 64 bytes; NULL when there is no room. */
	void *(*alloc)(struct device *dev, size_t bytes);
	/* Bytes that alloc may still hand out before the device, or what confines us, is full. */
	uint64_t (*available)(const struct device *dev);
	void (*free)(struct device *dev, void *memory);
	void (*upload)(struct device *dev, void *to, const void *from_host, size_t bytes);
	void (*download)(struct device *dev, void *to_host, const void *from, size_t bytes);
	void (*zero)(struct device *dev, void *memory, size_t bytes);

	void (*gemm)(struct device *dev, const struct gemm *g);

	/* out[N,D] = table[tokens[N], D]; tokens are below V (the caller checked). */
	void (*embed_forward)(struct device *dev, float *out, const float *table,
			      const int32_t *tokens, size_t rows, size_t dim);
	/* dtable[tokens[r]] += dout[r], in row order. */
	void (*embed_backward)(struct device *dev, float *dtable, const float *dout,
			       const int32_t *tokens, size_t rows, size_t dim);

	/* sum = x + delta (delta may be NULL: then sum is not written and may be NULL);
	 * rstd[r] = 1/sqrt(mean(sum^2) + eps);  out = sum * rstd * weight[D].  Zhang & Sennrich 2019. */
	void (*rmsnorm_forward)(struct device *dev, float *out, float *rstd, float *sum,
				const float *x, const float *delta, const float *weight,
				size_t rows, size_t dim, float eps);
	/* dx += gradient through the norm (the residual's own gradient is already in dx);
	 * dweight[D] (+)= sum over rows, replaced when !accumulate. x is what was normed. */
	void (*rmsnorm_backward)(struct device *dev, float *dx, float *dweight, const float *dout,
				 const float *x, const float *rstd, const float *weight,
				 size_t rows, size_t dim, bool accumulate);

	/* mean[r], rstd[r] = 1/sqrt(variance + eps) of sum = x + delta (as in rmsnorm_forward);
	 * out = (sum - mean) * rstd * weight[D] + bias[D].  Ba, Kiros & Hinton 2016. */
	void (*layernorm_forward)(struct device *dev, float *out, float *mean, float *rstd,
				  float *sum, const float *x, const float *delta,
				  const float *weight, const float *bias, size_t rows, size_t dim,
				  float eps);
	/* As rmsnorm_backward, with dbias[D] beside dweight[D]. */
	void (*layernorm_backward)(struct device *dev, float *dx, float *dweight, float *dbias,
				   const float *dout, const float *x, const float *mean,
				   const float *rstd, const float *weight, size_t rows, size_t dim,
				   bool accumulate);

	/* y[N,D] += bias[D], in place; dbias[D] (+)= sum over rows of dy, replaced when
	 * !accumulate. */
	void (*bias_forward)(struct device *dev, float *y, const float *bias, size_t rows,
			     size_t dim);
	void (*bias_backward)(struct device *dev, float *dbias, const float *dy, size_t rows,
			      size_t dim, bool accumulate);

	/* Learned positions: x[r] += table[r % T], in place; dtable[t] (+)= sum over the rows at
	 * t of dx. table has at least T rows of D; those behind T are left alone. */
	void (*positions_forward)(struct device *dev, float *x, const float *table, size_t rows,
				  size_t seq, size_t dim);
	void (*positions_backward)(struct device *dev, float *dtable, const float *dx, size_t rows,
				   size_t seq, size_t dim, bool accumulate);

	/* With R = rotary: rotates query and key heads of qkv in place by their position
	 * (row % T): the pair (i, i + R/2) turns by angle[pos][i], as Hugging Face stores Llama
	 * and GPT-NeoX (half-rotate); elements behind R stay. table [T, R/2, 2] holds cos, sin.
	 * inverse = the transposed rotation, for backward. */
	void (*rope)(struct device *dev, float *qkv, const float *table, const struct attention *a,
		     bool inverse);

	/* out [batch*T, H*C], lse [batch, H, T] = log sum exp of the scaled scores (1/sqrt(C)). */
	void (*attention_forward)(struct device *dev, float *out, float *lse, const float *qkv,
				  const struct attention *a);
	/* dqkv is written whole. */
	void (*attention_backward)(struct device *dev, float *dqkv, const float *dout,
				   const float *out, const float *lse, const float *qkv,
				   const struct attention *a);

	/* gate_up [N, 2F]: F gates, then F ups.  out[N,F] = silu(gate) * up.  Shazeer 2020. */
	void (*swiglu_forward)(struct device *dev, float *out, const float *gate_up, size_t rows,
			       size_t width);
	/* dgate_up may be gate_up itself (in place). */
	void (*swiglu_backward)(struct device *dev, float *dgate_up, const float *dout,
				const float *gate_up, size_t rows, size_t width);

	void (*gelu_forward)(struct device *dev, float *out, const float *x, size_t count,
			     enum gelu_form form);
	/* dx may be x itself (in place). */
	void (*gelu_backward)(struct device *dev, float *dx, const float *dout, const float *x,
			      size_t count, enum gelu_form form);

	/* loss[r] = log sum exp(logits[r]) - logits[r][target[r]], computed in fp32 with the
	 * maximum taken out. In place, logits become their gradient times `scale`; with scale 0
	 * they are left alone. The caller feeds a large head in chunks of rows. */
	void (*cross_entropy)(struct device *dev, float *loss, float *logits,
			      const int32_t *targets, size_t rows, size_t vocab, float scale);

	/* Sum of squares in a fixed order, in fp64. Waits, as download does. */
	double (*sum_squares)(struct device *dev, const float *x, size_t count);
	void (*adamw)(struct device *dev, float *weight, float *m, float *v, const float *grad,
		      size_t count, const struct adamw *a);
};

extern const struct backend backend_cpu;

#endif
