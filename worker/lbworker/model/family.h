/* SPDX-License-Identifier: MIT */
/* family.h - what tells one family from another, as data; and the steps of a layer. Private to the
 * files of the model.
 *
 * A family is a row of traits and tables of tensors (llama.c, neox.c, gpt2.c, olmo2.c, gemma.c).
 * Which norms there are is said by the tensors that a layer has. layer.c runs the layers of all of
 * them, forward.c the whole pass. */
#ifndef LBWORKER_FAMILY_H
#define LBWORKER_FAMILY_H

#include "worker/lbworker/model/model.h"

/* The parameters of a layer, then those of no layer. */
/* clang-format off */
enum param {
	PARAM_QKV, PARAM_QKV_BIAS, PARAM_OUT, PARAM_OUT_BIAS, PARAM_UP, PARAM_UP_BIAS, PARAM_DOWN,
	PARAM_DOWN_BIAS, PARAM_NORM1, PARAM_NORM1_BIAS, PARAM_NORM2, PARAM_NORM2_BIAS,
	PARAM_QUERY_NORM, PARAM_KEY_NORM, PARAM_POST1, PARAM_POST2, /* behind each half */
	PARAM_ROUTER, PARAM_BALANCE, PARAM_EXPERT_UP, PARAM_EXPERT_DOWN,
	PARAM_EMBEDDING, PARAM_POSITIONS, PARAM_FINAL_NORM, PARAM_FINAL_NORM_BIAS, PARAM_HEAD,
	PARAM_COUNT
};
/* clang-format on */

/* Rows that follow one another with the same param are one parameter: its pieces in order. Those of experts
 * are there once for each, expert by expert. */
struct family_tensor {
	enum param param;
	const char *name;          /* behind the prefix, for a layer's; %zu: which expert */
	enum extent rows, columns; /* columns NONE: a vector */
};

struct family {
	const char *name;
	bool layer_norm; /* LayerNorm with bias; else RMSNorm */
	bool parallel;   /* both halves of a layer read its input */
	bool gated;      /* SwiGLU; else GELU of the form below */
	bool gelu_gate;  /* gated: GeGLU instead */
	enum gelu_form gelu;
	bool norms_at_zero;                       /* norms multiply by 1 + weight */
	bool windows, softcaps;                   /* shapes may have them */
	bool scaled_embedding;                    /* times the root of dim */
	bool learned_positions;                   /* else rotary */
	bool interleaved;                         /* query, key, value of a head side by side */
	bool in_out;                              /* matrices of a layer are stored [in, out] */
	bool sigmoid_scores;                      /* of experts; else softmax */
	const char *prefix;                       /* of a layer's tensors, with %zu */
	const struct family_tensor *sparse;       /* of a layer with experts; NULL: no such layer */
	const struct family_tensor *layer;        /* end: a row without a name */
	const struct family_tensor *first, *last; /* before and behind the layers */
};
/* What Llama and those after it have in common. */
extern const struct family_tensor llama_first[], llama_last[];
#define LLAMA_ATTENTION \
	{ PARAM_QKV, "self_attn.q_proj.weight", EXTENT_QUERY, EXTENT_DIM }, \
		{ PARAM_QKV, "self_attn.k_proj.weight", EXTENT_KEY, EXTENT_DIM }, \
		{ PARAM_QKV, "self_attn.v_proj.weight", EXTENT_KEY, EXTENT_DIM }, \
	{ \
		PARAM_OUT, "self_attn.o_proj.weight", EXTENT_DIM, EXTENT_QUERY \
	}
#define LLAMA_MATRICES \
	LLAMA_ATTENTION, { PARAM_UP, "mlp.gate_proj.weight", EXTENT_FFN, EXTENT_DIM }, \
		{ PARAM_UP, "mlp.up_proj.weight", EXTENT_FFN, EXTENT_DIM }, \
	{ \
		PARAM_DOWN, "mlp.down_proj.weight", EXTENT_DIM, EXTENT_FFN \
	}
