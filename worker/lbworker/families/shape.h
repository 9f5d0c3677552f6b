/* SPDX-License-Identifier: MIT */
/* families/ - what models there are: their sizes, and what tells one family from another, as data.
 *
 * shape.h - the sizes of a model, and the families:
 *
 *   llama  Touvron et al. 2023: RMSNorm, rotary positions, grouped heads, SwiGLU
 *   neox   Black et al. 2022 (GPT-NeoX, Pythia): LayerNorm, attention and feed-forward side by
 *          side, rotary on a part of each head, GELU, biases
 *   gpt2   Radford et al. 2019: LayerNorm, learned positions, GELU by tanh, biases
 *   mistral  Jiang et al. 2023: Llama with a sliding window of attention
 *   qwen3  Yang et al. 2025: Llama with normed query and key heads
 *   olmo2  OLMo Team 2025: norms behind each half instead of before it, normed queries and keys
 *   gemma2 Gemma Team 2024: norms before and behind each half, GeGLU, softcaps, a window in every
 *          other layer, scaled embeddings
 *   gemma3 Gemma Team 2025: normed queries and keys instead of softcaps, five layers of six have a
 *          window and rotary frequencies of their own
 *   qwen3_moe  Qwen3 whose feed-forwards are experts, of which a router chooses some for each token
 *   dots1  rednote-hilab 2025: Qwen3's attention, and the feed-forwards of DeepSeek-V3 (DeepSeek-AI
 *          2024): sigmoid scores, a bias that balances the choice, shared experts, dense first
 *          layers */
#ifndef LBWORKER_FAMILIES_SHAPE_H
#define LBWORKER_FAMILIES_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "worker/lbworker/families/umup.h"

enum model_family {
	MODEL_LLAMA,
	MODEL_NEOX,
	MODEL_GPT2,
	MODEL_MISTRAL,
	MODEL_QWEN3,
	MODEL_OLMO2,
	MODEL_GEMMA2,
	MODEL_GEMMA3,
	MODEL_QWEN3_MOE,
	MODEL_DOTS1,
	MODEL_FAMILY_COUNT
};

/* Llama 3's longer contexts (Meta 2024): wavelengths above original/low turn `factor` times slower,
 * those below original/high as before, between the two a blend. original 0: all turn `factor` times
 * slower. factor 0: none of it. */
struct rope_scaling {
	double factor, low, high, original;
};

enum { EXPERTS_MAX = 4096 };

/* Of a layer with experts; count 0: there is none. */
struct model_experts {
	size_t count, top; /* top of them for each token */
	size_t ffn;        /* width of one */
	size_t shared;     /* so many more see every token, as one that is as many times wider */
	size_t dense;      /* layers at the beginning that have a feed-forward instead */
	bool normed;       /* the weights of a token add up to 1 before they are scaled */
	double scale;      /* of the weights */
};

struct model_shape {
	enum model_family family;
	size_t vocab, dim, layers, heads, kv_heads, ffn;
	bool tied; /* the head is the embedding */
	float norm_eps;
	double rope_theta;
	size_t head_dim;  /* 0: dim / heads */
	size_t rotary;    /* leading elements of a head that turn; 0: all */
	size_t positions; /* learned ones: the longest sequence */
	struct rope_scaling scaling;
	struct umup umup;
	/* Keys that a query sees, itself among them; 0: all. Every full_every-th layer has no
	 * window; 0: all have it. */
	size_t window, full_every;
	double local_theta;  /* rope_theta of the layers with a window; 0: the same */
	double query_scalar; /* scores are divided by its root; 0: head_dim */
	double score_softcap, logit_softcap; /* 0: none */
	struct model_experts experts;
};

/* A named shape; the names are those of torchtitan where it has them. */
struct model_flavor {
	const char *name;
	const char *help;
	struct model_shape shape;
};
/* NULL when there is none of that name in the family; names (if not NULL) then lists all,
 * "a, b, c", a fixed text. */
const struct model_flavor *model_flavor_find(enum model_family family, const char *name,
					     const char **names);
const char *model_family_name(enum model_family family);

/* --- what is the same in all models of a family --- */

bool model_is_gated(enum model_family family);      /* gates and ups: SwiGLU, GeGLU */
bool model_is_parallel(enum model_family family);   /* both halves of a layer read its input */
bool model_is_rotary(enum model_family family);     /* else positions are learned */
bool model_has_own_heads(enum model_family family); /* kv_heads and head_dim may be anything */
/* several ranks may hold one model together: struct model_split */
bool model_can_be_split(enum model_family family);
bool model_has_windows(enum model_family family);  /* window, full_every, local_theta */
bool model_has_softcaps(enum model_family family); /* softcaps, query_scalar */
bool model_has_experts(enum model_family family);
bool model_has_shared_experts(enum model_family family); /* and dense first layers */
bool model_has_balance(enum model_family family);        /* a bias for the choice of experts */

/* --- widths that come of a shape --- */

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

/* The widest vector of weights that a norm has. */
static inline size_t norm_width(const struct model_shape *s)
{
	size_t heads = model_attended_width(s);

	return heads > s->dim ? heads : s->dim;
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

/* Elements of a head that turn by position. */
static inline size_t model_turned(const struct model_shape *s)
{
	return s->rotary ? s->rotary : model_head_dim(s);
}

/* Width of the feed-forward that a token meets in layer l. */
static inline size_t model_active_ffn(const struct model_shape *s, size_t l)
{
	return model_ffn_width(s, l) +
	       (model_is_sparse(s, l) ? s->experts.top * s->experts.ffn : 0);
}

/* A side of a tensor, in words of the shape. QUERY, KEY: all query, all key heads; QKV: query, key
 * and value heads together. Those of heads, feed-forward and vocabulary are what a split cuts. */
enum extent {
	EXTENT_NONE,
	EXTENT_DIM,
	EXTENT_QUERY,
	EXTENT_KEY,
	EXTENT_QKV,
	EXTENT_HEAD, /* one head */
	EXTENT_FFN,
	EXTENT_EXPERTS,        /* their number */
	EXTENT_EXPERT,         /* width of one */
	EXTENT_SHARED_EXPERTS, /* of all that see every token */
	EXTENT_VOCAB,
	EXTENT_POSITIONS
};

#endif
