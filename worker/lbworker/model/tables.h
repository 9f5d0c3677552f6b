/* SPDX-License-Identifier: MIT */
/* tables.h - what a pass looks up: embeddings of tokens, and learned positions. Private to the
 * files of the model. */
#ifndef LBWORKER_MODEL_TABLES_H
#define LBWORKER_MODEL_TABLES_H

#include "worker/lbworker/model/model.h"

/* x [rows,D]: what the present micro-batch's tokens are looked up as, those of a sequence from
 * `first` on; of a slice of the vocabulary a term of the sum over the ranks. */
void tables_forward(const struct model *m, void *x, size_t first, size_t rows);
/* From shared.dx, the gradient of the stream before the first layer. */
void tables_backward(const struct model *m, bool accumulate);

#endif
