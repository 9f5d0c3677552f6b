/* SPDX-License-Identifier: MIT */
/* test_set_aside.c - what a return to an earlier checkpoint moves away. */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/files.h"
#include "common/checkpoint/set_aside.h"

static void later_ones_are_moved_and_nothing_else(void **state)
{
	static const char *const all[] = { "c/step-00000010",
					   "c/step-00000020",
					   "c/step-00000030",
					   "c/step-00000040.tmp-7",
					   "c/step-",
					   "c/step-x",
					   "c/old" };
	struct checkpoint_rules *rules = checkpoint_rules_create("lbworker", NULL, NULL, NULL);
	struct err err = { 0 };

	(void)state;
	assert_int_equal(checkpoints_set_aside("c", rules, 10, NULL, NULL, "c/aside", &err),
			 0); /* no such folder */
	mkdir("c", 0755);
	for (size_t i = 0; i < COUNT(all); i++)
		assert_int_equal(mkdir(all[i], 0755), 0);
	assert_int_equal(checkpoints_set_aside("c", rules, 10, NULL, NULL, "c/aside", &err), 2);
	assert_true(file_exists("c/aside/step-00000020"));
	assert_true(file_exists("c/aside/step-00000030"));
	assert_true(file_exists("c/step-00000010"));
	for (size_t i = 3; i < COUNT(all); i++)
		assert_true(file_exists(all[i]));
	assert_int_equal(checkpoints_set_aside("c", rules, 10, NULL, NULL, "c/aside", &err),
			 0); /* again */
	assert_int_equal(checkpoints_set_aside("c", rules, -1, NULL, NULL, "c/aside", &err),
			 1); /* all of them */
	assert_false(file_exists("c/step-00000010"));
	checkpoint_rules_destroy(rules);
}

/* As overlayfs answers for folders of its lower layer. */
static void what_cannot_be_moved_is_told_with_what_helps(void **state)
{
	struct checkpoint_rules *rules = checkpoint_rules_create("lbworker", NULL, NULL, NULL);
	char elsewhere[] = "/dev/shm/set-aside.XXXXXX";
	struct stat here, there;
	struct err err = { 0 };

	(void)state;
	assert_non_null(mkdtemp(elsewhere));
	assert_int_equal(stat(".", &here) | stat(elsewhere, &there), 0);
	mkdir("d", 0755);
	mkdir("d/step-00000020", 0755);
	if (here.st_dev != there.st_dev) {
		assert_int_equal(checkpoints_set_aside("d", rules, 10, NULL, NULL, elsewhere, &err),
				 -1);
		assert_string_equal(err.text,
				    "d/step-00000020: cannot be set aside: its file system "
				    "renames no such folder (overlayfs, of a lower layer); "
				    "copy it elsewhere, and remove it here");
	}
	rmdir(elsewhere);
	checkpoint_rules_destroy(rules);
}

static void assert_text(const char *path, const char *expected)
{
	char *text = file_read(path, 100, NULL, NULL);

	assert_non_null(text);
	assert_string_equal(text, expected);
	free(text);
}

/* DeepSpeed and Megatron-LM resume from what it says, and lbrun holds it for finished. */
static void what_names_the_newest_names_the_one_that_stays(void **state)
{
	static const char *const folders[] = {
		"ds",  "ds/global_step10",    "ds/global_step20",
		"mg",  "mg/iter_0000010",     "mg/iter_0000020",
		"own", "own/epoch_1_step_10", "own/epoch_2_step_20"
	};
	struct checkpoint_rules *rules = checkpoint_rules_create("auto", NULL, NULL, NULL);
	struct err err = { 0 };

	(void)state;
	for (size_t i = 0; i < COUNT(folders); i++)
		assert_int_equal(mkdir(folders[i], 0755), 0);
	write_text("ds/weights_10.pt", "an export");
	write_text("ds/latest", "global_step20");
	write_text("mg/latest_checkpointed_iteration.txt", "20\n");
	assert_int_equal(checkpoints_set_aside("ds", rules, 30, NULL, NULL, "ds/set-aside-2", &err),
			 0);
	assert_text("ds/latest", "global_step20");
	assert_int_equal(checkpoints_set_aside("ds", rules, 10, NULL, NULL, "ds/set-aside-2", &err),
			 1);
	assert_text("ds/latest", "global_step10");
	assert_int_equal(checkpoints_set_aside("mg", rules, 10, NULL, NULL, "mg/set-aside-2", &err),
			 1);
	assert_text("mg/latest_checkpointed_iteration.txt", "10");
	assert_int_equal(checkpoints_set_aside("mg", rules, -1, NULL, NULL, "mg/set-aside-2", &err),
			 1);
	assert_false(file_exists("mg/latest_checkpointed_iteration.txt"));
	assert_text("mg/set-aside-2/latest_checkpointed_iteration.txt", "10");
	checkpoint_rules_destroy(rules);
	/* names of one's own, with two numbers */
	rules = checkpoint_rules_create("deepspeed", "epoch_*_step_{step}", NULL, &err);
	write_text("own/latest", "epoch_2_step_20");
	assert_int_equal(checkpoints_set_aside("own", rules, 10, NULL, NULL, "own/aside", &err), 1);
	assert_text("own/latest", "epoch_1_step_10");
	checkpoint_rules_destroy(rules);
}

