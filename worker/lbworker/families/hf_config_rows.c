/* SPDX-License-Identifier: MIT */
/* hf_config_rows.c - the keys of config.json, family by family. */
#include "worker/lbworker/families/hf_config_rows.h"

#include <math.h>

#define FIELD(name) offsetof(struct model_shape, name)

/* clang-format off */
#define LLAMA_KEYS(KV_HEADS, EPS, THETA, TIED) \
	LLAMA_KEYS_BUT(NAN, NAN, KV_HEADS, EPS, THETA, TIED)
#define LLAMA_KEYS_BUT(VOCAB, HEADS, KV_HEADS, EPS, THETA, TIED) \
	{ "vocab_size", HF_SIZE, FIELD(vocab), (VOCAB) }, \
	{ "hidden_size", HF_SIZE, FIELD(dim), NAN }, \
	{ "intermediate_size", HF_SIZE, FIELD(ffn), NAN }, \
	{ "num_hidden_layers", HF_SIZE, FIELD(layers), NAN }, \
	{ "num_attention_heads", HF_SIZE, FIELD(heads), (HEADS) }, \
	{ "num_key_value_heads", HF_SIZE, FIELD(kv_heads), (KV_HEADS) }, \
	{ "rms_norm_eps", HF_FLOAT, FIELD(norm_eps), (EPS) }, \
	{ "rope_theta", HF_DOUBLE, FIELD(rope_theta), (THETA) }, \
	{ "tie_word_embeddings", HF_BOOL, FIELD(tied), (TIED) }
#define GEMMA_KEYS(SCORES, LOGITS) \
	{ "query_pre_attn_scalar", HF_SCALAR, FIELD(query_scalar), 256 }, \
	{ "attn_logit_softcapping", HF_CAP, FIELD(score_softcap), (SCORES) }, \
	{ "final_logit_softcapping", HF_CAP, FIELD(logit_softcap), (LOGITS) }
/* clang-format on */

static const struct hf_key llama_keys[] = {
	LLAMA_KEYS(0, 1e-6, 10000, 0),
	{ .name = NULL },
};

static const struct hf_key mistral_keys[] = {
	LLAMA_KEYS(8, 1e-6, 10000, 0),
	{ .name = NULL },
};

static const struct hf_key olmo2_keys[] = {
	LLAMA_KEYS(0, 1e-5, 10000, 0),
	{ .name = NULL },
};

static const struct hf_key qwen3_moe_keys[] = {
	LLAMA_KEYS(4, 1e-6, 10000, 0),
	{ "num_experts", HF_SIZE, FIELD(experts.count), 128 },
	{ "num_experts_per_tok", HF_SIZE, FIELD(experts.top), 8 },
	{ "moe_intermediate_size", HF_SIZE, FIELD(experts.ffn), 768 },
	{ "norm_topk_prob", HF_BOOL, FIELD(experts.normed), 0 },
	{ .name = NULL },
};

static const struct hf_key dots1_keys[] = {
	LLAMA_KEYS(0, 1e-6, 10000, 0),
	{ "n_routed_experts", HF_SIZE, FIELD(experts.count), NAN },
	{ "num_experts_per_tok", HF_SIZE, FIELD(experts.top), NAN },
	{ "moe_intermediate_size", HF_SIZE, FIELD(experts.ffn), 1408 },
	{ "n_shared_experts", HF_SIZE, FIELD(experts.shared), NAN },
	{ "first_k_dense_replace", HF_SIZE, FIELD(experts.dense), 0 },
	{ "norm_topk_prob", HF_BOOL, FIELD(experts.normed), 0 },
	{ "routed_scaling_factor", HF_DOUBLE, FIELD(experts.scale), 1 },
	{ .name = NULL },
};

static const struct hf_key gemma2_keys[] = {
	LLAMA_KEYS(4, 1e-6, 10000, 1),
	GEMMA_KEYS(50, 30),
	{ .name = NULL },
};

/* The published files of those that also see leave out what is so by default. */
static const struct hf_key gemma3_keys[] = {
	LLAMA_KEYS_BUT(262208, 8, 4, 1e-6, 1000000, 1),
	GEMMA_KEYS(0, 0),
	{ "rope_local_base_freq", HF_DOUBLE, FIELD(local_theta), 10000 },
	{ .name = NULL },
};

static const struct hf_constant silu_constants[] = {
	{ .name = "hidden_act", .text = "silu" },
	{ .name = "attention_bias" },
	{ .name = NULL },
};

static const struct hf_constant experts_constants[] = {
	{ .name = "hidden_act", .text = "silu" },
	{ .name = "attention_bias" },
	{ .name = "use_sliding_window" },
	{ .name = "decoder_sparse_step", .one = true },
	{ .name = NULL },
};

/* The choice is not narrowed to groups of experts first. */
static const struct hf_constant dots1_constants[] = {
	{ .name = "hidden_act", .text = "silu" },
	{ .name = "attention_bias" },
	{ .name = "n_group", .one = true },
	{ .name = "topk_group", .one = true },
	{ .name = NULL },
};

static const struct hf_constant gemma2_constants[] = {
	{ .name = "hidden_activation", .text = "gelu_pytorch_tanh" },
	{ .name = "attention_bias" },
	{ .name = "use_bidirectional_attention" },
	{ .name = NULL },
};

/* transformers reads that key there, and leaves scores alone. */
static const struct hf_constant gemma3_constants[] = {
	{ .name = "hidden_activation", .text = "gelu_pytorch_tanh" },
	{ .name = "attention_bias" },
	{ .name = "use_bidirectional_attention" },
	{ .name = "attn_logit_softcapping", .none = true },
	{ .name = NULL },
};

