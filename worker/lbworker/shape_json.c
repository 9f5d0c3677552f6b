/* SPDX-License-Identifier: MIT */
/* shape_json.c - config.json, one function for the words of each family. */
#include "worker/lbworker/shape_json.h"

#include "common/json.h"

static json_t *llama_json(const struct model_shape *s, size_t seq)
{
	json_t *o = json_pack("{s:[s], s:s, s:s, s:s}", "architectures", "LlamaForCausalLM",
			      "model_type", "llama", "hidden_act", "silu", "torch_dtype",
			      "float32");
	js_set_int(o, "vocab_size", (int64_t)s->vocab);
	js_set_int(o, "hidden_size", (int64_t)s->dim);
	js_set_int(o, "intermediate_size", (int64_t)s->ffn);
	js_set_int(o, "num_hidden_layers", (int64_t)s->layers);
	js_set_int(o, "num_attention_heads", (int64_t)s->heads);
	js_set_int(o, "num_key_value_heads", (int64_t)s->kv_heads);
	js_set_int(o, "max_position_embeddings", (int64_t)seq);
	js_set_real(o, "rms_norm_eps", (double)s->norm_eps);
	js_set_real(o, "rope_theta", s->rope_theta);
	if (s->scaling.factor > 0)
		json_object_set_new(o, "rope_scaling",
				    json_pack("{s:s, s:f, s:f, s:f, s:I}", "rope_type", "llama3",
					      "factor", s->scaling.factor, "low_freq_factor",
					      s->scaling.low, "high_freq_factor", s->scaling.high,
					      "original_max_position_embeddings",
					      (json_int_t)s->scaling.original));
	js_set_bool(o, "tie_word_embeddings", s->tied);
	js_set_bool(o, "attention_bias", false);
	return o;
}

static json_t *neox_json(const struct model_shape *s, size_t seq)
{
	json_t *o = json_pack("{s:[s], s:s, s:s, s:s}", "architectures", "GPTNeoXForCausalLM",
			      "model_type", "gpt_neox", "hidden_act", "gelu", "torch_dtype",
			      "float32");
	size_t head_dim = s->dim / s->heads;

	js_set_int(o, "vocab_size", (int64_t)s->vocab);
	js_set_int(o, "hidden_size", (int64_t)s->dim);
	js_set_int(o, "intermediate_size", (int64_t)s->ffn);
	js_set_int(o, "num_hidden_layers", (int64_t)s->layers);
	js_set_int(o, "num_attention_heads", (int64_t)s->heads);
	js_set_int(o, "max_position_embeddings", (int64_t)seq);
	js_set_real(o, "layer_norm_eps", (double)s->norm_eps);
	js_set_real(o, "rotary_emb_base", s->rope_theta);
	js_set_real(o, "rotary_pct",
		    (double)(s->rotary ? s->rotary : head_dim) / (double)head_dim);
	js_set_bool(o, "use_parallel_residual", true);
	js_set_bool(o, "attention_bias", true);
	js_set_bool(o, "tie_word_embeddings", s->tied);
	return o;
}

static json_t *gpt2_json(const struct model_shape *s, size_t seq)
{
	json_t *o = json_pack("{s:[s], s:s, s:s, s:s}", "architectures", "GPT2LMHeadModel",
			      "model_type", "gpt2", "activation_function", "gelu_new",
			      "torch_dtype", "float32");

	(void)seq;
	js_set_int(o, "vocab_size", (int64_t)s->vocab);
	js_set_int(o, "n_embd", (int64_t)s->dim);
	js_set_int(o, "n_inner", (int64_t)s->ffn);
	js_set_int(o, "n_layer", (int64_t)s->layers);
	js_set_int(o, "n_head", (int64_t)s->heads);
	js_set_int(o, "n_positions", (int64_t)s->positions);
	js_set_real(o, "layer_norm_epsilon", (double)s->norm_eps);
	js_set_real(o, "attn_pdrop", 0);
	js_set_real(o, "embd_pdrop", 0);
	js_set_real(o, "resid_pdrop", 0);
	js_set_bool(o, "tie_word_embeddings", s->tied);
	return o;
}

json_t *shape_to_json(const struct model_shape *s, size_t seq)
{
	static json_t *(*const writers[MODEL_FAMILY_COUNT])(const struct model_shape *, size_t) = {
		[MODEL_LLAMA] = llama_json,
		[MODEL_NEOX] = neox_json,
		[MODEL_GPT2] = gpt2_json,
	};

	return writers[s->family](s, seq);
}
