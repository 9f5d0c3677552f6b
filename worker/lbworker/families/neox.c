/* SPDX-License-Identifier: MIT */
/* neox.c - GPT-NeoX and Pythia: x += Wo attention(rope(Wqkv norm1(x))) + Wdown gelu(Wup norm2(x)).
 *
 * Both halves read the same x. Query, key and value of a head stand side by side in Wqkv, and only
 * the first `rotary` elements of a head turn. */
#include "worker/lbworker/families/family.h"

static const struct family_tensor first[] = {
	{ PARAM_EMBEDDING, "gpt_neox.embed_in.weight", EXTENT_VOCAB, EXTENT_DIM },
	FAMILY_END,
};

static const struct family_tensor layer[] = {
	{ PARAM_NORM1, "input_layernorm.weight", EXTENT_DIM, EXTENT_NONE },
	{ PARAM_NORM1_BIAS, "input_layernorm.bias", EXTENT_DIM, EXTENT_NONE },
	{ PARAM_NORM2, "post_attention_layernorm.weight", EXTENT_DIM, EXTENT_NONE },
	{ PARAM_NORM2_BIAS, "post_attention_layernorm.bias", EXTENT_DIM, EXTENT_NONE },
	{ PARAM_QKV, "attention.query_key_value.weight", EXTENT_QKV, EXTENT_DIM },
	{ PARAM_QKV_BIAS, "attention.query_key_value.bias", EXTENT_QKV, EXTENT_NONE },
	{ PARAM_OUT, "attention.dense.weight", EXTENT_DIM, EXTENT_QUERY },
	{ PARAM_OUT_BIAS, "attention.dense.bias", EXTENT_DIM, EXTENT_NONE },
	{ PARAM_UP, "mlp.dense_h_to_4h.weight", EXTENT_FFN, EXTENT_DIM },
	{ PARAM_UP_BIAS, "mlp.dense_h_to_4h.bias", EXTENT_FFN, EXTENT_NONE },
	{ PARAM_DOWN, "mlp.dense_4h_to_h.weight", EXTENT_DIM, EXTENT_FFN },
	{ PARAM_DOWN_BIAS, "mlp.dense_4h_to_h.bias", EXTENT_DIM, EXTENT_NONE },
	FAMILY_END,
};

static const struct family_tensor last[] = {
	{ PARAM_FINAL_NORM, "gpt_neox.final_layer_norm.weight", EXTENT_DIM, EXTENT_NONE },
	{ PARAM_FINAL_NORM_BIAS, "gpt_neox.final_layer_norm.bias", EXTENT_DIM, EXTENT_NONE },
	{ PARAM_HEAD, "embed_out.weight", EXTENT_VOCAB, EXTENT_DIM },
	FAMILY_END,
};

const struct family family_neox = {
	.name = "neox",
	.layer_norm = true,
	.parallel = true,
	.gelu = GELU_ERF,
	.interleaved = true,
	.prefix = "gpt_neox.layers.%zu.",
	.first = first,
	.layer = layer,
	.last = last,
};
