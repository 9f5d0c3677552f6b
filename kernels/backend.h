/* SPDX-License-Identifier: MIT */
/* kernels/ - what a model computes, on any device.
 *
 * backend.h - the operations a model needs from a device, as one table of functions.
 *
 * kernels/cpu is the definition of truth; every other backend fills the same table and must agree
 * with it per tensor within a written tolerance.
 *
 * Rules that hold for every operation:
 *  - All tensors are row-major in device memory (alloc), owned by the caller, borrowed for the
 *    call, and may not overlap unless the comment says "in place". `void *` is an activation, in
 *    the type the device was opened to compute in; `float *` is fp32 whatever that is: weights,
 *    their gradients, moments, statistics of rows, losses. Sums are fp32 at least.
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

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BACKEND_ABI = 15, BACKEND_TEXT_BYTES = 256 };

struct format; /* kernels/formats/format.h */
struct encoding;
struct operand_use; /* kernels/formats/operand.h */
struct operand_cast;
struct device; /* one opened device: its memory, its queue, its threads */

/* What activations are stored in and multiplied in. BF16_WIDE: numbers of bf16 in places of fp32,
 * which is how a CPU does it. */
enum compute { COMPUTE_FP32, COMPUTE_BF16, COMPUTE_BF16_WIDE, COMPUTE_COUNT };

static inline size_t compute_bytes(enum compute compute)
{
	return compute == COMPUTE_BF16 ? 2 : 4;
}

enum { SQUARES_PIECE = 16384 };
enum { MOMENTS_SHARE = 256, MOMENTS_CODES = 256 };

struct backend_options {
	int threads;                    /* host threads; 0 = one for each core we may run on */
	void (*warn)(const char *text); /* told once what makes us slower; may be NULL */
	enum compute compute;
	bool deterministic; /* the same bits every time, where that costs time */
	/* which GPU of those that are visible; -1: number $LOCAL_RANK where there are several, else
	 * the first */
	int index;
	const char *cache; /* folder for what was measured; NULL: not kept */
};

/* Hendrycks & Gimpel 2016: x times the normal distribution function of x, or its approximation by
 * a tanh, which GPT-2 was trained with. */
enum gelu_form { GELU_ERF, GELU_TANH };

/* What becomes of a product's result R: nothing; GELU: kept = R, C = gelu(R); GELU_BACKWARD: C = R
 * times the slope of gelu at kept. kept[m,n] is an activation whose rows are ldc = n apart; beta is
 * 0. */
enum gemm_then { GEMM_PLAIN, GEMM_GELU, GEMM_GELU_BACKWARD };

/* C[m,n] = alpha op(A)[m,k] op(B)[k,n] + beta C + bias, where op(X) is X, or X transposed in memory
 * when the flag is set (A is then stored [k,m], B [n,k]). ld* = elements from one stored row to the
 * next. beta is 0 (C is not read) or 1. bias[n] is fp32, part of the weights, and may be NULL. What
 * is behind a and c is an activation; b is too, unless it is a piece of weights (fp32); c is a
 * gradient of weights (fp32) when it says so.
 * sum_a[m] and sum_b[n], where not NULL, get the sums over k of op(A) and op(B), as C of its
 * product: replaced with beta 0, else added to; fp32. They ask for A transposed with lda = m, for B
 * as it lies with ldb = n. (A gradient of weights is dy^T x; that of their bias is the sum of
 * dy.)
 * use_a, use_b: A and B as numbers of few bits (operand.h); NULL: as they are. Where both are
 * integers whose scales do not change along k (at most 131,071), the sum over k is one of integers,
 * exact on CPUs: C[i,j] = alpha (a_i (b_j sum)) + ... in fp32, with the scales a and b. Bias and
 * the sums know nothing of any of it. A device that has no such products leaves `quantize` NULL and
 * is not asked. only_faster: where the product of A and B as they are takes less time, on a device
 * that has both, it is that which is made; what a device would emulate takes more.
 * shared, not NULL: the one of a and b that two products in a row have, unchanged: this one and the
 * next where is_first, else the one before and this one. What becomes of it may be made once for
 * both; next: the other one, where is_first, whose C may still be NULL; NULL: it is not told.
 * aside: what is queued behind it, up to the next join(), neither reads C nor writes A, B or C; so
 * it may run beside that. */
