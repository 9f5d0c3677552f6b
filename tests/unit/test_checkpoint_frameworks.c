/* SPDX-License-Identifier: MIT */
/* test_checkpoint_frameworks.c - checkpoints as known libraries lay them out, their marks, and the
 * parts of their ranks. */
#include "tests/unit/unit.h"

#include <unistd.h>

#include "tests/unit/newest_checkpoint.h"
#include "tests/unit/trainer_files.h"

static void test_hugging_face(void **state)
{
	(void)state;
	/* Hugging Face's Trainer */
	put_safetensors("hf/checkpoint-20/model.safetensors");
	put_zip("hf/checkpoint-20/optimizer.pt");
	assert_int_equal(newest("hf"), -2);
	assert_contains(told, "no trainer_state.json");
	put_text("hf/checkpoint-20/trainer_state.json", "{\"loss\": NaN}\n");
	assert_int_equal(newest("hf"), 20);
	assert_string_equal(found_layout, "transformers");
	put_text("hf/checkpoint-20/trainer_state.json", "{\"loss\": Na");
	assert_int_equal(newest("hf"), -2);
	put_text("hf/checkpoint-20/trainer_state.json", "{}");
	put_text("hf/checkpoint-20/model.safetensors.index.json",
		 "{\"weight_map\":{\"w\":\"m-1.safetensors\"}}");
	assert_int_equal(newest("hf"), -2);
	assert_contains(told, "names m-1.safetensors, which is missing");
	/* Accelerate */
	put_zip("ac/checkpoints/checkpoint_0/optimizer.bin");
	assert_int_equal(newest("ac"), -2);
	put_text("ac/checkpoints/checkpoint_0/random_states_0.pkl", "\x80.");
	assert_int_equal(newest("ac"), 0);
	assert_string_equal(found_layout, "accelerate");
	/* what a script has registered itself comes behind that */
	put_zip("ac/checkpoints/checkpoint_0/custom_checkpoint_0.pkl");
	put_zip("ac/checkpoints/checkpoint_1/optimizer.bin");
	put_text("ac/checkpoints/checkpoint_1/random_states_0.pkl", "\x80.");
	assert_int_equal(newest("ac"), 0);
	assert_contains(told, "nothing like custom_checkpoint_0.pkl, which checkpoint_0 has");
	put_zip("ac/checkpoints/checkpoint_1/custom_checkpoint_0.pkl");
	assert_int_equal(newest("ac"), 1);
}

/* Scripts of one's own have such files, too, and never what is written last: where two folders lie
 * beside each other and neither has it, it is not how they are written. */
