/* SPDX-License-Identifier: MIT */
/* test_checkpoints.c - checkpoints of any trainer: which there are, by their names and marks. */
#include "tests/unit/unit.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/newest_checkpoint.h"
#include "tests/unit/trainer_files.h"

static bool are_types_hidden;

/* As NFS tells a large folder, and XFS without ftype all of them. */
struct dirent *readdir(DIR *dir)
{
	struct dirent *(*real)(DIR *) = NULL;
	struct dirent *entry;

	*(void **)&real = dlsym(RTLD_NEXT, "readdir");
	entry = real(dir);
	if (entry && are_types_hidden)
		entry->d_type = DT_UNKNOWN;
	return entry;
}

static void test_hidden_types(void **state)
{
	(void)state;
	put_text("ht/run1/checkpoints/step_10/weights", "0123456789");
	are_types_hidden = true;
	assert_int_equal(newest("ht"), 10);
	are_types_hidden = false;
}

static void test_numbered_folders(void **state)
{
	(void)state;
	put_text("n/step-00000010/weights", "0123456789");
	assert_int_equal(newest("n"), 10);
	assert_string_equal(found_layout, "folder");
	put_text("n/step-00000020/weights", "0123");
	assert_int_equal(newest("n"), 10);
	assert_contains(told, "weights has 4 bytes");
	put_text("n/step-00000020/weights", "0123456789");
	assert_int_equal(newest("n"), 20);
	folder_make("n/step-00000030", 0755, NULL);
	assert_int_equal(newest("n"), 20);
	assert_contains(told, "holds no file");
	put_text("n/step-00000030/other", "0123456789");
	assert_int_equal(newest("n"), 20);
	assert_contains(told, "nothing like weights, which step-00000020 has");
	put_text("n/step-00000030/weights", "");
	assert_int_equal(newest("n"), 20);
	assert_contains(told, "weights is empty (0 bytes)");
	/* an export beside: 16 is no step */
	put_text("ny/checkpoints/step-00000006/weights", "0123456789");
	put_text("ny/checkpoints/export-bfloat16/weights", "0123456789");
	put_text("ny/checkpoints/merged_fp16/weights", "0123456789");
	assert_int_equal(newest("ny/checkpoints"), 6);
	assert_string_equal(found, "ny/checkpoints/step-00000006");
	put_text("nt/checkpoints/checkpoint16/weights", "0123456789");
	assert_int_equal(newest("nt/checkpoints"), 16);
	/* of two of one step what is called so: prime-rl exports beside, earlier or later */
	put_text("mc/checkpoints/step_10/trainer/state", "0123456789");
	put_text("mc/weights/step_10/model", "0123456789");
	put_text("md/weights/step_10/model", "0123456789");
	put_text("md/checkpoints/step_10/trainer/state", "0123456789");
	assert_int_equal(newest("mc"), 10);
	assert_string_equal(found, "mc/checkpoints/step_10");
	assert_int_equal(newest("md"), 10);
	assert_string_equal(found, "md/checkpoints/step_10");
	/* more often than checkpoints, or where one is torn, for those that sample */
	put_text("mc/weights/step_15/model", "0123456789");
	put_text("mc/weights/step_20/model", "0123456789");
	put_text("mc/checkpoints/step_20/trainer/state", "");
	assert_int_equal(newest("mc"), 10);
	assert_string_equal(found, "mc/checkpoints/step_10");
	put_text("me/weights/step_10/model", "0123456789");
	put_text("me/weights/step_20/model", "0123456789");
	assert_int_equal(newest("me"), 20);
	/* beside what was downloaded they are the checkpoints */
	for (int epoch = 1; epoch <= 2; epoch++)
		put_zip(path_of("mf/weights/epoch_%d.pth", epoch));
	put_zip("mf/checkpoints/pretrained_models/vit.pt");
	assert_int_equal(newest("mf"), 2);
	/* a mark, by any word: prime-rl's */
	put_text("ma/step_10/weights", "0123456789");
	put_text("ma/step_10/STABLE", "");
	assert_int_equal(newest("ma"), 10);
	put_text("ma/step_20/weights", "0123456789");
	put_text("ma/step_20/STABLE", "");
	put_text("ma/step_20/Stable", "");
	assert_int_equal(newest("ma"), 10);
	/* empty, and not before, it is none */
	put_text("mb/step_10/WEIGHTS", "0123456789");
	put_text("mb/step_10/other", "0123456789");
	put_text("mb/step_20/WEIGHTS", "");
	put_text("mb/step_20/other", "0123456789");
	assert_int_equal(newest("mb"), 10);
}

