/* SPDX-License-Identifier: MIT */
/* test_lbworker_config.c - configs of a training: torchtitan's files old and new, what is refused
 * and where, what --lenient leaves out, and the values that are worked out. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "worker/lbworker/config/config.h"
#include "worker/lbworker/config/init_std.h"

static const char config_file[] = "c.toml"; /* in the test's own folder */

static int load(struct config *c, const char *text, bool lenient, FILE *ignored, struct err *err)
{
	FILE *file = fopen(config_file, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	*err = (struct err){ 0 };
	return config_load(
		c,
		&(struct config_order){ .path = config_file, .lenient = lenient, .notes = ignored },
		err);
}

/* A file whose text is *text once it is flushed or closed; the caller frees. */
static FILE *memory(char **text)
{
	static size_t bytes;

	return open_memstream(text, &bytes);
}

static void load_ok(struct config *c, const char *text)
{
	struct err err;

	if (load(c, text, false, NULL, &err))
		fail_msg("%s", err.text);
}

/* torchtitan 0.2's debug_model.toml, its data set replaced. */
static const char titan[] =
	"[job]\ndump_folder = \"./outputs\"\ndescription = \"debug\"\nprint_config = false\n"
	"[profiling]\nenable_profiling = false\nsave_traces_folder = \"profile_trace\"\n"
	"profile_freq = 10\nenable_memory_snapshot = false\n"
	"[metrics]\nlog_freq = 1\ndisable_color_printing = false\nenable_wandb = false\n"
	"[model]\nname = \"llama3\"\nflavor = \"debugmodel\"\n"
	"hf_assets_path = \"./tests/assets/tokenizer\"\nconverters = []\n"
	"[optimizer]\nname = \"AdamW\"\nlr = 8e-4\neps = 1e-8\n"
	"[lr_scheduler]\nwarmup_steps = 2\ndecay_ratio = 0.8\ndecay_type = \"linear\"\n"
	"min_lr_factor = 0.0\n"
	"[training]\nlocal_batch_size = 8\nseq_len = 2048\nmax_norm = 1.0\nsteps = 10\n"
	"dataset_path = \"x.tokens\"\n"
	"[parallelism]\ndata_parallel_replicate_degree = 1\ndata_parallel_shard_degree = -1\n"
	"fsdp_reshard_after_forward = \"default\"\ntensor_parallel_degree = 1\n"
	"enable_async_tensor_parallel = false\npipeline_parallel_degree = 1\n"
	"context_parallel_degree = 1\n"
	"[checkpoint]\nenable = true\nfolder = \"checkpoint\"\ninterval = 10\n"
	"last_save_model_only = false\nexport_dtype = \"float32\"\n"
	"[activation_checkpoint]\nmode = \"selective\"\nselective_ac_option = \"2\"\n"
	"[compile]\nenable = false\ncomponents = [\"model\", \"loss\"]\n"
	"[validation]\nenable = false\nfreq = 5\nsteps = 10\n"
	"[float8]\nenable_fsdp_float8_all_gather = false\nfilter_fqns = [\"output\"]\n"
	"[comm]\ntrain_timeout_seconds = 15\n";

static void test_titan(void **state)
{
	struct config c;

	(void)state;
	load_ok(&c, titan);
	assert_int_equal(c.shape.family, MODEL_LLAMA);
	assert_int_equal(c.local_batch_size, 8);
	assert_true(c.decay_ratio == 0.8);
	struct model_options o = config_model_options(&c);
	assert_int_equal(o.again, 0);
	assert_int_equal(o.more, AGAIN_ALL);
	assert_int_equal(o.more_layers, (c.shape.layers + 1) / 2);
	config_clear(&c);
}

/* The spellings of 2024. */
static void test_old_spellings(void **state)
{
	struct config c;

	(void)state;
	load_ok(&c, "[model]\nname = \"llama2\"\nnorm_type = \"rmsnorm\"\n"
		    "tokenizer_path = \"./t.model\"\n"
		    "[optimizer]\nname = \"AdamW\"\nfused = true\n"
		    "[training]\nbatch_size = 3\nseq_len = 64\nwarmup_steps = 7\nsteps = 100\n"
		    "data_parallel_shard_degree = -1\ntensor_parallel_degree = 1\ncompile = true\n"
		    "dataset_path = \"x\"\n"
		    "[experimental]\npipeline_parallel_degree = 1\n"
		    "enable_async_tensor_parallel = false\n"
		    "[checkpoint]\nenable_checkpoint = true\nmodel_weights_only = false\n"
		    "[float8]\nenable_float8_linear = false\nmoe_fqns = [\"experts\"]\n"
		    "[quantize.dense.float8]\nfilter_fqns = []\n"
		    "[metrics]\nenable_color_printing = true\n");
	assert_int_equal(c.local_batch_size, 3);
	assert_int_equal(c.warmup_steps, 7);
	config_clear(&c);
}

/* Spellings from the first months of torchtitan, and of its last files in TOML. */
static void test_all_spellings(void **state)
{
	struct config c;

	(void)state;
	load_ok(&c,
		"[profiling]\nrun_profiler = true\nprofile_every_x_iter = 7\n"
		"[model]\nname = \"llama2\"\nflavor = \"70B\"\nnorm_type = \"compiled_rmsnorm\"\n"
		"[training]\ndataset = \"alpaca\"\ndataset_path = \"x\"\n"
		"checkpoint_interval = 55\ncheckpoint_interval_type = \"steps\"\n"
		"checkpoint_folder = \"there\"\nsequence_parallel_degree = 1\n"
		"pipeline_parallel_degree = 1\nfp8_linear = \"\"\n"
		"enable_fsdp_float8_all_gather = true\n"
		"[training.dataloader]\nnum_workers = 2\n"
		"[experimental]\npipeline_parallel_schedule = \"1F1B\"\n"
		"[quantize.linear.float8]\nfilter_fqns = [\"output\"]\n"
		"[quantize.linear.mx]\nfilter_fqns = [\"output\"]\n"
		"[checkpoint]\nenable_checkpoint = false\nlast_save_model_only = true\n"
		"[comm]\nmode = \"default\"\ntrace_buf_size = 0\n");
	assert_true(c.enable_profiling);
	assert_int_equal(c.profile_freq, 7);
	assert_int_equal(c.shape.vocab, 32000);
	assert_int_equal(c.checkpoint_interval, 55);
	assert_string_equal(c.checkpoint_folder, "there");
	assert_false(c.checkpoint_enable);
	config_clear(&c);
}

static void expect_recipe(const char *text, const char *recipe, const char *filter)
{
	struct config c;

	load_ok(&c, text);
	assert_string_equal(c.recipe, recipe);
	assert_int_equal(c.filter_fqns.count, filter ? 1 : 0);
	if (filter)
		assert_string_equal(c.filter_fqns.items[0], filter);
	assert_int_equal(c.device, DEVICE_AUTO); /* a GPU has them, too */
	config_clear(&c);
}

/* Low bits in torchtitan's words, old and new, and in ours. */
static void test_recipes(void **state)
{
	(void)state;
#define DATA "\n[training]\ndataset_path = \"x\"\n"
	expect_recipe(DATA, "none", "output");
	expect_recipe("[quantize]\nrecipe = \"nvfp4\"\nfilter_fqns = []" DATA, "nvfp4", NULL);
	expect_recipe(
		"[model]\nconverters = [\"quantize.linear.float8\"]" DATA
		"[quantize.linear.float8]\nrecipe_name = \"rowwise\"\nfilter_fqns = [\"wq\"]\n",
		"rowwise", "wq");
	expect_recipe("[model]\nconverters = [\"mx\"]" DATA
		      "[mx]\nrecipe_name = \"mxfp8_cublas\"\n",
		      "mxfp8_cublas", "output");
	expect_recipe("[model]\nconverters = \"float8\"" DATA, "tensorwise", "output");
	expect_recipe("[float8]\nenable_float8_linear = true" DATA, "tensorwise", "output");
	/* without a converter a name does nothing there */
	expect_recipe("[quantize.linear.float8]\nrecipe_name = \"rowwise\"" DATA, "none", "output");
#undef DATA
}

/* Weights as FP8 between ranks: torchtitan's word for it asks where it can be, and says where it cannot. */
static void test_gather(void **state)
{
	/* clang-format off */
	static const struct {
		const char *more;
		bool want;
	} cases[] = {
		{ "", true },
		{ "[quantize]\nfilter_fqns = [\"output\"]\n", true },
		{ "[quantize]\nfirst_layers = 1\n", true },
		{ "[quantize]\nfilter_fqns = [\"auto_filter_small_kn\", \"output\"]\n", false },
		{ "[quantize]\nonly_faster = true\n", false },
		{ "[quantize]\nrecipe = \"rowwise\"\n", false },
		{ "[quantize]\nrules = [\"steps=3- recipe=none\"]\n", false },
		{ "[quantize]\nfilter_fqns = [\"wq\"]\n", false },
		{ "[quantize]\nfirst_layers = 1000\n", false },
	};
	/* clang-format on */
	static const char file[] = "[model]\nconverters = [\"float8\"]\n[float8]\n"
				   "enable_fsdp_float8_all_gather = true\n"
				   "[training]\ndataset_path = \"x\"\n";
	static const char note[] =
		"c.toml:4: float8.enable_fsdp_float8_all_gather: does nothing here";

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[512], *told = NULL;
		FILE *notes = memory(&told);
		struct config c;
		struct err err;
		snprintf(text, sizeof(text), "%s%s", file, cases[i].more);
		if (load(&c, text, false, notes, &err))
			fail_msg("case %zu: %s", i, err.text);
		fclose(notes);
		if (c.fp8_gather != cases[i].want || !strstr(told, note) != cases[i].want)
			fail_msg("case %zu: %d, told \"%s\"", i, c.fp8_gather, told);
		config_clear(&c);
		free(told);
	}
}

