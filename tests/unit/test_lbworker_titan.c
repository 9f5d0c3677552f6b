/* SPDX-License-Identifier: MIT */
/* test_lbworker_titan.c - torchtitan's files, old and new, in TOML and as it dumps them: what is
 * read of them, what is told of them, and what --lenient leaves out. */
#include "tests/unit/training_config.h"

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

/* Two spellings that say different things; one of an option counts over the file's. */
static void test_contradictions(void **state)
{
	static const char data[] = "dataset_path = \"x\"\n";
	static const struct {
		const char *text, *says;
	} cases[] = {
		{ "local_batch_size = 4\nbatch_size = 8\n",
		  "c.toml:4: training.batch_size: is training.local_batch_size by another name, which "
		  "says otherwise" },
		{ "warmup_steps = 8\n[lr_scheduler]\nwarmup_steps = 9\n",
		  "c.toml:3: training.warmup_steps: is lr_scheduler.warmup_steps by another name, "
		  "which says otherwise" },
		{ "[model]\nconverters = [\"float8\", \"mx\"]\n",
		  "c.toml:4: model.converters: [\"float8\"] is not supported, only []; --lenient goes "
		  "on without it" },
	};
	char assignment[] = "training.batch_size=6", *const option[] = { assignment };
	const struct config_order order = { .path = "c.toml", .assignments = option, .count = 1 };
	struct config c;
	struct err err;
	char text[256];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(text, sizeof(text), "[training]\n%s%s", data, cases[i].text);
		assert_int_equal(load(&c, text, false, NULL, &err), -1);
		assert_string_equal(err.text, cases[i].says);
	}
	load_ok(&c, "[training]\ndataset_path = \"x\"\nbatch_size = 4\nlocal_batch_size = 4\n");
	config_clear(&c);
	assert_int_equal(config_load(&c, &order, &err), 0);
	assert_int_equal(c.local_batch_size, 6);
	config_clear(&c);
	/* as lbd writes it, of a run that was submitted with --set */
	load_ok(&c, BASE "batch_size = 4\nlocal_batch_size = 8 # --set\n");
	assert_int_equal(c.local_batch_size, 8);
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

/* The same bits every time are asked for in the words of 2024, and of 2025. */
static void test_deterministic(void **state)
{
	static const char *const texts[] = { "deterministic = true\n[debug]\nseed = 1\n",
					     "[debug]\ndeterministic = true\n" };
	struct config c;
	char text[256];

	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++) {
		snprintf(text, sizeof(text), BASE "%s", texts[i]);
		load_ok(&c, text);
		assert_true(c.deterministic);
		config_clear(&c);
	}
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
	/* as the files before August 2025 call it; ours of that name rounds scales up */
	expect_recipe("[model]\nconverters = [\"mx\"]" DATA "[mx]\nrecipe_name = \"mxfp8\"\n",
		      "mxfp8_cublas", "output");
	expect_recipe("[model]\nconverters = \"float8\"" DATA, "tensorwise", "output");
	expect_recipe("[float8]\nenable_float8_linear = true" DATA, "tensorwise", "output");
	/* without a converter a name does nothing there */
	expect_recipe("[quantize.linear.float8]\nrecipe_name = \"rowwise\"" DATA, "none", "output");
#undef DATA
}

/* Weights as FP8 between ranks: torchtitan's word for it asks where it can be, and says where it
 * cannot. */
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