/* A disk was full for a night. */
static void test_many_torn_ones(void **state)
{
	(void)state;
	put_zip("many/model_1.pt");
	for (int step = 2; step <= 100; step++)
		put_text(path_of("many/model_%d.pt", step), "");
	assert_int_equal(newest("many"), 1);
}

/* One a minute for two weeks. */
static void test_more_than_are_listed(void **state)
{
	const char *const folders[] = { "old", "new", NULL };
	struct checkpoint_rules *rules = checkpoint_rules_create(NULL, NULL, NULL, NULL);
	struct checkpoint_list list;

	(void)state;
	folder_make("old", 0755, NULL);
	for (int step = 1; step <= CHECKPOINTS_MAX; step++)
		mkdir(path_of("old/step-%d", step), 0755);
	put_zip("new/checkpoints/model_30000.pt");
	put_zip("new/checkpoints/optim_30000.pt");
	put_zip("new/checkpoints/model_1.pt");
	assert_int_equal(checkpoints_find_in(rules, folders, &list, NULL), 0);
	assert_int_equal(list.count, CHECKPOINTS_MAX / 2);
	assert_int_equal(list.items[0].step, 30000);
	assert_int_equal(list.items[0].part_count, 2);
	assert_int_equal(list.items[1].step, CHECKPOINTS_MAX);
	assert_int_equal(list.items[list.count - 1].step, CHECKPOINTS_MAX / 2 + 2);
	checkpoint_list_clear(&list);
	checkpoint_rules_destroy(rules);
}

static void test_several_files_of_a_step(void **state)
{
	(void)state;
	put_zip("s/model_000010.pt");
	put_zip("s/optim_000010.pt");
	put_zip("s/model_000020.pt");
	assert_int_equal(newest("s"), 10);
	assert_string_equal(found, "s/model_000010.pt");
	assert_contains(told, "nothing like optim_000010.pt");
	put_zip("s/optim_000020.pt");
	assert_int_equal(newest("s"), 20);
	assert_int_equal(truncate("s/optim_000020.pt", 90), 0);
	assert_int_equal(newest("s"), 10);
	put_zip("sw/optimizer_state_10.pt");
	put_zip("sw/weights_10.pt");
	assert_int_equal(newest("sw"), 10);
	assert_string_equal(found, "sw/weights_10.pt");
	put_zip("sp/10.pdopt");
	put_zip("sp/10.pdparams");
	assert_int_equal(newest("sp"), 10);
	assert_string_equal(found, "sp/10.pdparams");
}

/* Beside those with numbers lie copies of the best, others that count epochs, and ones that are
 * written over. */
