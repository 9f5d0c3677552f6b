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
#include <cmocka.h>

#include "worker/lbworker/config.h"
#include "worker/lbworker/init_std.h"

static const char config_file[] = "c.toml";	/* in the test's own folder */

static int load(struct config *c, const char *text, bool lenient, FILE *ignored, struct err *err)
{
	FILE *file = fopen(config_file, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	*err = (struct err){ 0 };
	return config_load_as(c, config_file, NULL, 0, lenient, ignored, err);
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
	assert_int_equal(c.model->shape.family, MODEL_LLAMA);
	assert_int_equal(c.local_batch_size, 8);
	assert_true(c.decay_ratio == 0.8);
	struct model_options o = config_model_options(&c);
	assert_int_equal(o.recompute, RECOMPUTE_FULL);
	assert_int_equal(o.every, 2);
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
		    "[float8]\nenable_float8_linear = false\n"
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
	load_ok(&c, "[profiling]\nrun_profiler = true\nprofile_every_x_iter = 7\n"
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

#define BASE "[training]\ndataset_path = \"x\"\n"

static void test_refused(void **state)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ BASE "[parallelism]\ntensor_parallel_degree = 8\n",
		  "c.toml:4: parallelism.tensor_parallel_degree: 8 is not supported, only 1" },
		{ BASE "data_parallel_shard_degree = 8\n",
		  "c.toml:3: parallelism.data_parallel_shard_degree: 8 is not supported, only -1" },
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
		{ BASE "[quantize.linear.float8]\nrecipe_name = \"rowwise\"\n",
		  "c.toml:4: float8.recipe_name: \"rowwise\" is not supported, only \"\"" },
		{ BASE "[quantize.linear.float8]\nfast = true\n", "c.toml:4: float8: unknown section" },
		{ BASE "[lr_scheduler]\ntotal_steps = 0\n",
		  "c.toml:4: lr_scheduler.total_steps: must be -1, or at least 1" },
		{ BASE "[validation]\nenable = true\n", "c.toml: validation.dataset_path: is required to validate" },
		{ BASE "[validation]\nenable = true\ndataset_path = \"y\"\nseq_len = 7\n",
		  "c.toml:6: validation.seq_len: must be that of training, or -1" },
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

static void test_lenient(void **state)
{
	struct config c;
	struct err err;
	char *told = NULL;
	size_t bytes = 0;
	FILE *to = open_memstream(&told, &bytes);

	(void)state;
	if (load(&c, BASE "data_set = \"c4\"\nbatch_size = 2\n[float8]\nrecipe_name = \"rowwise\"\n"
			  "[parallelism]\ntensor_parallel_degree = 8\n[run]\nname = \"n\"\n",
		 true, to, &err))
		fail_msg("%s", err.text);
	fclose(to);
	assert_int_equal(c.local_batch_size, 2);
	assert_string_equal(told,
			    "c.toml:3: training.data_set: ignored, it is not known\n"
			    "c.toml:6: float8.recipe_name: ignored, it is not supported\n"
			    "c.toml:8: parallelism.tensor_parallel_degree: ignored, it is not "
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
	size_t bytes = 0;
	FILE *to = open_memstream(&told, &bytes);

	(void)state;
	if (load(&c, BASE "steps = 10\n", false, to, &err))
		fail_msg("%s", err.text);
	assert_int_equal(c.warmup_steps, 10);
	config_clear(&c);
	fflush(to);
	assert_string_equal(told, "");
	if (load(&c, BASE "steps = 10\n[lr_scheduler]\nwarmup_steps = 4\ndecay_ratio = 0.8\n",
		 false,
		 to, &err))
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
	assert_string_equal(told,
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
		double want;		/* for a width of 64; 0: refused */
	} cases[] = {
		{ "0.02", 0.02 }, { " 1e-2 ", 0.01 }, { "sqrt(2/(5h))", 0.07905694150420949 },
		{ "sqrt(1/(3h))", 0.07216878364870322 }, { "sqrt(2 / (5 * h))", 0.07905694150420949 },
		{ "sqrt(1/h)", 0.125 }, { "sqrt(1/(h))", 0.125 }, { "", 0 }, { "h", 0 },
		{ "sqrt(2/(5h)", 0 }, { "sqrt(2/(5h)))", 0 }, { "sqrt(-1/h)", 0 }, { "0", 0 },
		{ "nan", 0 }, { "11", 0 }, { "sqrt(1/(0h))", 0 }, { "0.02x", 0 },
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
	} cases[] = { { 0, 8 }, { 19, 8 }, { 20, 16 }, { 39, 16 }, { 40, 24 }, { 59, 24 },
		      { 60, 32 }, { 1000000, 32 } };
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
		cmocka_unit_test(test_titan),
		cmocka_unit_test(test_old_spellings),
		cmocka_unit_test(test_all_spellings),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_lenient),
		cmocka_unit_test(test_short_trials),
		cmocka_unit_test(test_init_std),
		cmocka_unit_test(test_batch_ramp),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