#define BASE "[training]\ndataset_path = \"x\"\n"

static void test_refused(void **state)
{
	/* clang-format off */
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ BASE "[parallelism]\ntensor_parallel_degree = 8\n",
		  "c.toml:4: parallelism.tensor_parallel_degree: 8 must divide n_heads 4, n_kv_heads 2 "
		  "and ffn_dim 176: 1, 2" },
		{ BASE "z_loss = 1e-4\n[parallelism]\ntensor_parallel_degree = 2\n",
		  "c.toml:3: training.z_loss: needs all logits on one rank: "
		  "parallelism.tensor_parallel_degree = 1" },
		{ BASE "[parallelism]\nexpert_parallel_degree = 8\n",
		  "c.toml:4: parallelism.expert_parallel_degree: 8 is not supported, only 1" },
		{ BASE "[parallelism]\ndata_parallel_shard_degree = 5000\n",
		  "c.toml:4: parallelism.data_parallel_shard_degree: " },
		{ BASE "mixed_precision_reduce = \"bfloat16\"\n",
		  "c.toml:3: training.mixed_precision_reduce: \"bfloat16\" is not supported, only "
		  "\"float32\"" },
		{ BASE "batch_size = 0\n", "c.toml:3: training.local_batch_size: must be" },
		{ "[training]\ndataset = \"c4\"\n", "c.toml: training.dataset_path: is required: a file of "
		  "tokens, as lbworker prepare makes it" },
		{ BASE "dataset_mix = [\"1 x\"]\n", "c.toml:2: training.dataset_path: goes without "
		  "training.dataset_mix" },
		{ BASE "data_set = \"c4\"\n", "c.toml:3: training.data_set: unknown key" },
		{ BASE "[model]\nname = \"llama2\"\nflavor = \"1B\"\n",
		  "c.toml:5: model.flavor: there is no \"2-1B\", allowed: debugmodel" },
		{ BASE "checkpoint_interval_type = \"seconds\"\n",
		  "c.toml:3: checkpoint.interval_type: \"seconds\" is not supported, only \"steps\"; "
		  "--lenient goes on without it" },
		{ BASE "[model]\nconverters = [\"float8\"]\n[float8]\nrecipe_name = \"wise\"\n",
		  "c.toml:6: quantize.recipe: there is no recipe \"wise\"; there are none, bf16, tensorwise" },
		{ BASE "[model]\nconverters = [\"quantize.grouped_mm.mx\"]\n",
		  "c.toml:4: model.converters: [\"quantize.grouped_mm.mx\"] is not supported, only []" },
		{ BASE "[quantize]\nrecipe = \"mxfp8\"\nrules = [\"steps=3\"]\n",
		  "c.toml:5: quantize.rules: \"steps=3\": names no recipe; a rule is" },
		{ BASE "[quantize]\nrecipe = \"tensorwise\"\nonly_faster = true\nfp8_gather = true\n",
		  "c.toml:6: quantize.fp8_gather: goes with recipes" },
		{ BASE "[quantize]\nrecipe = \"tensorwise\"\nfilter_fqns = [\"auto_filter_small_kn\"]\n"
		  "fp8_gather = true\n", "c.toml:6: quantize.fp8_gather: goes with recipes" },
		{ BASE "[quantize]\nrecipe = \"tensorwise\"\nfilter_fqns = [\"wq\"]\nfp8_gather = true\n",
		  "c.toml:6: quantize.fp8_gather: goes with recipes" },
		{ "training.dataset_path = \"x\"\nmodel.converters = [\"float8\"]\n"
		  "quantize = { rules = [\"steps=3- recipe=none\"], fp8_gather = true, "
		  "linear.float8.enable_fsdp_float8_all_gather = true }\n",
		  "c.toml:3: quantize.fp8_gather: goes with recipes" },
		{ BASE "[quantize.linear.float8]\nfast = true\n", "c.toml:4: float8.fast: unknown key in section [float8]" },
		{ BASE "[float9]\nfast = true\n", "c.toml:3: float9: unknown section" },
		{ BASE "[experimental]\ncustm_import = \"x\"\n", "c.toml:4: experimental.custm_import: unknown "
		  "key; did you mean \"custom_import\"?" },
		{ BASE "[quantize]\nx = 1\n", "c.toml:4: quantize.x: unknown key in section [quantize]" },
		{ BASE "[lr_scheduler]\ntotal_steps = 0\n",
		  "c.toml:4: lr_scheduler.total_steps: must be -1, or at least 1" },
		{ BASE "[validation]\nenable = true\n", "c.toml: validation.dataset_path: is required to validate" },
		{ BASE "[validation]\nenable = true\ndataset_path = \"y\"\nseq_len = 7\n",
		  "c.toml:6: validation.seq_len: must be that of training, or -1" },
		{ BASE "[model]\nname = \"flux\"\nflavor = \"dev\"\n", "c.toml:4: model.name: must be one of" },
		{ BASE "warmup_pct = 0.2\n", "c.toml:3: training.warmup_pct: 0.2 is not supported, only 0" },
		{ BASE "batch_ramp = [8, 8]\n", "c.toml:3: training.batch_ramp: must be [start" },
		{ BASE "[model]\ninit_std = \"sqrt(2/h\"\n", "c.toml:4: model.init_std: must be" },
		{ BASE "[model]\ninit_std = 20\n", "c.toml:4: model.init_std: must be" },
		{ BASE "[model]\nname = \"neox\"\nflavor = \"8B\"\n",
		  "c.toml:5: model.flavor: there is no \"8B\", allowed: debugmodel, 70M" },
		{ BASE "seq_len = 2048\n[model]\nname = \"gpt2\"\nflavor = \"124M\"\n",
		  "c.toml:3: training.seq_len: model: seq_len 2048 is more than its 1024" },
		{ BASE "[activation_checkpoint]\nselective_ac_option = \"two\"\n",
		  "c.toml:4: activation_checkpoint.selective_ac_option: must be" },
	};
	/* clang-format on */

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct config c;
		struct err err;
		if (load(&c, cases[i].text, false, NULL, &err) == 0)
			fail_msg("case %zu was taken: %s", i, cases[i].want);
		if (strncmp(err.text, cases[i].want, strlen(cases[i].want)) != 0)
			fail_msg("case %zu: \"%s\", not \"%s\"", i, err.text, cases[i].want);
		assert_int_equal(err.code, ERR_USAGE);
	}
}