static void test_neighbours(void **state)
{
	(void)state;
	put_zip("nb/epoch_1.pt");
	put_zip("nb/model_100.pt");
	put_zip("nb/best_model_100.pt");
	assert_int_equal(newest("nb"), 100);
	assert_string_equal(found, "nb/model_100.pt");
	assert_string_equal(told, "");
	put_zip("nb/model_200.pt");
	assert_int_equal(newest("nb"), 200);
	assert_string_equal(told, "");
	assert_int_equal(truncate("nb/model_200.pt", 90), 0);
	assert_int_equal(newest("nb"), 100);
	assert_string_equal(found, "nb/model_100.pt");
	/* fairseq's and ImageNet's: no number in any name, but inside */
	put_zip("fs/checkpoint_last.pt");
	put_zip("fs/checkpoint_best.pt");
	assert_int_equal(newest("fs"), 300);
	assert_string_equal(found, "fs/checkpoint_last.pt");
	put_zip("in/model_best.pth.tar");
	put_zip("in/checkpoint.pth.tar");
	assert_int_equal(newest("in"), 300);
	assert_string_equal(found, "in/checkpoint.pth.tar");
	/* Keras's, which keeps the one before */
	put_zip("kb/latest.weights.h5.bkp");
	put_zip("kb/latest.weights.h5");
	assert_int_equal(newest("kb"), 300);
	assert_string_equal(found, "kb/latest.weights.h5");
	assert_int_equal(truncate("kb/latest.weights.h5", 96), 0);
	assert_int_equal(newest("kb"), 300);
	assert_string_equal(found, "kb/latest.weights.h5.bkp");
	/* ranks have a file each; the newest may be cut short anywhere, older ones have proven
	 * themselves */
	for (int rank = 2; rank >= 0; rank--) {
		put_zip(path_of("ra/step10_rank%d.pt", rank));
		if (rank > 0)
			put_zip(path_of("ra/step20_rank%d.pt", rank));
	}
	assert_int_equal(newest("ra"), 10);
	assert_string_equal(found, "ra/step10_rank0.pt");
	assert_contains(told, "it is not complete: 2 files like");
	put_zip("ra/step20_rank0.pt");
	assert_int_equal(newest("ra"), 20);
	{
		static char data[100000] = "raw";

		put("sm/run1/ckpts/w_10.bin", data, sizeof(data));
		put("sm/run1/ckpts/w_20.bin", data, sizeof(data) - 5000);
		assert_int_equal(newest("sm"), 10);
		put("sm/run1/ckpts/w_30.bin", data, sizeof(data) - 5100);
		assert_int_equal(newest("sm"), 30);
		put("sm/run1/ckpts/w_40.bin", data, sizeof(data) - 50000);
		assert_int_equal(newest("sm"), 30);
		/* a little smaller, and cut at a page */
		put("pg/w_10.bin", data, 24 * 4096 + 100);
		put("pg/w_20.bin", data, 24 * 4096);
		assert_int_equal(newest("pg"), 10);
		put("pg/w_20.bin", data, 24 * 4096 + 1);
		assert_int_equal(newest("pg"), 20);
	}
	/* folders */
	put_text("fo/best-10/w", "x");
	put_text("fo/step-10/weights", "x");
	put_text("fo/step-10/state", "x");
	put_text("fo/step-20/weights", "x");
	assert_int_equal(newest("fo"), 10);
	assert_string_equal(found, "fo/step-10");
	put_text("fo/step-20/state", "x");
	assert_int_equal(newest("fo"), 20);
}

static void test_what_is_none(void **state)
{
	(void)state;
	put_text("no/train.log", "x");
	put_text("no/notes_2.txt", "x");
	put_text("no/trainer_0_log.txt", "x"); /* Coqui's */
	put_text("no/log_rank_1.txt", "x");
	put_text("no/train_rank_3.out", "x");
	put_text("no/step_3.err", "x");
	put_text("no/last_checkpoint.rank_1", "model_0002499.rank_1.pth"); /* DINOv2's pointer */
	put_text("no/version_0/hparams.yaml", "x");
	put_text("no/wandb/run-20/data.bin", "x");
	put_zip("no/samples/image_20.npz");
	put_zip("no/model-00001-of-00002.safetensors");
	put_zip("no/artifacts/model-abc:v3/model.ckpt"); /* W&B's, which training began with */
	assert_int_equal(newest("no"), -2);
	assert_string_equal(told, "");
	assert_int_equal(newest("nowhere"), -2);
}

