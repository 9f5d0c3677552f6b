/* SPDX-License-Identifier: MIT */
/* train_tokenizer.c - lbworker train-tokenizer: a byte-level BPE of one's own. */
#include "worker/lbworker/commands/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "worker/lbworker/commands/words.h"
#include "worker/lbworker/data/input_files.h"
#include "worker/lbworker/text/documents.h"
#include "worker/lbworker/unicode/split.h"
#include "worker/lbworker/text/tokenizer_write.h"
#include "worker/lbworker/unicode/unicode.h"

enum { SIZE_MIN = 257, SIZE_MAX_TOKENS = VOCABULARY_MAX, SIZE_DEFAULT = 4096 };

struct arguments {
	const char *out, *pattern, *special;
	int64_t size;
	struct documents_rules rules;
	char **inputs; /* borrowed words: files and folders */
	size_t count;
};

struct counting {
	const struct split *split;
	struct word_counts words;
	uint64_t bytes;
	struct err *err;
};

static int parse(struct arguments *a, int argc, char **argv, struct err *err)
{
	const struct word_option options[] = {
		{ "--size", .integer = &a->size, .min = SIZE_MIN, .max = SIZE_MAX_TOKENS },
		{ "--out", .text = &a->out },
		{ "-o", .text = &a->out },
		{ "--pattern", .text = &a->pattern },
		{ "--special", .text = &a->special },
		{ "--field", .text = &a->rules.field },
		{ "--separator", .text = &a->rules.separator },
		{ .name = NULL },
	};

	if (words_parse(options, argc, argv, a->inputs, &a->count, err))
		return -1;
	if (!a->out)
		return err_set(err, ERR_USAGE,
			       "train-tokenizer needs -o FILE.json, the file to write");
	if (a->rules.separator && a->rules.separator[0] == '\0')
		return err_set(err, ERR_USAGE, "--separator must not be empty");
	if (a->special[0] == '\0')
		return err_set(err, ERR_USAGE, "--special must not be empty");
	return a->count > 0
		       ? 0
		       : err_set(err, ERR_USAGE,
				 "train-tokenizer needs at least one text, or folder of texts");
}

static int count_document(const struct document *d, void *arg)
{
	struct counting *c = arg;
	struct buf room;
	const char *text;
	size_t len;

	buf_init(&room, SIZE_MAX / 2);
	int rc = document_text(d, &room, &text, &len, c->err);
	if (rc == 0) {
		const unsigned char *at = (const unsigned char *)text, *end = at + len;
		while (at < end) {
			bool is_left_out; /* none is: all that is known is words */
			const unsigned char *stop = split_word(c->split, at, end, &is_left_out);
			word_counts_add(&c->words, (const char *)at, (uint32_t)(stop - at));
			at = stop;
		}
		c->bytes += len;
	}
	buf_fini(&room);
	return rc;
}

static int count_words(struct counting *c, const struct arguments *a, struct err *err)
{
	struct strv files = { 0 };
	int rc = input_files(&files, a->inputs, a->count, err);

	if (rc == 0 && !a->rules.field && !a->rules.separator)
		input_tell_json(&files);
	for (size_t i = 0; rc == 0 && i < files.count; i++)
		rc = documents_read(files.items[i], &a->rules, 0, count_document, c, err);
	strv_free(files.items);
	return rc;
}

static int train(const struct arguments *a, struct err *err)
{
	struct split split;
	const char *names;

	unicode_init();
	if (!split_named(&split, a->pattern, &names))
		return err_set(err, ERR_USAGE, "--pattern %.40s: there is none, allowed are %s",
			       a->pattern, names);
	struct counting counting = { .split = &split, .err = err };
	struct bpe_trained trained = { 0 };
	int rc = count_words(&counting, a, err);
	if (rc == 0) {
		bpe_train(&trained, &counting.words, (size_t)a->size, &a->special, 1);
		rc = tokenizer_write(a->out, &trained, 1,
				     split.kind == SPLIT_GPT2 ? NULL : split_pattern(a->pattern),
				     err);
	}
	if (rc == 0)
		fprintf(strcmp(a->out, "-") == 0 ? stderr : stdout,
			"%s: %zu tokens from %.1f MB, %zu different words\n", a->out,
			trained.vocabulary.count, (double)counting.bytes / 1e6,
			counting.words.count);
	bpe_trained_fini(&trained);
	word_counts_fini(&counting.words);
	return rc;
}

int command_train_tokenizer(int argc, char **argv)
{
	struct arguments a = { .size = SIZE_DEFAULT,
			       .pattern = "llama3",
			       .special = "<|endoftext|>",
			       .inputs = xcalloc((size_t)argc, sizeof(char *)) };
	struct err err = { 0 };
	int rc = parse(&a, argc, argv, &err);

	if (rc == 0)
		rc = train(&a, &err);
	free(a.inputs);
	return rc ? command_failed(&err) : EXIT_DONE;
}