/* A file with many mistakes is told of all of them, in one run. */
static void test_all_refused(void **state)
{
	static const char text[] =
		"[model]\ndim = 1000\nn_heads = 12\nn_layers = 2\nn_kv_heads = 5\n"
		"vocab_size = 300\n[parallelism]\nexpert_parallel_degree = 8\n"
		"[float8]\nfast = true\n[foo]\na = 1\nb = 2\n[training]\nsteps = \"x\"\n";
	static const char *const want[] = {
		"c.toml:8: parallelism.expert_parallel_degree: 8 is not supported",
		"c.toml:10: float8.fast: unknown key",
		"c.toml:11: foo: unknown section",
		"c.toml:15: training.steps: must be an integer",
		"c.toml: training.dataset_path: is required",
		"c.toml:3: model.n_heads: dim 1000 is not n_heads 12 times an even number: dim 1008 "
		"would do, or n_heads 10",
		"c.toml:5: model.n_kv_heads: n_heads 12 is no multiple of n_kv_heads 5: 4 would do",
	};
	struct config c;
	struct err err;
	char *told = NULL;
	FILE *to = memory(&told);

	(void)state;
	assert_int_equal(load(&c, text, false, NULL, &err), -1);
	assert_int_equal(
		config_load(&c, &(struct config_order){ .path = config_file, .refused = to }, &err),
		-1);
	fclose(to);
	char *line = told;
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		if (strncmp(line, want[i], strlen(want[i])) != 0)
			fail_msg("\"%s\", not \"%s\"", line, want[i]);
		line += strcspn(line, "\n") + 1;
	}
	assert_string_equal(line, "");
	free(told);
}