/* Numbers of places that are written again and again, of versions or ranks: the step is inside. */
static void test_slots(void **state)
{
	static const unsigned char numbers[] = { 10, 11, 9 };
	unsigned char data[] = "\x80\x02}X\5\0\0\0epochq\1K\x21s.";
	unsigned char zip[600];

	(void)state;
	for (size_t i = 0; i < COUNT(numbers); i++) {
		data[sizeof(data) - 4] = numbers[i];
		for (int rank = 0; rank < 2; rank++)
			put(path_of("sl/ckpt_mp%d_v%zu.tar", rank, i), zip,
			    zip_make(zip, "a/data.pkl", data, sizeof(data) - 1));
	}
	assert_int_equal(newest("sl"), 11);
	assert_string_equal(found, "sl/ckpt_mp0_v1.tar");
	put_zip("sk/state_rank0.pt");
	put_zip("sk/state_rank3.pt");
	assert_int_equal(newest("sk"), 300);
	assert_string_equal(found, "sk/state_rank0.pt");
	/* where nothing inside says so the number is all there is */
	put("sv/model_v2.pt", zip, zip_make(zip, "a/data.pkl", "x", 1));
	assert_int_equal(newest("sv"), 2);
}

/* Megatron-Bridge's of each rank lie beside the folders of steps, and have no model. */
static void test_optimizers_alone(void **state)
{
	(void)state;
	for (int step = 100; step <= 200; step += 100) {
		put_zip(path_of("oa/iter_%07d/__0_0.distcp", step));
		put_text(path_of("oa/iter_%07d/.metadata", step), "x");
	}
	for (int rank = 0; rank < 300; rank++)
		put_zip(path_of("oa/layer_wise_optimizer_%d.pt", rank));
	assert_int_equal(newest("oa"), 200);
	/* a save that was cut off behind its optimizer is told */
	put_zip("ob/model_10.pt");
	put_zip("ob/optim_10.pt");
	put_zip("ob/optim_20.pt");
	assert_int_equal(newest("ob"), 10);
	assert_contains(told, "nothing like model_10.pt");
	put_zip("oc/optim_20.pt");
	assert_int_equal(newest("oc"), 20);
}

/* Parts of an epoch are no step, and no parts of one checkpoint: time says which is newer. */
static void test_fractions(void **state)
{
	const struct timespec old[] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };

	(void)state;
	put_zip("fr/ckpt_0.25.pt");
	put_zip("fr/ckpt_0.5.pt");
	put_zip("fr/ckpt_1.5.pt");
	assert_int_equal(utimensat(AT_FDCWD, "fr/ckpt_0.25.pt", old, 0), 0);
	assert_int_equal(utimensat(AT_FDCWD, "fr/ckpt_1.5.pt", old, 0), 0);
	assert_int_equal(newest("fr"), 300); /* what the files say */
	assert_string_equal(found, "fr/ckpt_0.5.pt");
}

/* Copies of the ones before are numbered from the newest on, and serve where that is torn. */
static void test_previous(void **state)
{
	static const char *const names[] = { "pv/checkpoint.ckpt", "pv/checkpoint_prev0.ckpt",
					     "pv/checkpoint_prev1.ckpt", "pv/last_prev.pt" };
	unsigned char zip[600];

	(void)state;
	for (size_t i = 0; i < COUNT(names); i++) {
		const struct timespec then[] = { { .tv_sec = 4000 - (time_t)i },
						 { .tv_sec = 4000 - (time_t)i } };

		put(names[i], zip, zip_make(zip, "a/data.pkl", "x", 1));
		assert_int_equal(utimensat(AT_FDCWD, names[i], then, 0), 0);
	}
	for (size_t i = 0; i < COUNT(names); i++) {
		assert_int_equal(newest("pv"), -1);
		assert_string_equal(found, names[i]);
		assert_int_equal(truncate(names[i], 90), 0);
	}
	assert_int_equal(newest("pv"), -2);
}

