/* SPDX-License-Identifier: MIT */
/* test_hf.c - models of Hugging Face: config.json both ways, weights in one file or several, and
 * folders that are refused in one line. */
#include "tests/unit/unit.h"

#include <sys/stat.h>

#include "common/base/mem.h"
#include "worker/lbworker/checkpoint/hf.h"

/* --- config.json ---------------------------------------------------------------------------- */

static const struct model_shape small = {
	.vocab = 8,
	.dim = 4,
	.layers = 1,
	.heads = 2,
	.kv_heads = 1,
	.ffn = 6,
	.tied = true,
	.norm_eps = 1e-5f,
	.rope_theta = 500000.0,
};

#define SIZES \
	"\"vocab_size\":8,\"hidden_size\":4,\"num_hidden_layers\":1," \
	"\"num_attention_heads\":2,\"intermediate_size\":6"
#define LLAMA "\"model_type\":\"llama\"," SIZES

static int read_config(const char *text, struct model_shape *out, struct err *err)
{
	size_t positions;

	write_text("config.json", text);
	return hf_config_read(out, &positions, ".", err);
}

/* What is written of a shape is read as that. */
static void assert_comes_back(const struct model_shape *s, const char *text)
{
	json_t *o = hf_config_json(s, 77, "bfloat16");
	struct model_shape back;
	struct err err = { 0 };
	size_t positions = 0;

	assert_int_equal(json_dump_file(o, "config.json", 0), 0);
	json_decref(o);
	if (hf_config_read(&back, &positions, ".", &err))
		fail_msg("%s: %s", text, err.text);
	assert_memory_equal(&back, s, sizeof(back));
	assert_int_equal(positions, 77);
}

static void test_config_both_ways(void **state)
{
	(void)state;
	assert_comes_back(&small, "the smallest");
}

/* An audit holds the file of a checkpoint against that of the version before, byte for byte. */
static void test_order_of_keys(void **state)
{
	static const char *const names[] = {
		"vocab_size",        "hidden_size",         "intermediate_size",
		"num_hidden_layers", "num_attention_heads", "num_key_value_heads",
		"rms_norm_eps",      "rope_theta",          "tie_word_embeddings",
	};

	(void)state;
	for (int f = 0; f < MODEL_FAMILY_COUNT; f++) {
		if (f == MODEL_NEOX || f == MODEL_GPT2)
			continue;
		const struct model_flavor *flavor = model_flavor_find(f, "debugmodel", NULL);
		json_t *o = hf_config_json(&flavor->shape, 9, "float32");
		void *at = json_object_iter_at(o, names[0]);
		for (size_t i = 0; i < COUNT(names); i++, at = json_object_iter_next(o, at))
			assert_string_equal(at ? json_object_iter_key(at) : "", names[i]);
		json_decref(o);
	}
}

static void test_defaults_of_transformers(void **state)
{
	struct model_shape s;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(read_config("{" LLAMA "}", &s, &err), 0);
	assert_int_equal(s.kv_heads, 2);
	assert_true(s.norm_eps > 0.9e-6f && s.norm_eps < 1.1e-6f && s.rope_theta > 9999);
	assert_int_equal(read_config("{" LLAMA ",\"rope_theta\":5,\"rope_parameters\":"
				     "{\"rope_type\":\"default\",\"rope_theta\":1000000}}",
				     &s, &err),
			 0);
	assert_true(s.rope_theta > 999999);
}

#define MISTRAL "\"model_type\":\"mistral\"," SIZES
#define NEOX "\"model_type\":\"gpt_neox\"," SIZES
#define QWEN3 "\"model_type\":\"qwen3\"," SIZES
#define GEMMA2 "\"model_type\":\"gemma2\"," SIZES
#define GEMMA3 "\"model_type\":\"gemma3_text\"," SIZES
#define GPT2 "\"model_type\":\"gpt2\",\"vocab_size\":8,\"n_embd\":4,\"n_layer\":1,\"n_head\":2"

/* Mistral's published configs spell its two keys out; a head may be wider than its share. */
static void test_like_llama(void **state)
{
	struct model_shape s;
	struct err err = { 0 };

	(void)state;
	if (read_config("{" MISTRAL ",\"num_key_value_heads\":1,\"sliding_window\":null,"
			"\"head_dim\":6,\"rope_theta\":1000000}",
			&s, &err))
		fail_msg("%s", err.text);
	assert_int_equal(s.family, MODEL_MISTRAL);
	assert_int_equal(s.window, 0);
	assert_int_equal(s.kv_heads, 1);
	assert_int_equal(s.head_dim, 6);
	assert_comes_back(&s, "mistral");
}