static void test_marks_that_nobody_writes(void **state)
{
	static const struct {
		const char *path, *also;
	} cases[] = {
		{ "un/checkpoint-%d", "optimizer.pt" },
		{ "un/step_%d", "optimizer.bin" },
		{ "un/global_step_%d", "_METADATA" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		char first[80], file[120];

		for (int step = 10; step <= 30; step += 10) {
			snprintf(first, sizeof(first), cases[i].path, step);
			snprintf(file, sizeof(file), "%s/%s", first, cases[i].also);
			put_zip(file);
			if (step == 30)
				break;
			snprintf(file, sizeof(file), "%s/weights", first);
			put_zip(file);
			assert_int_equal(newest("un"), step == 10 ? -2 : 20);
		}
		assert_int_equal(newest("un"), 20);
		assert_string_equal(found_layout, "folder");
		assert_contains(told, "it is not complete: nothing like weights");
		assert_int_equal(folder_remove("un", NULL), 0);
	}
}

/* Folders into which each rank writes its part. */
static void test_parts_of_ranks(void **state)
{
	(void)state;
	/* torchtitan */
	put_text("dcp/step-10/__0_0.distcp", "x");
	assert_int_equal(newest("dcp"), -2);
	put_text("dcp/step-10/.metadata", "x");
	assert_int_equal(newest("dcp"), 10);
	assert_string_equal(found_layout, "dcp");
	/* OLMo-core, XTuner, prime-rl: such folders below their own, and more behind them */
	for (int step = 10; step <= 20; step += 10) {
		put_text(path_of("oc/step%d/model_and_optim/__0_0.distcp", step), "x");
		assert_int_equal(newest("oc"), step == 10 ? -2 : 10);
		assert_contains(told, "it is not complete: no model_and_optim/.metadata");
		put_text(path_of("oc/step%d/model_and_optim/.metadata", step), "x");
		assert_int_equal(newest("oc"), 10);
		put_text(path_of("oc/step%d/config.json", step), "{}");
		assert_int_equal(newest("oc"), step);
		assert_string_equal(found_layout, "folder");
	}
	/* Lightning's folders, by FSDP and DeepSpeed, which have no number or others */
	put_zip("lf/checkpoints/epoch=0-step=200.ckpt/__0_0.distcp");
	assert_int_equal(newest("lf"), -2);
	assert_contains(told, "it is not complete: no meta.pt");
	put_text("lf/checkpoints/epoch=0-step=200.ckpt/.metadata", "x");
	put_zip("lf/checkpoints/epoch=0-step=200.ckpt/meta.pt");
	assert_int_equal(newest("lf"), 200);
	assert_string_equal(found_layout, "lightning-fsdp");
	put_zip("lf/checkpoints/last.ckpt/__0_0.distcp");
	put_text("lf/checkpoints/last.ckpt/.metadata", "x");
	assert_int_equal(newest("lf"), 200);
	put_zip("lf/checkpoints/last.ckpt/meta.pt");
	assert_int_equal(newest("lf"), 300);
	assert_string_equal(found, "lf/checkpoints/last.ckpt");
	put_zip("ld/epoch=01-val_loss=0.35.ckpt/checkpoint/mp_rank_00_model_states.pt");
	assert_int_equal(newest("ld"), -2);
	assert_contains(told, "it is not complete: no latest");
	put_text("ld/epoch=01-val_loss=0.35.ckpt/latest", "checkpoint");
	assert_int_equal(newest("ld"), 300);
	assert_string_equal(found_layout, "lightning-deepspeed");
	put_zip("lr/my.ckpt/step_100.pt");
	assert_int_equal(newest("lr"), 100);
	/* TensorStore's: names by chance, a manifest of any size */
	for (int step = 10; step <= 20; step += 10) {
		char manifest[100] = "\x0c\xdb\x3a\x2a";

		put_text(path_of("ts/step-%d/d/%08x9d434b4dd37ed542b9958986", step, step), "x");
		manifest[4] = (char)(100 - step);
		put(path_of("ts/step-%d/manifest.ocdbt", step), manifest, (size_t)(100 - step));
		assert_int_equal(newest("ts"), 10);
		put_text(path_of("ts/step-%d/metadata.json", step), "{}");
		assert_int_equal(newest("ts"), step);
	}
	assert_int_equal(truncate("ts/step-20/manifest.ocdbt", 79), 0);
	assert_int_equal(newest("ts"), 10);
	assert_contains(told, "manifest.ocdbt 79 bytes, its header says 80");
	/* Orbax, where nothing is renamed: what the one before was committed by */
	for (int step = 10; step <= 20; step += 10) {
		put_text(path_of("or/%d/_CHECKPOINT_METADATA", step), "{}");
		put_text(path_of("or/%d/state/d/%08x9d434b4dd37ed542b9958986", step, step), "x");
		assert_int_equal(newest("or"), 10);
		put_text(path_of("or/%d/commit_success.txt", step), "ok");
		assert_int_equal(newest("or"), step);
		assert_string_equal(found_layout, "orbax");
	}
	/* DeepSpeed and Megatron: a pointer is written last */
	put_zip("ds/global_step10/mp_rank_00_model_states.pt");
	put_text("ds/latest", "global_step10");
	put_zip("ds/global_step20/mp_rank_00_model_states.pt");
	assert_int_equal(newest("ds"), 10);
	assert_contains(told, "latest still names global_step10");
	put_text("ds/latest", "global_step20");
	assert_int_equal(newest("ds"), 20);
	put_zip("mg/iter_0000010/mp_rank_00/model_optim_rng.pt");
	put_zip("mg/iter_0000020/mp_rank_00/model_optim_rng.pt");
	put_text("mg/latest_checkpointed_iteration.txt", "10");
	assert_int_equal(newest("mg"), 10);
	assert_string_equal(found_layout, "megatron");
	/* NeMo */
	put_text("nemo/checkpoints/m--step=10-last/weights/common.pt", "x");
	put_text("nemo/checkpoints/m--step=10-last-unfinished", "");
	assert_int_equal(newest("nemo"), -2);
	unlink("nemo/checkpoints/m--step=10-last-unfinished");
	assert_int_equal(newest("nemo"), 10);
	assert_string_equal(found_layout, "nemo");
	/* verl */
	put_zip("ve/global_step_10/actor/model_world_size_2_rank_0.pt");
	put_zip("ve/global_step_20/actor/model_world_size_2_rank_0.pt");
	put_text("ve/latest_checkpointed_iteration.txt", "10");
	put_zip("ve/global_step_20/actor/dist_ckpt/__0_0.distcp");
	assert_int_equal(newest("ve"), 10);
	assert_string_equal(found_layout, "verl");
	/* others call theirs so, too: a first save that was cut off between two files */
	put_zip("gs/global_step_10/optimizer.bin");
	assert_int_equal(newest("gs"), -2);
	assert_contains(told, "it is not complete: no random_states_0.pkl");
	put_text("go/global_step_10/_METADATA", "{}");
	assert_int_equal(newest("go"), -2);
	assert_contains(told, "it is not complete: no _CHECKPOINT_METADATA");
	put_zip("gd/global_step_10/__0_0.distcp");
	assert_int_equal(newest("gd"), -2);
	assert_contains(told, "it is not complete: no .metadata");
}

static void test_frameworks(void **state)
{
	/* {'step': 33}: a small number right before the end */
	static const unsigned char last_key[] = "\x80\x02}X\4\0\0\0stepq\1K\x21s.";
	static const unsigned char current[] = "\x80\x02}X\15\0\0\0current_epochq\1K\x21s.";
	unsigned char zip[600];

	(void)state;
	/* OLMo, kohya's sd-scripts */
	put_zip("ol/step1000-unsharded/model.pt");
	put_zip("ol/step2000-unsharded/model.pt");
	assert_int_equal(newest("ol"), 2000);
	put_zip("oo/OLMo-1B/step1000-unsharded/model.pt");
	assert_int_equal(newest("oo"), 1000);
	put_text("ko/my-step00000200.safetensors", "x");
	put_zip("ko/my-step00000200-state/optimizer.bin");
	assert_int_equal(newest("ko"), 200);
	assert_string_equal(found, "ko/my-step00000200-state");
	/* a folder of checkpoints is none itself, and what all have is no step, there, either */
	put_zip("ko/run_20241123-state/step_100.pt");
	assert_int_equal(newest("ko"), 200);
	put_zip("ks/epoch_5_224-state/optimizer.bin");
	put_zip("ks/epoch_6_224-state/optimizer.bin");
	assert_int_equal(newest("ks"), 6);
	/* LitGPT */
	put_zip("lit/step-00000010/lit_model.pth");
	assert_int_equal(newest("lit"), -2);
	put_text("lit/step-00000010/model_config.yaml", "a: 1\n");
	assert_int_equal(newest("lit"), 10);
	assert_string_equal(found_layout, "litgpt");
	/* nanoGPT: its step is inside */
	put_zip("nano/ckpt.pt");
	assert_int_equal(newest("nano"), 300);
	assert_string_equal(found_layout, "nanogpt");
	put("nan/ckpt.pt", zip, zip_make(zip, "a/data.pkl", last_key, sizeof(last_key) - 1));
	assert_int_equal(newest("nan"), 33);
	/* nnU-Net */
	put("nnu/fold_0/checkpoint_latest.pth", zip,
	    zip_make(zip, "a/data.pkl", current, sizeof(current) - 1));
	put_text("nnu/fold_0/training_log.txt", "x");
	assert_int_equal(newest("nnu"), 33);
	put_zip("li/last.ckpt");
	assert_int_equal(newest("li"), 300);
	/* llm.c */
	put_text("llm/model_00000010.bin", "x");
	put_text("llm/state_00000010_00000.bin", "x");
	put_text("llm/DONE_00000010", "");
	put_text("llm/model_00000020.bin", "x");
	assert_int_equal(newest("llm"), 10);
	assert_string_equal(found_layout, "llm.c");
	assert_contains(told, "no DONE_00000020");
	/* SpeechBrain, TensorFlow, MindSpore, Composer, fairseq by updates */
	put_zip("sb/save/CKPT+2024-05-01+12-00-00+00/model.ckpt");
	put_text("sb/save/CKPT+2024-05-01+12-00-00+00/CKPT.yaml", "end-of-epoch: true\n");
	assert_true(newest("sb") >= 0);
	assert_string_equal(found, "sb/save/CKPT+2024-05-01+12-00-00+00");
	for (int step = 10; step <= 20; step += 10) {
		put_text(path_of("tf/ckpt-%d.index", step), "any");
		put_text(path_of("tf/ckpt-%d.data-00000-of-00001", step), "any");
		put_text(path_of("ms/net-1_%d.ckpt", step), "\nany protobuf");
		for (int rank = 0; rank < 2; rank++) {
			put_zip(path_of("co/ep1-ba%d-rank%d.pt", step, rank));
		}
		put_zip(path_of("fu/checkpoint_1_%d.pt", 100 * step));
	}
	put_text("tf/checkpoint", "model_checkpoint_path: \"ckpt-20\"\n");
	assert_int_equal(newest("tf"), 20);
	unlink("tf/ckpt-20.index");
	assert_int_equal(newest("tf"), 10);
	assert_int_equal(newest("ms"), 20);
	assert_int_equal(newest("co"), 20);
	assert_string_equal(found, "co/ep1-ba20-rank0.pt");
	unlink("co/ep1-ba20-rank1.pt");
	assert_int_equal(newest("co"), 10);
	assert_int_equal(newest("fu"), 2000);
	/* stable-baselines3, XGBoost, OpenCLIP */
	put_zip("sb3/ppo_1000_steps.zip");
	put_text("sb3/ppo_vecnormalize_1000_steps.pkl", "\x80.");
	assert_int_equal(newest("sb3"), 1000);
	assert_string_equal(found, "sb3/ppo_1000_steps.zip");
	put_text("xg/xgb_20.ubj", "{}");
	assert_int_equal(newest("xg"), 20);
	put_zip("cl/epoch_latest.pt");
	assert_int_equal(newest("cl"), 300);
	/* ours, where the manifest does not hold */
	put_text("our/step-00000010/manifest.json", "{}");
	assert_int_equal(newest("our"), -2);
	put_text("our/step-00000020/w", "x");
	assert_int_equal(newest_by("lbworker", NULL, NULL, "our"), -2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hugging_face),
		cmocka_unit_test(test_marks_that_nobody_writes),
		cmocka_unit_test(test_parts_of_ranks),
		cmocka_unit_test(test_frameworks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