/* What evaluations, profilers and samplers write beside the checkpoints, by later steps. */
static void test_other_work(void **state)
{
	static const char *const files[] = {
		"samples/epoch_30/0.png",
		"samples_step_30/0.npy",
		"step_30/0.png",
		"images_30/0.ply",
		"samples_step_30.png",
		"eval/checkpoint-30/predictions.json",
		"eval_step_30.json",
		"tensorboard/step_30/events",
		"profile_step_30.json",
		"torch_trace_step_30.json.gz",
		"debug_dump_checkpoint_30.log",
		"memory_snapshot_step_30.pickle",
		"memory_snapshot/iteration_30/rank0_memory_snapshot.pickle",
		"ft-replicat-0/step-30/__0_0.distcp", /* torchtitan's, of what a replica has read */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		put_zip(path_of("ow%zu/ckpt_20.pt", i));
		put_text(path_of("ow%zu/%s", i, files[i]), "\x80.");
		if (newest(path_of("ow%zu", i)) != 20)
			fail_msg("%s", files[i]);
		assert_string_equal(told, "");
	}
	/* such words in a name of a checkpoint, or of a run's folder */
	put_zip("og/checkpoint_30_eval_loss_0.5.pt");
	assert_int_equal(newest("og"), 30);
	put_zip("oh/sample-efficient/checkpoints/ckpt_30.pt");
	assert_int_equal(newest("oh"), 30);
	put_text("oi/state_30.json", "{}");
	assert_int_equal(newest("oi"), 30);
}

/* What stands behind the mark of a layout, or in a format that nothing proves whole. */
static void test_behind_marks(void **state)
{
	(void)state;
	/* torch.distributed.checkpoint's .metadata is the last of fewer ranks, too, and of the
	 * model alone, whatever somebody left in the one before */
	for (int step = 10; step <= 20; step += 10) {
		for (int rank = 0; rank < 4 / (step / 10); rank++)
			put_text(path_of("bm1/step-%d/__%d_0.distcp", step, rank), "x");
		put_text(path_of("bm1/step-%d/.metadata", step), step < 20 ? "12345" : "123");
	}
	put_text("bm1/step-10/README.md", "As good as it gets.");
	put_text("bm1/step-10/consolidated/params.json", "{}");
	put_text("bm1/step-10/train_state.json", "{}");
	assert_int_equal(newest("bm1"), 20);
	/* torchsnapshot's mark is hidden, and is its last file */
	for (int step = 10; step <= 20; step += 10) {
		put_text(path_of("bm2/epoch_0_step_%d/0/app/model/w", step), "weights");
		if (step < 20)
			put_text(path_of("bm2/epoch_0_step_%d/.snapshot_metadata", step), "x");
	}
	assert_int_equal(newest("bm2"), 10);
	assert_contains(told, "nothing like .snapshot_metadata");
	/* SpeechBrain's are small texts, among them, whose numbers may be shorter than they were */
	put_text("bm4/CKPT+2026-11-28+05-48-36+02/brain.ckpt", "loss: 1.007549078e-15\nstep: 20\n");
	put_text("bm4/CKPT+2026-11-28+05-48-36+02/loss.txt", "0.123456");
	put_text("bm4/CKPT+2026-11-28+05-48-36+03/brain.ckpt", "loss: 0.25\nstep: 20\n");
	put_text("bm4/CKPT+2026-11-28+05-48-36+03/loss.txt", "0.25");
	assert_int_equal(newest("bm4"), 2026112805483603);
	put_text("bm4/CKPT+2026-11-28+05-48-36+03/brain.ckpt", "loss: 0.25\nste");
	assert_int_equal(newest("bm4"), 2026112805483602);
	/* MindSpore's, which are called like Lightning's */
	put_text("bm3/net-1_1875.ckpt", "a protobuf of thirty-two bytes..");
	put_text("bm3/net-2_1875.ckpt", "a protobuf of thirty-two bytes..");
	put_text("bm3/net-3_1875.ckpt", "a protobuf of");
	assert_int_equal(newest("bm3"), 2);
	assert_contains(told, "net-3_1875.ckpt");
}

