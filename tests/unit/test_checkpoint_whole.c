/* SPDX-License-Identifier: MIT */
/* test_checkpoint_whole.c - files of checkpoints by their formats: which are whole. */
#include "tests/unit/unit.h"

#include <unistd.h>

#include "tests/unit/newest_checkpoint.h"
#include "tests/unit/trainer_files.h"

/* Each: what a whole one looks like (20), what one of step 30 looks like that is not, and why. */
static void test_files(void **state)
{
	static const struct {
		const char *layout, *good, *bad;
		void (*put)(const char *path);
	} cases[] = {
		{ "numpy", "f/ckpt_20.npz", "f/ckpt_30.npz", put_zip },
		{ "numpy", "f/w20.npy", "f/w30.npy", put_npy },
		{ "torch", "f/model_20.pt", "f/model_30.pt", put_zip },
		{ "torch", "f/snapshot-20.pth", "f/snapshot-30.pth", put_zip },
		{ "safetensors", "f/model_20.safetensors", "f/model_30.safetensors",
		  put_safetensors },
		{ "lightning", "f/epoch=0-step=20.ckpt", "f/epoch=0-step=30.ckpt", put_zip },
		{ "lightning", "f/lightning_logs/version_0/checkpoints/epoch=0-step=20.ckpt",
		  "f/lightning_logs/version_1/checkpoints/epoch=1-step=30.ckpt", put_zip },
		{ "file", "f/ckpt_20", "f/ckpt_30", put_zip },
		{ "file", "f/checkpoint.20", "f/checkpoint.30", put_npy },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		FILE *f;
		long len;

		cases[i].put(cases[i].good);
		assert_int_equal(newest("f"), 20);
		assert_string_equal(found, cases[i].good);
		assert_string_equal(found_layout, cases[i].layout);
		cases[i].put(cases[i].bad);
		assert_int_equal(newest("f"), 30);
		/* cut anywhere, it is known */
		f = fopen(cases[i].bad, "r");
		fseek(f, 0, SEEK_END);
		len = ftell(f);
		fclose(f);
		for (long at = len - 1; at >= 0; at--) {
			assert_int_equal(truncate(cases[i].bad, at), 0);
			if (newest("f") != 20)
				fail_msg("%s cut at %ld counts as whole", cases[i].bad, at);
			assert_contains(told, cases[i].bad);
		}
		assert_int_equal(folder_remove("f", NULL), 0);
	}
}

/* Each: a whole file that has a predecessor that is as large as it was once cut, so that its format
 * alone can tell; at `blind` bytes it cannot. */
static void test_formats(void **state)
{
	/* {'w': bytes(4), 'n': [1, 300], 's': ext} */
	static const char msgpack[] = "\x83\xa1w\xc4\4abcd\xa1n\x92\1\xcd\1\x2c\xa1s\xd7\1abcdefgh";
	static const char joblib[] = "\x80\4\x95\7\0\0\0\0\0\0\0abcdefg.";
	static const char ubj[] = "{L\0\0\0\0\0\0\0\7versionU\1}";
	static const struct {
		const char *ending, *data;
		size_t len;
	} cases[] = {
		{ "msgpack", msgpack, sizeof(msgpack) - 1 },
		{ "mpk", msgpack, sizeof(msgpack) - 1 },
		{ "joblib", joblib, sizeof(joblib) - 1 },
		{ "pdparams", joblib, sizeof(joblib) - 1 },
		{ "ubj", ubj, sizeof(ubj) - 1 },
	};
	unsigned char h5[100] = "\x89HDF\r\n\x1a\n", jld2[700] = { 0 };

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		const char *path = path_of("ff/model_20.%s", cases[i].ending);

		for (size_t len = cases[i].len; len > 2; len--) {
			put(path, cases[i].data, len);
			if (newest("ff") != (len == cases[i].len ? 20 : -2))
				fail_msg("%s of %zu bytes", path, len);
		}
		assert_int_equal(folder_remove("ff", NULL), 0);
	}
	/* while it is written its first block has the end that it had at first */
	h5[13] = 8;
	le(h5 + 40, 96, 8);
	put("ff/model_20.h5", h5, 100);
	assert_int_equal(newest("ff"), -2);
	assert_contains(told, "100 bytes, its first block says 96");
	le(h5 + 40, 100, 8);
	put("ff/model_20.h5", h5, 100);
	assert_int_equal(newest("ff"), 20);
	/* JLD2 writes that block last, behind 512 bytes */
	jld2[560] = 1;
	put("fj/model_20.jld2", jld2, sizeof(jld2));
	assert_int_equal(newest("fj"), -2);
	memcpy(jld2 + 512, h5, 48);
	le(jld2 + 552, sizeof(jld2), 8);
	put("fj/model_20.jld2", jld2, sizeof(jld2));
	assert_int_equal(newest("fj"), 20);
	put("fj/model_20.jld2", jld2, 650);
	assert_int_equal(newest("fj"), -2);
	/* arrays behind each other */
	put_npys("fe/model_20.eqx", 3);
	put_npys("fe/model_30.eqx", 3);
	assert_int_equal(newest("fe"), 30);
	assert_int_equal(truncate("fe/model_30.eqx", 300), 0);
	assert_int_equal(newest("fe"), 20);
	put_npys("fe/model_30.eqx", 2);
	assert_int_equal(newest("fe"), 20);
	put_npys("fe/model_30.eqx", 1);
	assert_int_equal(newest("fe"), 20);
}