struct gemm {
	size_t m, n, k;
	const void *a, *b;
	void *c;
	const float *bias;
	float *sum_a, *sum_b;
	enum gemm_then then;
	enum gelu_form gelu;
	void *kept;
	bool b_is_weight, c_is_gradient, aside;
	size_t lda, ldb, ldc;
	bool trans_a, trans_b;
	float alpha, beta;
	const struct operand_use *use_a, *use_b;
	bool only_faster, is_first;
	const void *shared;
	const struct gemm *next;
};

/* A matrix as it lies in memory; k_along_memory: what is summed over goes along its rows. */
struct stored {
	size_t rows, columns, ld;
	bool k_along_memory;
};

/* Causal self-attention with grouped key/value heads: query head h uses key/value head h/(H/G).
 * qkv [batch*T, (H+2G)*C]: H query heads, then G key heads, then G value heads in each row; when
 * interleaved (G = H, as GPT-NeoX stores it) query, key and value of head 0, then of head 1, ... */
struct attention {
	size_t batch, seq, heads, kv_heads, head_dim;
	size_t rotary; /* leading elements of a head that rope() turns, even; 0: all */
	bool interleaved;
	float scale; /* of the scores; 0: 1/sqrt(C) */
	/* Of each sequence, the queries whose result is wanted, `queries` of them from `first` on,
	 * and as many from `late` on, behind those; 0: all, and no late ones. What stands behind
	 * the last of them in qkv is not looked at, and of the others' results anything may be
	 * written. Backward: of queries the gradients of these are written, of keys and values
	 * the sums over these. Devices that no ranks compute on know `first` and `queries` only,
	 * forward only. */
	size_t first, queries, late;
	/* What follows only where `masks_attention` says so. A query sees itself and the keys
	 * before it, but no more than `window` in all, and none before begin[query], a position of
	 * its sequence that never falls. Scores become cap tanh(score/cap). 0 or NULL: nothing of
	 * it. */
	size_t window;
	const int32_t *begin; /* [batch*T] */
	float softcap;
};
static inline float attention_scale(const struct attention *a)
{
	return a->scale != 0.0f ? a->scale : 1.0f / sqrtf((float)a->head_dim);
}

/* RMSNorm of query and key heads, as they lie in rows of qkv (struct attention, not interleaved):
 * each head by itself with weights [C] that all share, or, when `whole`, all heads of a row as one,
 * with weights [H*C] for queries and [G*C] for keys. */
struct qk_norm {
	size_t rows, heads, kv_heads, head_dim;
	bool whole;
	float eps;
};

/* What a loss has beside the cross-entropy: smoothing e (Szegedy et al. 2016) takes (1-e)[j =
 * target] + e/V for the target's distribution; z_loss z (Chowdhery et al. 2022) adds z log^2 sum
 * exp; with a softcap logits are results of softcap(), and their gradient is that of what went in.
 * All zero: plain. */
struct loss_terms {
	float smoothing, z_loss, softcap;
};

/* Rows that go to K of E experts each (Shazeer et al. 2017). Of a row's logits come scores: their
 * softmax, or sigmoids (DeepSeek-AI 2024). The K largest, of two alike the first, are its choices,
 * in rising order of experts; their weights are the scores, divided by their sum when `normed` (of
 * sigmoids 1e-20 more), times `scale`. Every choice has a place in the order of experts, then of
 * rows. */