/* In folders of any name what is called a checkpoint is one. */
/* What a run puts into a folder of its own, as it begins, is no state. */
static void test_settings(void **state)
{
	static const char *const files[] = {
		"config.yaml",
		"hparams.yaml",
		"training_args.json",
		"cfg.toml",
		"metadata.json",
		"train.log",
		"a.png",
		"wandb/run-1/data.bin",
		".hydra/x",
		"logs/err",
		"events.out.tfevents.1795427999.n1.1.0",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(files); i++)
		put_text(path_of("se/2026-11-28_10-15-00/%s", files[i]), "x");
	put_text("se/exp-3/config.yaml", "x");
	assert_int_equal(newest("se"), -2);
	put_text("se/exp-3/state.yaml", "x");
	assert_int_equal(newest("se"), 3);
	put_text("sd/2026-11-28_10-15-00/config.json", "{}");
	put_zip("sd/2026-11-28_10-15-00/weights.pt");
	assert_int_equal(newest("sd"), 20261128101500);
	/* of a step's folder it is the beginning */
	put_text("sc/step-10/config.json", "{}");
	put_text("sc/step-10/weights", "0123456789");
	put_text("sc/step-20/config.json", "{}");
	assert_int_equal(newest("sc"), 10);
	assert_contains(told, "nothing like weights");
}

