/* SPDX-License-Identifier: MIT */
/* bpe_train.h - byte-level BPE (Sennrich et al. 2016, Radford et al. 2019) learned from counted
 * words. The result depends on the words and their counts alone, and is that of Hugging Face's
 * BpeTrainer. */
#ifndef LBWORKER_BPE_TRAIN_H
#define LBWORKER_BPE_TRAIN_H

#include "worker/lbworker/text/vocabulary.h"
#include "worker/lbworker/text/word_counts.h"

struct bpe_merge {
	uint32_t left, right;
};

struct bpe_trained {                  /* all zero: empty */
	struct vocabulary vocabulary; /* special tokens, the 256 bytes, what was merged */
	struct bpe_merge *merge;
	size_t merges, room;
};

/* Up to `size` tokens, of which `specials` come first; fewer when no pair is left. */
void bpe_train(struct bpe_trained *out, const struct word_counts *words, size_t size,
	       const char *const *specials, size_t special_count);
void bpe_trained_fini(struct bpe_trained *t);

#endif
