/* SPDX-License-Identifier: MIT */
/* test_starting.c - what a start of the trainer takes, and the node's cache that makes it
 * shorter. */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/files.h"
#include "common/base/json.h"
#include "ctl/base/starts.h"
#include "worker/lbrun/trainer/cache.h"
#include "worker/lbrun/watch/starting.h"

/* --- phases ----------------------------------------------------------------------------------- */

static void is_told(struct starting *s, int64_t now_ms, const char *want)
{
	json_t *phases = starting_end(s, now_ms);
	char *text = js_line(phases);

	assert_string_equal(text, want);
	free(text);
	json_decref(phases);
}

static void test_each_phase_has_its_time(void **state)
{
	struct starting s = { 0 };

	(void)state;
	starting_begin(&s, STARTING_FENCE, 1000);
	starting_spent(&s, STARTING_JOB, 2000);
	starting_enter(&s, STARTING_SEARCH, 1500);
	starting_enter(&s, STARTING_SILENT, 2500);
	starting_sign(&s, 4500); /* the first line of output */
	starting_sign(&s, 5000);
	starting_enter(&s, "imports", 6500);
	starting_enter(&s, "data", 8500);
	starting_enter(&s, "imports", 9500); /* goes on */
	starting_enter(&s, STARTING_STEP, 10500);
	is_told(&s, 14500,
		"{\"fence\":0.5,\"job\":2.0,\"search\":1.0,\"silent\":2.0,\"setup\":2.0,"
		"\"imports\":3.0,\"data\":1.0,\"first_step\":4.0}");
}

static void test_only_while_one_goes_on(void **state)
{
	struct starting s = { 0 };

	(void)state;
	assert_null(starting_end(&s, 10));
	starting_sign(&s, 10);
	starting_enter(&s, "imports", 10);
	starting_spent(&s, "imports", 10);
	assert_null(starting_end(&s, 20));
	starting_begin(&s, STARTING_PAUSE, 1000);
	is_told(&s, 2000, "{\"pause\":1.0}");
	starting_enter(&s, "eval", 3000); /* that of a training that goes on is none of a start */
	assert_null(starting_end(&s, 4000));
	starting_begin(&s, STARTING_PAUSE, 5000);
	is_told(&s, 5000, "{}");
}

static void test_too_many_are_one(void **state)
{
	struct starting s = { 0 };
	json_t *phases;
	char name[16];

	(void)state;
	starting_begin(&s, "p0", 0);
	for (int i = 1; i <= 100; i++) {
		snprintf(name, sizeof(name), "p%d", i);
		starting_enter(&s, name, i * 1000);
	}
	phases = starting_end(&s, 101000);
	assert_int_equal(json_object_size(phases), STARTING_PHASES);
	assert_true(starts_sum(phases) > 100.99 && starts_sum(phases) < 101.01);
	assert_true(js_real(phases, STARTING_OTHER, 0) > 70);
	json_decref(phases);
}

static void test_words(void **state)
{
	static const struct style plain = { .utf8 = true };
	json_t *phases = json_pack("{s:f, s:f, s:f, s:f}", "imports", 12.0, "silent", 50.0, "clear",
				   0.1, "data\033[31m", 5.0);
	char *text = starts_text(phases, 1, &plain);

	(void)state;
	assert_string_equal(text, "before its first word 50s, imports 12s, data 5.0s");
	free(text);
	text = starts_text(NULL, 1, &plain);
	assert_string_equal(text, "-"); /* as what is not known */
	free(text);
	json_decref(phases);
}

/* --- the cache -------------------------------------------------------------------------------- */

static void put(const char *path, int64_t kib, time_t used_s)
{
	const struct timespec times[2] = { { .tv_sec = used_s }, { .tv_sec = used_s } };
	static char bytes[1024];
	int fd = open(path, O_WRONLY | O_CREAT, 0600);

	assert_true(fd >= 0);
	for (int64_t i = 0; i < kib; i++)
		assert_int_equal(write(fd, bytes, sizeof(bytes)), sizeof(bytes));
	assert_int_equal(futimens(fd, times), 0);
	close(fd);
}