struct routing {
	size_t rows, experts, top; /* N, E, K */
	bool sigmoid, normed;
	float scale;
	/* device memory, written by route_forward, read by all others */
	float *scores;   /* [N,E] */
	float *weight;   /* [N,K] */
	int32_t *expert; /* [N,K] */
	int32_t *place;  /* [N,K] of each choice; */
	int32_t *choice; /* [N*K] and the choice of each place, as row * K + k */
	int32_t *begin;  /* [E+1] first place of each expert, and N*K */
};

/* The ranges of queries: one, or two. */
static inline int attention_ranges(const struct attention *a, size_t from[2], size_t to[2])
{
	from[0] = a->queries ? a->first : 0;
	to[0] = a->queries ? a->first + a->queries : a->seq;
	from[1] = a->late;
	to[1] = a->late + a->queries;
	return a->late ? 2 : 1;
}

/* Tokens [first, first + count) of a vocabulary that is cut into `slices`. */
struct vocab_slice {
	size_t first, count, slices;
};

/* Elements [first, first + count) of an array, of which this rank keeps [own_first, own_first +
 * own_count). The rest is as `rest` says: it stays; it may be written, but is never read; or, from
 * 0 on, it is here in turn with the rests of all others of that number: what is written to one of
 * them is lost for the others. */
enum { REST_STAYS = -1, REST_IS_LOST = -2 };
struct share {
	size_t first, count, own_first, own_count;
	int rest;
};

/* Of a row of logits in a slice: the largest, the sum of e^(logit - largest), and the target's
 * logit, 0 where the target is another's. */
struct loss_part {
	float max, sum, target;
};

/* What changes from step to step, in device memory, so that a step can be one recorded program that
 * the host does not interrupt. The host writes the first half before the step, the device the
 * second. */
struct step_control {
	double norm_limit; /* a larger norm of the gradient leaves the step out; or INFINITY */
	double norm_most;  /* a larger norm is scaled down to this one; 0: none is */
	float lr;
	float to_m_hat, to_v_hat; /* 1/(1-beta^t) */
	uint32_t step;            /* t, from 1: of the steps that were not left out */

	double loss_sum, squares; /* of all losses, of all gradients */
	double first_squares; /* of the gradient of the first micro-batch, where it is asked for */
	float grad_scale;
	uint32_t is_left_out; /* a sum is no finite number, or the norm above its limit */
};

/* AdamW as in Loshchilov & Hutter 2019, algorithm 2 (decoupled decay), bias-corrected:
 *   g' = g*grad_scale;  m = b1 m + (1-b1) g';  v = b2 v + (1-b2) g'^2
 *   w -= lr * rate * (m/(1-b1^t) / (sqrt(v/(1-b2^t)) + eps) + weight_decay * w) */
struct adamw {
	float beta1, beta2, eps, weight_decay;
	float rate; /* of these weights, as a share of lr */
	/* Moments in bf16, rounded stochastically: up with the probability that keeps the mean. The
	 * 16 random bits for element i of m are piece i mod 8 of Philox(counter { i/8 (64 bits), 0,
	 * t }, key), those for v of the counter { i/8, 1, t }; i counts from `first` on. */
	bool bf16_moments;
	bool narrow_gradient; /* it is an activation, in the type that the device computes in */
	uint64_t first, key;
};

/* Normal numbers of mean 0, the same bits on every device: element e = first + i is number e mod 4
 * of those that kernels/normal.h makes of Philox(counter { e/4 (64 bits), tensor, step }, key).
 * `first` is a multiple of 4. */
struct normal {
	uint64_t key;
	uint32_t tensor, step;
	uint64_t first;
	double std;
};

enum { HOLDINGS_MAX = 24 };

/* Who holds the memory of a device of its own. */
struct memory_use {
	uint64_t total, available; /* bytes; what is neither held nor available is others' */
	struct {
		const char *what;
		uint64_t bytes;
	} held[HOLDINGS_MAX]; /* by us, added up by name */
	size_t count;
	const char *refused; /* what there was no room for; NULL: nothing yet */
	uint64_t refused_bytes;
};