/* Detectron2, MMEngine, TensorFlow, nanotron, SkyRL, Dreamer, DINOv2 and big_vision call such a
 * file otherwise. */
static void what_names_it_otherwise_does_so_too(void **state)
{
	static const struct {
		const char *newer, *older, *pointer, *text, *then;
	} cases[] = {
		{ "model_0000019.pth", "model_0000009.pth", "last_checkpoint", "model_0000019.pth",
		  "model_0000009.pth" },
		{ "epoch_19.pth", "epoch_9.pth", "last_checkpoint", "/w/po/epoch_19.pth\n",
		  "/w/po/epoch_9.pth\n" },
		{ "ckpt-19.index", "ckpt-9.index", "checkpoint",
		  "model_checkpoint_path: \"ckpt-19\"\nall_paths: \"ckpt-9\"\n",
		  "model_checkpoint_path: \"ckpt-9\"\nall_paths: \"ckpt-9\"\n" },
		{ "19", "9", "latest.txt", "19\n", "9" },
		{ "global_step_19", "global_step_9", "latest_ckpt_global_step.txt", "19", "9" },
		{ "20261128T101500F000001-0019", "20261128T101000F000001-0009", "latest",
		  "20261128T101500F000001-0019", "20261128T101000F000001-0009" },
		{ "model_0000019.rank_1.pth", "model_0000009.rank_1.pth", "last_checkpoint.rank_1",
		  "model_0000019.rank_1.pth", "model_0000009.rank_1.pth" },
		{ "checkpoint.bv-000000019", "checkpoint.bv-000000009", "checkpoint.bv-LAST",
		  "000000019", "000000009" },
		/* of another */
		{ "ckpt-19.index", "ckpt-9.index", "checkpoint", "ckpt-190 my_ckpt-19 ckpt-7",
		  "ckpt-190 my_ckpt-19 ckpt-7" },
		{ "ckpt-19.index", "ckpt-9.index", "notes.txt", "ckpt-19 is good\n",
		  "ckpt-19 is good\n" },
	};
	struct checkpoint_rules *rules = checkpoint_rules_create("auto", NULL, NULL, NULL);
	struct err err = { 0 };

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		const char *const names[] = { cases[i].newer, cases[i].older };
		char path[100];

		mkdir("po", 0755);
		for (size_t k = 0; k < 2; k++) {
			snprintf(path, sizeof(path), "po/%s", names[k]);
			if (strstr(names[k], ".pth") || strstr(names[k], ".index")) {
				write_text(path, "state");
				continue;
			}
			mkdir(path, 0755);
			snprintf(path, sizeof(path), "po/%s/w.pkl", names[k]);
			write_text(path, "state");
		}
		snprintf(path, sizeof(path), "po/%s", cases[i].pointer);
		write_text(path, cases[i].text);
		assert_int_equal(checkpoints_set_aside("po", rules, 9, NULL, NULL, "po/set-aside-2",
						       &err),
				 1);
		assert_text(path, cases[i].then);
		assert_int_equal(checkpoints_set_aside("po", rules, -1, NULL, NULL,
						       "po/set-aside-3", &err),
				 1);
		assert_int_equal(file_exists(path), i >= COUNT(cases) - 2);
		assert_int_equal(folder_remove("po", NULL), 0);
	}
	checkpoint_rules_destroy(rules);
}

/* Megatron-Bridge asks such a copy for the step, which is no text. */
static void a_copy_of_what_the_newest_holds_is_one_of_the_other(void **state)
{
	static const char *const files[] = {
		"cp/iter_0000010/train_state.pt", "cp/iter_0000020/train_state.pt",
		"cp/latest_train_state.pt",       "cp/latest_model.pt",
		"cp/iter_0000010/model.pt",       "cp/iter_0000020/model.pt"
	};
	static const char *const texts[] = { "step 10", "step 20",  "step 20",
					     "model 5", "model 10", "model 20" };
	struct checkpoint_rules *rules = checkpoint_rules_create("auto", NULL, NULL, NULL);
	struct err err = { 0 };

	(void)state;
	assert_int_equal(mkdir("cp", 0755) | mkdir("cp/iter_0000010", 0755) |
				 mkdir("cp/iter_0000020", 0755),
			 0);
	for (size_t i = 0; i < COUNT(files); i++)
		write_text(files[i], texts[i]);
	assert_int_equal(checkpoints_set_aside("cp", rules, 10, NULL, NULL, "cp/set-aside-2", &err),
			 1);
	assert_text("cp/latest_train_state.pt", "step 10");
	assert_text("cp/latest_model.pt", "model 5"); /* of neither */
	assert_int_equal(checkpoints_set_aside("cp", rules, 0, NULL, NULL, "cp/set-aside-3", &err),
			 1);
	assert_false(file_exists("cp/latest_train_state.pt"));
	assert_text("cp/set-aside-3/latest_train_state.pt", "step 10");
	checkpoint_rules_destroy(rules);
}