/* Each shape: what is asked for, and what comes of it; or the line that refuses it. */
static void test_shapes(void **state)
{
	/* clang-format off */
	static const struct {
		const char *text, *refused;
		struct model_shape want;
	} cases[] = {
		{ "flavor = \"124M\"\nn_layers = 3\n", NULL,
		  { .vocab = 50304, .dim = 768, .layers = 3, .heads = 12, .kv_heads = 12,
		    .ffn = 2048, .tied = true, .norm_eps = 1e-5f, .rope_theta = 10000 } },
		{ "flavor = \"124M\"\nhidden_size = 512\nnum_attention_heads = 8\n", NULL,
		  { .vocab = 50304, .dim = 512, .layers = 12, .heads = 8, .kv_heads = 8,
		    .ffn = 1536, .tied = true, .norm_eps = 1e-5f, .rope_theta = 10000 } },
		{ "dim = 60\nn_layers = 1\nn_heads = 6\nn_kv_heads = 3\nvocab = 99\nffn = 77\n"
		  "norm_eps = 1e-6\nrope_theta = 500\ntie = true\n", NULL,
		  { .vocab = 99, .dim = 60, .layers = 1, .heads = 6, .kv_heads = 3, .ffn = 77,
		    .tied = true, .norm_eps = 1e-6f, .rope_theta = 500 } },
		{ "dim = 64\nn_layers = 1\nn_heads = 3\nhead_dim = 22\nvocab_size = 9\n"
		  "multiple_of = 4\nffn_dim_multiplier = 1.3\n", NULL,
		  { .vocab = 9, .dim = 64, .layers = 1, .heads = 3, .kv_heads = 3, .head_dim = 22,
		    .ffn = 224, .norm_eps = 1e-5f, .rope_theta = 10000 } },
		{ "name = \"neox\"\ndim = 96\nn_layers = 1\nn_heads = 4\nvocab_size = 9\n", NULL,
		  { .family = MODEL_NEOX, .vocab = 9, .dim = 96, .layers = 1, .heads = 4,
		    .kv_heads = 4, .ffn = 384, .norm_eps = 1e-5f, .rope_theta = 10000,
		    .rotary = 6 } },
		{ "name = \"gpt2\"\nn_embd = 96\nn_layer = 1\nn_head = 4\nvocab_size = 9\n"
		  "n_positions = 300\n", NULL,
		  { .family = MODEL_GPT2, .vocab = 9, .dim = 96, .layers = 1, .heads = 4,
		    .kv_heads = 4, .ffn = 384, .norm_eps = 1e-5f, .rope_theta = 10000,
		    .tied = true, .positions = 300 } },
		{ "name = \"dots1\"\nflavor = \"debugmodel\"\nn_routed_experts = 6\n"
		  "num_experts_per_tok = 3\nmoe_intermediate_size = 20\nn_dense_layers = -1\n"
		  "route_norm = false\nroute_scale = 1.5\n", NULL,
		  { .family = MODEL_DOTS1, .vocab = 256, .dim = 64, .layers = 3, .heads = 4,
		    .kv_heads = 4, .ffn = 176, .norm_eps = 1e-5f, .rope_theta = 10000000,
		    .experts = { .count = 6, .top = 3, .ffn = 20, .shared = 1, .scale = 1.5 } } },
		{ "name = \"qwen3_moe\"\nflavor = \"debugmodel\"\ntop_k = 9\n",
		  "c.toml:4: model.top_k: a token cannot go to 9 of 8 experts", { 0 } },
		{ "name = \"qwen3_moe\"\nflavor = \"debugmodel\"\nn_shared_experts = 1\n",
		  "c.toml:4: model.num_shared_experts: qwen3_moe has none", { 0 } },
		{ "flavor = \"debugmodel\"\nnum_experts = 8\n",
		  "c.toml:3: model.num_experts: llama has no experts", { 0 } },
		{ "dim = 60\n", "c.toml: model.n_layers: is required where model.flavor", { 0 } },
		{ "flavor = \"124M\"\nn_heads = 5\n",
		  "c.toml:3: model.n_heads: dim 768 is not n_heads 5 times an even number: dim 770 "
		  "would do, or n_heads 4", { 0 } },
		{ "flavor = \"124M\"\nn_kv_heads = 16\n",
		  "c.toml:3: model.n_kv_heads: n_heads 12 is no multiple of n_kv_heads 16: 12", { 0 } },
		{ "flavor = \"124M\"\nhead_dim = 65\n",
		  "c.toml:3: model.head_dim: 65 is odd, and elements turn in pairs: 66 would", { 0 } },
		{ "name = \"neox\"\nflavor = \"70M\"\nrotary_pct = 0.3\n",
		  "c.toml:4: model.rotary_pct: turns 19 elements of a head of 64, which must be even: "
		  "rotary_pct 0.28125 would do", { 0 } },
		{ "name = \"gpt2\"\nflavor = \"124M\"\nn_kv_heads = 4\n",
		  "c.toml:4: model.n_kv_heads: gpt2 has as many as n_heads: 12 would do", { 0 } },
		{ "name = \"neox\"\nflavor = \"70M\"\nhead_dim = 32\n",
		  "c.toml:4: model.head_dim: must be dim / n_heads, 64, in neox", { 0 } },
	};
	/* clang-format on */

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *text = NULL;
		struct config c;
		struct err err;
		if (asprintf(&text, "[model]\n%s[training]\ndataset_path = \"x\"\nseq_len = 8\n",
			     cases[i].text) < 0)
			fail();
		int rc = load(&c, text, false, NULL, &err);
		free(text);
		if (cases[i].refused) {
			if (rc == 0 ||
			    strncmp(err.text, cases[i].refused, strlen(cases[i].refused)))
				fail_msg("case %zu: \"%s\"", i, err.text);
			continue;
		}
		if (rc)
			fail_msg("case %zu: %s", i, err.text);
		if (memcmp(&c.shape, &cases[i].want, sizeof(c.shape)) != 0)
			fail_msg(
				"case %zu: another shape: ffn %zu, rotary %zu, heads %zu/%zu of %zu",
				i, c.shape.ffn, c.shape.rotary, c.shape.heads, c.shape.kv_heads,
				c.shape.head_dim);
		config_clear(&c);
	}
}

