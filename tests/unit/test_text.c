/* SPDX-License-Identifier: MIT */
/* test_text.c - where words end, NFC, which pairs are merged, what documents are, and what a
 * sampler draws. Tokens of whole tokenizers are compared in tests/system/text.t. */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include "common/base/zst.h"
#include "worker/lbworker/commands/sample.h"
#include "worker/lbworker/text/bpe.h"
#include "worker/lbworker/text/documents.h"
#include "worker/lbworker/unicode/split.h"
#include "worker/lbworker/unicode/unicode.h"

/* The words of a text, with a bar between them. */
static void assert_words(const char *pattern, const char *text, const char *want)
{
	struct split split;
	const char *names;
	const unsigned char *at = (const unsigned char *)text, *end = at + strlen(text);
	char got[256] = "";

	unicode_init();
	assert_true(split_named(&split, pattern, &names));
	while (at < end) {
		bool is_left_out;
		const unsigned char *stop = split_word(&split, at, end, &is_left_out);
		assert_true(stop > at && stop <= end);
		snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%.*s", got[0] ? "|" : "",
			 (int)(stop - at), (const char *)at);
		at = stop;
	}
	assert_string_equal(got, want);
}

static void test_words(void **state)
{
	static const struct {
		const char *pattern, *text, *want;
	} cases[] = {
		{ "gpt2", "Hello  world's 1234!?", "Hello| | world|'s| 1234|!?" },
		{ "gpt2", "a\n\n b \n", "a|\n\n| b| \n" },
		{ "llama3", "I'VE 12345 (x)\n\n  y", "I|'VE| |123|45| (|x|)\n\n| | y" },
		{ "qwen2", "12 é\xCC\x81", "1|2| é|\xCC\x81" },
		{ "cl100k", "a  \n ", "a|  \n " },
		{ "llama3", "a  \n ", "a|  \n| " },
		{ "o200k", "HelloWorld HTTPServer's /\n", "Hello|World| HTTPServer's| /\n" },
		{ "o200k",
		  "AB\xCA\xB0"
		  "CD",
		  "AB\xCA\xB0|CD" },
		{ "tekken", "we're 12", "we|'re| |1|2" },
		{ "gpt2",
		  "\xFF\xC3"
		  "a",
		  "\xFF\xC3|a" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_words(cases[i].pattern, cases[i].text, cases[i].want);
}

static void test_nfc(void **state)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "plain", "plain" },
		{ "e\xCC\x81", "\xC3\xA9" },
		{ "a\xCC\x81\xCC\xA3", "\xE1\xBA\xA1\xCC\x81" }, /* marks change places */
		{ "\xE1\x84\x80\xE1\x85\xA1\xE1\x86\xA8", "\xEA\xB0\x81" }, /* Hangul */
		{ "\xE2\x84\xAB", "\xC3\x85" },                             /* Angstrom */
		{ "\xCC\x81x", "\xCC\x81x" },
		{ "\xFF"
		  "e\xCC\x81\xC3",
		  "\xFF\xC3\xA9\xC3" }, /* bytes that are nothing stay */
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct buf out;
		buf_init(&out, 64);
		assert_int_equal(unicode_nfc(cases[i].text, strlen(cases[i].text), &out), 0);
		assert_string_equal(out.data, cases[i].want);
		buf_fini(&out);
	}
}

/* A million marks behind one letter: those of class 220 come first, each class in its order. */
static void test_nfc_of_many_marks(void **state)
{
	enum { MARKS = 1 << 20 };
	static char text[1 + 2 * MARKS];
	struct buf out;

	(void)state;
	text[0] = 'x';
	for (size_t i = 0; i < MARKS; i++)
		memcpy(text + 1 + 2 * i, i % 2 ? "\xCC\xA3" : i % 4 ? "\xCC\x8D" : "\xCC\x8E", 2);
	buf_init(&out, sizeof(text));
	assert_int_equal(unicode_nfc(text, sizeof(text), &out), 0);
	assert_int_equal(out.len, sizeof(text));
	for (size_t i = 0; i < MARKS; i++)
		assert_memory_equal(out.data + 1 + 2 * i,
				    i < MARKS / 2 ? "\xCC\xA3"
				    : i % 2       ? "\xCC\x8D"
						  : "\xCC\x8E",
				    2);
	buf_fini(&out);
}

/* The lowest rank first, then the leftmost; short words and long ones alike. */
static void test_merges(void **state)
{
	struct bpe *bpe = bpe_create();
	struct bpe_scratch *scratch = bpe_scratch_create();
	uint32_t word[] = { 1, 2, 3, 1, 1, 1 }, many[999];

	(void)state;
	bpe_add(bpe, 2, 3, 0, 10);
	bpe_add(bpe, 1, 2, 1, 11);
	bpe_add(bpe, 1, 1, 2, 12);
	bpe_add(bpe, 1, 10, 3, 13);
	assert_int_equal(bpe_merge(bpe, scratch, word, COUNT(word)), 3);
	assert_int_equal(word[0], 13);
	assert_int_equal(word[1], 12);
	assert_int_equal(word[2], 1);
	for (size_t i = 0; i < COUNT(many); i++)
		many[i] = 1;
	assert_int_equal(bpe_merge(bpe, scratch, many, COUNT(many)), 500);
	assert_int_equal(many[0], 12);
	assert_int_equal(many[499], 1);
	bpe_scratch_destroy(scratch);
	bpe_destroy(bpe);
}

