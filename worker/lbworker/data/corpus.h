/* SPDX-License-Identifier: MIT */
/* corpus.h - texts to folders of token files, on all cores, and on from where it was
 * interrupted.
 *
 *   OUT/train/00000.tokens …         parts of about part_bytes of text, documents in order
 *
 *   OUT/validation/00000.tokens …    of the same parts, the documents that do not train
 *
 *   OUT/tokenizer.json               a copy of the tokenizer's file, under its usual name
 *
 * Each file's notes say what it was made of and where the next part begins. The content depends
 * on texts, tokenizer and options alone, not on threads or interruptions. Which documents
 * validate follows from their text, so that copies of one never stand on both sides. */
#ifndef LBWORKER_CORPUS_H
#define LBWORKER_CORPUS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "worker/lbworker/text/documents.h"
#include "worker/lbworker/text/tokenizer.h"

struct corpus_options {
	const struct tokenizer *tokenizer;
	char *const *files;
	size_t count;
	struct documents_rules rules;
	const char *out;     /* folder; made when missing */
	double validation;   /* share of the documents, 0 to below 1 */
	int64_t begin, end;  /* tokens around each document; -1: none */
	bool specials;       /* their names in a text are these tokens */
	unsigned threads;    /* that make tokens; at least 1 */
	uint64_t part_bytes; /* of text */
	bool shows_progress; /* on stderr */
};

struct corpus_counts {
	uint64_t documents, tokens, bytes; /* all; bytes of text */
	uint64_t validation_documents, validation_tokens;
	uint64_t parts, parts_before; /* before: of an earlier call */
};

int corpus_tokenize(const struct corpus_options *options, struct corpus_counts *counts,
		    struct err *err);

#endif
