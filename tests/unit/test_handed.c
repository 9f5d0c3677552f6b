/* SPDX-License-Identifier: MIT */
/* test_handed.c - what is held against a checkpoint, and what is not. (Tests run in a folder of
 * their own.) */
#include "tests/unit/unit.h"

#include "common/checkpoint/handed.h"

/* As an lbrun that was killed leaves it to the next. */
static void die(struct handed *h)
{
	assert_int_equal(handed_save(h, NULL), 0);
	handed_clear(h);
	handed_load(h, ".", HANDED_FILE);
}

static int set_up(void **state)
{
	(void)state;
	remove(HANDED_FILE);
	return 0;
}

static void test_deaths_of_lbrun_say_nothing(void **state)
{
	struct handed h;

	(void)state;
	handed_load(&h, ".", HANDED_FILE);
	for (int i = 0; i < 10; i++) {
		handed_begin(&h, "/c/ckpt_20", 7, 20);
		h.launches++;
		die(&h);
		assert_null(handed_suspect(&h, "/c/ckpt_20", 7));
	}
	assert_int_equal(h.launches, 10);
	assert_int_equal(h.count, 1);
	handed_failed(&h, "/c/ckpt_20", 7, "exit status 1");
	die(&h);
	assert_non_null(handed_suspect(&h, "/c/ckpt_20", 7));
	handed_clear(&h);
}

static void test_written_again_is_another(void **state)
{
	struct handed h;

	(void)state;
	handed_load(&h, ".", HANDED_FILE);
	handed_begin(&h, "/c/ckpt_20", 7, 20);
	handed_failed(&h, "/c/ckpt_20", 7, "exit status 1");
	die(&h);
	assert_null(handed_suspect(&h, "/c/ckpt_20", 8));
	assert_null(handed_suspect(&h, "/c/ckpt_10", 7));
	handed_clear(&h);
}

/* A launch from 20 got further: nothing is held against 10 and 20, but still against 30. */
static void test_good_clears_what_is_before(void **state)
{
	struct handed h;

	(void)state;
	handed_load(&h, ".", HANDED_FILE);
	for (int step = 10; step <= 30; step += 10) {
		char path[40];

		snprintf(path, sizeof(path), "/c/ckpt_%d", step);
		handed_begin(&h, path, 7, step);
		handed_failed(&h, path, 7, "exit status 1");
	}
	handed_good(&h, "/c/ckpt_20", 7);
	die(&h);
	assert_null(handed_suspect(&h, "/c/ckpt_10", 7));
	assert_null(handed_suspect(&h, "/c/ckpt_20", 7));
	assert_non_null(handed_suspect(&h, "/c/ckpt_30", 7));
	handed_clear(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_deaths_of_lbrun_say_nothing, set_up),
		cmocka_unit_test_setup(test_written_again_is_another, set_up),
		cmocka_unit_test_setup(test_good_clears_what_is_before, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
