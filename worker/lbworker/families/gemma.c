/* SPDX-License-Identifier: MIT */
/* gemma.c - Gemma 2 and 3: x += norm(Wo attention(rope(Wqkv norm(x)))), x += norm(Wdown geglu(Wgu
 * norm(x))), from embeddings times the root of the width. Norms multiply by 1 + weight. */
#include "worker/lbworker/families/family.h"

/* clang-format off */
#define GEMMA_NORMS \
	{ PARAM_NORM1, "input_layernorm.weight", EXTENT_DIM, EXTENT_NONE }, \
	{ PARAM_POST1, "post_attention_layernorm.weight", EXTENT_DIM, EXTENT_NONE }, \
	{ PARAM_NORM2, "pre_feedforward_layernorm.weight", EXTENT_DIM, EXTENT_NONE }, \
	{ PARAM_POST2, "post_feedforward_layernorm.weight", EXTENT_DIM, EXTENT_NONE }
#define GEMMA(NAME, LAYER) \
	{ .name = (NAME), .gated = true, .gelu_gate = true, .norms_at_zero = true, \
	  .scaled_embedding = true, .windows = true, .softcaps = true, .prefix = "model.layers.%zu.", .first = llama_first, \
	  .layer = (LAYER), .last = llama_last }
/* clang-format on */

static const struct family_tensor gemma2_layer[] = {
	LLAMA_MATRICES,
	GEMMA_NORMS,
	FAMILY_END,
};

static const struct family_tensor gemma3_layer[] = {
	LLAMA_MATRICES,
	GEMMA_NORMS,
	{ PARAM_QUERY_NORM, "self_attn.q_norm.weight", EXTENT_HEAD, EXTENT_NONE },
	{ PARAM_KEY_NORM, "self_attn.k_norm.weight", EXTENT_HEAD, EXTENT_NONE },
	FAMILY_END,
};

const struct family family_gemma2 = GEMMA("gemma2", gemma2_layer);
const struct family family_gemma3 = GEMMA("gemma3", gemma3_layer);