static void test_deep_down(void **state)
{
	const struct timespec old[2] = { { .tv_sec = 1000000000 }, { .tv_sec = 1000000000 } };

	(void)state;
	/* Ray's of one experiment, by the time; a dated folder of checkpoints is none */
	put_zip("dd1/exp/checkpoint_2026-11-28_10-15-00.123456/model.pt");
	put_zip("dd1/exp/checkpoint_2026-11-28_10-15-00.654321/model.pt");
	assert_int_equal(newest("dd1"), 202611281015006543);
	assert_string_equal(found, "dd1/exp/checkpoint_2026-11-28_10-15-00.654321");
	/* before that in a folder of each trial, below one that has a date, or a number, and state
	 * of its own */
	put_zip("dd8/TorchTrainer_2026-11-28_10-15-00/Torch_ab12_0_0/checkpoint_000000/model.pt");
	put_zip("dd8/TorchTrainer_2026-11-28_10-15-00/Torch_ab12_0_0/checkpoint_000001/model.pt");
	put_text("dd8/TorchTrainer_2026-11-28_10-15-00/trainer.pkl", "x");
	assert_int_equal(newest("dd8"), 1);
	put_zip("dd9/PPO_CartPole-v1_2026-11-28_10-15-00/PPO_ab12_00000_0/checkpoint_000002/model.pt");
	put_text("dd9/PPO_CartPole-v1_2026-11-28_10-15-00/tuner.pkl", "x");
	assert_int_equal(newest("dd9"), 2);
	/* of each rank those of all steps: rank 0's is handed over */
	for (int rank = 1; rank >= 0; rank--)
		for (int step = 100; step <= 200; step += 100)
			put_zip(path_of("da/rank_%d/step_%d.pt", rank, step));
	assert_int_equal(utimensat(AT_FDCWD, "da/rank_0/step_200.pt", old, 0), 0);
	assert_int_equal(newest("da"), 200);
	assert_string_equal(found, "da/rank_0/step_200.pt");
	put_text("db/ckpt/rank0/llama_rank_0-100.ckpt", "0123456789");
	put_text("db/ckpt/rank0/llama_rank_0-200.ckpt", "0123456789");
	assert_int_equal(newest("db"), 200);
	/* a copy of that day is not newer than all steps */
	for (int step = 500; step <= 600; step += 100)
		put_zip(path_of("dd7/run-a/checkpoint-%d/model.pt", step));
	put_zip("dd7/run-a/exports/checkpoint_20261128_101500/model.pt");
	assert_int_equal(newest("dd7"), 600);
	put_zip("dd2/ckpt_20261128/step_20.pt");
	assert_int_equal(newest("dd2"), 20);
	/* Composer's in a folder of the run's name, and of its ranks */
	put_zip("dd3/run-x/ep0-ba20-rank0.pt");
	assert_int_equal(newest("dd3"), 20);
	put_text("dd4/run-x/ep0-ba20/__0_0.distcp", "x");
	put_text("dd4/run-x/ep0-ba20/.metadata", "x");
	assert_int_equal(newest("dd4"), 20);
	/* dora's (AudioCraft, Demucs) */
	put_text("dd5/xps/97d170e1/checkpoint_20.th", "x");
	assert_int_equal(newest("dd5"), 20);
	put_text("dd6/model_state_e1_b0.th", "x");
	assert_int_equal(newest("dd6"), -2);
	put_zip("ti/train/20261123-101500-resnet50-224/checkpoint-8.pth.tar");
	put_zip("ti/train/20261123-101500-resnet50-224/checkpoint-9.pth.tar");
	assert_int_equal(newest("ti"), 9);
	assert_string_equal(found, "ti/train/20261123-101500-resnet50-224/checkpoint-9.pth.tar");
	put_zip("ru/run1/ckpt_20.pt");
	put_zip("ru/run1/optim_20.pt");
	put_zip("ru/run1/ckpt_30.pt");
	assert_int_equal(newest("ru"), 20);
	assert_contains(told, "nothing like optim_20.pt");
	/* of the folder's number and the file's the larger one is the step */
	put_zip("rm/run1/model_20.pt");
	put_zip("rm/run1/optim_20.pt");
	put_zip("rm/run1/model_10.pt");
	assert_int_equal(newest("rm"), 20);
	assert_string_equal(found, "rm/run1/model_20.pt");
	put_zip("rn/llama-1000/model_0.pt");
	put_zip("rn/llama-1000/model_1.pt");
	assert_int_equal(newest("rn"), 1000);
	/* nanochat's, and a sweep of Hydra */
	put_zip("nc/base_checkpoints/d20/model_001000.pt");
	put_zip("nc/base_checkpoints/d20/optim_001000_rank0.pt");
	put_zip("nc/base_checkpoints/d20/model_002000.pt");
	assert_int_equal(newest("nc"), 1000);
	assert_contains(told, "nothing like optim_001000_rank0.pt");
	/* modded-nanogpt's, rsl_rl's, EDM's; arrays may be anything, and so may what lies in a
	 * folder beside checkpoints */
	put_zip("mo/logs/4f2a-uuid/state_step001000.pt");
	assert_int_equal(newest("mo"), 1000);
	put_text("mo/logs/features/step_002000.npy", "x");
	assert_int_equal(newest("mo"), 1000);
	put_zip("rs/2026-11-27_10-00-00/model_20.pt");
	assert_int_equal(newest("rs"), 20);
	put_zip("rs/logs/ant/2026-11-27_10-00-00/model_30.pt");
	assert_int_equal(newest("rs/logs"), 30);
	put_zip("ed/training-runs/00000-cifar/training-state-002500.pt");
	assert_int_equal(newest("ed"), 2500);
	put_zip("je/exp1/jepa-latest.pth.tar");
	put_zip("je/exp1/jepa-ep50.pth.tar");
	put_zip("je/exp1/optimizer-latest.pth.tar");
	assert_int_equal(newest("je"), 300);
	assert_string_equal(found, "je/exp1/jepa-latest.pth.tar");
	put_text("id/d496a4bd6cfc4d2692b6aeef34ba7312/weights", "x");
	assert_int_equal(newest("id"), -2);
	put_zip("la/exp1/last.pt");
	put_zip("la/exp1/best.pt");
	assert_int_equal(newest("la"), 300);
	assert_string_equal(found, "la/exp1/last.pt");
	put_zip("ex/step-10/model.pt");
	put_zip("ex/exports/model_20.pt");
	assert_int_equal(newest("ex"), 10);
	put_zip("nd/checkpoints/step_10.pt");
	put_zip("nd/checkpoints/exports/model_20.pt");
	assert_int_equal(newest("nd"), 10);
	put_zip("hy/multirun/2026-11-27/10-15-00/3/checkpoints/epoch=0-step=200.ckpt");
	assert_int_equal(newest("hy"), 200);
	put_zip("ou/out/ckpt.pt");
	assert_int_equal(newest("ou"), 300);
	put_text("sg/00000-run/network-snapshot-000400.pkl", "\x80.");
	assert_int_equal(newest("sg"), 400);
	/* Dreamer's, by the time and the step; a run's own folder, which has begun */
	put_text("el/ckpt/20261128T101010F900000-000000000010/agent.pkl", "\x80.");
	put_text("el/ckpt/20261128T101510F100000-000000000020/agent.pkl", "\x80.");
	put_text("el/ckpt/20261128T102010F100000/config.yaml", "x");
	put_text("el/ckpt/latest", "20261128T101510F100000-000000000020");
	assert_int_equal(newest("el"), 20);
	/* without an ending, as Tacotron2 and TensorFlow write them */
	for (int step = 10; step <= 20; step += 10) {
		put_text(path_of("ta/outdir/checkpoint_%d", step), "state");
		put_text(path_of("te/train/model.ckpt-%d.index", step), "any");
		put_text(path_of("te/train/model.ckpt-%d.data-00000-of-00001", step), "any");
	}
	put_text("te/train/checkpoint", "model_checkpoint_path: \"model.ckpt-20\"\n");
	assert_int_equal(newest("ta"), 20);
	assert_int_equal(newest("te"), 20);
	put_text("tn/conf/checkpoint_callback_3.yaml", "x");
	put_text("tn/conf/checkpoint", "x");
	assert_int_equal(newest("tn"), -2);
	put_zip("rl/runs/Ant/nn/last_Ant_ep_200_rew__-34.25_.pth"); /* rl_games */
	assert_int_equal(newest("rl"), 200);
}

