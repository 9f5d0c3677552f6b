/* SPDX-License-Identifier: MIT */
/* test_lbworker_config.c - configs of a training: what is refused and where, the model's shape, and
 * the values that are worked out. */
#include "tests/unit/training_config.h"

#include <math.h>
#include <sys/stat.h>

#include "worker/lbworker/config/init_std.h"

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
		{ BASE "[debug]\nmoe_force_load_balance = true\n",
		  "c.toml:4: debug.moe_force_load_balance: true is not supported, only false" },
		{ BASE "[parallelism]\ndata_parallel_shard_degree = -1\n"
		  "data_parallel_replicate_degree = -1\n",
		  "c.toml:5: parallelism.data_parallel_replicate_degree: must be at least 1 while "
		  "data_parallel_shard_degree is -1" },
		{ BASE "[parallelism]\ndata_parallel_shard_degree = 0\n",
		  "c.toml:4: parallelism.data_parallel_shard_degree: must be -1, or at least 1" },
		{ BASE "[optimizer]\nname = \"AdamW8bit\"\nmoments = \"float32\"\n",
		  "c.toml:5: optimizer.moments: must be \"8bit\" with optimizer.name = \"AdamW8bit\"" },
		{ BASE "[parallelism]\ndata_parallel_shard_degree = 5000\n",
		  "c.toml:4: parallelism.data_parallel_shard_degree: " },
		{ BASE "mixed_precision_reduce = \"bfloat16\"\n",
		  "c.toml:3: training.mixed_precision_reduce: \"bfloat16\" is not supported, only "
		  "\"float32\"" },
		{ BASE "[parallelism]\nzero_stag = 3\n",
		  "c.toml:4: parallelism.zero_stag: unknown key; did you mean \"zero_stage\"?" },
		{ BASE "[comm]\ntrain_timeout = 3\n", "c.toml:4: comm.train_timeout: unknown key" },
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
		  "c.toml:6: quantize.recipe: there is no recipe \"wise\"; allowed: none, bf16, tensorwise" },
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

/* What is taken otherwise than it is written is said. */
static void test_noted(void **state)
{
	struct config c;
	struct err err;
	char *told = NULL;
	FILE *to = memory(&told);

	(void)state;
	assert_int_equal(load(&c, BASE "[checkpoint]\nkeep_latest_k = 1\n", false, to, &err), 0);
	fclose(to);
	assert_string_equal(
		told,
		"c.toml:4: checkpoint.keep_latest_k: 1 counts as 2: the newest may turn out damaged\n");
	free(told);
	config_clear(&c);
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
		{ "name = \"mistral\"\nflavor = \"debugmodel\"\nrope_local_theta = 9\n",
		  "c.toml:4: model.rope_local_theta: all layers have one rope_theta in mistral: gemma3 has "
		  "two", { 0 } },
		{ "name = \"qwen3_moe\"\nflavor = \"debugmodel\"\nroute_scale = 1.5\n",
		  "c.toml:4: model.route_scale: must be 1 in qwen3_moe: dots1 has others", { 0 } },
		{ "flavor = \"124M\"\nsliding_window = 64\n",
		  "c.toml:3: model.sliding_window: all layers see all keys in llama: mistral, qwen3, "
		  "gemma2 and gemma3 have windows", { 0 } },
		{ "flavor = \"124M\"\nfull_attention_every = 2\n",
		  "c.toml:3: model.full_attention_every: all layers are alike in llama: qwen3, gemma2 and "
		  "gemma3 mix them", { 0 } },
		{ "name = \"mistral\"\nflavor = \"debugmodel\"\nfull_attention_every = 2\n",
		  "c.toml:4: model.full_attention_every: all layers are alike in mistral", { 0 } },
		{ "name = \"qwen3\"\nflavor = \"debugmodel\"\nscore_softcap = 30\n",
		  "c.toml:4: model.score_softcap: there is none in qwen3: gemma2 has it", { 0 } },
		{ "name = \"gemma3\"\nflavor = \"debugmodel\"\nscore_softcap = 30\n",
		  "c.toml:4: model.score_softcap: there is none in gemma3: gemma2 has it", { 0 } },
		{ "flavor = \"124M\"\nlogit_softcap = 30\n", "c.toml:3: model.logit_softcap: there", { 0 } },
		{ "flavor = \"124M\"\nquery_scalar = 30\n",
		  "c.toml:3: model.query_scalar: is head_dim in llama: gemma2 and gemma3 have others", { 0 } },
		{ "name = \"gpt2\"\nflavor = \"124M\"\nrope_theta = 500000\n",
		  "c.toml:4: model.rope_theta: positions are learned in gpt2: all others turn them", { 0 } },
		{ "name = \"gpt2\"\nflavor = \"124M\"\nrotary_pct = 0.5\n",
		  "c.toml:4: model.rotary_pct: positions are learned in gpt2: all others turn them", { 0 } },
		{ "name = \"gpt2\"\nflavor = \"124M\"\nrope_scaling_factor = 8\n",
		  "c.toml:4: model.rope_scaling_factor: positions are learned in gpt2", { 0 } },
		{ "dim = 64\nn_layers = 1\nn_heads = 128\nhead_dim = 2\nvocab_size = 9\n",
		  "c.toml:9: training.seq_len: model: heads 128 must be 1 to 64", { 0 } },
		{ "flavor = \"124M\"\nrotary_pct = 0.5\n",
		  "c.toml:3: model.rotary_pct: all of a head turns in llama: leave it out, or name = "
		  "\"neox\"", { 0 } },
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
	/* the newest checkpoint of a folder whose name is no pattern */
	assert_int_equal(mkdir("run[1]", 0755), 0);
	assert_int_equal(rename("hf", "run[1]/step-00000001"), 0);
	load_ok(&c, BASE "[checkpoint]\ninitial_load_path = \"run[1]\"\n");
	assert_int_equal(c.shape.family, MODEL_NEOX);
	config_clear(&c);
}

