/* SPDX-License-Identifier: MIT */
/* reduction.h - the gradient of a step from those of its micro-batches, in an order that no number
 * of ranks can change.
 *
 * Micro-batches are the leaves of a binary tree, `width` of them at a time, in the order of their
 * samples: ((0 + 1) + (2 + 3)) + ((4 + 5) + (6 + 7)). The trees are added up from left to right. So
 * the sum is a function of the number of leaves alone, and log2(width) + 1 partial sums are all
 * that is held at any time. */
#ifndef LBWORKER_REDUCTION_H
#define LBWORKER_REDUCTION_H

#include <stdint.h>

#include "kernels/backend.h"

struct reduction;

/* For `count` elements; width: a power of two. NULL without memory, or where the device cannot. */
struct reduction *reduction_create(const struct backend *backend, struct device *device,
				   size_t count, int64_t width);
void reduction_destroy(struct reduction *reduction); /* NULL is fine */

/* Elements [at, at + count) of leaf number `leaf` of this step, which come in order from 0 on;
 * `gradient` is overwritten. */
void reduction_push(struct reduction *r, int64_t leaf, size_t at, float *gradient, size_t count);
/* The sum of all leaves, replacing what is in `to`. */
void reduction_finish(struct reduction *r, int64_t leaves, size_t at, float *to, size_t count);

#endif