#define FAMILY_END \
	{ \
		.name = NULL \
	}

/* u-muP (umup.h): of the peak learning rate; 0: not trained. */
double umup_rate(const struct model_shape *shape, enum param param);
/* Typical size of an element of the gradient of the mean loss at the start, times the root of the
 * number of tokens: the product of the backward scales that the paper would have applied. */
double umup_unit_gradient(const struct model_shape *shape, enum param param);

const struct family *family_of(enum model_family family);
/* The tensors of layer l; whether one of a table is there; and how often: once for each expert. */
const struct family_tensor *model_layer_table(const struct model *m, size_t l);
bool model_has_row(const struct model *m, const struct family_tensor *row);
size_t model_copies(const struct model *m, const struct family_tensor *row);
/* Device memory: `count` times that value. */
void model_fill(const struct model *m, float *to, size_t count, float value);
/* All query heads of a row are normed as one, and all key heads. */
bool family_norms_whole(const struct family *family);
extern const struct family family_llama, family_neox, family_gpt2, family_mistral, family_qwen3,
	family_olmo2, family_gemma2, family_gemma3, family_qwen3_moe, family_dots1;

struct model_layer {
	size_t at[PARAM_COUNT]; /* offsets into the parameter array; ABSENT */
};
#define ABSENT SIZE_MAX

static inline size_t model_head_dim(const struct model_shape *s)
{
	return s->head_dim ? s->head_dim : s->dim / s->heads;
}

/* Of what attention gives: all heads together, mostly dim. */
static inline size_t model_attended_width(const struct model_shape *s)
{
	return s->heads * model_head_dim(s);
}

static inline size_t model_qkv_width(const struct model_shape *s)
{
	return (s->heads + 2 * s->kv_heads) * model_head_dim(s);
}

static inline bool layer_has(const struct model *m, size_t l, enum param param)
{
	return m->layer[l].at[param] != ABSENT;
}

/* The widest vector of weights that a norm has. */
static inline size_t norm_width(const struct model_shape *s)
{
	size_t heads = model_attended_width(s);

	return heads > s->dim ? heads : s->dim;
}

/* Weights of the norm of so many query, or key, heads. */
static inline size_t qk_norm_width(const struct model *m, size_t heads)
{
	return (m->norms_whole ? heads : 1) * model_head_dim(&m->shape);
}

/* A query of that layer sees a window of keys. */
static inline bool model_slides(const struct model_shape *s, size_t l)
{
	return s->window > 0 && (s->full_every == 0 || (l + 1) % s->full_every != 0);
}

static inline bool model_is_sparse(const struct model_shape *s, size_t l)
{
	return s->experts.count > 0 && l >= s->experts.dense;
}

static inline size_t model_shared_width(const struct model_shape *s)
{
	return s->experts.shared * s->experts.ffn;
}

/* Of the feed-forward that all tokens see in layer l; 0: there is none. */
static inline size_t model_ffn_width(const struct model_shape *s, size_t l)
{
	return model_is_sparse(s, l) ? model_shared_width(s) : s->ffn;
}

/* The widest of any layer. */
static inline size_t model_widest_ffn(const struct model_shape *s)
{
	bool all_sparse = model_is_sparse(s, 0);
	size_t shared = model_shared_width(s);

	return all_sparse || shared > s->ffn ? shared : s->ffn;
}

/* Rows times experts of each. */
static inline size_t model_places(const struct model *m)
{
	return m->batch * m->seq * m->shape.experts.top;
}

/* Where a parameter of no layer lies. A tied head is the embedding. */
static inline size_t model_outer(const struct model *m, enum param param)
{
	if (param == PARAM_HEAD && m->shape.tied)
		param = PARAM_EMBEDDING;
	return m->layer[m->shape.layers].at[param];
}

/* --- units, for whoever watches (model.h) --- */

static inline size_t model_unit_of_head(const struct model *m)
{
	return m->shape.tied ? 0 : m->shape.layers + 1;
}

