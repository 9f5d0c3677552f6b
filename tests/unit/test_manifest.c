/* SPDX-License-Identifier: MIT */
/* test_manifest.c - checkpoints that hold, and those that were cut, changed or forged. */
#include "tests/unit/unit.h"

#include <sys/stat.h>
#include <unistd.h>

#include "common/base/files.h"
#include "common/manifest/manifest.h"
#include "common/manifest/sealed_file.h"

/* printf '' | xxh128sum; printf abc | xxh128sum */
#define DIGEST_EMPTY "99aa06d3014798d86001c324468d497f"
#define DIGEST_ABC "06b05ab6733a618578af5f94892f3950"

static int publish(const char *parent, int64_t step, struct err *err)
{
	struct manifest_file files[] = { { .name = TEXT("model.safetensors") },
					 { .name = TEXT("rank0/optim") } };
	struct manifest m = { .step = step,
			      .tokens = 10 * step,
			      .world_size = 2,
			      .attempt = 3,
			      .config_hash = "cafe",
			      .files = files,
			      .file_count = 2 };
	char tmp[200], folder[200], path[300];

	snprintf(tmp, sizeof(tmp), "%s/step-%08lld.tmp-1", parent, (long long)step);
	snprintf(folder, sizeof(folder), "%s/step-%08lld", parent, (long long)step);
	snprintf(path, sizeof(path), "%s/rank0", tmp);
	assert_int_equal(folder_make(path, 0755, NULL), 0);
	snprintf(path, sizeof(path), "%s/rank0/optim", tmp);
	write_text(path, "");
	snprintf(path, sizeof(path), "%s/model.safetensors", tmp);
	write_text(path, "abc");
	return manifest_publish(tmp, folder, &m, err);
}