/* Python's os.path.join("", "checkpoint") is below the current folder, "/checkpoint" is not. */
static void test_no_folder(void **state)
{
	struct config c;

	(void)state;
	load_ok(&c, BASE "[job]\ndump_folder = \"\"\n");
	assert_string_equal(c.checkpoint_path, "./checkpoints");
	assert_string_equal(c.dump_folder, ".");
	config_clear(&c);
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
	/* half a step becomes a whole one, which is as little there as one of warm-up */
	if (load(&c, BASE "steps = 10\n[lr_scheduler]\nwarmup_steps = 9\ndecay_ratio = 0.15\n",
		 false, to, &err))
		fail_msg("%s", err.text);
	cut = config_schedule(&c);
	assert_true(schedule_lr(&cut, 10) == cut.peak);
	config_clear(&c);
	if (load(&c, BASE "steps = 10\n[lr_scheduler]\nwarmup_steps = 40\n", false, to, &err))
		fail_msg("%s", err.text);
	assert_int_equal(c.warmup_steps, 10);
	config_clear(&c);
	fclose(to);
	assert_string_equal(
		told,
		"c.toml:6: lr_scheduler.decay_ratio: more than warm-up leaves: all of that decays\n"
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

/* What --check wrote of a GPT-2, when it told a base that turned nothing. */
static void test_usual_theta(void **state)
{
	struct config c;

	(void)state;
	load_ok(&c, BASE "[model]\nname = \"gpt2\"\nflavor = \"124M\"\nrope_theta = 10000\n");
	assert_true(c.rope_theta == 0);
	config_clear(&c);
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
	assert_true(config_samples(&c, 0) == 0 && config_samples(&c, 3) == 8 + 8 + 8);
	assert_true(config_samples(&c, 6) == 24 + 16 + 24 + 32);
	assert_true(config_samples(&c, 1000006) == 96 + 1e6 * 32);
	config_clear(&c);
	/* growing over 10^12 samples, one after the other it would take for ever */
	load_ok(&c, BASE "local_batch_size = 4\nglobal_batch_size = 32\n"
			 "batch_ramp = [8, 8, 1000000000000]\n");
	assert_true(config_samples(&c, 1000000) == 8e6);
	/* 3 * 10^11 at 8, 16 and 24 each, as far as steps are whole */
	assert_true(fabs(config_samples(&c, 1000000000000) -
			 (1e12 + 32 * (1e12 - 1e12 / 3 * (1 / 8. + 1 / 16. + 1 / 24.)))) < 1e6);
	config_clear(&c);
	/* thirds of 70, as Megatron has them */
	load_ok(&c, BASE "local_batch_size = 4\nglobal_batch_size = 32\nbatch_ramp = [8, 8, 70]\n");
	assert_int_equal(config_accumulate(&c, 23) * 4, 8);
	assert_int_equal(config_accumulate(&c, 24) * 4, 16);
	assert_int_equal(config_accumulate(&c, 46) * 4, 16);
	assert_int_equal(config_accumulate(&c, 47) * 4, 24);
	assert_int_equal(config_accumulate(&c, 69) * 4, 24);
	config_clear(&c);
	load_ok(&c, BASE "local_batch_size = 4\nglobal_batch_size = 32\n");
	assert_int_equal(config_accumulate(&c, 0), 8);
	config_clear(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused),         cmocka_unit_test(test_all_refused),
		cmocka_unit_test(test_noted),           cmocka_unit_test(test_shapes),
		cmocka_unit_test(test_effective_shape), cmocka_unit_test(test_shape_of_hf),
		cmocka_unit_test(test_short_trials),    cmocka_unit_test(test_init_std),
		cmocka_unit_test(test_usual_theta),     cmocka_unit_test(test_batch_ramp),
		cmocka_unit_test(test_no_folder),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
