/* SPDX-License-Identifier: MIT */
/* family.h - what tells one family from another, as data: a row of traits and tables of tensors
 * (llama.c, neox.c, gpt2.c, olmo2.c, gemma.c). Which norms there are is said by the tensors that a
 * layer has. */
#ifndef LBWORKER_FAMILY_H
#define LBWORKER_FAMILY_H

#include "kernels/backend.h"
#include "worker/lbworker/families/shape.h"

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

/* Rows that follow one another with the same param are one parameter: its pieces in order. Those of
 * experts are there once for each, expert by expert. */
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
/* The tensors of the embedding, and of a head that is another one. */
const char *family_table(const struct family *family);
const char *family_head(const struct family *family);
/* All query heads of a row are normed as one, and all key heads. */
bool family_norms_whole(const struct family *family);
extern const struct family family_llama, family_neox, family_gpt2, family_mistral, family_qwen3,
	family_olmo2, family_gemma2, family_gemma3, family_qwen3_moe, family_dots1;

#endif
