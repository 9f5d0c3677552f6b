/* SPDX-License-Identifier: MIT */
/* test_data.c - shards: what prepare writes is read back, every sample once an epoch; and a shard
 * that is cut, bent or lying is refused in one line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/files.h"
#include "common/mem.h"
#include "worker/lbworker/data.h"
#include "worker/lbworker/shard.h"

static char folder[] = "/tmp/lb-test-data.XXXXXX";

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	return folder_remove(folder, NULL);
}

static char *in_folder(const char *name)
{
	return xasprintf("%s/%s", folder, name);
}

static void write_file(const char *path, const void *bytes, size_t count)
{
	FILE *out = fopen(path, "wb");
	assert_non_null(out);
	assert_int_equal(fwrite(bytes, 1, count, out), count);
	assert_int_equal(fclose(out), 0);
}

/* A shard of `count` bytes of text, its tokens 0, 1, 2 … modulo 251. */
static char *make_shard(const char *name, size_t count)
{
	char *text = in_folder("text"), *path = in_folder(name);
	unsigned char *bytes = xmalloc(count + 1);
	uint64_t tokens;
	struct err err = { 0 };

	for (size_t i = 0; i < count; i++)
		bytes[i] = (unsigned char)(i % 251);
	write_file(text, bytes, count);
	char *files[] = { text };
	assert_int_equal(data_prepare(path, files, 1, &tokens, &err), 0);
	assert_int_equal(tokens, count);
	free(bytes);
	free(text);
	return path;
}

static struct data *open_data(const char *path, size_t seq, struct err *err)
{
	const struct data_options options = { .path = path, .seq = seq, .vocab = 256, .seed = 11,
					      .verify = true };
	return data_open(&options, err);
}

/* 100 tokens, sequences of 7: samples start at 0, 7 … 91; each comes once an epoch. */
static void test_every_sample_once(void **state)
{
	char *path = make_shard("once.tokens", 100);
	struct err err = { 0 };
	struct data *data = open_data(path, 7, &err);
	int32_t tokens[7], targets[7];

	(void)state;
	assert_non_null(data);
	assert_int_equal(data_samples(data), 14);
	for (uint64_t epoch = 0; epoch < 3; epoch++) {
		int seen[14] = { 0 };
		for (uint64_t i = 0; i < 14; i++) {
			assert_int_equal(data_sample(data, epoch * 14 + i, tokens, targets, &err),
					 0);
			assert_int_equal(tokens[0] % 7, 0);
			seen[tokens[0] / 7]++;
			for (int t = 0; t < 7; t++) {
				assert_int_equal(tokens[t], tokens[0] + t);
				assert_int_equal(targets[t], tokens[0] + t + 1);
			}
		}
		for (int i = 0; i < 14; i++)
			assert_int_equal(seen[i], 1);
	}
	data_close(data);
	free(path);
}

static void test_folder_of_shards(void **state)
{
	char *sub = in_folder("several"), *a, *b;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(folder_make(sub, 0755, &err), 0);
	assert_null(open_data(sub, 7, &err));
	assert_non_null(strstr(err.text, "*.tokens"));
	err_clear(&err);
	a = make_shard("several/a.tokens", 50);
	b = make_shard("several/b.tokens", 22);
	struct data *data = open_data(sub, 7, &err);
	assert_non_null(data);
	assert_int_equal(data_tokens(data), 72);
	assert_int_equal(data_samples(data), 7 + 3);
	data_close(data);
	free(sub);
	free(a);
	free(b);
}

/* --- hostile shards ------------------------------------------------------------------------- */

enum { HEADER = sizeof(struct shard_header), TOKENS = 100, INDEX = HEADER + 104 };

struct harm {
	const char *says;		/* part of the message */
	size_t cut_to;			/* 0: not */
	size_t at, bytes;		/* overwrite `bytes` of value */
	uint64_t value;
};