static void assert_leads(const char *link, const char *expected)
{
	char target[100];
	ssize_t len = readlink(link, target, sizeof(target) - 1);

	assert_true(len > 0);
	target[len] = '\0';
	assert_string_equal(target, expected);
}

/* Composer and Lightning resume from where it leads, and begin anew where it leads nowhere. */
static void what_leads_to_the_newest_leads_to_the_one_that_stays(void **state)
{
	struct checkpoint_rules *rules = checkpoint_rules_create("auto", NULL, NULL, NULL);
	struct err err = { 0 };

	(void)state;
	assert_int_equal(mkdir("ln", 0755) | mkdir("ln/step-10", 0755) | mkdir("ln/step-20", 0755) |
				 symlink("step-20/", "ln/newest") |
				 symlink("./step-20", "ln/latest") | symlink("step-10", "ln/best") |
				 symlink("nowhere", "ln/torn") | symlink("step-20", "ln/best-loss"),
			 0);
	assert_int_equal(checkpoints_set_aside("ln", rules, 10, NULL, NULL, "ln/set-aside-2", &err),
			 1);
	assert_leads("ln/newest", "step-10");
	assert_leads("ln/latest", "step-10");
	assert_leads("ln/best", "step-10");
	assert_leads("ln/torn", "nowhere");
	assert_leads("ln/set-aside-2/best-loss", "step-20");
	assert_int_equal(checkpoints_set_aside("ln", rules, -1, NULL, NULL, "ln/set-aside-2", &err),
			 1);
	assert_leads("ln/torn", "nowhere");
	assert_leads("ln/set-aside-2/latest", "step-10");
	assert_false(file_exists("ln/best"));
	assert_int_equal(mkdir("pl", 0755), 0);
	write_text("pl/epoch=0-step=10.ckpt", "weights");
	write_text("pl/epoch=1-step=20.ckpt", "weights");
	assert_int_equal(symlink("epoch=1-step=20.ckpt", "pl/last.ckpt"), 0);
	assert_int_equal(checkpoints_set_aside("pl", rules, 10, NULL, NULL, "pl/set-aside-2", &err),
			 1);
	assert_leads("pl/last.ckpt", "epoch=0-step=10.ckpt");
	/* of each rank, as Composer has them */
	assert_int_equal(mkdir("co", 0755), 0);
	write_text("co/ep0-ba10-rank0.pt", "weights");
	write_text("co/ep0-ba10-rank1.pt", "weights");
	write_text("co/ep1-ba20-rank0.pt", "weights");
	write_text("co/ep1-ba20-rank1.pt", "weights");
	assert_int_equal(symlink("ep1-ba20-rank0.pt", "co/latest-rank0.pt") |
				 symlink("ep1-ba20-rank1.pt", "co/latest-rank1.pt"),
			 0);
	assert_int_equal(checkpoints_set_aside("co", rules, 10, NULL, NULL, "co/set-aside-2", &err),
			 1);
	assert_leads("co/latest-rank0.pt", "ep0-ba10-rank0.pt");
	assert_leads("co/latest-rank1.pt", "ep0-ba10-rank1.pt");
	/* one that lies elsewhere is a link itself, and stays what it is */
	assert_int_equal(mkdir("st", 0755) | mkdir("st/step-10", 0755) |
				 symlink("/proc/self/fd", "st/step-20") |
				 symlink("step-20", "st/latest"),
			 0);
	assert_int_equal(checkpoints_set_aside("st", rules, 10, NULL, NULL, "st/set-aside-2", &err),
			 1);
	assert_leads("st/set-aside-2/step-20", "/proc/self/fd");
	assert_leads("st/latest", "step-10");
	checkpoint_rules_destroy(rules);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(later_ones_are_moved_and_nothing_else),
		cmocka_unit_test(what_cannot_be_moved_is_told_with_what_helps),
		cmocka_unit_test(what_names_the_newest_names_the_one_that_stays),
		cmocka_unit_test(what_names_it_otherwise_does_so_too),
		cmocka_unit_test(a_copy_of_what_the_newest_holds_is_one_of_the_other),
		cmocka_unit_test(what_leads_to_the_newest_leads_to_the_one_that_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