struct backend {
	uint32_t abi_version;  /* BACKEND_ABI */
	uint32_t struct_bytes; /* sizeof(struct backend): an older table is refused, not guessed */
	const char *name;

	/* NULL with a line in why[BACKEND_TEXT_BYTES] when the device cannot be used. */
	struct device *(*open)(const struct backend_options *options, char *why);
	void (*close)(struct device *dev); /* NULL is fine */
	/* One line for people: threads, instructions, libraries. Borrowed. */
	const char *(*describe)(const struct device *dev);
	/* Waits for everything queued. 0, or -1 with the first failure since open in why. */
	int (*finish)(struct device *dev, char *why);

	/* Zeroed and pre-touched, aligned to 64 bytes; NULL when there is no room. `what` is a
	 * literal: the name of all memory of that kind when people are told who holds what. */
	void *(*alloc)(struct device *dev, size_t bytes, const char *what);
	/* The same for weights: fp32 [count], `matrices` of them first, then vectors. How the
	 * matrices lie in that memory is the device's affair, fp32 or not: only gemm and the
	 * forward tables read them, upload, normal and adamw write them, download and fetch give
	 * what was written, to the bit (of a NaN, that it is one). */
	float *(*alloc_weights)(struct device *dev, size_t count, size_t matrices);
	/* Bytes that alloc may still hand out before the device, or what confines us, is full. */
	uint64_t (*available)(const struct device *dev);
	void (*free)(struct device *dev, void *memory);
	void (*upload)(struct device *dev, void *to, const void *from_host, size_t bytes);
	void (*download)(struct device *dev, void *to_host, const void *from, size_t bytes);
	/* An activation of `count` elements, widened to fp32 on its way. */
	void (*download_activations)(struct device *dev, float *to_host, const void *from,
				     size_t count);
	void (*zero)(struct device *dev, void *memory, size_t bytes);

	/* to[i] = the normal number of element first + i. */
	void (*normal)(struct device *dev, float *to, size_t count, const struct normal *n);

	void (*gemm)(struct device *dev, const struct gemm *g);

	/* out[N,D] = table[tokens[N], D]; tokens are below V (the caller checked). */
	void (*embed_forward)(struct device *dev, void *out, const float *table,
			      const int32_t *tokens, size_t rows, size_t dim);
	/* dtable[tokens[r]] += dout[r], in row order. */
	void (*embed_backward)(struct device *dev, float *dtable, const void *dout,
			       const int32_t *tokens, size_t rows, size_t dim);

	/* sum = x + delta (delta may be NULL: then sum is not written and may be NULL);
	 * rstd[r] = 1/sqrt(mean(sum^2) + eps);  out = sum * rstd * weight[D].  Zhang & Sennrich
	 * 2019. */
	void (*rmsnorm_forward)(struct device *dev, void *out, float *rstd, void *sum,
				const void *x, const void *delta, const float *weight, size_t rows,
				size_t dim, float eps);
	/* dx += gradient through the norm (the residual's own gradient is already in dx);
	 * dweight[D] (+)= sum over rows, replaced when !accumulate. x is what was normed. */
	void (*rmsnorm_backward)(struct device *dev, void *dx, float *dweight, const void *dout,
				 const void *x, const float *rstd, const float *weight, size_t rows,
				 size_t dim, bool accumulate);

	/* mean[r], rstd[r] = 1/sqrt(variance + eps) of sum = x + delta (as in rmsnorm_forward);
	 * out = (sum - mean) * rstd * weight[D] + bias[D].  Ba, Kiros & Hinton 2016. */
	void (*layernorm_forward)(struct device *dev, void *out, float *mean, float *rstd,
				  void *sum, const void *x, const void *delta, const float *weight,
				  const float *bias, size_t rows, size_t dim, float eps);
	/* As rmsnorm_backward, with dbias[D] beside dweight[D]. */
	void (*layernorm_backward)(struct device *dev, void *dx, float *dweight, float *dbias,
				   const void *dout, const void *x, const float *mean,
				   const float *rstd, const float *weight, size_t rows, size_t dim,
				   bool accumulate);