/* What --check prints is a file that gives the same again. */
static void test_effective_shape(void **state)
{
	struct config c, again;
	struct err err;
	char *text = NULL;
	FILE *to = memory(&text);

	(void)state;
	load_ok(&c, BASE "[model]\nname = \"neox\"\ndim = 132\nn_layers = 1\nn_heads = 6\n"
			 "rotary_pct = 0.272728\nvocab_size = 9\n");
	assert_int_equal(c.shape.rotary, 6);
	config_print(&c, to);
	fclose(to);
	if (load(&again, text, false, NULL, &err))
		fail_msg("%s", err.text);
	assert_memory_equal(&c.shape, &again.shape, sizeof(c.shape));
	assert_string_equal(c.digest, again.digest);
	config_clear(&c);
	config_clear(&again);
	free(text);
}

/* The shape of the model that training begins with. */
static void test_shape_of_hf(void **state)
{
	static const char text[] = BASE "[checkpoint]\ninitial_load_path = \"hf\"\n";
	struct config c;
	struct err err;

	(void)state;
	assert_int_equal(mkdir("hf", 0755), 0);
	assert_int_equal(load(&c, text, false, NULL, &err), -1);
	assert_non_null(strstr(err.text, "c.toml:4: checkpoint.initial_load_path: hf/config.json, "
					 "which has the shape, is not there"));
	FILE *file = fopen("hf/config.json", "w");
	fputs("{\"model_type\":\"gpt_neox\",\"vocab_size\":90,\"hidden_size\":48,"
	      "\"num_hidden_layers\":2,\"num_attention_heads\":3,\"intermediate_size\":100,"
	      "\"rotary_pct\":0.5}",
	      file);
	fclose(file);
	load_ok(&c, text);
	assert_int_equal(c.shape.family, MODEL_NEOX);
	assert_int_equal(c.shape.ffn, 100);
	assert_int_equal(c.shape.rotary, 8);
	config_clear(&c);
	assert_int_equal(load(&c,
			      BASE "[checkpoint]\ninitial_load_path = \"hf\"\n"
				   "[model]\nname = \"llama3\"\n",
			      false, NULL, &err),
			 -1);
	assert_non_null(strstr(err.text, "c.toml:6: model.name: hf/config.json is of \"neox\""));
}