static const struct hf_constant llama_constants[] = {
	{ .name = "hidden_act", .text = "silu" },
	{ .name = "attention_bias" },
	{ .name = "mlp_bias" },
	{ .name = "sliding_window", .none = true },
	{ .name = "num_local_experts", .none = true },
	{ .name = NULL },
};

static const struct hf_key neox_keys[] = {
	{ "vocab_size", HF_SIZE, FIELD(vocab), NAN },
	{ "hidden_size", HF_SIZE, FIELD(dim), NAN },
	{ "intermediate_size", HF_SIZE, FIELD(ffn), NAN },
	{ "num_hidden_layers", HF_SIZE, FIELD(layers), NAN },
	{ "num_attention_heads", HF_SIZE, FIELD(heads), NAN },
	{ "layer_norm_eps", HF_FLOAT, FIELD(norm_eps), 1e-5 },
	{ "rotary_emb_base", HF_DOUBLE, FIELD(rope_theta), 10000.0 },
	{ "tie_word_embeddings", HF_BOOL, FIELD(tied), 0 },
	{ .name = NULL },
};

static const struct hf_constant neox_constants[] = {
	{ .name = "hidden_act", .text = "gelu" },
	{ .name = "use_parallel_residual", .flag = true },
	{ .name = "attention_bias", .flag = true },
	{ .name = NULL },
};

static const struct hf_key gpt2_keys[] = {
	{ "vocab_size", HF_SIZE, FIELD(vocab), NAN },
	{ "n_embd", HF_SIZE, FIELD(dim), NAN },
	{ "n_inner", HF_SIZE, FIELD(ffn), 0 },
	{ "n_layer", HF_SIZE, FIELD(layers), NAN },
	{ "n_head", HF_SIZE, FIELD(heads), NAN },
	{ "n_positions", HF_SIZE, FIELD(positions), 1024 },
	{ "layer_norm_epsilon", HF_FLOAT, FIELD(norm_eps), 1e-5 },
	{ "tie_word_embeddings", HF_BOOL, FIELD(tied), 1 },
	{ .name = NULL },
};

static const struct hf_constant gpt2_constants[] = {
	{ .name = "activation_function", .text = "gelu_new" },
	{ .name = "scale_attn_weights", .flag = true },
	{ .name = "scale_attn_by_inverse_layer_idx" },
	{ .name = "add_cross_attention" },
	{ .name = NULL },
};

const struct hf_family hf_families[MODEL_FAMILY_COUNT] = {
	[MODEL_LLAMA] = { .model_type = "llama",
			  .architecture = "LlamaForCausalLM",
			  .positions = "max_position_embeddings",
			  .longest = 2048,
			  .keys = llama_keys,
			  .constants = llama_constants },
	[MODEL_NEOX] = { .model_type = "gpt_neox",
			 .architecture = "GPTNeoXForCausalLM",
			 .positions = "max_position_embeddings",
			 .longest = 2048,
			 .rotary_share = "rotary_pct",
			 .rotary_fallback = 0.25,
			 .keys = neox_keys,
			 .constants = neox_constants },
	[MODEL_GPT2] = { .model_type = "gpt2",
			 .architecture = "GPT2LMHeadModel",
			 .positions = "n_positions",
			 .longest = 1024,
			 .keys = gpt2_keys,
			 .constants = gpt2_constants },
	[MODEL_MISTRAL] = { .model_type = "mistral",
			    .architecture = "MistralForCausalLM",
			    .positions = "max_position_embeddings",
			    .longest = 131072,
			    .keys = mistral_keys,
			    .constants = silu_constants,
			    .has_window = true,
			    .window = 4096 },
	[MODEL_QWEN3] = { .model_type = "qwen3",
			  .architecture = "Qwen3ForCausalLM",
			  .positions = "max_position_embeddings",
			  .longest = 32768,
			  .keys = llama_keys,
			  .constants = silu_constants,
			  .has_window = true,
			  .window = 4096,
			  .window_flag = "use_sliding_window",
			  .head_dim = 128 },
	[MODEL_OLMO2] = { .model_type = "olmo2",
			  .architecture = "Olmo2ForCausalLM",
			  .positions = "max_position_embeddings",
			  .longest = 2048,
			  .keys = olmo2_keys,
			  .constants = silu_constants },
	[MODEL_GEMMA2] = { .model_type = "gemma2",
			   .architecture = "Gemma2ForCausalLM",
			   .positions = "max_position_embeddings",
			   .longest = 8192,
			   .keys = gemma2_keys,
			   .constants = gemma2_constants,
			   .has_window = true,
			   .window = 4096,
			   .every = 2,
			   .head_dim = 256 },
	[MODEL_GEMMA3] = { .model_type = "gemma3_text",
			   .architecture = "Gemma3ForCausalLM",
			   .positions = "max_position_embeddings",
			   .longest = 131072,
			   .keys = gemma3_keys,
			   .constants = gemma3_constants,
			   .has_window = true,
			   .window = 4096,
			   .every = 6,
			   .head_dim = 256 },
	[MODEL_QWEN3_MOE] = { .model_type = "qwen3_moe",
			      .architecture = "Qwen3MoeForCausalLM",
			      .positions = "max_position_embeddings",
			      .longest = 32768,
			      .keys = qwen3_moe_keys,
			      .constants = experts_constants,
			      .dense_list = "mlp_only_layers" },
	[MODEL_DOTS1] = { .model_type = "dots1",
			  .architecture = "Dots1ForCausalLM",
			  .positions = "max_position_embeddings",
			  .longest = 2048,
			  .keys = dots1_keys,
			  .constants = dots1_constants,
			  .window_from = 62 },
};