	/* y[N,D] += bias[D], in place; dbias[D] (+)= sum over rows of dy, replaced when
	 * !accumulate. */
	void (*bias_forward)(struct device *dev, void *y, const float *bias, size_t rows,
			     size_t dim);
	void (*bias_backward)(struct device *dev, float *dbias, const void *dy, size_t rows,
			      size_t dim, bool accumulate);

	/* Learned positions: x[r] += table[r % T], in place; dtable[t] (+)= sum over the rows at
	 * t of dx. table has at least T rows of D; those behind T are left alone. */
	void (*positions_forward)(struct device *dev, void *x, const float *table, size_t rows,
				  size_t seq, size_t dim);
	void (*positions_backward)(struct device *dev, float *dtable, const void *dx, size_t rows,
				   size_t seq, size_t dim, bool accumulate);

	/* With R = rotary: rotates query and key heads of qkv in place by their position
	 * (row % T): the pair (i, i + R/2) turns by angle[pos][i], as Hugging Face stores Llama
	 * and GPT-NeoX (half-rotate); elements behind R stay. table [T, R/2, 2] holds cos, sin.
	 * inverse = the transposed rotation, for backward. */
	void (*rope)(struct device *dev, void *qkv, const float *table, const struct attention *a,
		     bool inverse);

	/* out [batch*T, H*C], lse [batch, H, T] = log sum exp of the scaled scores. */
	void (*attention_forward)(struct device *dev, void *out, float *lse, const void *qkv,
				  const struct attention *a);
	/* dqkv is written whole, of queries and keys before rope() turned them by that table (NULL:
	 * nothing did). */
	void (*attention_backward)(struct device *dev, void *dqkv, const void *dout,
				   const void *out, const float *lse, const void *qkv,
				   const float *table, const struct attention *a);

	/* gate_up [N, 2F]: F gates, then F ups.  out[N,F] = silu(gate) * up.  Shazeer 2020. */
	void (*swiglu_forward)(struct device *dev, void *out, const void *gate_up, size_t rows,
			       size_t width);
	/* dgate_up may be gate_up itself (in place). */
	void (*swiglu_backward)(struct device *dev, void *dgate_up, const void *dout,
				const void *gate_up, size_t rows, size_t width);

	void (*gelu_forward)(struct device *dev, void *out, const void *x, size_t count,
			     enum gelu_form form);
	/* dx may be x or dout itself (in place). */
	void (*gelu_backward)(struct device *dev, void *dx, const void *dout, const void *x,
			      size_t count, enum gelu_form form);

	/* loss[r] = log sum exp(logits[r]) - logits[r][target[r]], computed in fp32 with the
	 * maximum taken out. In place, logits become their gradient times `scale`; with scale 0
	 * they are left alone. The caller feeds a large head in chunks of rows. */
	void (*cross_entropy)(struct device *dev, float *loss, void *logits, const int32_t *targets,
			      size_t rows, size_t vocab, float scale);

	/* In a fixed order, in fp64: *sum (+)= sum of x^2, *sum (+)= sum of losses, replaced when
	 * !accumulate. x is fp32, or an activation when `narrow`. */
	void (*sum_squares)(struct device *dev, double *sum, const void *x, size_t count,
			    bool narrow, bool accumulate);
	void (*sum_losses)(struct device *dev, double *sum, const float *loss, size_t rows,
			   bool accumulate);
	/* From loss_sum and squares: grad_scale and is_left_out. */
	void (*decide)(struct device *dev, struct step_control *d);
	/* m and v hold fp32, or bf16 when `a` says so. Nothing is written when d->is_left_out. */
	void (*adamw)(struct device *dev, float *weight, void *m, void *v, const void *grad,
		      size_t count, const struct adamw *a, const struct step_control *d);

	/* --- numbers of few bits (kernels/formats/); NULL where a device has none of it --- */