/* What a file of torchtitan means otherwise there is said, unless the file has settled it; of a
 * file of ours nothing is. */
static void test_differences(void **state)
{
	char *told = NULL;
	size_t bytes = 0;
	struct config c;
	struct err err;

	(void)state;
	for (int i = 0; i < 3; i++) {
		static const char *const texts[] = {
			BASE,
			BASE
			"[parallelism]\ndata_parallel_shard_degree = -1\nexpert_parallel_degree = 1\n",
			BASE
			"mixed_precision_param = \"float32\"\nseq_len = 64\n"
			"local_batch_size = 1\nglobal_batch_size = 64\nseed = 1\n[parallelism]\n"
			"expert_parallel_degree = 1\n[optimizer]\nweight_decay_of = \"all\"\n"
			"[model]\ninit_std = 0.02\ndim = 64\nn_heads = 4\nn_layers = 1\n"
			"vocab_size = 9\n[checkpoint]\nenable = true\n",
		};
		static const char *const keys[] = { "mixed_precision_param", "seq_len",
						    "weight_decay_of",       "init_std",
						    "checkpoint.enable",     "seed",
						    "shard_degree",          "model.flavor" };
		FILE *to = open_memstream(&told, &bytes);
		if (load(&c, texts[i], false, to, &err))
			fail_msg("%s", err.text);
		fclose(to);
		for (size_t k = 0; k < (i == 1 ? 7 : 0); k++)
			if (!strstr(told, keys[k]))
				fail_msg("nothing of %s: %s", keys[k], told);
		if (i != 1)
			assert_string_equal(told, "");
		config_clear(&c);
		free(told);
	}
}

