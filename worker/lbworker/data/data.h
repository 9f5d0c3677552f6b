/* SPDX-License-Identifier: MIT */
/* data/ - tokens: where they lie, which of them a sample holds, how texts become them.
 * data.h - which tokens the n-th sample of a training holds.
 * A source is a file of tokens (shard.h), all *.tokens of a folder (or of train/ in it), or all
 * files that a pattern matches, by name. A sample is seq_len + 1 consecutive tokens of one file
 * (inputs, and targets one further on); sample s of a file starts at s * seq_len. Samples of a
 * source are drawn without replacement: its epoch e visits all of them in an order that is a
 * function of (seed, e).
 * Several sources are mixed by weight: of each MIX_BLOCK samples every source gets its share, to
 * the nearest, at places that are a function of (seed, block). So which source, and which sample
 * of it, follows from n alone, and the loader's whole state is one number, the samples used so
 * far. */
#ifndef LBWORKER_DATA_H
#define LBWORKER_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

enum { MIX_BLOCK = 4096, MIX_SOURCES_MAX = 256 };

struct data;

struct data_options {
	const char *path; /* the one source; NULL: mix */
	char *const *mix; /* "WEIGHT PATH", weights of any sum */
	size_t mix_count;
	size_t seq;
	uint64_t vocab; /* of the model */
	uint64_t seed;
	bool verify; /* read every byte now: digests, tokens outside the vocabulary */
};

/* NULL with one line in err. */
struct data *data_open(const struct data_options *options, struct err *err);
void data_close(struct data *data); /* NULL is fine */

uint64_t data_tokens(const struct data *data);
uint64_t data_samples(const struct data *data); /* of all sources together, at least 1 */
/* Files that are too short for one sample: nobody sees them. */
size_t data_short_files(const struct data *data);
/* The part behind which `lbworker tokenize` has more to do; NULL: there is none. Borrowed. */
const char *data_unfinished(const struct data *data);
/* 32 hex digits that name this data: its files in order, and how they are mixed. */
const char *data_digest(const struct data *data);

/* The tokenizer's file that lies beside the first source that has one, and that its tokens were
 * made with; NULL when there is none. Borrowed. */
const char *data_tokenizer(const struct data *data);

/* The `number`-th sample since training began: seq inputs, seq targets. Fails on a token that is
 * not below the model's vocabulary. */
int data_sample(const struct data *data, uint64_t number, int32_t *tokens, int32_t *targets,
		struct err *err);

/* Writes a byte-level shard (vocabulary 256): one document per file, bytes as they are. */
int data_prepare(const char *out, char *const *files, size_t count, uint64_t *out_tokens,
		 struct err *err);

/* Joins token files of any format into one native shard with tokens as wide as the widest. One
 * document per file, or one from each `document_start` token on where that is not negative. */
int data_join(const char *out, char *const *files, size_t count, int64_t document_start,
	      uint64_t *out_tokens, uint64_t *out_documents, struct err *err);

#endif
