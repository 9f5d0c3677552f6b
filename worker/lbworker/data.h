/* SPDX-License-Identifier: MIT */
/* data.h - token shards, and which tokens the n-th sample of a training holds.
 *
 * A shard is one file, all numbers little-endian:
 *   64 bytes  struct shard_header
 *   tokens    token_count * token_bytes, then zeros up to a multiple of 8
 *   index     document_count + 1 u64: where each document starts, and token_count at the end
 * The digest is XXH3-128 of everything behind the header.
 *
 * A sample is seq_len + 1 consecutive tokens (inputs, and targets one further on); sample s of a
 * shard starts at s * seq_len. Samples are drawn without replacement: epoch e visits all of them in
 * an order that is a function of (seed, e), so the loader's whole state is one number, the samples
 * used so far. */
#ifndef LBWORKER_DATA_H
#define LBWORKER_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

enum { SHARD_VERSION = 1, SHARD_DIGEST_BYTES = 16 };

struct shard_header {
	char magic[8];			/* "LBTOKENS" */
	uint32_t version;
	uint32_t token_bytes;		/* 1, 2 or 4 */
	uint64_t token_count;
	uint64_t document_count;
	uint64_t vocab;			/* every token is below it */
	uint8_t digest[SHARD_DIGEST_BYTES];
	uint64_t reserved;		/* 0 */
};

struct data;

struct data_options {
	const char *path;		/* a shard, or a folder: all its *.tokens by name */
	size_t seq;
	uint64_t vocab;			/* of the model */
	uint64_t seed;
	bool verify;			/* compare the digests (reads every byte) */
};

/* NULL with one line in err. */
struct data *data_open(const struct data_options *options, struct err *err);
void data_close(struct data *data);		/* NULL is fine */

uint64_t data_tokens(const struct data *data);
uint64_t data_samples(const struct data *data);	/* in one epoch, at least 1 */
/* 32 hex digits that name this data in this order of shards. */
const char *data_digest(const struct data *data);

/* The `number`-th sample since training began: seq inputs, seq targets. Fails on a token that is
 * not below the model's vocabulary. */
int data_sample(const struct data *data, uint64_t number, int32_t *tokens, int32_t *targets,
		struct err *err);

/* Writes a byte-level shard (vocabulary 256): one document per file, bytes as they are. */
int data_prepare(const char *out, char *const *files, size_t count, uint64_t *out_tokens,
		 struct err *err);

#endif