static inline void model_soon(const struct model *m, size_t unit)
{
	if (m->watch.soon)
		m->watch.soon(m->watch.arg, unit);
}

static inline void model_need(const struct model *m, size_t unit)
{
	if (m->watch.need)
		m->watch.need(m->watch.arg, unit);
}

static inline void model_release(const struct model *m, size_t unit)
{
	if (m->watch.release)
		m->watch.release(m->watch.arg, unit);
}

static inline void model_done(const struct model *m, size_t unit)
{
	if (m->watch.done)
		m->watch.done(m->watch.arg, unit);
}

/* Row `row` of an activation [rows,width]. */
static inline void *model_row(const struct model *m, void *activation, size_t row, size_t width)
{
	return (char *)activation + row * width * compute_bytes(m->options.compute);
}

/* Elements of a head that turn by position. */
static inline size_t model_turned(const struct model_shape *s)
{
	return s->rotary ? s->rotary : model_head_dim(s);
}

/* --- what a layer keeps for backward --------------------------------------------------------- */

struct norm_kept {
	float *mean, *rstd; /* [S]; mean only for LayerNorm */
};

/* Names as in struct routing; E experts, K of them a token, each W wide. NULL in layers without. */
struct experts_kept {
	float *scores, *weight;
	int32_t *expert, *place, *choice, *begin;
	void *up;     /* [N*K,2W] gate and up, by place */
	void *hidden; /* [N*K,W] */
};

/* S: the rows of the stream that are here, all N but for sequence parallelism (split.h). H, F, A, Q:
 * of our slice. */
struct layer_kept {
	void *x; /* [S,D] the residual stream as the layer found it */
	struct norm_kept norm1, norm2;
	void *attention_in; /* [S,D] normed */
	void *raw;          /* [N,Q] before its heads were normed; NULL: they are not */
	float *qk_rstd;     /* [N,H+G] */
	void *qkv;          /* [N,Q] rotated */
	void *attended;     /* [N,A] all heads */
	float *lse;         /* [batch,H,T] */
	void *middle;       /* [S,D] the stream between the halves; not if parallel */
	void *ffn_in;       /* [S,D] normed */
	void *up;           /* [N,2F] gate and up, or [N,F] */
	void *hidden;       /* [N,F] */
	/* What attention, and the feed-forward, gave to the norm behind it; NULL: there is none. */
	void *post1_in, *post2_in; /* [N,D] */
	struct norm_kept post1, post2;
	struct experts_kept experts; /* `up` and `hidden` above are of shared ones then */
};

struct experts_shared {
	float *logits;          /* [N,E], in backward their gradient */
	float *dweight;         /* [N,K] */
	float *push;            /* [E] of experts_push(); NULL: there is no such loss */
	void *routed, *drouted; /* [N*K,D] rows by place */
	void *dhidden;          /* [N*K,W] */
};

/* Buffers that all layers share. */
struct layer_shared {
	float *rope;        /* [T, R/2, 2] cos, sin */
	float *local_rope;  /* the same for layers with a window; may be rope */
	int32_t *begin;     /* [N] first position that each sees; NULL: documents are not masked */
	void *delta;        /* [N,D] what a layer adds to the stream; in backward free */
	void *dx, *dnormed; /* [S,D] gradient of the stream; [N,D] behind a norm */
	/* split.h: all rows of what a product reads, and of its gradient; what others send. */
	void *gathered, *dgathered; /* [N,D] */
	void *inbox;                /* [degree][S,D], and the loss_parts of a chunk of rows */
	/* context.h: whole sequences */
	void *whole_qkv, *whole_dqkv, *whole_attended, *whole_dattended;
	float *whole_lse;
	void *keys[2];   /* [degree][N,2GC] keys and values, to send and to receive */
	void *dattended; /* [N,A] */
	void *dqkv;      /* [N,Q] */
	void *dhidden;   /* [N,F] */
	struct experts_shared experts;
	/* What forward computes: `rows` rows from `first` on. All, or, when a sequence goes on, its
	 * new ones; then only qkv and attended hold earlier rows, all else begins with these. */
	size_t first, rows;
};

