/* SPDX-License-Identifier: MIT */
/* test_data.c - shards: what prepare writes is read back, every sample once an epoch; and a shard
 * that is cut, bent or lying is refused in one line. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/base/files.h"
#include "common/base/mem.h"
#include "worker/lbworker/base/lost_pages.h"
#include "worker/lbworker/base/scratch.h"
#include "worker/lbworker/data/data.h"
#include "worker/lbworker/data/shard.h"
#include "worker/lbworker/data/shard_out.h"

static char *in_folder(const char *name)
{
	return xasprintf("./%s", name);
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
	const struct data_options options = {
		.path = path, .seq = seq, .vocab = 256, .seed = 11, .verify = true
	};
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

static void make_part(const char *name, const char *notes)
{
	char *path = in_folder(name), tokens[20] = { 0 };
	struct err err = { 0 };
	struct shard_out *out = shard_out_create(path, 1, 256, &err);

	assert_non_null(out);
	shard_out_document(out);
	assert_int_equal(shard_out_put(out, tokens, sizeof(tokens), &err), 0);
	assert_int_equal(shard_out_finish(out, notes, &err), 0);
	free(path);
}

static void expect_unfinished(const char *path, const char *name)
{
	char *in = in_folder(path), *want = name ? in_folder(name) : NULL;
	struct err err = { 0 };
	struct data *data = open_data(in, 7, &err);

	if (!data)
		fail_msg("%s", err.text);
	const char *part = data_unfinished(data);
	assert_string_equal(part ? part : "none", want ? want : "none");
	data_close(data);
	free(in);
	free(want);
}

/* What `lbworker tokenize` was interrupted in: behind its last part there is to be another. */
static void test_unfinished(void **state)
{
	char *sub = in_folder("parts");
	struct err err = { 0 };

	(void)state;
	assert_int_equal(folder_make(sub, 0755, &err), 0);
	free(sub);
	make_part("parts/00000.tokens", "{\"split\":\"train\",\"part\":0,\"is_last\":false}");
	make_part("parts/00001.tokens", "{\"split\":\"train\",\"part\":1,\"is_last\":false}");
	make_part("parts/foreign.tokens", "{}");
	expect_unfinished("parts", "parts/00001.tokens");
	expect_unfinished("parts/00001.tokens", "parts/00001.tokens");
	expect_unfinished("parts/00000.tokens", NULL); /* asked for by name, and another is there */
	make_part("parts/00002.tokens", "{\"split\":\"train\",\"part\":2,\"is_last\":true}");
	expect_unfinished("parts", NULL);
	/* of what validates a part may have nothing, and names of one's own tell nothing */
	make_part("parts/00007.tokens", "{\"split\":\"validation\",\"part\":7,\"is_last\":false}");
	make_part("parts/mine.tokens", "{\"split\":\"train\",\"part\":5,\"is_last\":false}");
	expect_unfinished("parts", NULL);
}

static void *read_samples(void *arg)
{
	struct data *data = arg;
	int32_t tokens[7], targets[7];
	struct err err = { 0 };

	for (uint64_t i = 0; i < data_samples(data); i++)
		(void)data_sample(data, i, tokens, targets, &err);
	return NULL;
}