static void test_the_oldest_goes(void **state)
{
	int64_t all;

	(void)state;
	assert_int_equal(folder_make("trim/triton/old/deep", 0700, NULL), 0);
	assert_int_equal(folder_make("trim/triton/used", 0700, NULL), 0);
	assert_int_equal(folder_make("trim/cuda", 0700, NULL), 0);
	put("trim/triton/old/a", 100, 1000);
	put("trim/triton/old/deep/b", 100, 2000);
	put("trim/triton/used/a", 100, 500);
	put("trim/triton/used/b", 100, 4000); /* its newest file counts */
	put("trim/cuda/index", 100, 3000);
	put("trim/.lb-lock", 4, 1);
	all = cache_trim("trim", INT64_MAX);
	assert_true(all > 500 * 1024);
	assert_int_equal(cache_trim("trim", all), all);
	assert_true(cache_trim("trim", all - 1) < all - 200 * 1024);
	assert_false(file_exists("trim/triton/old"));
	assert_true(file_exists("trim/cuda/index"));
	cache_trim("trim", 250 * 1024);
	assert_false(file_exists("trim/cuda/index"));
	assert_true(file_exists("trim/triton/used/a"));
	assert_int_equal(cache_trim("trim", -1), 0);
	assert_false(file_exists("trim/triton/used"));
	assert_true(file_exists("trim/.lb-lock"));
	assert_int_equal(cache_trim("no-such", 5), 0);
}

static void in_this_folder(char *out, size_t size, const char *name)
{
	char *here = getcwd(NULL, 0);

	snprintf(out, size, "%s/%s", here, name);
	free(here);
}

static void test_only_what_has_no_value(void **state)
{
	const struct cache_limits limits = { .max_bytes = 1 << 20 };
	char name[] = "HF_DATASETS_CACHE", *more[] = { name, NULL };
	struct strv env = { 0 };
	struct cache c;
	struct err err = { 0 };
	char folder[4096], want[5000];

	(void)state;
	in_this_folder(folder, sizeof(folder), "node");
	assert_int_equal(mkdir(folder, 0755), 0);
	assert_int_equal(cache_open(&c, folder, &limits, &err), 0);
	strv_add(&env, strdup("TRITON_CACHE_DIR=/mine"));
	strv_add(&env, strdup("CUDA_CACHE_PATH="));
	cache_env(&c, more, &env);
	assert_string_equal(strv_get(env.items, "TRITON_CACHE_DIR"), "/mine");
	assert_string_equal(strv_get(env.items, "CUDA_CACHE_PATH"), "");
	snprintf(want, sizeof(want), "%s/lowbits-%u/cache/torchinductor", folder,
		 (unsigned)geteuid());
	assert_string_equal(strv_get(env.items, "TORCHINDUCTOR_CACHE_DIR"), want);
	assert_true(file_exists(want));
	snprintf(want, sizeof(want), "%s/lowbits-%u/cache/hf_datasets_cache", folder,
		 (unsigned)geteuid());
	assert_string_equal(strv_get(env.items, "HF_DATASETS_CACHE"), want);
	strv_free(env.items);
	cache_close(&c);
}

/* As a rank gets it. */
static void test_ranks(void **state)
{
	char one[] = "MORE_OF_IT", two[] = "AND_MORE", *more[] = { one, two, NULL };
	char folder[4096], want[5000], *value;
	struct err err = { 0 };

	(void)state;
	in_this_folder(folder, sizeof(folder), "ranks");
	assert_int_equal(mkdir(folder, 0755), 0);
	value = cache_for_ranks(folder, 0, more);
	setenv(CACHE_VARIABLE, value, 1);
	setenv("AND_MORE", "mine", 1);
	if (cache_enter(&err) < 0) /* a disk with less than 1 GiB */
		fail_msg("%s", err.text);
	snprintf(want, sizeof(want), "%s/lowbits-%u/cache/more_of_it", folder, (unsigned)geteuid());
	assert_string_equal(getenv("MORE_OF_IT"), want);
	assert_string_equal(getenv("AND_MORE"), "mine");
	assert_null(getenv(CACHE_VARIABLE));
	assert_int_equal(cache_enter(&err), 0);
	free(value);
}

