/* SPDX-License-Identifier: MIT */
/* corpus_parts.h - a corpus on disk: its parts, what they say of themselves, and how far it is. */
#ifndef LBWORKER_CORPUS_PARTS_H
#define LBWORKER_CORPUS_PARTS_H

#include "worker/lbworker/data/corpus.h"
#include "worker/lbworker/data/shard_out.h"

struct corpus_place {
	size_t file;
	uint64_t document; /* in that file */
};

struct corpus_parts {
	const struct corpus_options *options;
	char settings[33]; /* names what the content depends on */
	struct corpus_counts counts;
	struct corpus_place next; /* where the part at hand goes on */
	bool is_complete;
	struct shard_out *out[2]; /* of the part at hand: training, validation */
	uint64_t bytes;           /* of text in it */
};

/* Makes the folders, finds the parts that are there, and copies the tokenizer. ERR_REFUSED when
 * they were made otherwise. */
int corpus_parts_open(struct corpus_parts *p, const struct corpus_options *options,
		      struct err *err);
/* A document, as tokens of the width that the vocabulary needs. */
int corpus_parts_put(struct corpus_parts *p, bool validates, const uint32_t *token, size_t count,
		     uint64_t text_bytes, struct err *err);
/* Everything before `next` was put: a part that is large enough, or the last one, is completed. */
int corpus_parts_advance(struct corpus_parts *p, struct corpus_place next, bool is_last,
			 struct err *err);
void corpus_parts_close(struct corpus_parts *p); /* what is not completed is removed */

#endif
