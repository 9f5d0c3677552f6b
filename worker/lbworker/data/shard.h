/* SPDX-License-Identifier: MIT */
/* shard.h - one file of tokens, mapped and checked once, then only indexed.
 *
 * Formats, all little-endian; what stands at the start tells them apart:
 *
 * native   64 bytes  struct shard_header
 *          tokens    token_count * token_bytes, then zeros up to a multiple of 8
 *          index     document_count + 1 u64: where each document starts, and token_count at the end
 *          notes     of version 2: JSON, then zeros up to a multiple of 8
 *          The digest is XXH3-128 of everything behind the header.
 * llm.c    256 int32: 20240520, 1, count, then uint16 tokens (GPT-2), or
 *          20240801, 7, count, then uint32 tokens (Llama 3).  https://github.com/karpathy/llm.c,
 *          llmc/dataloader.h and dev/data/data_common.py.  The count has 32 bits; of longer files
 *          it holds the lower ones.
 * NumPy    one row, numpy.save's .npy: uint8, uint16, uint32, int32, int64
 * LitGPT   its packed files: LITPKDS, version, type, count, then tokens
 * Megatron tokens alone; their type is in the .idx beside the .bin
 * raw      uint16 tokens and nothing else, named *.bin, as nanoGPT's and LitGPT's train.bin. */
#ifndef LBWORKER_SHARD_H
#define LBWORKER_SHARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

enum { SHARD_VERSION = 1, SHARD_VERSION_NOTES = 2, SHARD_DIGEST_BYTES = 16 };
#define SHARD_MAGIC \
	{ \
		'L', 'B', 'T', 'O', 'K', 'E', 'N', 'S' \
	}

struct shard_header {
	char magic[8]; /* "LBTOKENS" */
	uint32_t version;
	uint32_t token_bytes; /* 1, 2 or 4 */
	uint64_t token_count;
	uint64_t document_count;
	uint64_t vocab; /* every token is below it */
	uint8_t digest[SHARD_DIGEST_BYTES];
	uint64_t notes_bytes; /* without its zeros; 0: none */
};

struct shard {
	char *path; /* owned */
	void *map;
	uint64_t bytes;     /* of the file */
	const char *tokens; /* within map */
	const char *notes;  /* within map, not terminated; NULL: none */
	uint64_t notes_bytes;
	uint32_t token_bytes;
	uint64_t token_count;
	/* Names the content: the native digest, or for the other formats XXH3-128 of the size and
	 * of 64 pieces of 4 KiB spread over the file. */
	uint8_t digest[SHARD_DIGEST_BYTES];
};

/* Opens s->path (set by the caller). Every token must be below `vocab`: a native shard promises it,
 * the others are read through with `verify`, which also compares native digests. -1 with one
 * line. */
int shard_open(struct shard *s, uint64_t vocab, bool verify, struct err *err);
void shard_close(struct shard *s); /* a zeroed one is fine; frees path */

uint64_t shard_token(const struct shard *s, uint64_t position);

#endif