/* Of a file that is cut short while threads read it: a line that names it, and no SIGBUS. */
static void test_cut_while_read(void **state)
{
	enum { STATUS = 7 };
	char *path = make_shard("shrinks.tokens", 20000), said[512] = "";
	struct err err = { 0 };
	struct data *data = open_data(path, 7, &err);
	int status = 0, out[2];

	(void)state;
	assert_non_null(data);
	assert_int_equal(truncate(path, 64), 0);
	assert_int_equal(pipe(out), 0);
	pid_t child = fork();
	if (child == 0) {
		dup2(out[1], STDERR_FILENO);
		signal(SIGBUS, SIG_DFL);
		lost_pages_tell(STATUS);
		pthread_t thread[8];
		for (size_t i = 0; i < 8; i++)
			(void)pthread_create(&thread[i], NULL, read_samples, data);
		for (size_t i = 0; i < 8; i++)
			(void)pthread_join(thread[i], NULL);
		_exit(0);
	}
	close(out[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == STATUS);
	assert_true(read(out[0], said, sizeof(said) - 1) > 0);
	assert_non_null(strstr(said, "/shrinks.tokens: cannot be read any more"));
	close(out[0]);
	data_close(data);
	free(path);
}

/* Sent from outside it ends the process as it would have without anybody who looks at it. */
static void test_sent_from_outside(void **state)
{
	int status = 0;

	(void)state;
	pid_t child = fork();
	if (child == 0) {
		signal(SIGBUS, SIG_DFL);
		lost_pages_tell(7);
		raise(SIGBUS);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
}

/* --- hostile shards ------------------------------------------------------------------------- */

enum { HEADER = sizeof(struct shard_header), TOKENS = 100, INDEX = HEADER + 104 };

struct harm {
	const char *says; /* part of the message */
	size_t cut_to;    /* 0: not */
	size_t at, bytes; /* overwrite `bytes` of value */
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
	char *tmp = scratch_name(out, "tmp");
	assert_false(file_exists(tmp));
	free(tmp);
	free(out);
	free(none);
}

/* What a killed writer left goes when the file is begun anew; a live one's stays, and people's. */
static void test_left_by_killed(void **state)
{
	char *out = in_folder("left.tokens"), *mine = scratch_name(out, "tmp"), *theirs, host[65];
	struct err err = { 0 };
	int status;

	(void)state;
	assert_int_equal(gethostname(host, sizeof(host)), 0);
	pid_t child = fork();
	if (child == 0) {
		struct shard_out *o = shard_out_create(out, 1, 256, &err);
		kill(getpid(), o ? SIGKILL : SIGTERM);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	char *dead = xasprintf("%s.tmp-%ld-%s", out, (long)child, host);
	theirs = xasprintf("%s.tmp-%ld-%s", out, (long)getppid(), host);
	assert_true(file_exists(dead));
	write_file(theirs, "x", 1);
	write_file("./left.tokens.tmp-2", "x", 1);
	write_file("./left.tokens.tmp-2-elsewhere", "x", 1);
	struct shard_out *o = shard_out_create(out, 1, 256, &err);
	assert_non_null(o);
	assert_false(file_exists(dead));
	assert_true(file_exists(mine) && file_exists(theirs));
	assert_true(file_exists("./left.tokens.tmp-2"));
	assert_true(file_exists("./left.tokens.tmp-2-elsewhere"));
	shard_out_discard(o);
	assert_false(file_exists(mine));
	free(out);
	free(mine);
	free(dead);
	free(theirs);
}

/* --- what others write ------------------------------------------------------------------------ */

#define NPY1(DESCR, SHAPE) \
	"\x93NUMPY\x01\0\x46\0{'descr': '" DESCR "', 'fortran_order': False, 'shape': " SHAPE
enum { NPY_HEADER = 10 + 0x46 };

/* `count` tokens 0, 1, 2 … of that width, behind `head`, which spaces fill up to head_bytes. */
static void write_tokens(const char *name, const char *head, size_t head_text, size_t head_bytes,
			 size_t width, size_t count)
{
	char *path = in_folder(name);
	unsigned char *bytes = xcalloc(1, head_bytes + width * count);

	memset(bytes, ' ', head_bytes);
	memcpy(bytes, head, head_text);
	for (size_t i = 0; i < count; i++)
		memcpy(bytes + head_bytes + i * width, &i, width);
	write_file(path, bytes, head_bytes + width * count);
	free(bytes);
	free(path);
}

static const struct {
	const char *name, *head;
	size_t head_text, head_bytes, width;
} readable[] = {
	{ "u2.npy", NPY1("<u2", "(250,), }"), sizeof(NPY1("<u2", "(250,), }")) - 1, NPY_HEADER, 2 },
	{ "i4.npy", NPY1("<i4", "(250,), }"), sizeof(NPY1("<i4", "(250,), }")) - 1, NPY_HEADER, 4 },
	{ "i8.bin", NPY1("<i8", "(250,), }"), sizeof(NPY1("<i8", "(250,), }")) - 1, NPY_HEADER, 8 },
	{ "packed.bin", "LITPKDS\1\0\0\0\0\0\0\0\x08\xfa\0\0\0\0\0\0\0", 24, 24, 2 },
	{ "packed4.bin", "LITPKDS\1\0\0\0\0\0\0\0\x04\xfa\0\0\0\0\0\0\0", 24, 24, 4 },
	{ "raw.bin", "", 0, 0, 2 },
};

/* Two sequences: of 200 tokens, and from there on. */
#define MEGATRON "MMIDIDX\0\0\1\0\0\0\0\0\0\0\4\2\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0"
#define MEGATRON_BEGINS "\0\0\0\0\0\0\0\0\x20\3\0\0\0\0\0\0"
enum { MEGATRON_BYTES = 34 + 2 * 4 + 2 * 8 };

static void test_read_as_what_they_are(void **state)
{
	char *out = in_folder("joined.tokens");
	struct err err = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(readable) / sizeof(readable[0]); i++) {
		int32_t tokens[249] = { 0 }, targets[249] = { 0 };
		char *path = in_folder(readable[i].name);
		uint64_t joined, documents;
		write_tokens(readable[i].name, readable[i].head, readable[i].head_text,
			     readable[i].head_bytes, readable[i].width, 250);
		struct data *data = open_data(path, 249, &err);
		if (!data || data_tokens(data) != 250 ||
		    data_sample(data, 0, tokens, targets, &err))
			fail_msg("%s: %s", readable[i].name, err.text);
		assert_int_equal(tokens[0], 0);
		assert_int_equal(targets[248], 249);
		data_close(data);
		if (data_join(out, &path, 1, -1, &joined, &documents, &err) || joined != 250)
			fail_msg("%s: %s", readable[i].name, err.text);
		free(path);
	}
	/* Megatron's: the same bytes, and an index that says how wide they are */
	char *index = in_folder("mega.idx"), *path = in_folder("mega.bin");
	write_tokens("mega.bin", "", 0, 0, 4, 250);
	struct data *data = open_data(path, 249, &err);
	assert_null(data);
	assert_non_null(strstr(err.text, "as if they were uint32"));
	err_clear(&err);
	write_file(index, MEGATRON "\xc8\0\0\0\x32\0\0\0" MEGATRON_BEGINS, MEGATRON_BYTES);
	data = open_data(path, 249, &err);
	if (!data)
		fail_msg("%s", err.text);
	assert_int_equal(data_tokens(data), 250);
	data_close(data);
	free(index);
	free(path);
	free(out);
}

/* What a file's own header, or the index beside it, says that it holds. */
static void test_cut_short(void **state)
{
	char *index = in_folder("cut.idx"), *path = in_folder("cut.bin");
	struct err err = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(readable) / sizeof(readable[0]); i++) {
		char *cut = in_folder(readable[i].name);
		write_tokens(readable[i].name, readable[i].head, readable[i].head_text,
			     readable[i].head_bytes, readable[i].width, 249);
		struct data *data = open_data(cut, 100, &err);
		if (readable[i].head_bytes > 0 ? data != NULL : data == NULL)
			fail_msg("%s: %s", readable[i].name, err.text);
		if (readable[i].head_bytes > 0)
			assert_non_null(strstr(err.text, ": its header says 250 tokens, it holds "
							 "249 (cut short?)"));
		err_clear(&err);
		data_close(data);
		free(cut);
	}
	write_tokens("cut.bin", "", 0, 0, 4, 250);
	write_file(index, MEGATRON "\xc8\0\0\0\x33\0\0\0" MEGATRON_BEGINS, MEGATRON_BYTES);
	assert_null(open_data(path, 100, &err));
	assert_non_null(strstr(err.text, "cut.bin: its .idx says 251 tokens, it holds 250"));
	for (size_t bytes = 9; bytes < MEGATRON_BYTES; bytes++) {
		err_clear(&err);
		write_file(index, MEGATRON "\xc8\0\0\0\x32\0\0\0" MEGATRON_BEGINS, bytes);
		assert_null(open_data(path, 100, &err));
		assert_non_null(strstr(err.text, "cut.bin: its .idx is cut short"));
	}
	free(index);
	free(path);
}

static const struct {
	const char *bytes, *says;
	size_t count;
} others[] = {
	{ "{\"text\": \"a\"}\n{\"text\": \"b\"}\n", "is JSON, or JSON lines", 0 },
	{ "[1, 2, 3]", "is JSON: its numbers", 0 },
	{ "Two roads diverged in a yellow w\xc3\xb6od\n", "is text", 0 },
	{ "\x1f\x8b\x08\0\0\0\0\0\0\0", "is compressed (gzip)", 10 },
	{ "\x28\xb5\x2f\xfd\x04\0\0\0", "is compressed (zstd)", 8 },
	{ "PK\x03\x04\0\0\0\0\0\0", "is an archive", 10 },
	{ "PAR1\x15\0\x15\0", "is a Parquet file", 8 },
	{ "\x08\0\0\0\0\0\0\0{\"a\":1} \0\0\0\0", "safetensors", 20 },
	{ "\1\0\0\0\x0c\0\0\0\x10\0\0\0\1\0\2\0", "is a chunk of LitData", 16 },
	{ "LITPKDS\1\0\0\0\0\0\0\0\6\1\0\0\0\0\0\0\0\0\0", "of type code 6, must be", 26 },
	{ NPY1("<f4", "(1,), }") "                              ", "of type <f4, must be uint8",
	  0x60 },
	{ NPY1("<u2", "(5, 5), }") "                              ", "of more than one dimension",
	  0x60 },
	{ "\x93NUMPY\x01\0\xff\xff{'descr'", "cut short", 18 },
};

static void test_refused_by_name(void **state)
{
	char *path = in_folder("other.bin");

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		struct err err = { 0 };
		write_file(path, others[i].bytes,
			   others[i].count ? others[i].count : strlen(others[i].bytes));
		struct data *data = open_data(path, 7, &err);
		if (data || !strstr(err.text, others[i].says) || !strstr(err.text, path))
			fail_msg("%zu: \"%s\", not \"%s\"", i, err.text, others[i].says);
	}
	free(path);
}

