/* SPDX-License-Identifier: MIT */
/* tokenize.c - lbworker tokenize: texts to a folder of tokens that training reads. */
#include "worker/lbworker/commands/command.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/mem.h"
#include "worker/lbworker/commands/words.h"
#include "worker/lbworker/data/corpus.h"
#include "worker/lbworker/data/input_files.h"

enum { PART_MB = 1024, PART_MB_MAX = 1 << 20 };

struct arguments {
	const char *tokenizer, *out, *pattern, *begin, *end;
	int64_t threads, part_mb;
	struct corpus_options o;
	char **inputs; /* borrowed words: files and folders */
	size_t count;
};

static int parse(struct arguments *a, int argc, char **argv, struct err *err)
{
	struct corpus_options *o = &a->o;
	const struct word_option options[] = {
		{ "--tokenizer", .text = &a->tokenizer },
		{ "--out", .text = &a->out },
		{ "-o", .text = &a->out },
		{ "--field", .text = &o->rules.field },
		{ "--separator", .text = &o->rules.separator },
		{ "--validation", .real = &o->validation, .max = 0.5 },
		{ "--begin", .text = &a->begin },
		{ "--end", .text = &a->end },
		{ "--special", .flag = &o->specials },
		{ "--pattern", .text = &a->pattern },
		{ "--threads", .integer = &a->threads, .min = 1, .max = 4096 },
		{ "--part-mb", .integer = &a->part_mb, .min = 1, .max = PART_MB_MAX },
		{ .name = NULL },
	};

	if (words_parse(options, argc, argv, a->inputs, &a->count, err))
		return -1;
	if (!a->tokenizer)
		return err_set(
			err, ERR_USAGE,
			"tokenize needs --tokenizer FILE: a tokenizer.json, a tokenizer.model, or "
			"one that lbworker train-tokenizer made");
	if (!a->out)
		return err_set(err, ERR_USAGE, "tokenize needs -o FOLDER, where the tokens go");
	if (o->rules.separator && o->rules.separator[0] == '\0')
		return err_set(err, ERR_USAGE, "--separator must not be empty");
	return a->count > 0 ? 0
			    : err_set(err, ERR_USAGE,
				      "tokenize needs at least one text, or folder "
				      "of texts");
}

/* The token of an option; *out stays as it is without one. */
static int find_token(int64_t *out, const struct tokenizer *t, const char *option, const char *name,
		      struct err *err)
{
	if (!name)
		return 0;
	*out = -1;
	if (strcmp(name, "none") == 0)
		return 0;
	*out = tokenizer_find(t, name);
	return *out >= 0 ? 0
			 : err_set(err, ERR_USAGE, "%s %.40s: %s has no such token", option, name,
				   tokenizer_path(t));
}

static void print_counts(const char *out, const struct corpus_counts *c, size_t vocab)
{
	printf("%s: %" PRIu64 " tokens in %" PRIu64 " document%s for training, %" PRIu64
	       " in %" PRIu64 " for validation; vocabulary %zu, %.2f bytes a token\n",
	       out, c->tokens - c->validation_tokens, c->documents - c->validation_documents,
	       c->documents - c->validation_documents == 1 ? "" : "s", c->validation_tokens,
	       c->validation_documents, vocab,
	       c->tokens > 0 ? (double)c->bytes / (double)c->tokens : 0.0);
	if (c->parts_before > 0)
		printf("%" PRIu64 " of %" PRIu64 " parts were there already\n", c->parts_before,
		       c->parts);
}

static int tokenize(struct arguments *a, const struct tokenizer *t, struct err *err)
{
	struct strv files = { 0 };
	struct corpus_counts counts;
	int rc = -1;

	a->o.tokenizer = t;
	a->o.out = a->out;
	a->o.begin = -1;
	a->o.end = tokenizer_end_of_text(t);
	a->o.threads = a->threads ? (unsigned)a->threads : command_threads();
	a->o.part_bytes = (uint64_t)a->part_mb << 20;
	a->o.shows_progress = isatty(STDERR_FILENO);
	if (find_token(&a->o.begin, t, "--begin", a->begin, err) == 0 &&
	    find_token(&a->o.end, t, "--end", a->end, err) == 0 &&
	    input_files(&files, a->inputs, a->count, err) == 0) {
		if (a->o.end < 0 && !a->end)
			log_warn("%s: no token is known to end a document: --end NAME says which, "
				 "--end none that none does",
				 tokenizer_path(t));
		a->o.files = files.items;
		a->o.count = files.count;
		if (!a->o.rules.field && !a->o.rules.separator)
			input_tell_json(&files);
		rc = corpus_tokenize(&a->o, &counts, err);
	}
	if (rc == 0)
		print_counts(a->out, &counts, tokenizer_vocab(t));
	strv_free(files.items);
	return rc;
}

int command_tokenize(int argc, char **argv)
{
	struct arguments a = { .part_mb = PART_MB,
			       .inputs = xcalloc((size_t)argc, sizeof(char *)) };
	struct err err = { 0 };
	struct tokenizer *t = NULL;
	int rc = parse(&a, argc, argv, &err);

	if (rc == 0)
		t = tokenizer_open(a.tokenizer, a.pattern, &err);
	rc = t ? tokenize(&a, t, &err) : -1;
	tokenizer_close(t);
	free(a.inputs);
	return rc ? command_failed(&err) : EXIT_DONE;
}
