/* SPDX-License-Identifier: MIT */
/* llama.c - Llama: x += Wo attention(rope(Wqkv norm(x))), x += Wdown swiglu(Wgu norm(x)); Mistral, the
 * same; Qwen3, where query and key heads are normed before they turn. */
#include "worker/lbworker/model/family.h"

const struct family_tensor llama_first[] = {
	{ PARAM_EMBEDDING, "model.embed_tokens.weight", EXTENT_VOCAB, EXTENT_DIM },
	FAMILY_END,
};

const struct family_tensor llama_last[] = {
	{ PARAM_FINAL_NORM, "model.norm.weight", EXTENT_DIM, EXTENT_NONE },
	{ PARAM_HEAD, "lm_head.weight", EXTENT_VOCAB, EXTENT_DIM },
	FAMILY_END,
};

static const struct family_tensor llama_layer[] = {
	LLAMA_MATRICES,
	{ PARAM_NORM1, "input_layernorm.weight", EXTENT_DIM, EXTENT_NONE },
	{ PARAM_NORM2, "post_attention_layernorm.weight", EXTENT_DIM, EXTENT_NONE },
	FAMILY_END,
};

static const struct family_tensor qwen3_layer[] = {
	LLAMA_MATRICES,
	{ PARAM_QUERY_NORM, "self_attn.q_norm.weight", EXTENT_HEAD, EXTENT_NONE },
	{ PARAM_KEY_NORM, "self_attn.k_norm.weight", EXTENT_HEAD, EXTENT_NONE },
	{ PARAM_NORM1, "input_layernorm.weight", EXTENT_DIM, EXTENT_NONE },
	{ PARAM_NORM2, "post_attention_layernorm.weight", EXTENT_DIM, EXTENT_NONE },
	FAMILY_END,
};

/* clang-format off */
#define LIKE_LLAMA(NAME, LAYER, ...) \
	{ .name = (NAME), .gated = true, __VA_ARGS__, .prefix = "model.layers.%zu.", .first = llama_first, \
	  .layer = (LAYER), .last = llama_last }
/* clang-format on */

const struct family family_llama = LIKE_LLAMA("llama", llama_layer, .windows = false);
const struct family family_mistral = LIKE_LLAMA("mistral", llama_layer, .windows = true);
const struct family family_qwen3 = LIKE_LLAMA("qwen3", qwen3_layer, .windows = true);
