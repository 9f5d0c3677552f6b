/* SPDX-License-Identifier: MIT */
/* llama.c - Llama: x += Wo attention(rope(Wqkv norm(x))), x += Wdown swiglu(Wgu norm(x)). */
#include "worker/lbworker/model/family.h"

const struct family family_llama = {
	.name = "llama",
	.gated = true,
	.prefix = "model.layers.%zu.",
	.first = { { PARAM_EMBEDDING, "model.embed_tokens.weight", EXTENT_VOCAB, EXTENT_DIM } },
	.layer = {
		{ PARAM_QKV, "self_attn.q_proj.weight", EXTENT_QUERY, EXTENT_DIM },
		{ PARAM_QKV, "self_attn.k_proj.weight", EXTENT_KEY, EXTENT_DIM },
		{ PARAM_QKV, "self_attn.v_proj.weight", EXTENT_KEY, EXTENT_DIM },
		{ PARAM_OUT, "self_attn.o_proj.weight", EXTENT_DIM, EXTENT_QUERY },
		{ PARAM_UP, "mlp.gate_proj.weight", EXTENT_FFN, EXTENT_DIM },
		{ PARAM_UP, "mlp.up_proj.weight", EXTENT_FFN, EXTENT_DIM },
		{ PARAM_DOWN, "mlp.down_proj.weight", EXTENT_DIM, EXTENT_FFN },
		{ PARAM_NORM1, "input_layernorm.weight", EXTENT_DIM, EXTENT_NONE },
		{ PARAM_NORM2, "post_attention_layernorm.weight", EXTENT_DIM, EXTENT_NONE },
	},
	.last = {
		{ PARAM_FINAL_NORM, "model.norm.weight", EXTENT_DIM, EXTENT_NONE },
		{ PARAM_HEAD, "lm_head.weight", EXTENT_VOCAB, EXTENT_DIM },
	},
};
