/* SPDX-License-Identifier: MIT */
/* layer.h - what a layer keeps for backward, and its steps. Private to the files of the model.
 *
 * layer.c runs the layers of all families, forward.c the whole pass. Which norms there are is said
 * by the tensors that a layer has. */
#ifndef LBWORKER_MODEL_LAYER_H
#define LBWORKER_MODEL_LAYER_H

#include "worker/lbworker/model/layout.h"

/* Device memory: `count` times that value. */
void model_fill(const struct model *m, float *to, size_t count, float value);

/* Weights of the norm of so many query, or key, heads. */
static inline size_t qk_norm_width(const struct model *m, size_t heads)
{
	return (m->norms_whole ? heads : 1) * model_head_dim(&m->shape);
}

/* Rows times experts of each. */
static inline size_t model_places(const struct model *m)
{
	return m->batch * m->seq * m->shape.experts.top;
}

/* --- units, for whoever watches (model.h) --- */

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

/* S: the rows of the stream that are here, all N but for sequence parallelism (split.h). H, F, A,
 * Q: of our slice. */
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
/* The gradient of the loss that evens them out with regard to every score, before backward; scale:
 * of the pass. */
void experts_push(const struct model *m, const struct layer_kept *layer,
		  const struct layer_shared *s, float scale);

/* What layer l does not keep: AGAIN_ bits. */
unsigned layer_lacks(const struct model *m, size_t l);

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
	size_t chunk; /* of its rows, where they come in several */
};
void linear_forward(const struct model *m, const struct linear *w, void *y, const void *x,
		    size_t rows, float beta);
void linear_backward_input(const struct model *m, const struct linear *w, void *dx, const void *dy,
			   size_t rows);
/* What follows may neither read the gradient nor write dy or x until backend_join(). */
void linear_backward_weight(const struct model *m, const struct linear *w, const void *dy,
			    const void *x, size_t rows, bool accumulate);
/* What is written to x next is read by linear_forward() next; what to dy, by
 * linear_backward_weight() and then _input(). */
void linear_expect_input(const struct model *m, const struct linear *w, const void *x, size_t rows);
void linear_expect_gradient(const struct model *m, const struct linear *w, const void *dy,
			    const void *x, size_t rows);

#endif
