/* SPDX-License-Identifier: MIT */
/* split.h - what passes between the ranks that hold a model together (struct model_split), within a
 * pass. Private to the files of the model; without a split none of it does anything.
 *
 * A product whose inputs are whole gives a slice of heads, of the feed-forward or of the
 * vocabulary; the next one, over that slice, gives part of a sum, which is added up over the ranks,
 * in their order. With sequence parallelism each rank then keeps some rows of it, and gathers all
 * when a product reads them. A failure of the way sticks to it; a pass goes to its end. */
#ifndef LBWORKER_SPLIT_H
#define LBWORKER_SPLIT_H

#include "worker/lbworker/model/layer.h"
#include "worker/lbworker/model/slice.h"

/* Of so many rows of the stream those that are here. */
size_t split_rows(const struct model *m, size_t rows);
/* The most rows that one rank has, of so many. */
size_t split_most_rows(const struct model_split *split, size_t rows);

/* All rows of an activation [S,width] of which each rank has its own: `whole`, or x itself where
 * all are here. */
const void *split_gather(const struct model *m, void *whole, const void *x, size_t rows,
			 size_t width);
/* part [rows,width] is a term of a sum over the ranks: our rows of the sum, to `out`, which may be
 * `part`. */
void split_reduce(const struct model *m, const struct layer_shared *s, void *out, void *part,
		  size_t rows, size_t width);
/* loss_part and loss_merge of backend.h, or cross_entropy where the logits are whole. */
void split_loss(const struct model *m, const struct layer_shared *s, float *loss, void *logits,
		const int32_t *targets, size_t rows, float scale);

#endif