	/* codes[i] of x[i]: uint8_t each where the format has at most 8 bits, else uint16_t. */
	void (*encode)(struct device *dev, void *codes, const float *x, size_t count,
		       const struct encoding *encoding);
	void (*decode)(struct device *dev, float *x, const void *codes, size_t count,
		       const struct format *format);
	/* x as a product of few bits sees it: codes times their scales, in fp32, to out [rows,
	 * columns] without gaps. Not in place. */
	void (*quantize)(struct device *dev, float *out, const float *x, const struct stored *shape,
			 const struct operand_use *use);
	/* Of x, in the type that the device computes in, codes of at most 8 bits with what is
	 * summed over along memory, [across][along], and of each tile that shares a scale this
	 * scale, [across][along]. What products of few bits are made of where a device has them in
	 * hardware. */
	void (*codes)(struct device *dev, uint8_t *codes, float *scales, const void *x,
		      const struct stored *shape, const struct operand_use *use);
	/* Between two steps, where histories (operand.h) are in the device's memory: in each of
	 * `count`, of AMAX_PAST + `length` floats, what is noted becomes the newest. NULL: the host
	 * does it. */
	void (*amax_step)(struct device *dev, float *histories, size_t count, size_t length);

	/* What an operation writes to `out` soon is an operand of these `count` products, the next
	 * that come, in their order, and nobody else writes there before they have run: so it may
	 * be made with the operation. Their C may still be NULL. NULL: nothing comes of it. */
	void (*expect)(struct device *dev, const void *out, const struct gemm *product,
		       size_t count);

	/* What an optimizer keeps in few bits. Moments: codes of a map, which are MOMENTS_CODES
	 * numbers that rise to 1, and a scale, the largest |x|, for each MOMENTS_SHARE elements
	 * from the first on: x = map[code] scale. */
	void (*moments_get)(struct device *dev, float *to, const uint8_t *codes,
			    const float *scales, size_t count, const float *map);
	void (*moments_put)(struct device *dev, uint8_t *codes, float *scales, const float *from,
			    size_t count, const float *map);
	/* Weights that are numbers of bf16, in places of fp32. narrow makes them so: to nearest, or
	 * by chance (by how->random, first and how.rounding). lost, which may be NULL, gets what is
	 * taken away, in bf16; widen gives it back (Kahan 1965). */
	void (*weights_widen)(struct device *dev, float *w, const uint16_t *lost, size_t count);
	void (*weights_narrow)(struct device *dev, float *w, uint16_t *lost, size_t count,
			       const struct encoding *how);

	/* mean[i] += share * (w[i] - mean[i]) */
	void (*average)(struct device *dev, float *mean, const float *w, size_t count, float share);

	/* --- for models that lie on several ranks; NULL where a device has none of it. What it
	 * computes on is then also memory that the host, and kernels/comm.h, may read and write
	 * between two calls, unless `arrays` is there --- */

	/* How arrays in the device's memory go to other ranks (kernels/comm.h); NULL: by the
	 * host. */
	const struct arrays_table *arrays;
	/* What other ranks must have of a piece of weights to compute with it: *each bytes of each
	 * parameter from the address on. NULL: all of it, fp32. Such bytes have come when
	 * weights_came is called for the piece. */
	void *(*weights_wanted)(struct device *dev, float *weights, size_t *each);
	void (*weights_came)(struct device *dev, float *weights, size_t count);
	/* Weights of products on their way to other ranks as codes of 8 bits, under one scale for a
	 * matrix (kernels/formats/sent.h), `count` from anywhere within it, as products read them.
	 * *amax becomes the largest |w|, if larger. A product of few bits by that cast makes the
	 * same codes of what decode writes as of what encode was given. */
	void (*weights_amax)(struct device *dev, float *amax, const float *weights, size_t count);
	void (*weights_encode)(struct device *dev, uint8_t *codes, const float *weights,
			       size_t count, const struct operand_cast *cast, const float *amax);
	void (*weights_decode)(struct device *dev, float *weights, const uint8_t *codes,
			       size_t count, const struct operand_cast *cast, const float *amax);
	/* to[i] = max(to[i], from[i]), of amaxes */
	void (*largest)(struct device *dev, float *to, const float *from, size_t count);
	/* sums[i] = the sum of x^2 over the i-th run of SQUARES_PIECE elements, the last may be
	 * shorter; the bits of sum_squares. */
	void (*piece_squares)(struct device *dev, double *sums, const float *x, size_t count);

