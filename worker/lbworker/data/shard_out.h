/* SPDX-License-Identifier: MIT */
/* shard_out.h - writes a native shard (shard.h), token by token. It lies beside its name and is
 * renamed at the end, so that a reader never sees half. */
#ifndef LBWORKER_SHARD_OUT_H
#define LBWORKER_SHARD_OUT_H

#include <stdint.h>

#include "common/base/err.h"

struct shard_out;

/* token_bytes 1, 2 or 4. NULL with err. */
struct shard_out *shard_out_create(const char *path, uint32_t token_bytes, uint64_t vocab,
				   struct err *err);
/* A document begins with the next token. */
void shard_out_document(struct shard_out *out);
/* `tokens`: count numbers of token_bytes each. */
int shard_out_put(struct shard_out *out, const void *tokens, uint64_t count, struct err *err);
uint64_t shard_out_tokens(const struct shard_out *out);
uint64_t shard_out_documents(const struct shard_out *out);
/* Completes the file under its name: JSON for people and programs comes last, NULL: none.
 * Releases `out`, as discard does; a file that was not completed is removed. */
int shard_out_finish(struct shard_out *out, const char *notes, struct err *err);
void shard_out_discard(struct shard_out *out); /* NULL is fine */

#endif