/* Words that no module's name has are told. */
static void test_filters_of_nothing(void **state)
{
	static const struct {
		const char *text, *says; /* NULL: nothing */
	} cases[] = {
		{ "[model]\nconverters = [\"float8\"]\n[float8]\n"
		  "filter_fqns = [\"output\", \"router.gate\"]\n",
		  "c.toml:4: quantize.filter_fqns: \"router.gate\" is part of no module's name" },
		{ "[quantize]\nrecipe = \"tensorwise\"\nfilter_fqns = [\"layers.7.\"]\n",
		  "c.toml:3: quantize.filter_fqns: \"layers.7.\" is part of no module's name" },
		{ "[quantize]\nrecipe = \"tensorwise\"\nfilter_fqns = [\"wo\", \"layers.1.\", "
		  "\"lm_head\", \"auto_filter_small_kn\"]\n",
		  NULL },
		{ "[quantize]\nfilter_fqns = [\"nothing\"]\n", NULL }, /* no recipe */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[512], *told = NULL;
		FILE *notes = memory(&told);
		struct config c;
		struct err err;
		snprintf(text, sizeof(text), "%s[training]\ndataset_path = \"x\"\n", cases[i].text);
		if (load(&c, text, false, notes, &err))
			fail_msg("case %zu: %s", i, err.text);
		fclose(notes);
		const char *said = strstr(told, "is part of no module's name");
		if (cases[i].says ? !strstr(told, cases[i].says) : said != NULL)
			fail_msg("case %zu: told \"%s\"", i, told);
		config_clear(&c);
		free(told);
	}
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

/* What of a model its converters leave as it is, when the file does not say so. */
static void test_filters(void **state)
{
#define SIZES(VOCAB, FFN) \
	BASE "[model]\nconverters = [\"%s\"]\ndim = 64\nn_layers = 1\nn_heads = 4\nvocab_size = " VOCAB \
	     "\nffn_dim = " FFN "\n"
	static const char
		none[] = "quantize.filter_fqns: there float8 leaves no module out",
		odd[] = "quantize.filter_fqns: there matrices with a side that 16",
		one[] = "quantize.recipe: there wq, wk and wv, and w1 and w3, have a scale";
	static const struct {
		const char *text, *converter;
		bool none, odd, one;
	} cases[] = {
		{ SIZES("97", "64"), "float8", true, false, true },
		{ SIZES("97", "72"), "quantize.linear.float8", true, true, true },
		{ SIZES("97", "64") "[float8]\nfilter_fqns = [\"output\"]\n", "float8", false,
		  false, true },
		{ SIZES("97", "64") "[float8]\nfilter_fqns = []\n", "float8", false, true, true },
		{ SIZES("97", "64") "[float8]\nrecipe_name = \"rowwise\"\n", "float8", true, false,
		  false },
		{ SIZES("97", "64"), "mx", false, false, false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		char text[512], *told = NULL;
		FILE *notes = memory(&told);
		struct config c;
		struct err err;
		snprintf(text, sizeof(text), cases[i].text, cases[i].converter);
		if (load(&c, text, false, notes, &err))
			fail_msg("case %zu: %s", i, err.text);
		fclose(notes);
		if (!strstr(told, none) == cases[i].none || !strstr(told, odd) == cases[i].odd ||
		    !strstr(told, one) == cases[i].one)
			fail_msg("case %zu: told \"%s\"", i, told);
		config_clear(&c);
		free(told);
	}
#undef SIZES
}

/* What torchtitan's trainer dumps of a configuration in Python, abridged. */
static const char dumped[] =
	"{\n  \"model_spec\": {\"name\": \"llama3\", \"flavor\": \"own\", \"model\": {\n"
	"    \"dim\": 60, \"vocab_size\": 99, \"enable_weight_tying\": true, \"layers\": [\n"
	"      {\"attention\": {\"n_heads\": 6, \"qkv_linear\": {\"n_kv_heads\": 3, \"head_dim\": 10},\n"
	"        \"inner_attention\": {\"block_size\": 128}, \"qk_norm\": null, \"n_kv_heads\": null, \"rope\": {\"theta\": 500000, \"scaling\": \"llama\", \"scaling_factor\": 8.0}},\n"
	"       \"feed_forward\": {\"w2\": {\"in_features\": 77}}, \"ffn_norm\": {\"eps\": 1e-06}},\n"
	"      {\"moe\": null, \"attention\": {\"n_heads\": 6, \"qkv_linear\": {\"n_kv_heads\": 3, \"head_dim\": 10},\n"
	"        \"inner_attention\": {\"block_size\": 128}, \"rope\": {\"theta\": 500000, \"scaling\": \"llama\", \"scaling_factor\": 8.0}},\n"
	"       \"feed_forward\": {\"w2\": {\"in_features\": 77, \"param_init\": {\"weight\": \"f\"}}}, \"ffn_norm\": {\"eps\": 1e-06}}]}},\n"
	"  \"hf_assets_path\": \"./x\", \"dump_folder\": \"./outputs\",\n"
	"  \"profiler\": {\"enable_profiling\": false, \"profiler_repeat\": null},\n"
	"  \"optimizer\": {\"param_groups\": [{\"pattern\": \".*\", \"optimizer_name\": \"AdamW\",\n"
	"    \"optimizer_kwargs\": {\"lr\": 0.002, \"betas\": [0.8, 0.9], \"weight_decay\": 0.3}}]},\n"
	"  \"lr_scheduler\": {\"warmup_steps\": 2, \"total_steps\": null, \"decay_ratio\": null},\n"
	"  \"training\": {\"num_tokens_per_microbatch_per_dp_rank\": 1024,\n"
	"    \"num_tokens_per_train_step\": 4096, \"max_context_length\": 256},\n"
	"  \"dataloader\": {\"num_workers\": 0}, \"loss\": {\"num_chunks\": 8}, \"tokenizer\": {}, \"debug\": {\"seed\": 7},\n"
	"  \"parallelism\": {\n    \"expert_parallel_degree\": 1, \"num_pp_microbatches\": 1}\n}\n";

/* The same with `to` in place of `from`. */
static int load_json(const char *from, const char *to, struct config *c, FILE *notes,
		     struct err *err)
{
	char assignment[] = "training.dataset_path=x", *const data[] = { assignment };
	const struct config_order order = {
		.path = "dump.json", .assignments = data, .count = 1, .notes = notes
	};
	const char *at = strstr(dumped, from);
	FILE *file = fopen(order.path, "w");

	assert_non_null(at);
	assert_non_null(file);
	fprintf(file, "%.*s%s%s", (int)(at - dumped), dumped, to, at + strlen(from));
	fclose(file);
	*err = (struct err){ 0 };
	return config_load(c, &order, err);
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
	char *told = NULL;
	FILE *notes = memory(&told);

	if (load_json("", "", &c, notes, &err))
		fail_msg("%s", err.text);
	fclose(notes);
	assert_non_null(strstr(told, "training.document_end: there attention does not reach back"));
	assert_non_null(strstr(told, "dump.json: quantize.recipe: such a file does not tell"));
	free(told);
	assert_memory_equal(&c.shape, &want, sizeof(want));
	assert_int_equal(c.local_batch_size, 4);
	assert_int_equal(c.global_batch_size, 16);
	assert_int_equal(c.seq_len, 256);
	assert_int_equal(c.seed, 7);
	assert_true(c.lr == 0.002 && c.beta1 == 0.8 && c.beta2 == 0.9 && c.weight_decay == 0.3);
	config_clear(&c);
}

/* A group has no defaults of torchtitan's: what it leaves out is PyTorch's. */
static void test_group_json(void **state)
{
	struct config c;
	struct err err;

	(void)state;
	if (load_json("\"lr\": 0.002, \"betas\": [0.8, 0.9], \"weight_decay\": 0.3", "", &c, NULL,
		      &err))
		fail_msg("%s", err.text);
	assert_true(c.lr == 1e-3 && c.beta1 == 0.9 && c.beta2 == 0.999 && c.eps == 1e-8);
	assert_true(c.weight_decay == 1e-2);
	config_clear(&c);
}

/* Of the ways to compute an update one keeps other moments. */
static void test_implementation(void **state)
{
	static const struct {
		const char *text;
		int moments;
	} cases[] = {
		{ "implementation = \"fused\"\n", MOMENTS_FP32 },
		{ "implementation = \"fused_opt_states_bf16\"\n", MOMENTS_BF16 },
		{ "implementation = \"fused_opt_states_bf16\"\nmoments = \"float32\"\n",
		  MOMENTS_FP32 },
	};
	struct config c;
	char text[256];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		snprintf(text, sizeof(text), BASE "[optimizer]\n%s", cases[i].text);
		load_ok(&c, text);
		assert_int_equal(c.moments, cases[i].moments);
		config_clear(&c);
	}
}

/* A dump that asks for what is not ours. */
static void test_refused_json(void **state)
{
	static const struct {
		const char *from, *to, *says;
	} cases[] = {
		{ "\"scaling\": \"llama\"", "\"scaling\": \"yarn\"",
		  "dump.json:2: model_spec.model: rope.scaling = \"yarn\" is not supported, \"none\" and \"llama\" are" },
		{ "\"n_kv_heads\": 3", "\"wqkv\": {\"bias\": true}",
		  "dump.json:2: model_spec.model: bias = true is not supported" },
		{ "\"qk_norm\": null", "\"qk_norm\": {\"eps\": 1e-06}",
		  "dump.json:2: model_spec.model: qk_norm is not supported in llama3: qwen3 has it" },
		{ "\"num_workers\": 0", "\"sample_processor\": \"f\"",
		  "dump.json:17: dataloader.sample_processor: \"f\" is not supported, only \"\"; "
		  "--lenient goes on without it" },
		{ "\"moe\": null", "\"moe\": {\"num_experts\": 8}",
		  "dump.json:2: model_spec.model: moe is not read from here: in a TOML file "
		  "model.name = \"qwen3_moe\" has keys for experts" },
		{ "\"scaling_factor\": 8.0", "\"low_freq_factor\": 2.0",
		  "dump.json:2: model_spec.model: rope.low_freq_factor must be 1" },
		{ "\"scaling_factor\": 8.0", "\"high_freq_factor\": 8",
		  "dump.json:2: model_spec.model: rope.high_freq_factor must be 4" },
		{ "\"scaling_factor\": 8.0", "\"original_max_position_embeddings\": 4096",
		  "dump.json:2: model_spec.model: rope.original_max_position_embeddings must be "
		  "8192" },
		{ "\"head_dim\": 10", "\"head_dim\": 10, \"wo\": {\"rank\": 8, \"alpha\": 16.0}",
		  "dump.json:2: model_spec.model: rank is not read from here: in a TOML file lora.rank "
		  "has adapters" },
		{ "\"head_dim\": 10", "\"head_dim\": 10, \"sinks\": true",
		  "dump.json:2: model_spec.model: sinks is not read from here" },
		{ "\"block_size\": 128", "\"window_size\": [512, 0]",
		  "dump.json:2: model_spec.model: window_size is not supported" },
		{ "\"in_features\": 77", "\"in_features\": 88",
		  "dump.json:2: model_spec.model: layers that are not all the same (1 and 0) are not "
		  "supported" },
		{ "\"weight_decay\": 0.3", "\"amsgrad\": true",
		  "dump.json:12: optimizer.param_groups: [{\"pattern\":\".*\",\"optimizer_name\":"
		  "\"AdamW\",\"optimizer_kwargs\":{\"lr\":0.002,\"betas\":[0.8,0.9],\"amsgrad\":true}}] "
		  "is not supported, only []; --lenient goes on without it" },
		{ "\"num_workers\": 0",
		  "\"dataset\": {\"dataset\": {\"processor\": {\"messages_fn\": \"f\"}}}",
		  "dump.json:17: dataloader.dataset.dataset.processor.messages_fn: \"f\" is not "
		  "supported, only \"\"; --lenient goes on without it" },
		{ "microbatches\": 1", "microbatches\": 4",
		  "dump.json:19: parallelism.num_pp_microbatches: 4 is not supported, only 1; "
		  "--lenient goes on without it" },
		{ "parallel_degree\": 1", "parallel_degree\": 8",
		  "dump.json:19: parallelism.expert_parallel_degree: 8 is not supported, only 1; "
		  "--lenient goes on without it" },
	};
	struct config c;
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(load_json(cases[i].from, cases[i].to, &c, NULL, &err), -1);
		assert_string_equal(err.text, cases[i].says);
	}
}

static void test_lenient(void **state)
{
	static const char want[] = "c.toml:3: training.data_set: ignored, it is not known\n"
				   "c.toml:6: float8.emulate: ignored, it is not supported\n"
				   "c.toml:8: parallelism.expert_parallel_degree: ignored, it is "
				   "not supported\n";
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
	told[strlen(want)] = '\0'; /* behind it stands what differs */
	assert_string_equal(told, want);
	free(told);
	config_clear(&c);
	/* a bad value of a key that is ours stays an error */
	assert_int_equal(load(&c, BASE "steps = 0\n", true, NULL, &err), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_titan),         cmocka_unit_test(test_old_spellings),
		cmocka_unit_test(test_all_spellings), cmocka_unit_test(test_recipes),
		cmocka_unit_test(test_gather),        cmocka_unit_test(test_filters_of_nothing),
		cmocka_unit_test(test_differences),   cmocka_unit_test(test_contradictions),
		cmocka_unit_test(test_dumped_json),   cmocka_unit_test(test_refused_json),
		cmocka_unit_test(test_lenient),       cmocka_unit_test(test_deterministic),
		cmocka_unit_test(test_group_json),    cmocka_unit_test(test_implementation),
		cmocka_unit_test(test_filters),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