/* What absent keys mean, as the published files leave them out; and back, for every family. */
static void test_windows(void **state)
{
	static const struct {
		const char *text;
		size_t window, full_every;
		double score_softcap, local_theta;
	} cases[] = {
		{ "{" MISTRAL "}", 4096, 0, 0, 0 },
		{ "{" MISTRAL ",\"sliding_window\":8,\"layer_types\":[\"sliding_attention\"]}", 8,
		  0, 0, 0 },
		{ "{" MISTRAL ",\"sliding_window_pattern\":2}", 4096, 0, 0, 0 },
		{ "{" QWEN3 ",\"use_sliding_window\":false,\"sliding_window\":4096}", 0, 0, 0, 0 },
		{ "{" QWEN3 ",\"use_sliding_window\":true,\"layer_types\":[\"sliding_attention\"]}",
		  4096, 0, 0, 0 },
		{ "{" GEMMA2 "}", 4096, 2, 50, 0 },
		{ "{" GEMMA2 ",\"attn_logit_softcapping\":null}", 4096, 2, 0, 0 },
		{ "{" GEMMA2 ",\"sliding_window_pattern\":6}", 4096, 2, 50, 0 },
		{ "{" GEMMA2 ",\"layer_types\":[\"full_attention\"]}", 0, 0, 50, 0 },
		{ "{" GEMMA3 ",\"rope_scaling\":{\"rope_type\":\"linear\",\"factor\":8}}", 4096, 6,
		  0, 10000 },
		{ "{" GEMMA3 ",\"rope_parameters\":{\"full_attention\":{\"rope_theta\":7},"
		  "\"sliding_attention\":{\"rope_theta\":9}}}",
		  4096, 6, 0, 9 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct model_shape s;
		struct err err = { 0 };
		if (read_config(cases[i].text, &s, &err))
			fail_msg("%s: %s", cases[i].text, err.text);
		assert_int_equal(s.window, cases[i].window);
		assert_int_equal(s.full_every, cases[i].full_every);
		assert_true(s.score_softcap == cases[i].score_softcap);
		assert_true(s.local_theta == cases[i].local_theta);
		json_t *o = hf_config_json(&s, 9, "float32");
		/* transformers makes the mask of a window in each Gemma, used or not */
		assert_true(s.family == MODEL_MISTRAL || s.family == MODEL_QWEN3 ||
			    json_is_integer(json_object_get(o, "sliding_window")));
		json_decref(o);
		assert_comes_back(&s, cases[i].text);
	}
}

/* Both the older word for rotary keys and the newer one: the older one counts alone, and in Gemma 3
 * over the newer, as transformers has it. */
static void test_both_ropes(void **state)
{
	static const struct {
		const char *text;
		double theta, local, factor;
	} cases[] = {
		{ "{" MISTRAL ",\"rope_scaling\":{\"type\":\"linear\",\"factor\":4},"
		  "\"rope_parameters\":{\"rope_theta\":7,\"rope_type\":\"default\"}}",
		  10000, 0, 4 },
		{ "{" MISTRAL ",\"rope_scaling\":{},\"rope_parameters\":{\"rope_theta\":7}}", 7, 0,
		  0 },
		{ "{" MISTRAL ",\"rope_scaling\":{\"rope_type\":\"default\",\"rope_theta\":9},"
		  "\"rope_parameters\":{\"rope_theta\":7,\"rope_type\":\"linear\",\"factor\":2}}",
		  9, 0, 0 },
		{ "{" GEMMA3 ",\"rope_scaling\":{\"rope_type\":\"linear\",\"factor\":8},"
		  "\"rope_parameters\":{\"full_attention\":{\"rope_theta\":7},"
		  "\"sliding_attention\":{\"rope_theta\":5}}}",
		  7, 5, 8 },
		{ "{" GEMMA3 ",\"rope_scaling\":{\"rope_type\":\"default\"},\"rope_parameters\":{"
		  "\"full_attention\":{\"rope_theta\":7,\"rope_type\":\"linear\",\"factor\":2}}}",
		  7, 10000, 0 },
		{ "{" GEMMA3 ",\"rope_scaling\":{},\"rope_parameters\":{"
		  "\"full_attention\":{\"rope_theta\":7,\"rope_type\":\"linear\",\"factor\":2}}}",
		  7, 10000, 2 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct model_shape s;
		struct err err = { 0 };
		if (read_config(cases[i].text, &s, &err))
			fail_msg("%s: %s", cases[i].text, err.text);
		if (s.rope_theta != cases[i].theta || s.local_theta != cases[i].local ||
		    s.scaling.factor != cases[i].factor)
			fail_msg("%s: %g %g %g", cases[i].text, s.rope_theta, s.local_theta,
				 s.scaling.factor);
	}
}

/* Files of Gemma 3 that also see say of their text what differs from Gemma3TextConfig. */
static void test_published_gemma3(void **state)
{
	static const struct {
		const char *flavor, *sizes;
	} cases[] = {
		{ "4B",
		  "\"hidden_size\":2560,\"intermediate_size\":10240,\"num_hidden_layers\":34" },
		{ "12B",
		  "\"hidden_size\":3840,\"intermediate_size\":15360,\"num_hidden_layers\":48,"
		  "\"num_attention_heads\":16,\"num_key_value_heads\":8" },
		{ "27B",
		  "\"hidden_size\":5376,\"intermediate_size\":21504,\"num_hidden_layers\":62,"
		  "\"num_attention_heads\":32,\"num_key_value_heads\":16,\"head_dim\":128,"
		  "\"query_pre_attn_scalar\":168" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct model_shape s;
		struct err err = { 0 };
		size_t positions;
		char *text = xasprintf(
			"{\"model_type\":\"gemma3\",\"text_config\":{\"model_type\":\"gemma3_text\","
			"\"rope_scaling\":{\"factor\":8.0,\"rope_type\":\"linear\"},"
			"\"sliding_window\":1024,%s}}",
			cases[i].sizes);
		write_text("config.json", text);
		free(text);
		if (hf_config_read(&s, &positions, ".", &err))
			fail_msg("%s: %s", cases[i].flavor, err.text);
		assert_int_equal(positions, 131072);
		assert_memory_equal(&s,
				    &model_flavor_find(MODEL_GEMMA3, cases[i].flavor, NULL)->shape,
				    sizeof(s));
	}
}

/* Scores that are divided by the root of head_dim have that number in the file: transformers takes
 * any that is there, and divides by the root of 0 as well. */
static void test_query_scalar(void **state)
{
	struct model_shape s = model_flavor_find(MODEL_GEMMA2, "debugmodel", NULL)->shape, back;
	struct err err = { 0 };
	size_t positions;

	(void)state;
	s.query_scalar = 0;
	json_t *o = hf_config_json(&s, 9, "float32");
	assert_int_equal(json_integer_value(json_object_get(o, "query_pre_attn_scalar")), 24);
	assert_int_equal(json_dump_file(o, "config.json", 0), 0);
	json_decref(o);
	assert_int_equal(hf_config_read(&back, &positions, ".", &err), 0);
	assert_int_equal(hf_check_same(&back, &s, "there", &err), 0);
}

/* transformers takes int(share * head_dim) elements, which a share that a division made too small
 * would cost one. */
static void test_rotary_share(void **state)
{
	(void)state;
	for (size_t head_dim = 4; head_dim <= 256; head_dim += 2)
		for (size_t rotary = 2; rotary < head_dim; rotary += 2) {
			struct model_shape s = { .family = MODEL_NEOX,
						 .dim = 3 * head_dim,
						 .heads = 3,
						 .rotary = rotary };
			json_t *o = hf_config_json(&s, 9, "float32");
			double share = json_number_value(json_object_get(o, "rotary_pct"));
			json_decref(o);
			if ((size_t)(share * (double)head_dim) != rotary)
				fail_msg("%.17g of %zu are not %zu", share, head_dim, rotary);
		}
}

#define QWEN3_MOE "\"model_type\":\"qwen3_moe\"," SIZES
#define DOTS1 \
	"\"model_type\":\"dots1\"," SIZES ",\"n_routed_experts\":9,\"num_experts_per_tok\":2," \
	"\"n_shared_experts\":1"

/* What absent keys mean, both names of one, and back. */
static void test_experts(void **state)
{
	static const struct {
		const char *text;
		struct model_experts want;
	} cases[] = {
		{ "{" QWEN3_MOE "}", { .count = 128, .top = 8, .ffn = 768, .scale = 1 } },
		{ "{" QWEN3_MOE ",\"num_local_experts\":7,\"mlp_only_layers\":[0],"
		  "\"norm_topk_prob\":true,\"sliding_window\":4096}",
		  { .count = 7, .top = 8, .ffn = 768, .dense = 1, .normed = true, .scale = 1 } },
		{ "{" DOTS1 "}", { .count = 9, .top = 2, .ffn = 1408, .shared = 1, .scale = 1 } },
		{ "{" DOTS1 ",\"first_k_dense_replace\":1,\"routed_scaling_factor\":2.5,"
		  "\"layer_types\":[\"full_attention\"]}",
		  { .count = 9, .top = 2, .ffn = 1408, .shared = 1, .dense = 1, .scale = 2.5 } },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct model_shape s;
		struct err err = { 0 };
		if (read_config(cases[i].text, &s, &err))
			fail_msg("%s: %s", cases[i].text, err.text);
		assert_memory_equal(&s.experts, &cases[i].want, sizeof(s.experts));
		assert_comes_back(&s, cases[i].text);
	}
}

/* transformers has several names for one activation; back comes the usual one. */
static void test_names_of_activations(void **state)
{
	static const char *const texts[] = {
		"{" LLAMA ",\"hidden_act\":\"swish\"}",
		"{" QWEN3_MOE ",\"hidden_act\":\"swish\"}",
		"{" GPT2 ",\"n_positions\":77,\"activation_function\":\"gelu_pytorch_tanh\"}",
		"{" GPT2 ",\"n_positions\":77,\"activation_function\":\"gelu_fast\"}",
		"{" GEMMA3 ",\"hidden_activation\":\"gelu_new\"}",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++) {
		struct model_shape s;
		struct err err = { 0 };
		if (read_config(texts[i], &s, &err))
			fail_msg("%s: %s", texts[i], err.text);
		assert_comes_back(&s, texts[i]);
	}
}

static const struct {
	const char *text, *says;
} bad_configs[] = {
	{ "", "config.json" },
	{ "{}", "model_type" },
	{ "[1]", "model_type" },
	{ "{\"model_type\":\"mamba\"}", "\"mamba\" is not one of" },
	{ "{\"model_type\":\"llama\"}", "vocab_size is missing" },
	{ "{" LLAMA ",\"hidden_act\":\"gelu\"}", "hidden_act must be silu" },
	{ "{" NEOX ",\"hidden_act\":\"gelu_new\"}", "hidden_act must be gelu" },
	{ "{" GPT2 ",\"activation_function\":\"gelu\"}", "activation_function must be gelu_new" },
	{ "{" LLAMA ",\"attention_bias\":true}", "attention_bias must be false" },
	{ "{" LLAMA ",\"head_dim\":-1}", "head_dim" },
	{ "{" LLAMA ",\"sliding_window\":4096}", "sliding_window is not supported" },
	{ "{" LLAMA ",\"num_local_experts\":8}", "num_local_experts is not supported" },
	{ "{" MISTRAL ",\"sliding_window\":-1}", "sliding_window must be" },
	{ "{" GEMMA3 ",\"attn_logit_softcapping\":50}", "attn_logit_softcapping is not supported" },
	{ "{" QWEN3 ",\"use_sliding_window\":true,\"sliding_window\":8}", "needs layer_types" },
	{ "{" GEMMA2 ",\"layer_types\":[\"full_attention\",\"sliding_attention\"]}",
	  "layer_types has 2 entries" },
	{ "{" GEMMA2 ",\"layer_types\":[]}", "layer_types has 0" },
	{ "{" GEMMA2 ",\"layer_types\":[7]}", "layer_types: layer 0" },
	{ "{" GEMMA2 ",\"hidden_activation\":\"gelu\"}", "hidden_activation must be" },
	{ "{" QWEN3_MOE ",\"decoder_sparse_step\":2}", "decoder_sparse_step must be 1" },
	{ "{" QWEN3_MOE ",\"mlp_only_layers\":[3]}", "mlp_only_layers must be the first ones" },
	{ "{" QWEN3_MOE ",\"use_sliding_window\":true}", "use_sliding_window must be false" },
	{ "{" DOTS1 ",\"n_group\":8}", "n_group must be 1" },
	{ "{" DOTS1 ",\"max_window_layers\":0}", "sliding_window must be null" },
	{ "{" DOTS1 ",\"layer_types\":[\"sliding_attention\"]}", "layer_types: all must be" },
	{ "{\"model_type\":\"dots1\"," SIZES "}", "n_routed_experts is missing" },
	{ "{" NEOX ",\"head_dim\":64}", "head_dim must be" },
	{ "{" NEOX "}", "the rotary share 0.25 of a head of 2 is nothing" },
	{ "{\"model_type\":\"llama\",\"vocab_size\":8,\"hidden_size\":4,\"num_hidden_layers\":1,"
	  "\"num_attention_heads\":0,\"intermediate_size\":6}",
	  "num_attention_heads = 0 is out of range" },
	{ "{\"model_type\":\"llama\",\"vocab_size\":8,\"hidden_size\":4.5,\"num_hidden_layers\":1,"
	  "\"num_attention_heads\":2,\"intermediate_size\":6}",
	  "hidden_size = 4.5 is no whole number" },
	{ "{" LLAMA ",\"num_key_value_heads\":1e15}",
	  "num_key_value_heads = 1e+15 is out of range" },
	{ "{" LLAMA ",\"rope_theta\":0}", "rope_theta = 0 is out of range" },
	{ "{" LLAMA ",\"rope_parameters\":{\"rope_theta\":0}}", "rope_theta = 0 is out of range" },
	{ "{" GPT2 ",\"n_positions\":0.5}", "n_positions = 0.5 is no whole number" },
	{ "{" NEOX ",\"use_parallel_residual\":false}", "use_parallel_residual must be true" },
	{ "{" GPT2 ",\"activation_function\":\"relu\"}", "activation_function must be gelu_new" },
	{ "{" LLAMA ",\"rms_norm_eps\":\"x\"}", "rms_norm_eps is of the wrong type" },
	{ "{" LLAMA ",\"rope_theta\":-1}", "rope_theta = -1 is out of range" },
	{ "{" LLAMA ",\"rope_scaling\":{\"type\":\"yarn\"}}", "rope_scaling of type \"yarn\"" },
	{ "{" LLAMA ",\"partial_rotary_factor\":0.5}", "the rotary share 0.5 must be 1 in llama" },
	{ "{" GEMMA3 ",\"rope_parameters\":{\"partial_rotary_factor\":0.25}}",
	  "the rotary share 0.25 must be 1 in gemma3_text" },
	{ "{" GEMMA3 ",\"rope_parameters\":{\"full_attention\":{\"rope_theta\":7},"
	  "\"sliding_attention\":{\"rope_type\":\"linear\",\"factor\":2}}}",
	  "rope_parameters.sliding_attention of type \"linear\" is not supported" },
};

static void test_bad_configs(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(bad_configs); i++) {
		struct model_shape s;
		struct err err = { 0 };
		if (read_config(bad_configs[i].text, &s, &err) != -1)
			fail_msg("accepted: %s", bad_configs[i].text);
		assert_contains(err.text, bad_configs[i].says);
	}
}

/* --- weights -------------------------------------------------------------------------------- */

static const uint16_t ones[8] = { 0x3f80, 0x3f80, 0x3f80, 0x3f80, 0x4000, 0x4000, 0x4000, 0x4000 };

static void write_part(const char *path, const char *name)
{
	const struct st_tensor t = {
		.name = name, .type = ST_BF16, .dimensions = 2, .shape = { 2, 4 }, .data = ones
	};
	struct err err = { 0 };

	assert_int_equal(st_write(path, &t, 1, NULL, &err), 0);
}

static const struct model_shape any_shape;

static void test_several_files(void **state)
{
	const struct model_tensor want[] = {
		{ .name = "a", .rows = 2, .columns = 4 },
		{ .name = "b", .rows = 2, .columns = 4 },
		{ .name = "b", .rows = 4, .columns = 2 },
		{ .name = "c", .rows = 2, .columns = 4 },
	};
	struct err err = { 0 };
	float wide[3];

	(void)state;
	assert_int_equal(mkdir("several", 0755), 0);
	write_part("several/one.safetensors", "a");
	write_part("several/two.safetensors", "b");
	write_text("several/model.safetensors.index.json",
		   "{\"weight_map\":{\"a\":\"one.safetensors\",\"b\":\"two.safetensors\"}}");
	struct hf_weights *w = hf_weights_open("several", NULL, &any_shape, &err);
	if (!w)
		fail_msg("%s", err.text);
	assert_non_null(hf_weights_find(w, &want[0], &err));
	const struct st_tensor *b = hf_weights_find(w, &want[1], &err);
	assert_non_null(b);
	st_widen(wide, b, 3, 3);
	assert_true(wide[0] == 1.0f && wide[1] == 2.0f && wide[2] == 2.0f);
	assert_null(hf_weights_find(w, &want[2], &err));
	assert_contains(err.text, "b is BF16 2x4");
	err_clear(&err);
	assert_null(hf_weights_find(w, &want[3], &err));
	assert_contains(err.text, "no tensor c");
	hf_weights_close(w);
}

/* torch.float64, behind an odd header as some write it. */
static void test_doubles(void **state)
{
	static const char header[] =
		"{\"a\":{\"dtype\":\"F64\",\"shape\":[1,3],\"data_offsets\":[4,28]},"
		"\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}";
	const struct model_tensor want = { .name = "a", .rows = 1, .columns = 3 };
	const double values[] = { 0.1, -2, 1e300 };
	const uint64_t header_bytes = sizeof(header) - 1;
	struct err err = { 0 };
	float narrow[2], one = 1;

	(void)state;
	assert_int_equal(mkdir("doubles", 0755), 0);
	FILE *out = fopen("doubles/model.safetensors", "wb");
	assert_non_null(out);
	fwrite(&header_bytes, sizeof(header_bytes), 1, out);
	fwrite(header, header_bytes, 1, out);
	fwrite(&one, sizeof(one), 1, out);
	fwrite(values, sizeof(values), 1, out);
	assert_int_equal(fclose(out), 0);
	struct hf_weights *w = hf_weights_open("doubles", NULL, &any_shape, &err);
	if (!w)
		fail_msg("%s", err.text);
	const struct st_tensor *a = hf_weights_find(w, &want, &err);
	if (!a)
		fail_msg("%s", err.text);
	st_widen(narrow, a, 0, 2);
	assert_true(narrow[0] == 0.1f && narrow[1] == -2);
	st_widen(narrow, a, 1, 2);
	assert_true(narrow[0] == -2 && isinf(narrow[1]));
	hf_weights_close(w);
}

static const struct {
	const char *text, *says;
} bad_indexes[] = {
	{ "{}", "weight_map is missing" },
	{ "{\"weight_map\":{}}", "weight_map is missing" },
	{ "{\"weight_map\":{\"a\":1}}", "a: no file name" },
	{ "{\"weight_map\":{\"a\":\"../several/one.safetensors\"}}", "cannot be the name" },
	{ "{\"weight_map\":{\"a\":\"/etc/passwd\"}}", "cannot be the name" },
	{ "{\"weight_map\":{\"a\":\"\"}}", "cannot be the name" },
	{ "{\"weight_map\":{\"a\":\"gone.safetensors\"}}", "gone.safetensors" },
};

static void test_bad_indexes(void **state)
{
	struct err err = { 0 };

	(void)state;
	assert_int_equal(mkdir("bad", 0755), 0);
	assert_null(hf_weights_open("bad", NULL, &any_shape, &err));
	assert_contains(err.text, "holds neither");
	for (size_t i = 0; i < COUNT(bad_indexes); i++) {
		err_clear(&err);
		write_text("bad/model.safetensors.index.json", bad_indexes[i].text);
		assert_null(hf_weights_open("bad", NULL, &any_shape, &err));
		assert_contains(err.text, bad_indexes[i].says);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_config_both_ways),
		cmocka_unit_test(test_order_of_keys),
		cmocka_unit_test(test_both_ropes),
		cmocka_unit_test(test_defaults_of_transformers),
		cmocka_unit_test(test_published_gemma3),
		cmocka_unit_test(test_query_scalar),
		cmocka_unit_test(test_experts),
		cmocka_unit_test(test_like_llama),
		cmocka_unit_test(test_windows),
		cmocka_unit_test(test_rotary_share),
		cmocka_unit_test(test_bad_configs),
		cmocka_unit_test(test_names_of_activations),
		cmocka_unit_test(test_several_files),
		cmocka_unit_test(test_doubles),
		cmocka_unit_test(test_bad_indexes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