/* What torchtitan's trainer dumps of a configuration in Python, abridged. */
static const char dumped[] =
	"{\n  \"model_spec\": {\"name\": \"llama3\", \"flavor\": \"own\", \"model\": {\n"
	"    \"dim\": 60, \"vocab_size\": 99, \"enable_weight_tying\": true, \"layers\": [\n"
	"      {\"attention\": {\"n_heads\": 6, \"qkv_linear\": {\"n_kv_heads\": 3, \"head_dim\": 10},\n"
	"        \"rope\": {\"theta\": 500000, \"scaling\": \"llama\", \"scaling_factor\": 8.0}},\n"
	"       \"feed_forward\": {\"w2\": {\"in_features\": 77}}, \"ffn_norm\": {\"eps\": 1e-06}},\n"
	"      {}]}},\n"
	"  \"hf_assets_path\": \"./x\", \"dump_folder\": \"./outputs\",\n"
	"  \"profiler\": {\"enable_profiling\": false, \"profiler_repeat\": null},\n"
	"  \"optimizer\": {\"param_groups\": [{\"pattern\": \".*\", \"optimizer_name\": \"AdamW\",\n"
	"    \"optimizer_kwargs\": {\"lr\": 0.002, \"betas\": [0.8, 0.9], \"weight_decay\": 0.3}}]},\n"
	"  \"lr_scheduler\": {\"warmup_steps\": 2, \"total_steps\": null, \"decay_ratio\": null},\n"
	"  \"training\": {\"num_tokens_per_microbatch_per_dp_rank\": 1024,\n"
	"    \"num_tokens_per_train_step\": 4096, \"max_context_length\": 256},\n"
	"  \"loss\": {\"num_chunks\": 8}, \"tokenizer\": {}, \"debug\": {\"seed\": 7},\n"
	"  \"parallelism\": {\n    \"expert_parallel_degree\": %d}\n}\n";

static void load_json(const char *name, int degree, int want, struct config *c, struct err *err)
{
	char assignment[] = "training.dataset_path=x", *const data[] = { assignment };
	FILE *file = fopen(name, "w");

	assert_non_null(file);
	fprintf(file, dumped, degree);
	fclose(file);
	*err = (struct err){ 0 };
	int rc = config_load(
		c, &(struct config_order){ .path = name, .assignments = data, .count = 1 }, err);
	if (rc != want)
		fail_msg("%s", err->text);
}

static void test_dumped_json(void **state)
{
	static const struct model_shape want = { .vocab = 99,
						 .dim = 60,
						 .layers = 2,
						 .heads = 6,
						 .kv_heads = 3,
						 .ffn = 77,
						 .tied = true,
						 .norm_eps = 1e-6f,
						 .rope_theta = 500000,
						 .scaling = { 8, 1, 4, 8192 } };
	struct config c;
	struct err err;

	(void)state;
	load_json("dump.json", 1, 0, &c, &err);
	assert_memory_equal(&c.shape, &want, sizeof(want));
	assert_int_equal(c.local_batch_size, 4);
	assert_int_equal(c.global_batch_size, 16);
	assert_int_equal(c.seq_len, 256);
	assert_int_equal(c.seed, 7);
	assert_true(c.lr == 0.002 && c.beta1 == 0.8 && c.beta2 == 0.9 && c.weight_decay == 0.3);
	config_clear(&c);
	load_json("dump.json", 8, -1, &c, &err);
	assert_string_equal(err.text, "dump.json:17: parallelism.expert_parallel_degree: 8 is not "
				      "supported, only 1; --lenient goes on without it");
}

static void test_lenient(void **state)
{
	struct config c;
	struct err err;
	char *told = NULL;
	FILE *to = memory(&told);

	(void)state;
	if (load(&c,
		 BASE "data_set = \"c4\"\nbatch_size = 2\n[float8]\nemulate = true\n"
		      "[parallelism]\nexpert_parallel_degree = 8\n[run]\nname = \"n\"\n",
		 true, to, &err))
		fail_msg("%s", err.text);
	fclose(to);
	assert_int_equal(c.local_batch_size, 2);
	told[strlen("c.toml:3: training.data_set: ignored, it is not known\n"
		    "c.toml:6: float8.emulate: ignored, it is not supported\n"
		    "c.toml:8: parallelism.expert_parallel_degree: ignored, it is not "
		    "supported\n")] = '\0'; /* behind it stands what differs */
	assert_string_equal(told,
			    "c.toml:3: training.data_set: ignored, it is not known\n"
			    "c.toml:6: float8.emulate: ignored, it is not supported\n"
			    "c.toml:8: parallelism.expert_parallel_degree: ignored, it is not "
			    "supported\n");
	free(told);
	config_clear(&c);
	/* a bad value of a key that is ours stays an error */
	assert_int_equal(load(&c, BASE "steps = 0\n", true, NULL, &err), -1);
}