static void test_hostile(void **state)
{
	unsigned char zip[600];
	size_t len;

	(void)state;
	/* a header of many terabytes */
	put("h/model_10.safetensors", "\xff\xff\xff\xff\xff\xff\xff\x7f{}", 10);
	/* a directory that says that it has entries without end */
	len = zip_make(zip, "a", "data", 4);
	le(zip + len - 12, 0xffff, 2);
	put("h/ckpt_20.pt", zip, len);
	/* a FIFO, links in a ring, a link to nothing */
	folder_make("h/step-30", 0755, NULL);
	assert_int_equal(symlink(".", "h/step-30/ring"), 0);
	assert_int_equal(symlink("/nowhere", "h/step-30/gone.pt"), 0);
	assert_int_equal(symlink("..", "h/up"), 0);
	assert_int_equal(symlink("loop_40.pt", "h/loop_40.pt"), 0);
	assert_int_equal(mkfifo("h/ckpt_50.pt", 0600), 0);
	assert_int_equal(newest("h"), -2);
	assert_contains(told, "gone.pt");
	for (int i = 0; i < 20; i++) {
		put_text(path_of("h/x/x/x/x/x/x/x/%d/a", i), "x");
	}
	assert_int_equal(newest("h"), -2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbered_folders),
		cmocka_unit_test(test_many_torn_ones),
		cmocka_unit_test(test_more_than_are_listed),
		cmocka_unit_test(test_several_files_of_a_step),
		cmocka_unit_test(test_neighbours),
		cmocka_unit_test(test_what_is_none),
		cmocka_unit_test(test_fractions),
		cmocka_unit_test(test_slots),
		cmocka_unit_test(test_optimizers_alone),
		cmocka_unit_test(test_other_work),
		cmocka_unit_test(test_behind_marks),
		cmocka_unit_test(test_previous),
		cmocka_unit_test(test_settings),
		cmocka_unit_test(test_deep_down),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_hidden_types),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