	/* As alloc, but memory is taken only as it is written; not zeroed. */
	void *(*reserve)(struct device *dev, size_t bytes);
	/* What lies there is not needed any more, and its memory may go until it is written again;
	 * then it holds anything. */
	void (*discard)(struct device *dev, void *memory, size_t bytes);
	/* As reserve, zeroed, of `count` elements of `each` bytes, and alloc_weights, where what is
	 * beside its shares stays. NULL: memory comes and goes by reserve and discard. */
	void *(*reserve_shares)(struct device *dev, size_t count, size_t each,
				const struct share *share, size_t shares);
	float *(*alloc_weights_shares)(struct device *dev, size_t count, size_t matrices,
				       const struct share *share, size_t shares);
	void (*copy)(struct device *dev, void *to, const void *from, size_t bytes);
	/* to[i] += from[i] */
	void (*add)(struct device *dev, float *to, const float *from, size_t count);
	/* The tables for a slice of the vocabulary, `count` tokens from `first` on: zeros where a
	 * token is another's, and nothing of it is added. */
	void (*embed_slice_forward)(struct device *dev, void *out, const float *table,
				    const int32_t *tokens, size_t rows, size_t dim,
				    const struct vocab_slice *slice);
	void (*embed_slice_backward)(struct device *dev, float *dtable, const void *dout,
				     const int32_t *tokens, size_t rows, size_t dim,
				     const struct vocab_slice *slice);
	/* cross_entropy in two halves, for logits [N, slice->count] of a slice. part[r]: of a row's
	 * slice. Then, with part[slices][N] of all slices in their order, the loss of the row and
	 * the gradient of our logits, as there. */
	void (*loss_part)(struct device *dev, struct loss_part *part, const void *logits,
			  const int32_t *targets, size_t rows, const struct vocab_slice *slice);
	void (*loss_merge)(struct device *dev, float *loss, void *logits, const int32_t *targets,
			   const struct loss_part *part, size_t rows,
			   const struct vocab_slice *slice, float scale);

	/* --- for some families of models; NULL where a device has none of it --- */

	bool masks_attention; /* no call: window, begin and softcap of struct attention count */
	/* out = x * factor + delta (NULL: 0), activations of `count` elements; out may be
	 * either. */
	void (*scaled_sum)(struct device *dev, void *out, const void *x, float factor,
			   const void *delta, size_t count);
	/* qkv = raw with query and key heads normed, values copied. rstd [N, H+G], or [N, 2] when
	 * whole. */
	void (*qk_norm_forward)(struct device *dev, void *qkv, float *rstd, const void *raw,
				const float *query_weight, const float *key_weight,
				const struct qk_norm *n);
	/* dqkv becomes the gradient of raw, in place; the weights' (+)= sum over rows (and heads),
	 * replaced when !accumulate. */
	void (*qk_norm_backward)(struct device *dev, void *dqkv, float *dquery_weight,
				 float *dkey_weight, const void *raw, const float *rstd,
				 const float *query_weight, const float *key_weight,
				 const struct qk_norm *n, bool accumulate);
	/* As swiglu, with gelu (by tanh) in place of silu. */
	void (*geglu_forward)(struct device *dev, void *out, const void *gate_up, size_t rows,
			      size_t width);
	void (*geglu_backward)(struct device *dev, void *dgate_up, const void *dout,
			       const void *gate_up, size_t rows, size_t width);
	/* x = cap tanh(x/cap), in place. */
	void (*softcap)(struct device *dev, void *x, size_t count, float cap);
	/* As cross_entropy, with the terms in the loss and in the gradient. */
	void (*cross_entropy_with)(struct device *dev, float *loss, void *logits,
				   const int32_t *targets, size_t rows, size_t vocab, float scale,
				   const struct loss_terms *terms);

