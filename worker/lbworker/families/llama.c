/* SPDX-License-Identifier: MIT */
/* llama.c - Llama: x += Wo attention(rope(Wqkv norm(x))), x += Wdown swiglu(Wgu norm(x)); Mistral,
 * the same; Qwen3, where query and key heads are normed before they turn; and its like with
 * experts, whose feed-forward is x += sum of weight_e Wdown_e swiglu(Wgu_e norm(x)) over a token's
 * experts. */
#include "worker/lbworker/families/family.h"

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

/* clang-format off */
#define ATTENTION_NORMS \
	{ PARAM_QUERY_NORM, "self_attn.q_norm.weight", EXTENT_HEAD, EXTENT_NONE }, \
	{ PARAM_KEY_NORM, "self_attn.k_norm.weight", EXTENT_HEAD, EXTENT_NONE }, \
	{ PARAM_NORM1, "input_layernorm.weight", EXTENT_DIM, EXTENT_NONE }, \
	{ PARAM_NORM2, "post_attention_layernorm.weight", EXTENT_DIM, EXTENT_NONE }
#define EXPERTS \
	{ PARAM_ROUTER, "mlp.gate.weight", EXTENT_EXPERTS, EXTENT_DIM }, \
	{ PARAM_EXPERT_UP, "mlp.experts.%zu.gate_proj.weight", EXTENT_EXPERT, EXTENT_DIM }, \
	{ PARAM_EXPERT_UP, "mlp.experts.%zu.up_proj.weight", EXTENT_EXPERT, EXTENT_DIM }, \
	{ PARAM_EXPERT_DOWN, "mlp.experts.%zu.down_proj.weight", EXTENT_DIM, EXTENT_EXPERT }
/* clang-format on */

static const struct family_tensor qwen3_layer[] = {
	LLAMA_MATRICES,
	ATTENTION_NORMS,
	FAMILY_END,
};

static const struct family_tensor qwen3_moe_sparse[] = {
	LLAMA_ATTENTION,
	EXPERTS,
	ATTENTION_NORMS,
	FAMILY_END,
};

static const struct family_tensor dots1_sparse[] = {
	LLAMA_ATTENTION,
	EXPERTS,
	{ PARAM_UP, "mlp.shared_experts.gate_proj.weight", EXTENT_SHARED_EXPERTS, EXTENT_DIM },
	{ PARAM_UP, "mlp.shared_experts.up_proj.weight", EXTENT_SHARED_EXPERTS, EXTENT_DIM },
	{ PARAM_DOWN, "mlp.shared_experts.down_proj.weight", EXTENT_DIM, EXTENT_SHARED_EXPERTS },
	{ PARAM_BALANCE, "mlp.gate.e_score_correction_bias", EXTENT_EXPERTS, EXTENT_NONE },
	ATTENTION_NORMS,
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
const struct family family_qwen3_moe = LIKE_LLAMA("qwen3_moe", qwen3_layer,
						  .sparse = qwen3_moe_sparse);
const struct family family_dots1 = LIKE_LLAMA("dots1", qwen3_layer, .sparse = dots1_sparse,
					      .sigmoid_scores = true);