static const struct harm harms[] = {
	{ "too short", 1, 0, 0, 0 },
	{ "too short", HEADER - 1, 0, 0, 0 },
	{ "cut short", HEADER, 0, 0, 0 },
	{ "cut short", INDEX + 15, 0, 0, 0 },
	{ "not a token shard", 0, offsetof(struct shard_header, magic), 1, 'X' },
	{ "shard version 9", 0, offsetof(struct shard_header, version), 4, 9 },
	{ "0 bytes a token", 0, offsetof(struct shard_header, token_bytes), 4, 0 },
	{ "3 bytes a token", 0, offsetof(struct shard_header, token_bytes), 4, 3 },
	{ "do not fit its size", 0, offsetof(struct shard_header, token_bytes), 4, 2 },
	{ "do not fit its size", 0, offsetof(struct shard_header, token_count), 8, 1 },
	{ "do not fit its size", 0, offsetof(struct shard_header, token_count), 8, UINT64_MAX },
	{ "do not fit its size", 0, offsetof(struct shard_header, document_count), 8, UINT64_MAX },
	{ "do not fit its size", 0, offsetof(struct shard_header, document_count), 8,
	  UINT64_MAX / 8 },
	{ "vocabulary has 256", 0, offsetof(struct shard_header, vocab), 8, 257 },
	{ "digest", 0, offsetof(struct shard_header, digest), 1, 0xEE },
	{ "digest", 0, HEADER + 50, 1, 0xEE },
	{ "document 0 starts at 5", 0, INDEX, 8, 5 },
	{ "document 1 starts at", 0, INDEX + 8, 8, UINT64_MAX },
	{ "ends at 7", 0, INDEX + 8, 8, 7 },
};

static void test_hostile(void **state)
{
	char *path = make_shard("good.tokens", TOKENS), *bent = in_folder("bent.tokens");
	size_t length;
	struct err err = { 0 };
	char *good = file_read(path, 1 << 20, &length, &err);

	(void)state;
	assert_non_null(good);
	assert_int_equal(length, INDEX + 16);
	for (size_t i = 0; i < sizeof(harms) / sizeof(harms[0]); i++) {
		const struct harm *h = &harms[i];
		char *bytes = xmalloc(length);
		memcpy(bytes, good, length);
		memcpy(bytes + h->at, &h->value, h->bytes);
		write_file(bent, bytes, h->cut_to ? h->cut_to : length);
		err_clear(&err);
		struct data *data = open_data(bent, 7, &err);
		if (data || !strstr(err.text, h->says) || !strstr(err.text, bent))
			fail_msg("harm %zu: wanted \"%s\", got \"%s\"", i, h->says, err.text);
		free(bytes);
	}
	free(good);
	free(bent);
	free(path);
}

static void test_too_short_or_missing(void **state)
{
	char *path = make_shard("short.tokens", 7), *none = in_folder("none.tokens");
	struct err err = { 0 };

	(void)state;
	assert_null(open_data(path, 7, &err));
	assert_non_null(strstr(err.text, "not one sample"));
	err_clear(&err);
	assert_null(open_data(none, 7, &err));
	assert_int_equal(err.code, ERR_NOT_FOUND);
	err_clear(&err);
	free(path);
	path = make_shard("empty.tokens", 0);
	assert_null(open_data(path, 7, &err));
	free(path);
	free(none);
}

/* prepare leaves nothing half-done: a file that cannot be read, and neither shard nor remains. */
static void test_prepare_fails_whole(void **state)
{
	char *out = in_folder("never.tokens"), *none = in_folder("no-such-text");
	char *files[] = { none };
	uint64_t tokens;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(data_prepare(out, files, 1, &tokens, &err), -1);
	assert_non_null(strstr(err.text, "no-such-text"));
	assert_false(file_exists(out));
	char *tmp = xasprintf("%s.tmp-%ld", out, (long)getpid());
	assert_false(file_exists(tmp));
	free(tmp);
	free(out);
	free(none);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_sample_once),
		cmocka_unit_test(test_folder_of_shards),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_too_short_or_missing),
		cmocka_unit_test(test_prepare_fails_whole),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