/* Another tokenizer's ids are found before training, also where not all of the data is read. */
static void test_ids_without_reading_all(void **state)
{
	static uint16_t tokens[1 << 18];
	char *path = in_folder("wide.bin");
	struct err err = { 0 };
	const struct data_options options = { .path = path, .seq = 7, .vocab = 256, .seed = 1 };

	(void)state;
	for (size_t i = 0; i < sizeof(tokens) / sizeof(tokens[0]); i++)
		tokens[i] = (uint16_t)(i % 300);
	write_file(path, tokens, sizeof(tokens));
	assert_null(data_open(&options, &err));
	assert_non_null(strstr(err.text, "token 256 at 256 is outside the vocabulary of 256"));
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_sample_once),
		cmocka_unit_test(test_folder_of_shards),
		cmocka_unit_test(test_unfinished),
		cmocka_unit_test(test_cut_while_read),
		cmocka_unit_test(test_sent_from_outside),
		cmocka_unit_test(test_read_as_what_they_are),
		cmocka_unit_test(test_cut_short),
		cmocka_unit_test(test_refused_by_name),
		cmocka_unit_test(test_ids_without_reading_all),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_too_short_or_missing),
		cmocka_unit_test(test_prepare_fails_whole),
		cmocka_unit_test(test_left_by_killed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
