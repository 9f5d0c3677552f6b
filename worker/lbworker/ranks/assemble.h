/* SPDX-License-Identifier: MIT */
/* assemble.h - an array of the whole model from the slices that ranks of tensor parallelism
 * have. */
#ifndef LBWORKER_ASSEMBLE_H
#define LBWORKER_ASSEMBLE_H

#include "worker/lbworker/model/model.h"
#include "worker/lbworker/ranks/ranks.h"

/* slice: host memory, our model's array, with elements of so many bytes; to: on the first of the
 * ranks that of the whole model, elsewhere NULL. */
int assemble(struct ranks *ranks, const struct model *model, void *slice, size_t element_bytes,
	     void *to, struct err *err);

#endif
