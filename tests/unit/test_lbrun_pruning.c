/* SPDX-License-Identifier: MIT */
/* test_lbrun_pruning.c - checkpoints of any trainer go whole, and only those that may. (Tests run
 * in a folder of their own.) */
#include "tests/unit/unit.h"

#include <unistd.h>

#include "common/base/files.h"
#include "worker/lbrun/checkpoint/pruning.h"

static void put(const char *path, size_t len)
{
	char *text = calloc(1, len);

	assert_int_equal(file_write_visible(path, text, len, 0640, NULL), 0);
	free(text);
}

/* As Hugging Face's Trainer leaves them, but for the weights. */
static void put_folder(int step)
{
	char path[100], text[60];

	snprintf(path, sizeof(path), "c/checkpoint-%d", step);
	assert_int_equal(folder_make(path, 0750, NULL), 0);
	snprintf(path, sizeof(path), "c/checkpoint-%d/trainer_state.json", step);
	snprintf(text, sizeof(text), "{\"global_step\": %d}", step);
	assert_int_equal(file_write_visible(path, text, strlen(text), 0640, NULL), 0);
	snprintf(path, sizeof(path), "c/checkpoint-%d/optimizer.bin", step);
	put(path, 1000);
}

static void prune_after(struct retention rule, const struct search *search,
			const struct handed *handed, struct pruned *out)
{
	struct checkpoint_rules *rules = checkpoint_rules_create(NULL, NULL, NULL, NULL);

	pruning_apply(&rule, rules, "c", search, handed, out);
	checkpoint_rules_destroy(rules);
}

/* `needed`: where the trainer started; "" = from scratch. */
static void prune(struct retention rule, const char *needed, struct pruned *out)
{
	char path[100];
	const struct search search = { .found = needed[0] != '\0', .path = path };
	const struct handed handed = { 0 };

	snprintf(path, sizeof(path), "%s", needed);
	prune_after(rule, &search, &handed, out);
}

static uint64_t stamp_of(const char *path)
{
	struct checkpoint_rules *rules = checkpoint_rules_create(NULL, NULL, NULL, NULL);
	struct checkpoint_list list;
	struct look look = { 0 };
	uint64_t stamp;

	assert_int_equal(checkpoint_at(rules, path, &look, &list, NULL), 0);
	stamp = list.items[0].stamp;
	checkpoint_list_clear(&list);
	checkpoint_rules_destroy(rules);
	return stamp;
}

static int set_up(void **state)
{
	(void)state;
	assert_int_equal(folder_remove("c", NULL), 0);
	for (int step = 10; step <= 50; step += 10)
		put_folder(step);
	put("c/notes.txt", 10);
	return 0;
}

static void test_off_by_default(void **state)
{
	struct pruned out;

	(void)state;
	assert_int_equal(folder_make("c/.lb-removed-checkpoint-1", 0750, NULL), 0);
	prune((struct retention){ 0 }, "", &out);
	assert_int_equal(out.count, 0);
	assert_true(out.total_bytes > 5000);
	assert_true(file_exists("c/.lb-removed-checkpoint-1"));
	assert_true(file_exists("c/checkpoint-10/optimizer.bin"));
}

static void test_old_ones_go_whole(void **state)
{
	struct pruned out;

	(void)state;
	prune((struct retention){ .keep_latest_k = 3 }, "", &out);
	assert_int_equal(out.count, 2);
	assert_string_equal(out.steps, "10, 20");
	assert_string_equal(out.text, "");
	assert_true(out.bytes > 2000 && out.total_bytes > 3000);
	assert_false(file_exists("c/checkpoint-20"));
	assert_true(file_exists("c/checkpoint-30/optimizer.bin"));
	assert_true(file_exists("c/notes.txt"));
}

static void test_what_it_started_from_stays(void **state)
{
	struct pruned out;

	(void)state;
	prune((struct retention){ .max_bytes = 1 }, "c/checkpoint-20", &out);
	assert_string_equal(out.steps, "10, 30");
	assert_true(file_exists("c/checkpoint-20/trainer_state.json"));
	assert_true(file_exists("c/checkpoint-40/trainer_state.json"));
}