static bool is_held(const char *lock)
{
	int fd = open(lock, O_RDWR);
	bool is_alone = flock(fd, LOCK_EX | LOCK_NB) == 0;

	close(fd);
	return !is_alone;
}

/* Several of a node start together: the first makes room, whoever it is; the others wait for that,
 * and hold their lock then. */
static void test_first_come_makes_room(void **state)
{
	const struct cache_limits limits = { .max_bytes = 200 * 1024 };
	char folder[4096], ours[5000], path[6000];
	struct err err = { 0 };
	struct cache first, second;
	pid_t other;
	int fd;

	(void)state;
	in_this_folder(folder, sizeof(folder), "together");
	assert_int_equal(mkdir(folder, 0755), 0);
	snprintf(ours, sizeof(ours), "%s/lowbits-%u/cache", folder, (unsigned)geteuid());
	assert_int_equal(cache_open(&first, folder, &limits, &err), 0);
	snprintf(path, sizeof(path), "%s/cuda/old", ours);
	put(path, 300, 1000);
	assert_int_equal(cache_open(&second, folder, &limits, &err), 0);
	assert_true(file_exists(path)); /* the first may read there */
	cache_close(&second);
	cache_close(&first);
	snprintf(path, sizeof(path), "%s/.lb-lock", ours);
	fd = open(path, O_RDWR);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	other = fork();
	if (other == 0) {
		poll(NULL, 0, 200);
		_exit(0); /* and with it the lock is gone */
	}
	close(fd);
	assert_int_equal(cache_open(&second, folder, &limits, &err), 0);
	assert_int_equal(waitpid(other, NULL, 0), other);
	assert_true(is_held(path));
	cache_close(&second);
	assert_false(is_held(path));
	snprintf(path, sizeof(path), "%s/cuda/old", ours);
	assert_int_equal(cache_open(&first, folder, &limits, &err), 0);
	assert_false(file_exists(path));
	cache_close(&first);
}

static void is_refused(const char *folder, const struct cache_limits *limits, const char *why)
{
	struct err err = { 0 };
	struct cache c;

	assert_int_equal(cache_open(&c, folder, limits, &err), -1);
	assert_contains(err.text, why);
	assert_null(c.folder);
}

static void test_not_in_others_hands(void **state)
{
	const struct cache_limits limits = { .max_bytes = 0 };
	const struct cache_limits too_much = { .reserve_bytes = INT64_MAX };
	char folder[4096], ours[5000];

	(void)state;
	in_this_folder(folder, sizeof(folder), "shared");
	is_refused(folder, &limits, "No such file");
	assert_int_equal(mkdir(folder, 0777), 0);
	assert_int_equal(chmod(folder, 0777), 0);
	is_refused(folder, &limits, "others can write to it");
	assert_int_equal(chmod(folder, 01777), 0);
	is_refused(folder, &too_much, "are free");
	snprintf(ours, sizeof(ours), "%s/lowbits-%u", folder, (unsigned)geteuid());
	assert_int_equal(chmod(ours, 0750), 0);
	is_refused(folder, &limits, "not a folder of ours alone");
	assert_int_equal(folder_remove(ours, NULL), 0);
	assert_int_equal(symlink("/tmp", ours), 0);
	is_refused(folder, &limits, "not a folder of ours alone");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_phase_has_its_time),
		cmocka_unit_test(test_only_while_one_goes_on),
		cmocka_unit_test(test_too_many_are_one),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_the_oldest_goes),
		cmocka_unit_test(test_only_what_has_no_value),
		cmocka_unit_test(test_ranks),
		cmocka_unit_test(test_first_come_makes_room),
		cmocka_unit_test(test_not_in_others_hands),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
