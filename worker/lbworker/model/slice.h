/* SPDX-License-Identifier: MIT */
/* slice.h - which part of a model a rank of tensor parallelism holds (struct model_split). Pure.
 *
 * Heads, feed-forward and vocabulary are cut into as many runs as there are ranks; a tensor that
 * has one of them for a side is cut along it, the others are whole everywhere. */
#ifndef LBWORKER_SLICE_H
#define LBWORKER_SLICE_H

#include "worker/lbworker/model/model.h"

/* Elements along a side; NONE: 1. */
size_t slice_extent(const struct model_shape *shape, enum extent extent);

/* ERR_USAGE with the degrees that are possible when heads, kv_heads, ffn or vocabulary do not allow
 * this one. */
int slice_check(const struct model_shape *shape, const struct model_split *split, struct err *err);
/* The same model with its sizes here. */
struct model_shape slice_shape(const struct model_shape *shape, const struct model_split *split);
/* The tokens whose rows of the embedding and of the head are here. */
struct vocab_slice slice_vocab(const struct model *m);

/* Elements of tensor number i, from its first one on: those from `whole` on are here from `local`
 * on. Runs come in order of both. */
struct slice_run {
	size_t whole, local, count;
};
struct slice_walk { /* private */
	size_t rows, stride, row, blocks, block, local;
	size_t first[3], size[3];
};
struct slice_walk slice_begin(const struct model *m, size_t tensor);
bool slice_next(struct slice_walk *walk, struct slice_run *run);

/* Whether parameter `at` is whole on each of the ranks; *count: how many from there on, at most as
 * many as it was, are so, too. */
bool slice_is_whole(const struct model *m, size_t at, size_t *count);

#endif