/* 50 led to a failure, 40 is broken inside: a relaunch may need 30 and 20. */
static void test_what_a_relaunch_falls_back_to_stays(void **state)
{
	char of_30[] = "c/checkpoint-30", of_40[] = "c/checkpoint-40";
	struct bad_checkpoint broken = { of_40, stamp_of(of_40) };
	const struct search search = { .found = 1, .path = of_30, .bad = &broken, .bad_count = 1 };
	struct handed handed = { 0 };
	struct pruned out;

	(void)state;
	handed_begin(&handed, "c/checkpoint-50", stamp_of("c/checkpoint-50"), 50);
	handed_failed(&handed, "c/checkpoint-50", stamp_of("c/checkpoint-50"), "exit status 1");
	prune_after((struct retention){ .keep_latest_k = 2 }, &search, &handed, &out);
	assert_string_equal(out.steps, "10");
	prune_after((struct retention){ .max_bytes = 1 }, &search, &handed, &out);
	assert_int_equal(out.count, 0);
	handed_clear(&handed);
}

static void test_what_a_link_leads_to_stays(void **state)
{
	struct pruned out;

	(void)state;
	assert_int_equal(symlink("checkpoint-20", "c/chosen"), 0);
	prune((struct retention){ .keep_latest_k = 2 }, "", &out);
	assert_string_equal(out.steps, "10, 30");
	assert_true(file_exists("c/chosen/optimizer.bin"));
	/* or to a file in it */
	assert_int_equal(unlink("c/chosen"), 0);
	assert_int_equal(symlink("checkpoint-20/optimizer.bin", "c/chosen.bin"), 0);
	prune((struct retention){ .keep_latest_k = 2 }, "", &out);
	assert_int_equal(out.count, 0);
	assert_true(file_exists("c/chosen.bin"));
}

/* One that is called the one before is newer than the best, and none. */
static void test_the_best_stays(void **state)
{
	struct pruned out;

	(void)state;
	put("c/checkpoint_15_best.bin", 1000);
	put("c/checkpoint_25_prev.bin", 1000);
	prune((struct retention){ .keep_latest_k = 2 }, "", &out);
	assert_string_equal(out.steps, "10, 20, 25, 30");
	assert_true(file_exists("c/checkpoint_15_best.bin"));
}

static void test_what_a_crash_left_goes(void **state)
{
	struct pruned out;

	(void)state;
	assert_int_equal(rename("c/checkpoint-10", "c/.lb-removed-checkpoint-10"), 0);
	assert_int_equal(remove("c/.lb-removed-checkpoint-10/trainer_state.json"), 0);
	prune((struct retention){ .keep_latest_k = 9 }, "", &out);
	assert_int_equal(out.count, 0);
	assert_false(file_exists("c/.lb-removed-checkpoint-10"));
	assert_true(file_exists("c/checkpoint-20/optimizer.bin"));
}

static void test_size_is_told_when_it_doubles(void **state)
{
	struct pruning p = { .note_bytes = 100 };

	(void)state;
	assert_false(pruning_is_large(&p, 99));
	assert_true(pruning_is_large(&p, 100));
	assert_false(pruning_is_large(&p, 199));
	assert_true(pruning_is_large(&p, 200));
	p = (struct pruning){ .note_bytes = 100, .rule.max_bytes = 1000 };
	assert_false(pruning_is_large(&p, 500));
	p = (struct pruning){ 0 };
	assert_false(pruning_is_large(&p, INT64_MAX));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_off_by_default, set_up),
		cmocka_unit_test_setup(test_old_ones_go_whole, set_up),
		cmocka_unit_test_setup(test_what_it_started_from_stays, set_up),
		cmocka_unit_test_setup(test_what_a_relaunch_falls_back_to_stays, set_up),
		cmocka_unit_test_setup(test_what_a_link_leads_to_stays, set_up),
		cmocka_unit_test_setup(test_the_best_stays, set_up),
		cmocka_unit_test_setup(test_what_a_crash_left_goes, set_up),
		cmocka_unit_test(test_size_is_told_when_it_doubles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