/* The format allows a header of 100 MB, and no more. */
static void test_long_header(void **state)
{
	static const char header[] =
		"{\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}";
	const size_t longest = 100 * 1000 * 1000;
	char *file = malloc(8 + longest + 1 + 8);

	(void)state;
	for (size_t len = longest; len <= longest + 1; len++) {
		memset(file, ' ', 8 + len + 8);
		le((unsigned char *)file, len, 8);
		memcpy(file + 8, header, sizeof(header) - 1);
		put("fl/model_20.safetensors", file, 8 + len + 8);
		assert_int_equal(newest("fl"), len == longest ? 20 : -2);
	}
	assert_contains(told, "a header of more than 100 MB");
	assert_int_equal(folder_remove("fl", NULL), 0);
	free(file);
}

static void flip(const char *path, long at)
{
	FILE *f = fopen(path, "r+");

	fseek(f, at, SEEK_SET);
	fputc('!', f);
	fclose(f);
}

static void test_deep_looks(void **state)
{
	struct checkpoint_rules *rules = checkpoint_rules_create(NULL, NULL, NULL, NULL);
	struct checkpoint_list list;
	struct look look = { 0 };

	(void)state;
	put_zip("d/ckpt_10.pt");
	put_zip("d/ckpt_20.pt");
	flip("d/ckpt_20.pt", 70);
	assert_int_equal(newest("d"), 10);
	assert_contains(told, "ckpt_20.pt: a/data.pkl differs from its checksum");
	/* a cheap look does not see it; a list says of each */
	assert_int_equal(checkpoints_list(rules, "d", &look, &list, NULL), 0);
	assert_int_equal(list.count, 2);
	assert_true(list.items[0].is_valid);
	assert_int_equal(list.items[0].step, 20);
	assert_true(list.items[0].bytes > 100);
	checkpoint_list_clear(&list);
	checkpoint_rules_destroy(rules);
}

static void test_archives_behind_each_other(void **state)
{
	(void)state;
	for (int step = 10; step <= 20; step += 10) {
		put_zips(path_of("z/step-%d/__0_0.distcp", step));
		put_text(path_of("z/step-%d/.metadata", step), "any");
	}
	assert_int_equal(newest("z"), 20);
	assert_string_equal(found_layout, "dcp");
	flip("z/step-20/__0_0.distcp", 50); /* in the first of them */
	assert_int_equal(newest("z"), 10);
	put_zips("z/step-20/__0_0.distcp");
	flip("z/step-20/__0_0.distcp", 330); /* in the last */
	assert_int_equal(newest("z"), 10);
	put_zips("z/step-20/__0_0.distcp");
	assert_int_equal(newest("z"), 20);
	assert_int_equal(truncate("z/step-20/__0_0.distcp", 400), 0);
	assert_int_equal(newest("z"), 10);
}

/* As where files grow old that nobody reads, and are removed, of all checkpoints alike. */
static void test_files_that_went(void **state)
{
	(void)state;
	for (int step = 10; step <= 20; step += 10) {
		put_zip(path_of("g/step-%d/__0_0.distcp", step));
		put_zip(path_of("g/step-%d/__1_0.distcp", step));
		put_text(path_of("g/step-%d/.metadata", step), "X\f__0_0.distcp.X\f__1_0.distcp.X");
	}
	assert_int_equal(newest("g"), 20);
	unlink("g/step-20/__1_0.distcp");
	unlink("g/step-10/__1_0.distcp");
	assert_int_equal(newest("g"), -2);
	assert_contains(told, ".metadata: names __1_0.distcp, which is missing");
	put_zip("g/step-10/__1_0.distcp");
	assert_int_equal(newest("g"), 10);
	/* one that lies elsewhere */
	put_text("g/step-20/.metadata", "X\f__0_0.distcp.X\x18../step-10/__1_0.distcp.X");
	assert_int_equal(newest("g"), 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_formats),
		cmocka_unit_test(test_long_header),
		cmocka_unit_test(test_deep_looks),
		cmocka_unit_test(test_archives_behind_each_other),
		cmocka_unit_test(test_files_that_went),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
