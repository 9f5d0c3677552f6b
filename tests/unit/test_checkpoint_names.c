/* SPDX-License-Identifier: MIT */
/* test_checkpoint_names.c - how checkpoints are called, and the patterns of a run that say so. */
#include "common/base/regexp.h"
#include "common/checkpoint/entry_names.h"
#include "common/checkpoint/layouts.h"
#include "common/checkpoint/siblings.h"
#include "common/checkpoint/steps.h"
#include "tests/unit/newest_checkpoint.h"
#include "tests/unit/trainer_files.h"

static void test_step_in_name(void **state)
{
	static const struct {
		const char *name;
		int64_t step;
	} cases[] = {
		{ "ckpt_20", 20 },
		{ "step-00000020", 20 },
		{ "ckpt_20.npz", 20 },
		{ "checkpoint-500", 500 },
		{ "epoch=1-step=300.ckpt", 300 },
		{ "epoch=1-step=300-v1.ckpt", 300 },
		{ "ckpt_epoch3_loss0.52.pt", 3 },
		{ "model-100-0.25.pt", 100 },
		{ "iter_0000100", 100 },
		{ "gpt2-medium_step7.pt", 7 },
		{ "snapshot.40", 40 },
		{ "step_10k.pt", 10000 },
		{ "ckpt-9K.pt", 9000 },
		{ "ckpt_1.5k.pt", 1500 },
		{ "step_10kg.pt", 10 },
		{ "resnet_4k_20.pt", 20 },
		{ "last.ckpt", -1 },
		{ "notes", -1 },
		{ "20", 20 },
		{ "model_00000020.bin", 20 },
		{ "llama3_20.tar", 20 },
		{ "step-99999999999999999999", -1 },
		/* Composer, fairseq, TensorFlow, MindSpore, OLMo, verl, ESPnet, Keras, EasyLM */
		{ "ep1-ba100-rank0.pt", 100 },
		{ "ep1-ba100-rank12.pt", 100 },
		{ "rank0_20.pt", 20 },
		/* the type of its numbers is a step only where there is nothing else */
		{ "model_20_bf16.pt", 20 },
		{ "20-llama-float32", 20 },
		{ "checkpoint16.pt", 16 },
		{ "run_fp_16.pt", 16 },
		/* how many saves ago: KataGo */
		{ "checkpoint_prev3.ckpt", -1 },
		{ "previous-2.pt", -1 },
		{ "checkpoint_40_prev2.pt", 40 },
		{ "checkpoint_prev_40.pt", -1 },
		{ "checkpoint_1_500.pt", 500 },
		{ "checkpoint_2.pt", 2 },
		{ "checkpoint_500_3.pt", 500 }, /* of rank 3 */
		{ "checkpoint-epoch3-1200.pt", 1200 },
		{ "ckpt-10.index", 10 },
		{ "ckpt-10.data-00000-of-00001", 10 },
		{ "net-1_100.ckpt", 100 },
		{ "step1000-unsharded", 1000 },
		{ "global_step_10", 10 },
		{ "5epoch.pth", 5 },
		{ "weights.10-0.25.hdf5", 10 },
		{ "streaming_train_state_1000", 1000 },
		{ "iter-000100-ckpt.pth", 100 },
		{ "model.ckpt-20", 20 },
		{ "checkpoint.bv-000000020", 20 },
		{ "model-20.data-00000-of-00001", 20 },
		{ "model_0000020.rank_1.pth", 20 },
		{ "model.txt.snapshot_iter_20", 20 },
		/* when it was saved is no step, unless there is nothing else */
		{ "checkpoint_1000_20261123.pt", 1000 },
		{ "checkpoint_1000_20261123_101500.pt", 1000 },
		{ "checkpoint_1000_20261123-101500", 1000 },
		{ "checkpoint_1000_2026-11-23_10-15-00.pt", 1000 },
		{ "checkpoint_1000_1795427999.pt", 1000 },
		{ "checkpoint_1000_1795427999123.pt", 1000 },
		{ "checkpoint_epoch5_20261123_101500.pt", 5 },
		{ "checkpoint_20261123_101500_0040", 40 },
		{ "checkpoint_20261123101500_40.pth", 40 },
		{ "checkpoint_2026-11-23_epoch_5.pt", 5 },
		{ "resnet_40_20261123_101500.pt", 40 },
		{ "20261123T101500-resnet-40.pt", 40 },
		{ "ckpt_20261123_101500.pt", 20261123101500 },
		{ "CKPT+2024-05-01+12-00-00+01", 2024050112000001 },
		{ "20250101T101510F123456", 202501011015101234 },      /* Dreamer's microseconds */
		{ "SASRec-Nov-12-2026_21-12-41.pth", 20261112211241 }, /* RecBole's */
		{ "SASRec-Jan-02-2027_08-00-05.pth", 20270102080005 },
		{ "bert-20-Nov-12-2026_21-12-41.pth", 20 },
		{ "EncDec-12-3000.pt", 3000 },                /* of twelve layers */
		{ "020dde1f9ea5464981aa022d89d09cff12", -1 }, /* a name by chance */
		{ "020dde1f9ea5464981aa022d89d09cf7_20.pt", 20 },
		{ "ckpt_1795427999.pt", 1795427999 },
		{ "step_20261123.pt", 20261123 },
		{ "epoch_0_train_step_30_eval_step_0", 30 },
		{ "eval_step_20", 20 },
		{ "rl_model_20001000_steps.zip", 20001000 },
		{ "checkpoint_1_2000.pt", 2000 },
		{ "checkpoint_20_20001301.pt", 20001301 },
		{ "checkpoint_2000_10_1.pt", 2000 },
		{ "checkpoint_2000_10_12.pt", 2000 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		if (step_in_name(cases[i].name) != cases[i].step)
			fail_msg("%s: %lld", cases[i].name, (long long)step_in_name(cases[i].name));
}

static void test_times(void **state)
{
	(void)state;
	assert_true(name_step_is_time("CKPT+2026-11-28+05-04-15+00", 2026112805041500));
	assert_true(name_step_is_time("ckpt_1795427999.pt", 1795427999));
	assert_true(name_step_is_time("SASRec-Nov-12-2026_21-12-41.pth", 20261112211241));
	assert_true(name_step_is_time("20250101T101510F123456", 202501011015101234));
	/* what stands inside is a step all the same */
	assert_false(name_step_is_time("ckpt_1795427999.pt", 40));
	assert_false(name_step_is_time("step_20261123.pt", 20261123));
	assert_false(name_step_is_time("checkpoint_1000_20261123.pt", 1000));
}

/* Of several numbers the one that differs among those called alike. */
static void test_siblings(void **state)
{
	static const struct {
		const char *names[4]; /* the newest first */
		int64_t step;
	} cases[] = {
		{ { "epoch_5_224.pth" }, 224 }, /* nothing to compare with */
		{ { "epoch_6_224.pth", "epoch_5_224.pth" }, 6 },
		{ { "epoch_300_224.pth", "epoch_5_224.pth", "epoch_6_224.pth" }, 300 },
		{ { "ckpt_200_512.pt", "ckpt_100_512.pt" }, 200 },
		{ { "resnet50_6_224.pth", "resnet50_5_224.pth" }, 6 },
		{ { "model_epoch_20_1234.pth", "model_epoch_10_1234.pth" }, 20 }, /* a seed */
		{ { "model_save_42_10.pth", "model_save_42_5.pth" }, 10 },
		{ { "vit_6_224_16_768.pth", "vit_5_224_16_768.pth" }, 6 },
		{ { "checkpoint_2_1000.pt", "checkpoint_1_500.pt", "checkpoint_1_900.pt" }, 1000 },
		{ { "checkpoint_1_1000.pt", "checkpoint_1_500.pt" }, 1000 },
		{ { "checkpoint_500_0.pt", "checkpoint_500_1.pt" }, 500 }, /* ranks */
		{ { "checkpoint_500_1.pt", "checkpoint_500_0.pt", "checkpoint_400_1.pt" }, 500 },
		{ { "rank0_20.pt", "rank1_20.pt" }, 20 },
		{ { "epoch_6_224_20261124.pth", "epoch_5_224_20261123.pth" }, 6 },
		{ { "seed1_step500.pt", "seed2_step500.pt" }, 500 },
		{ { "epoch_6_224", "epoch_5_224.pth", "epoch_5_224.tmp" }, 224 }, /* not alike */
		/* steps that begin again with each epoch: MindSpore, timm; a metric behind it */
		{ { "net-3_250.pth", "net-2_1125.pth", "net-2_125.pth", "net-1_1875.pth" }, 4000 },
		{ { "recovery-6-50.pth.tar", "recovery-5-1000.pth.tar" }, 6 },
		{ { "model_11_90.pt", "model_10_98.pt", "model_9_97.pt" }, 11 },
		{ { "ckpt_200_1.pt", "ckpt_200_2.pt", "ckpt_100_1.pt", "ckpt_100_2.pt" }, 200 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		char path[80];
		int64_t step;

		for (size_t n = 0; n < 4 && cases[i].names[n]; n++) {
			snprintf(path, sizeof(path), "s/%s", cases[i].names[n]);
			put_zip(path);
		}
		step = step_beside_siblings("s", cases[i].names[0], NULL);
		if (step != cases[i].step)
			fail_msg("%s: %lld", cases[i].names[0], (long long)step);
		assert_int_equal(newest("s"), cases[i].step);
		assert_int_equal(folder_remove("s", NULL), 0);
	}
	/* what others go on from, to a step, tells none: MACE's seed, the name of a model */
	put_text("s/m_run-123.model", "x");
	put_text("s/m_run-123_epoch-20.model", "x");
	assert_int_equal(newest("s"), 20);
	assert_int_equal(folder_remove("s", NULL), 0);
	put_text("s/resnet50/weights", "x");
	put_text("s/resnet50_epoch_3/weights", "x");
	assert_int_equal(newest("s"), 3);
	assert_int_equal(folder_remove("s", NULL), 0);
	/* which has nothing to do with what lies beside it, by epochs */
	put_text("s/recovery-6-50.tar", "x");
	put_text("s/recovery-5-1000.tar", "x");
	put_text("s/checkpoint-5.tar", "x");
	assert_int_equal(newest("s"), 6);
	assert_string_equal(found, "s/recovery-6-50.tar");
	assert_int_equal(folder_remove("s", NULL), 0);
	/* folders, and one of them by its path */
	put_zip("s/epoch_5_224/model.pt");
	put_zip("s/epoch_10_224/model.pt");
	assert_int_equal(newest("s"), 10);
	assert_string_equal(found, "s/epoch_10_224");
	assert_int_equal(step_beside_siblings("s/", "epoch_5_224", NULL), 5);
	/* of a layout that the run names, too */
	assert_int_equal(newest_by("folder", NULL, NULL, "s"), 10);
	put_zip("s/d/checkpoint_1000_20261123/model.pt");
	assert_int_equal(newest_by("folder", NULL, NULL, "s/d"), 1000);
	assert_int_equal(folder_remove("s", NULL), 0);
}

static void test_temporary_names(void **state)
{
	static const char *const yes[] = { "step-20.tmp-7",   "tmp-checkpoint-20", ".ckpt_20.npz",
					   "ckpt_20.npz.tmp", "ckpt_20.npz.part",  "a~",
					   "step-20.bad-07",  "ckpt_20.tmp.npz",   "set-aside-2" };
	static const char *const no[] = { "template_20.pt", "ckpt_20.pt", "partition-3",
					  "step-20" };

	(void)state;
	for (size_t i = 0; i < COUNT(yes); i++)
		assert_true(name_is_temporary(yes[i]));
	for (size_t i = 0; i < COUNT(no); i++)
		assert_false(name_is_temporary(no[i]));
}

static void test_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < layout_count; i++) {
		assert_ptr_equal(layout_find(layouts[i].name), &layouts[i]);
		assert_non_null(layouts[i].names[0]);
		assert_non_null(layouts[i].by);
	}
	assert_null(layout_find("auto"));
	assert_true(layout_name_matches("checkpoint-#", "checkpoint-20", NULL));
	assert_false(layout_name_matches("checkpoint-#", "checkpoint-20-old", NULL));
	assert_false(layout_name_matches("*#", "step-", NULL));
}

static void test_patterns(void **state)
{
	static const struct {
		const char *pattern, *path;
		int64_t step;
	} cases[] = {
		{ "step-{step}", "step-100", 100 },
		{ "step-{step}", "step-0100", 100 },
		{ "step-{step}/", "step-100", 100 },
		{ "step-{step}", "step-100.tmp", -2 },
		{ "step-{step}", "xstep-100", -2 },
		{ "step-{step}", "step-", -2 },
		{ "epoch=*-step={step}.ckpt", "epoch=1-step=500.ckpt", 500 },
		{ "model_{step}.b?n", "model_00000020.bin", 20 },
		{ "model_{step}.bin", "model_7xbin", -2 },
		{ "{step}", "9999999999999999999999", -2 },
		{ "iter_(?<step>\\d+)(_final)?", "iter_0000300_final", 300 },
		{ "iter_(?<step>\\d+)", "iter_300x", -2 },
		{ "c_(?<step>\\w+)", "c_abc", -2 },
		{ "run*/ckpt/{step}", "run7/ckpt/30", 30 },
		{ "./lightning_logs/version_*/checkpoints/*step={step}.ckpt",
		  "lightning_logs/version_3/checkpoints/epoch=0-step=9.ckpt", 9 },
		{ "logs/v\\d/c(?<step>\\d+)", "logs/v1/c5", 5 },
		{ "*/{step}", "a/b/7", -2 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		char path[200];
		int64_t step;

		snprintf(path, sizeof(path), "p/%s/x", cases[i].path);
		if (strstr(cases[i].path, "."))
			path[strlen(path) - 2] = '\0';
		put_zip(path);
		step = newest_by("auto", cases[i].pattern, NULL, "p");
		if (step != cases[i].step)
			fail_msg("%s %s: %lld %s", cases[i].pattern, cases[i].path, (long long)step,
				 told);
		assert_int_equal(folder_remove("p", NULL), 0);
	}
}

static void test_mistakes(void **state)
{
	static const struct {
		const char *layout, *pattern, *text;
	} cases[] = {
		{ NULL, "step-(",
		  "bad regular expression at character 7: missing closing parenthesis" },
		{ NULL, "step-(\\d+)", "must contain {step}" },
		{ NULL, "", "must contain {step}" },
		{ NULL, "/abs/{step}", "below checkpoint.folder" },
		{ NULL, "**/{step}", "\"**\" is not known" },
		{ "lightening", NULL, "must be one of auto, own, lbworker" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct err err = { 0 };

		assert_null(checkpoint_rules_create(cases[i].layout, cases[i].pattern, NULL, &err));
		assert_contains(err.text, cases[i].text);
	}
}

static void test_complete_when(void **state)
{
	(void)state;
	assert_int_equal(newest_by(NULL, "step-{step}", ".metadata", "c"), -2);
	folder_make("c/step-20", 0700, NULL);
	assert_int_equal(newest_by(NULL, "step-{step}", ".metadata", "c"), -2);
	assert_contains(told, "c/step-20: it is not complete: no .metadata");
	put_text("c/step-3/.metadata", "x");
	assert_int_equal(newest_by(NULL, "step-{step}", ".metadata", "c"), 3);
	assert_string_equal(found, "c/step-3");
	put_text("c/step-20/.metadata", "x");
	assert_int_equal(newest_by(NULL, "step-{step}", ".metadata", "c"), 20);
	assert_string_equal(told, "");
	/* files, with a mark beside them */
	put_text("c/model_00000050.bin", "x");
	put_text("c/model_00000040.bin", "");
	put_text("c/DONE_00000040", "");
	assert_int_equal(newest_by(NULL, "model_{step}.bin", "DONE_{step}", "c"), 40);
	assert_int_equal(newest_by(NULL, "model_{step}.bin", NULL, "c"), -2); /* llm.c's own mark */
	assert_int_equal(newest_by(NULL, "step-{step}", "manifest", "c"), -2);
}

static void test_bounded(void **state)
{
	struct regexp *r = regexp_create("(a+)+$", false, NULL);
	char text[2001];

	(void)state;
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 2] = '!';
	assert_false(regexp_match(r, text, sizeof(text) - 1));
	regexp_destroy(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_step_in_name), cmocka_unit_test(test_times),
		cmocka_unit_test(test_siblings),     cmocka_unit_test(test_temporary_names),
		cmocka_unit_test(test_rows),         cmocka_unit_test(test_patterns),
		cmocka_unit_test(test_mistakes),     cmocka_unit_test(test_complete_when),
		cmocka_unit_test(test_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