static void test_publish_and_verify(void **state)
{
	struct manifest m;
	struct err err = { 0 };

	(void)state;
	if (publish("a", 7, &err) < 0)
		fail_msg("%s", err.text);
	assert_false(file_exists("a/step-00000007.tmp-1"));
	if (manifest_verify("a/step-00000007", MANIFEST_DIGESTS, &m, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(m.step, 7);
	assert_int_equal(m.tokens, 70);
	assert_int_equal(m.world_size, 2);
	assert_int_equal(m.attempt, 3);
	assert_string_equal(m.config_hash, "cafe");
	assert_int_equal(m.file_count, 2);
	assert_string_equal(m.files[0].name, "model.safetensors");
	assert_int_equal(m.files[0].bytes, 3);
	assert_string_equal(m.files[0].digest, DIGEST_ABC);
	assert_string_equal(m.files[1].digest, DIGEST_EMPTY);
	manifest_clear(&m);
	manifest_clear(&m);
	/* A file that nobody listed does no harm. */
	write_text("a/step-00000007/notes", "x");
	assert_int_equal(manifest_verify("a/step-00000007", MANIFEST_DIGESTS, NULL, NULL), 0);
}

static void test_publish_over(void **state)
{
	struct err err = { 0 };

	(void)state;
	assert_int_equal(publish("o", 7, NULL), 0);
	/* A valid one stays, … */
	assert_int_equal(publish("o", 7, &err), -1);
	assert_int_equal(err.code, ERR_LOCKED);
	assert_int_equal(folder_remove("o/step-00000007.tmp-1", NULL), 0);
	/* … a broken one makes way. */
	write_text("o/step-00000007/model.safetensors", "abX");
	err_clear(&err);
	if (publish("o", 7, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(manifest_verify("o/step-00000007", MANIFEST_DIGESTS, NULL, NULL), 0);
}

static void test_publish_fails_cleanly(void **state)
{
	static const char *const names[] = { "missing", "../x", "/etc/passwd", "manifest.json",
					     "",        "a//b", "link" };

	(void)state;
	for (size_t i = 0; i < COUNT(names); i++) {
		struct manifest_file file = { .name = TEXT(names[i]) };
		struct manifest m = { .step = 1, .files = &file, .file_count = 1 };

		folder_make("f/step-00000001.tmp-1", 0700, NULL);
		symlink("/etc/passwd", "f/step-00000001.tmp-1/link");
		assert_int_equal(
			manifest_publish("f/step-00000001.tmp-1", "f/step-00000001", &m, NULL), -1);
		assert_false(file_exists("f/step-00000001"));
		assert_true(file_exists("f/step-00000001.tmp-1"));
	}
}

static void test_damage(void **state)
{
	struct err err = { 0 };

	(void)state;
	assert_int_equal(publish("d", 1, NULL), 0);
	write_text("d/step-00000001/model.safetensors", "abX");
	assert_int_equal(manifest_verify("d/step-00000001", MANIFEST_SIZES, NULL, &err), 0);
	assert_int_equal(manifest_verify("d/step-00000001", MANIFEST_DIGESTS, NULL, &err), -1);
	assert_contains(err.text, "model.safetensors: content differs");
	err_clear(&err);
	write_text("d/step-00000001/model.safetensors", "ab");
	assert_int_equal(manifest_verify("d/step-00000001", MANIFEST_SIZES, NULL, &err), -1);
	assert_contains(err.text, "model.safetensors: 2 bytes, the manifest says 3");
	err_clear(&err);
	unlink("d/step-00000001/model.safetensors");
	assert_int_equal(manifest_verify("d/step-00000001", MANIFEST_SIZES, NULL, &err), -1);
	assert_contains(err.text, "model.safetensors: file is missing");
	err_clear(&err);
	/* The right bytes behind a link are not the checkpoint's. */
	write_text("d/abc", "abc");
	symlink("../abc", "d/step-00000001/model.safetensors");
	assert_int_equal(manifest_verify("d/step-00000001", MANIFEST_SIZES, NULL, &err), -1);
	assert_contains(err.text, "is a link");
	err_clear(&err);
	unlink("d/step-00000001/model.safetensors");
	mkfifo("d/step-00000001/model.safetensors", 0600);
	assert_int_equal(manifest_verify("d/step-00000001", MANIFEST_SIZES, NULL, &err), -1);
	assert_contains(err.text, "not a regular file");
	err_clear(&err);
	unlink("d/step-00000001/manifest.json");
	assert_int_equal(manifest_verify("d/step-00000001", MANIFEST_SIZES, NULL, &err), -1);
	assert_contains(err.text, "manifest.json: file is missing");
	err_clear(&err);
	assert_int_equal(manifest_verify("d/none", MANIFEST_SIZES, NULL, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
}

#define HEAD "{\"format\":1,\"step\":1,\"tokens\":1,\"world_size\":1,\"attempt\":0,\"files\":"
#define FILE_OF(name, bytes) \
	"{\"name\":\"" name "\",\"bytes\":" bytes ",\"xxh3_128\":\"" DIGEST_ABC "\"}"

static void test_hostile(void **state)
{
	static const struct {
		const char *text, *part;
	} cases[] = {
		{ "", "bad JSON" },
		{ "[]", "no manifest" },
		{ "{\"format\":2}", "format 2 is newer" },
		{ "{\"format\":1}", "\"step\"" },
		{ HEAD "7}", "\"files\"" },
		{ HEAD "[7]}", "cannot be the name" },
		{ HEAD "[" FILE_OF("../x", "3") "]}", "cannot be the name" },
		{ HEAD "[" FILE_OF("a/../../x", "3") "]}", "cannot be the name" },
		{ HEAD "[" FILE_OF("/etc/passwd", "3") "]}", "cannot be the name" },
		{ HEAD "[" FILE_OF("a//b", "3") "]}", "cannot be the name" },
		{ HEAD "[" FILE_OF("a/", "3") "]}", "cannot be the name" },
		{ HEAD "[" FILE_OF("./abc", "3") "]}", "cannot be the name" },
		{ HEAD "[" FILE_OF("a\\nb", "3") "]}", "cannot be the name" },
		{ HEAD "[" FILE_OF("manifest.json", "3") "]}", "cannot be the name" },
		{ HEAD "[" FILE_OF("abc", "-3") "]}", "abc: \"bytes\"" },
		{ HEAD "[" FILE_OF("abc", "\"3\"") "]}", "abc: \"bytes\"" },
		{ HEAD "[" FILE_OF("abc", "3") "," FILE_OF("abc", "3") "]}", "abc: listed twice" },
		{ HEAD "[" FILE_OF("link/abc", "3") "]}", "link/abc: " },
		{ HEAD "[{\"name\":\"abc\",\"bytes\":3,\"xxh3_128\":\"00\"}]}", "32 hex digits" },
		{ "{\"format\":1,\"step\":-1,\"files\":[]}", "\"step\"" },
	};
	struct err ok = { 0 };

	(void)state;
	folder_make("h/step-00000001", 0700, NULL);
	write_text("h/abc", "abc");
	write_text("h/step-00000001/abc", "abc");
	symlink("..", "h/step-00000001/link");
	write_text("h/step-00000001/manifest.json", HEAD "[" FILE_OF("abc", "3") "]}");
	if (manifest_verify("h/step-00000001", MANIFEST_DIGESTS, NULL, &ok) < 0)
		fail_msg("%s", ok.text);
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct err err = { 0 };
		struct manifest m;

		write_text("h/step-00000001/manifest.json", cases[i].text);
		assert_int_equal(manifest_verify("h/step-00000001", MANIFEST_DIGESTS, &m, &err),
				 -1);
		assert_contains(err.text, "h/step-00000001: ");
		assert_contains(err.text, cases[i].part);
		assert_null(m.files);
	}
}

static void test_hostile_sizes(void **state)
{
	struct err err = { 0 };
	FILE *f;

	(void)state;
	folder_make("big", 0700, NULL);
	f = fopen("big/manifest.json", "w");
	fputs(HEAD "[0", f);
	for (int i = 0; i < MANIFEST_MAX_FILES; i++)
		fputs(",0", f);
	fputs("]}", f);
	fclose(f);
	assert_int_equal(manifest_verify("big", MANIFEST_SIZES, NULL, &err), -1);
	assert_contains(err.text, "at most 65536");
	err_clear(&err);
	f = fopen("big/manifest.json", "w");
	for (int i = 0; i < 100000; i++)
		fputc('[', f);
	fclose(f);
	assert_int_equal(manifest_verify("big", MANIFEST_SIZES, NULL, &err), -1);
	assert_contains(err.text, "deeper");
	err_clear(&err);
	assert_int_equal(truncate("big/manifest.json", 1L << 40), 0);
	assert_int_equal(manifest_verify("big", MANIFEST_SIZES, NULL, &err), -1);
	assert_contains(err.text, "larger than");
}

static void count_bad(const char *path, const struct err *why, void *arg)
{
	assert_contains(why->text, path);
	++*(int *)arg;
}

static void test_newest_valid(void **state)
{
	struct checkpoint_found found;
	struct err err = { 0 };
	int bad = 0;

	(void)state;
	assert_int_equal(checkpoint_newest_valid("n", &found, count_bad, &bad, &err), 0);
	folder_make("n/step-00000099.tmp-5", 0700, NULL);
	folder_make("n/step-0000000000000000000000000000000000001", 0700, NULL);
	folder_make("n/step-7", 0700, NULL);
	folder_make("n/step-000000009", 0700, NULL);
	folder_make("n/best", 0700, NULL);
	assert_int_equal(checkpoint_newest_valid("n", &found, count_bad, &bad, &err), 0);
	assert_int_equal(publish("n", 5, NULL), 0);
	assert_int_equal(publish("n", 20, NULL), 0);
	assert_int_equal(publish("n", 123456789, NULL), 0);
	assert_int_equal(checkpoint_newest_valid("n", &found, count_bad, &bad, &err), 1);
	assert_int_equal(found.step, 123456789);
	assert_string_equal(found.path, "n/step-123456789");
	write_text("n/step-123456789/model.safetensors", "abX");
	assert_int_equal(checkpoint_newest_valid("n", &found, count_bad, &bad, &err), 1);
	assert_int_equal(found.step, 20);
	assert_int_equal(bad, 1);
	/* A whole checkpoint under another number. */
	assert_int_equal(rename("n/step-00000020", "n/step-00000030"), 0);
	assert_int_equal(checkpoint_newest_valid("n", &found, NULL, NULL, &err), 1);
	assert_int_equal(found.step, 5);
	unlink("n/step-00000005/manifest.json");
	bad = 0;
	assert_int_equal(checkpoint_newest_valid("n", &found, count_bad, &bad, &err), -1);
	assert_int_equal(bad, 3);
	assert_contains(err.text, "none of the 3 checkpoints is valid");
	assert_true(file_exists("n/step-123456789"));
	err_clear(&err);
	write_text("plain", "");
	assert_int_equal(checkpoint_newest_valid("plain", &found, NULL, NULL, &err), -1);
}

static void test_digest_of_big_file(void **state)
{
	char a[33], b[33];
	int64_t bytes;
	FILE *f = fopen("bigfile", "w");

	(void)state;
	for (int i = 0; i < 300000; i++)
		fprintf(f, "%09d\n", i);
	fclose(f);
	assert_int_equal(manifest_digest_file("bigfile", a, &bytes, NULL), 0);
	assert_int_equal(bytes, 3000000);
	f = fopen("bigfile", "r+");
	fseek(f, 2999990, SEEK_SET);
	fputc('1', f);
	fclose(f);
	assert_int_equal(manifest_digest_file("bigfile", b, NULL, NULL), 0);
	assert_string_not_equal(a, b);
	assert_int_equal(manifest_digest_file("nope", b, NULL, NULL), -1);
}

static void put(const char *path, const char *text)
{
	assert_int_equal(file_write_visible(path, text, strlen(text), 0600, NULL), 0);
}

/* Whoever dies between digest and file leaves the old file, which is sealed still. */
static void test_sealed_file(void **state)
{
	char here[4096], path[4200], made[4300];
	struct err err = { 0 };

	(void)state;
	assert_non_null(realpath(".", here));
	snprintf(path, sizeof(path), "%s/sealed", here);
	snprintf(made, sizeof(made), "%s.made", path);
	put(path, "from an older day");
	assert_int_equal(sealed_file_check(path, &err), SEAL_MISSING);
	for (const char *text = "abcdefg"; *text; text++) {
		put(made, text);
		assert_int_equal(sealed_file_place(made, path, &err), 0);
		assert_int_equal(sealed_file_check(path, &err), SEAL_HOLDS);
	}
	assert_int_equal(rename(path, "kept"), 0);
	assert_int_equal(mkdir(path, 0700), 0); /* nothing can take its place */
	put(made, "never in place");
	assert_int_equal(sealed_file_place(made, path, &err), -1);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rename("kept", path), 0);
	assert_int_equal(sealed_file_check(path, &err), SEAL_HOLDS);
	put(path, "h");
	err_clear(&err);
	assert_int_equal(sealed_file_check(path, &err), SEAL_BROKEN);
	assert_non_null(strstr(err.text, "sealed: some byte has changed"));
	assert_int_equal(unlink(path), 0);
	assert_int_equal(sealed_file_check(path, &err), SEAL_BROKEN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_publish_and_verify),
		cmocka_unit_test(test_publish_over),
		cmocka_unit_test(test_publish_fails_cleanly),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_hostile_sizes),
		cmocka_unit_test(test_newest_valid),
		cmocka_unit_test(test_digest_of_big_file),
		cmocka_unit_test(test_sealed_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
