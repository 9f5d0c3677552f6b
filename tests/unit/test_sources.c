/* SPDX-License-Identifier: MIT */
/* test_sources.c - token files of other programs, several sources in one training, and files that
 * are refused in one line. */
#include "tests/unit/unit.h"

#include <unistd.h>

#include "common/base/files.h"
#include "common/base/mem.h"
#include "worker/lbworker/data/data.h"
#include "worker/lbworker/data/shard.h"

enum { LLMC_WORDS = 256, VOCAB = 60000 };

/* A file of llm.c: tokens 0, 3, 6 … */
static void write_llmc(const char *path, uint32_t magic, uint32_t version, uint32_t says,
		       size_t count, size_t token_bytes)
{
	FILE *f = fopen(path, "wb");
	uint32_t header[LLMC_WORDS] = { magic, version, says };

	assert_non_null(f);
	assert_int_equal(fwrite(header, sizeof(header), 1, f), 1);
	for (size_t i = 0; i < count; i++) {
		uint32_t token = (uint32_t)(3 * i);
		assert_int_equal(fwrite(&token, token_bytes, 1, f), 1);
	}
	assert_int_equal(fclose(f), 0);
}

static void write_raw(const char *path, size_t count, uint16_t first)
{
	FILE *f = fopen(path, "wb");

	assert_non_null(f);
	for (size_t i = 0; i < count; i++) {
		uint16_t token = (uint16_t)(first + i);
		assert_int_equal(fwrite(&token, sizeof(token), 1, f), 1);
	}
	assert_int_equal(fclose(f), 0);
}

static struct data *open_path(const char *path, uint64_t vocab, struct err *err)
{
	const struct data_options options = {
		.path = path, .seq = 4, .vocab = vocab, .seed = 5, .verify = true
	};
	err_clear(err);
	return data_open(&options, err);
}

/* --- formats -------------------------------------------------------------------------------- */

static void check_samples(const char *path, uint64_t tokens, int32_t step)
{
	struct err err = { 0 };
	struct data *d = open_path(path, VOCAB, &err);
	int32_t in[4], out[4];

	if (!d)
		fail_msg("%s", err.text);
	assert_int_equal(data_tokens(d), tokens);
	assert_int_equal(data_samples(d), (tokens - 1) / 4);
	for (uint64_t i = 0; i < data_samples(d); i++) {
		assert_int_equal(data_sample(d, i, in, out, &err), 0);
		for (int t = 0; t < 4; t++) {
			assert_int_equal(in[t], in[0] + t * step);
			assert_int_equal(out[t], in[t] + step);
		}
	}
	data_close(d);
}

static void test_formats(void **state)
{
	(void)state;
	write_llmc("gpt2.bin", 20240520, 1, 41, 41, 2);
	check_samples("gpt2.bin", 41, 3);
	write_llmc("llama3", 20240801, 7, 41, 41, 4); /* its magic is enough, whatever its name */
	check_samples("llama3", 41, 3);
	write_raw("train.bin", 99, 7);
	check_samples("train.bin", 99, 1);
}

static void test_pattern(void **state)
{
	struct err err = { 0 };

	(void)state;
	write_llmc("fine_train_1.bin", 20240520, 1, 41, 41, 2);
	write_llmc("fine_train_2.bin", 20240520, 1, 21, 21, 2);
	write_llmc("fine_val_1.bin", 20240520, 1, 9, 9, 2);
	struct data *d = open_path("fine_train_*.bin", VOCAB, &err);
	if (!d)
		fail_msg("%s", err.text);
	assert_int_equal(data_tokens(d), 62);
	data_close(d);
	assert_null(open_path("coarse_*.bin", VOCAB, &err));
	assert_contains(err.text, "no file matches");
}

static void test_digest_names_the_content(void **state)
{
	struct err err = { 0 };
	char before[33];

	(void)state;
	write_raw("named.bin", 50000, 7);
	struct data *d = open_path("named.bin", 70000, &err);
	assert_non_null(d);
	snprintf(before, sizeof(before), "%s", data_digest(d));
	data_close(d);
	write_raw("named.bin", 50000, 8);
	d = open_path("named.bin", 70000, &err);
	assert_non_null(d);
	assert_string_not_equal(data_digest(d), before);
	data_close(d);
}

struct bad {
	uint32_t magic, version, says;
	size_t count, token_bytes, cut_to;
	const char *name, *message;
};

static const struct bad bad_files[] = {
	{ 20240520, 2, 41, 41, 2, 0, "a.bin", "llm.c file of version 2, this program reads 1" },
	{ 20240801, 1, 41, 41, 4, 0, "a.bin", "llm.c file of version 1, this program reads 7" },
	{ 20240520, 1, 42, 41, 2, 0, "a.bin", "says 42 tokens, it holds 41 (cut short?)" },
	{ 20240520, 1, 0xffffffff, 41, 2, 0, "a.bin", "says 4294967295 tokens, it holds 41" },
	{ 20240520, 1, 41, 41, 2, 1024 + 81, "a.bin", "81 bytes are no whole number of uint16" },
	{ 20240801, 7, 41, 41, 4, 1024 + 162, "a.bin", "162 bytes are no whole number of uint32" },
	{ 20240520, 1, 41, 41, 2, 1000, "a.bin", "too short for the header of an llm.c file" },
	{ 20240520, 1, 41, 41, 2, 3, "a.bin", "too short" },
	{ 20240520, 1, 0, 0, 2, 0, "a.bin", "0 tokens are not one sample of 4 + 1" },
	{ 20240520, 1, 4, 4, 2, 0, "a.bin", "4 tokens are not one sample of 4 + 1" },
	{ 20240801, 7, 41, 41, 4, 0, "a.bin", "token 102 at 34 is outside the vocabulary of 100" },
	{ 20240520, 1, 41, 41, 2, 0, "a.bin", "token 102 at 34 is outside the vocabulary of 100" },
	{ 12345, 0, 0, 41, 2, 0, "a.dat", "not a token shard" },
	{ 12345, 0, 0, 41, 1, 1024 + 41, "a.bin", "1065 bytes are no whole number of uint16" },
};