/* forward: the stream before the layer is `before` + shared->delta, or k->x as it stands when
 * `before` is NULL; leaves in shared->delta what the layer's last half adds to layer_stream(). */
void layer_forward(const struct model *m, size_t l, const struct layer_kept *k,
		   const struct layer_shared *s, const void *before);
/* The stream to which shared->delta is still to be added. */
const void *layer_stream(const struct model *m, const struct layer_kept *k);
/* Computes again what the layer did not keep. */
void layer_again(const struct model *m, size_t l, const struct layer_kept *k,
		 const struct layer_shared *s);
/* shared->dx holds the gradient of the stream behind the layer, then of the stream before it. */
void layer_backward(const struct model *m, size_t l, const struct layer_kept *k,
		    const struct layer_shared *s, bool accumulate);
/* A product of layer l with the weights of a param. */
struct linear linear_of(const struct model *m, size_t l, enum param weight, enum param bias,
			size_t in, size_t out, float scale);

/* --- experts.c: the steps of a layer that has them --- */

/* Which rows go where, and with what weight: from k->ffn_in. */
void experts_route(const struct model *m, size_t l, const struct layer_kept *k,
		   const struct layer_shared *s);
void experts_expand(const struct model *m, size_t l, const struct layer_kept *k,
		    const struct layer_shared *s);
void experts_activate(const struct model *m, const struct layer_kept *k, size_t rows);
/* s->delta (+)= what they give. */
void experts_contract(const struct model *m, size_t l, const struct layer_kept *k,
		      const struct layer_shared *s, bool add);
/* From s->dx to dnormed (+)= the gradient of k->ffn_in. */
void experts_backward(const struct model *m, size_t l, const struct layer_kept *k,
		      const struct layer_shared *s, void *dnormed, bool add, bool accumulate);
/* The gradient of the loss that evens them out with regard to every score, before backward; scale: of the
 * pass. */
void experts_push(const struct model *m, const struct layer_kept *layer,
		  const struct layer_shared *s, float scale);

/* What layer l does not keep: AGAIN_ bits. */
unsigned layer_lacks(const struct model *m, size_t l);

/* The `width` weights of a norm as it multiplies by them, until the next call with that `place`, 0 or 1. */
const float *norm_weight(const struct model *m, size_t weight, size_t width, int place);
void norm_forward(const struct model *m, size_t weight, size_t bias, const struct norm_kept *kept,
		  void *out, void *sum, const void *x, const void *delta, size_t rows);
void norm_backward(const struct model *m, size_t weight, size_t bias, const struct norm_kept *kept,
		   void *dx, const void *dout, const void *x, bool accumulate);

/* A matrix product with the weights at an offset: y[N,out] = scale x[N,in] W^T + bias + beta y, or
 * gelu of that. */
struct linear {
	size_t weight, bias; /* bias ABSENT: none */
	size_t in, out;
	bool in_out;      /* stored [in, out] */
	float scale;      /* of the product */
	float first_half; /* scale of the first half of y; 0: as the rest */
	/* GELU behind it (forward) or in front of it (backward_input): what went into that; NULL:
	 * there is none. */
	void *kept;
	/* whose product it is, for recipes; the head's layer is the one behind the last */
	size_t layer;
	enum module module;
};
void linear_forward(const struct model *m, const struct linear *w, void *y, const void *x,
		    size_t rows, float beta);
void linear_backward_input(const struct model *m, const struct linear *w, void *dx, const void *dy,
			   size_t rows);
/* What follows may neither read the gradient nor write dy or x until backend_join(). */
void linear_backward_weight(const struct model *m, const struct linear *w, const void *dy,
			    const void *x, size_t rows, bool accumulate);

#endif