/* A schedule that is longer than the training is cut, which is said when somebody asked for it. */
static void test_short_trials(void **state)
{
	struct config c;
	struct err err;
	char *told = NULL;
	FILE *to = memory(&told);

	(void)state;
	if (load(&c, BASE "steps = 10\n", false, to, &err))
		fail_msg("%s", err.text);
	assert_int_equal(c.warmup_steps, 10);
	config_clear(&c);
	fflush(to);
	assert_string_equal(told, "");
	if (load(&c, BASE "steps = 10\n[lr_scheduler]\nwarmup_steps = 4\ndecay_ratio = 0.8\n",
		 false, to, &err))
		fail_msg("%s", err.text);
	struct schedule cut = config_schedule(&c), whole = cut;
	whole.decay_ratio = 0.6;
	for (int64_t step = 1; step <= 10; step++)
		assert_true(schedule_lr(&cut, step) == schedule_lr(&whole, step));
	config_clear(&c);
	if (load(&c, BASE "steps = 10\n[lr_scheduler]\nwarmup_steps = 40\n", false, to, &err))
		fail_msg("%s", err.text);
	assert_int_equal(c.warmup_steps, 10);
	config_clear(&c);
	fclose(to);
	assert_string_equal(
		told,
		"c.toml:6: lr_scheduler.decay_ratio: more than warm-up leaves: all of that decays\n"
		"c.toml:5: lr_scheduler.warmup_steps: more than all steps: every step warms up\n");
	free(told);
	load_ok(&c, BASE "steps = 10\n[lr_scheduler]\ntotal_steps = 400\n");
	assert_int_equal(c.warmup_steps, 200);
	assert_int_equal(config_schedule(&c).steps, 400);
	config_clear(&c);
}

static void test_init_std(void **state)
{
	static const struct {
		const char *text;
		double want; /* for a width of 64; 0: refused */
	} cases[] = {
		{ "0.02", 0.02 },
		{ " 1e-2 ", 0.01 },
		{ "sqrt(2/(5h))", 0.07905694150420949 },
		{ "sqrt(1/(3h))", 0.07216878364870322 },
		{ "sqrt(2 / (5 * h))", 0.07905694150420949 },
		{ "sqrt(1/h)", 0.125 },
		{ "sqrt(1/(h))", 0.125 },
		{ "", 0 },
		{ "h", 0 },
		{ "sqrt(2/(5h)", 0 },
		{ "sqrt(2/(5h)))", 0 },
		{ "sqrt(-1/h)", 0 },
		{ "0", 0 },
		{ "nan", 0 },
		{ "11", 0 },
		{ "sqrt(1/(0h))", 0 },
		{ "0.02x", 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		double std = 0;
		int rc = init_std_parse(cases[i].text, 64, &std);
		if (cases[i].want == 0 ? rc == 0 : rc != 0 || fabs(std - cases[i].want) > 1e-12)
			fail_msg("\"%s\": %d, %.17g", cases[i].text, rc, std);
	}
}

/* From 8 by 8 to 32 over 60 samples: 20 at 8, 20 at 16, 20 at 24; a step is not cut. */
static void test_batch_ramp(void **state)
{
	static const struct {
		int64_t samples, sequences;
	} cases[] = { { 0, 8 },   { 19, 8 },  { 20, 16 }, { 39, 16 },
		      { 40, 24 }, { 59, 24 }, { 60, 32 }, { 1000000, 32 } };
	struct config c;

	(void)state;
	load_ok(&c, BASE "local_batch_size = 4\nglobal_batch_size = 32\nbatch_ramp = [8, 8, 60]\n");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(config_accumulate(&c, cases[i].samples) * 4, cases[i].sequences);
	config_clear(&c);
	load_ok(&c, BASE "local_batch_size = 4\nglobal_batch_size = 32\n");
	assert_int_equal(config_accumulate(&c, 0), 8);
	config_clear(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_titan),         cmocka_unit_test(test_old_spellings),
		cmocka_unit_test(test_all_spellings), cmocka_unit_test(test_recipes),
		cmocka_unit_test(test_refused),       cmocka_unit_test(test_all_refused),
		cmocka_unit_test(test_shapes),        cmocka_unit_test(test_effective_shape),
		cmocka_unit_test(test_shape_of_hf),   cmocka_unit_test(test_differences),
		cmocka_unit_test(test_dumped_json),   cmocka_unit_test(test_lenient),
		cmocka_unit_test(test_short_trials),  cmocka_unit_test(test_init_std),
		cmocka_unit_test(test_batch_ramp),    cmocka_unit_test(test_gather),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
