/* SPDX-License-Identifier: MIT */
/* bpe.h - pairs of tokens that become one, by rank (Sennrich et al. 2016): of all neighbours in
 * a word the pair with the lowest rank is merged, the leftmost first, until none is left. */
#ifndef LBWORKER_BPE_H
#define LBWORKER_BPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bpe;

struct bpe *bpe_create(void);
void bpe_destroy(struct bpe *bpe); /* NULL is fine */
/* The pair becomes `token`; of two ranks for it the later one counts. */
void bpe_add(struct bpe *bpe, uint32_t left, uint32_t right, uint32_t rank, uint32_t token);

/* What one thread needs while it merges. */
struct bpe_scratch;
struct bpe_scratch *bpe_scratch_create(void);
void bpe_scratch_destroy(struct bpe_scratch *scratch); /* NULL is fine */

/* Merges symbol[0..count) in place; returns how many are left. */
size_t bpe_merge(const struct bpe *bpe, struct bpe_scratch *scratch, uint32_t *symbol,
		 size_t count);

#endif
