/* SPDX-License-Identifier: MIT */
/* heads.h - where a head lies in a row of qkv, in elements from the row's start. */
#ifndef KERNELS_CUDA_HEADS_H
#define KERNELS_CUDA_HEADS_H

#include <math.h>

#include "kernels/backend.h"

struct heads {
	size_t query, key, value; /* of head 0 */
	size_t step;              /* from one head to the next */
	size_t row;               /* from one row to the next */
};

static inline struct heads heads_of(const struct attention *a)
{
	const size_t c = a->head_dim, row = (a->heads + 2 * a->kv_heads) * c;
	const struct heads mixed = { 0, c, 2 * c, 3 * c, row };
	const struct heads apart = { 0, a->heads * c, (a->heads + a->kv_heads) * c, c, row };

	return a->interleaved ? mixed : apart;
}

#endif