static void test_bad_files(void **state)
{
	struct err err = { 0 };

	(void)state;
	for (size_t i = 0; i < COUNT(bad_files); i++) {
		const struct bad *b = &bad_files[i];
		write_llmc(b->name, b->magic, b->version, b->says, b->count, b->token_bytes);
		if (b->cut_to)
			assert_int_equal(truncate(b->name, (off_t)b->cut_to), 0);
		struct data *d = open_path(b->name, 100, &err);
		if (d)
			fail_msg("accepted: %s", b->message);
		assert_contains(err.text, b->message);
	}
}

/* --- mixing --------------------------------------------------------------------------------- */

static struct data *open_mix(char *const *mix, size_t count, struct err *err)
{
	const struct data_options options = {
		.mix = mix, .mix_count = count, .seq = 4, .vocab = VOCAB, .seed = 5, .verify = true
	};
	err_clear(err);
	return data_open(&options, err);
}

/* Three sources in 5:2:1, told apart by their tokens: the share of each block is exact, every
 * source gives each of its samples once an epoch, and all of it follows from the number alone. */
static void test_mix(void **state)
{
	char *const mix[] = { TEXT("5 a.bin"), TEXT("2 b.bin"), TEXT("1e0 c.bin") };
	enum { BLOCKS = 3, N = BLOCKS * MIX_BLOCK };
	static const size_t want[3] = { MIX_BLOCK / 8 * 5, MIX_BLOCK / 8 * 2, MIX_BLOCK / 8 };
	static unsigned seen[3][1024];
	struct err err = { 0 };
	int32_t in[4], out[4];

	(void)state;
	write_raw("a.bin", 4 * 700 + 1, 0);
	write_raw("b.bin", 4 * 300 + 1, 10000);
	write_raw("c.bin", 4 * 50 + 1, 20000);
	struct data *d = open_mix(mix, 3, &err);
	if (!d)
		fail_msg("%s", err.text);
	for (uint64_t block = 0; block < BLOCKS; block++) {
		size_t count[3] = { 0 };
		for (uint64_t i = 0; i < MIX_BLOCK; i++) {
			assert_int_equal(data_sample(d, block * MIX_BLOCK + i, in, out, &err), 0);
			size_t source = (size_t)in[0] / 10000;
			seen[source][in[0] % 10000 / 4]++;
			count[source]++;
		}
		for (size_t s = 0; s < 3; s++)
			assert_int_equal(count[s], want[s]);
	}
	static const size_t samples[3] = { 700, 300, 50 };
	for (size_t s = 0; s < 3; s++)
		for (size_t i = 0; i < samples[s]; i++) {
			size_t least = BLOCKS * want[s] / samples[s];
			assert_in_range(seen[s][i], least, least + 1);
		}
	data_close(d);
}

static void test_bad_mixes(void **state)
{
	static const struct {
		const char *entry, *message;
	} bad[] = {
		{ "a.bin", "must be a weight above 0" },
		{ "0 a.bin", "must be a weight above 0" },
		{ "-1 a.bin", "must be a weight above 0" },
		{ "nan a.bin", "must be a weight above 0" },
		{ "inf a.bin", "must be a weight above 0" },
		{ "1a.bin", "must be a weight above 0" },
		{ "1e-9 a.bin", "less than one sample in 4096" },
		{ "1 gone.bin", "gone.bin: no such file" },
	};
	struct err err = { 0 };

	(void)state;
	write_raw("a.bin", 100, 0);
	for (size_t i = 0; i < COUNT(bad); i++) {
		char *const mix[] = { TEXT("1 a.bin"), TEXT(bad[i].entry) };
		assert_null(open_mix(mix, 2, &err));
		assert_contains(err.text, bad[i].message);
	}
}

/* --- joining -------------------------------------------------------------------------------- */

static void test_join(void **state)
{
	char *const files[] = { TEXT("narrow.bin"), TEXT("wide") };
	uint64_t tokens, documents;
	struct err err = { 0 };

	(void)state;
	write_raw("narrow.bin", 10, 1);                   /* 1 … 10 */
	write_llmc("wide", 20240801, 7, 30000, 30000, 4); /* 0, 3 … 89997 */
	assert_int_equal(data_join("joined.tokens", files, 2, 9, &tokens, &documents, &err), 0);
	assert_int_equal(tokens, 30010);
	assert_int_equal(documents, 4); /* each file, and the 9 in each */
	struct shard s = { .path = xstrdup("joined.tokens") };
	if (shard_open(&s, 90000, true, &err))
		fail_msg("%s", err.text);
	assert_int_equal(s.token_bytes, 4);
	assert_int_equal(shard_token(&s, 9), 10);
	assert_int_equal(shard_token(&s, 30009), 89997);
	shard_close(&s);
	s.path = xstrdup("joined.tokens");
	assert_int_equal(shard_open(&s, 89997, true, &err), -1);
	assert_contains(err.text, "is of a vocabulary of 89998");
	shard_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_formats),
		cmocka_unit_test(test_pattern),
		cmocka_unit_test(test_digest_names_the_content),
		cmocka_unit_test(test_bad_files),
		cmocka_unit_test(test_mix),
		cmocka_unit_test(test_bad_mixes),
		cmocka_unit_test(test_join),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