	/* --- rows to experts and back (struct routing) --- */

	/* logits [N,E]; bias [E] counts for the choice only, NULL: there is none. */
	void (*route_forward)(struct device *dev, const float *logits, const float *bias,
			      const struct routing *r);
	/* From the gradient [N,K] of the weights, and what is added to that of all scores of an
	 * expert (push [E]; NULL: nothing). */
	void (*route_backward)(struct device *dev, float *dlogits, const float *dweight,
			       const float *push, const struct routing *r);
	/* out[place] = x[row], [N*K,width] */
	void (*rows_to_experts)(struct device *dev, void *out, const void *x, size_t width,
				const struct routing *r);
	/* out[row] (+)= sum over its places, in order, of y[place], times its weight when
	 * `weighted` */
	void (*rows_from_experts)(struct device *dev, void *out, const void *y, size_t width,
				  bool weighted, bool accumulate, const struct routing *r);
	/* Of each place: dweight[choice] = dhidden . hidden; then both times the weight. */
	void (*weigh_experts)(struct device *dev, float *dweight, void *hidden, void *dhidden,
			      size_t width, const struct routing *r);

	/* --- for devices that work beside us; NULL where calls are done on return --- */

	/* What is queued from here on comes after products that ran aside. */
	void (*join)(struct device *dev);
	void (*memory)(const struct device *dev, struct memory_use *out);
	/* Host memory that copies need not be staged through; NULL when there is no room. */
	void *(*alloc_host)(struct device *dev, size_t bytes);
	void (*free_host)(struct device *dev, void *memory);
	/* download into memory of alloc_host, but returns at once. decide waits for it, other
	 * writers of `from` must not come before fetched(), which any thread may call: it returns
	 * when all bytes are there; 0, or -1 with a line in why. */
	void (*fetch)(struct device *dev, void *to_host, const void *from, size_t bytes);
	int (*fetched)(struct device *dev, char *why);
	/* Notes the moment at which all that was queued so far is done, and after finish() tells it
	 * in microseconds since the first one. marks_clear: numbers start again. */
	uint32_t (*mark)(struct device *dev);
	double (*mark_us)(struct device *dev, uint32_t mark);
	void (*marks_clear)(struct device *dev);
	/* What the host does from here to the matching pop has that name in a profiler; the text is
	 * borrowed for the call. Costs nothing where none is attached. */
	void (*range_push)(struct device *dev, const char *name);
	void (*range_pop)(struct device *dev);
	/* A program is a fixed sequence of operations on fixed memory, under a number of the
	 * caller's: replay() runs it as it was recorded, or says false. Between record() and
	 * record_end() operations run and may be recorded; upload, download and finish have no
	 * place there. */
	bool (*replay)(struct device *dev, uint64_t program);
	void (*record)(struct device *dev, uint64_t program);
	/* False: what was queued since record() has not run, and must be queued again; it will not
	 * be recorded another time. */
	bool (*record_end)(struct device *dev, uint64_t program);
	/* What was chosen by measurement, as text (owned by the caller; NULL without memory): the
	 * same choices give the same bits. choose() takes such a text before the first operation:
	 * the number of choices taken, or -1 when it was written for another device or library. */
	char *(*choices)(struct device *dev);
	int (*choose)(struct device *dev, const char *text);
};

static inline void backend_join(const struct backend *be, struct device *dev)
{
	if (be->join)
		be->join(dev);
}

static inline void backend_range(const struct backend *be, struct device *dev, const char *name)
{
	if (be->range_push)
		be->range_push(dev, name);
}

static inline void backend_range_end(const struct backend *be, struct device *dev)
{
	if (be->range_pop)
		be->range_pop(dev);
}

#endif
