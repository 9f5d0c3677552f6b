/* SPDX-License-Identifier: MIT */
/* olmo2.c - OLMo 2: x += norm(Wo attention(rope(norm(Wqkv x)))), x += norm(Wdown swiglu(Wgu x)).
 *
 * Nothing is normed before a half. Queries, and keys, are normed with all heads of a row as one. */
#include "worker/lbworker/families/family.h"

static const struct family_tensor layer[] = {
	LLAMA_MATRICES,
	{ PARAM_QUERY_NORM, "self_attn.q_norm.weight", EXTENT_QUERY, EXTENT_NONE },
	{ PARAM_KEY_NORM, "self_attn.k_norm.weight", EXTENT_KEY, EXTENT_NONE },
	{ PARAM_POST1, "post_attention_layernorm.weight", EXTENT_DIM, EXTENT_NONE },
	{ PARAM_POST2, "post_feedforward_layernorm.weight", EXTENT_DIM, EXTENT_NONE },
	FAMILY_END,
};

const struct family family_olmo2 = {
	.name = "olmo2",
	.gated = true,
	.prefix = "model.layers.%zu.",
	.first = llama_first,
	.layer = layer,
	.last = llama_last,
};