static int collect(const struct document *d, void *arg)
{
	struct err err = { 0 };
	struct buf room;
	const char *text;
	size_t len;
	char *to = arg;

	buf_init(&room, 1024);
	assert_int_equal(document_text(d, &room, &text, &len, &err), 0);
	snprintf(to + strlen(to), 256 - strlen(to), "%d:%.*s;", (int)d->number, (int)len, text);
	buf_fini(&room);
	return 0;
}

static void assert_documents(const char *path, const struct documents_rules *rules, uint64_t from,
			     const char *want)
{
	struct err err = { 0 };
	char got[256] = "";

	assert_int_equal(documents_read(path, rules, from, collect, got, &err), 0);
	assert_string_equal(got, want);
}

/* One more member, and behind it zeros, or what is no member. */
static void append_member(const char *path, const char *text, char behind)
{
	const char tail[16] = { [7] = behind };
	gzFile gz = gzopen(path, "ab");

	assert_int_equal(gzputs(gz, text), strlen(text));
	gzclose(gz);
	FILE *out = fopen(path, "ab");
	assert_int_equal(fwrite(tail, sizeof(tail), 1, out), 1);
	fclose(out);
}

static void test_documents(void **state)
{
	static const char lines[] = "{\"text\":\"a\\u00e9\"}\n\n{\"text\":\"b\",\"n\":[1]}";
	const struct documents_rules none = { 0 }, bars = { .separator = "||" };
	const struct documents_rules field = { .field = "n" };
	struct err err = { 0 };
	char got[256] = "";
	gzFile gz = gzopen("c.jsonl.gz", "wb");

	(void)state;
	write_text("a.txt", "one||two||");
	write_text("b.jsonl", lines);
	write_text("empty", "");
	assert_int_equal(gzputs(gz, lines), sizeof(lines) - 1);
	gzclose(gz);
	assert_documents("a.txt", &none, 0, "0:one||two||;");
	assert_documents("a.txt", &bars, 0, "0:one;1:two;");
	assert_documents("a.txt", &bars, 1, "1:two;");
	assert_documents("empty", &none, 0, "0:;");
	assert_documents("b.jsonl", &none, 0, "0:a\xC3\xA9;2:b;");
	assert_documents("c.jsonl.gz", &none, 2, "2:b;");
	int folder = open(".", O_RDONLY | O_DIRECTORY);
	assert_int_equal(zst_compress(folder, "b.jsonl", &err), 0);
	close(folder);
	assert_documents("b.jsonl.zst", &none, 0, "0:a\xC3\xA9;2:b;");
	write_text("d.jsonl", "{\"n\":\"x\"}\n");
	assert_documents("d.jsonl", &field, 0, "0:x;");
	append_member("c.jsonl.gz", "\n{\"text\":\"c\"}", '\0');
	assert_documents("c.jsonl.gz", &none, 2, "2:b;3:c;");
	append_member("c.jsonl.gz", "\n{\"text\":\"d\"}", 'x');
	assert_int_equal(documents_read("c.jsonl.gz", &none, 4, collect, got, &err), -1);
	assert_contains(err.text, "c.jsonl.gz: is damaged, or has what is no gzip behind its end");
	memset(&err, 0, sizeof(err));
	assert_int_equal(truncate("c.jsonl.gz", 20), 0);
	assert_int_equal(documents_read("c.jsonl.gz", &none, 0, collect, got, &err), -1);
	assert_contains(err.text, "c.jsonl.gz");
}

static void test_sampler(void **state)
{
	static const float logits[] = { 0.0f, 2.0f, 1.0f, 2.0f };
	const struct sampler coldest = { 0, 0, 0 }, top1 = { 1, 1, 0 }, top3 = { 1, 3, 0 };
	const struct sampler half = { 1, 0, 0.5 }, all = { 1, 0, 1 };

	(void)state;
	assert_int_equal(sample_token(&coldest, logits, 4, 0.99), 1);
	assert_int_equal(sample_token(&top1, logits, 4, 0.99), 1);
	assert_int_equal(sample_token(&top3, logits, 4, 0.999), 2);
	assert_int_equal(sample_token(&half, logits, 4, 0.999), 3);
	assert_int_equal(sample_token(&all, logits, 4, 0.001), 0);
	assert_int_equal(sample_token(&all, logits, 4, 0.999), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_nfc),
		cmocka_unit_test(test_nfc_of_many_marks),
		cmocka_unit_test(test_merges),
		cmocka_unit_test(test_documents),
		cmocka_unit_test(test_sampler),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
