/* SPDX-License-Identifier: MIT */
/* weights.h - the weights of a model row by row, whoever wrote the files: safetensors, or what
 * torch/foreign.h knows. */
#ifndef LBWORKER_WEIGHTS_H
#define LBWORKER_WEIGHTS_H

#include "common/base/err.h"
#include "worker/lbworker/model/model.h"

struct weights;
/* Those of a folder, and the shape that it says; file: as in checkpoint/hf.h. NULL with err. */
struct weights *weights_open(const char *folder, const char *file, struct model_shape *shape,
			     size_t *positions, struct err *err);
void weights_close(struct weights *weights); /* NULL is fine */
/* The tensor that weights_row reads from then on; -1 with err when it is not there so. */
int weights_select(struct weights *weights, const struct model_tensor *tensor, struct err *err);
/* The same for its moment, 0 (exp_avg) or 1 (exp_avg_sq). */
int weights_select_moment(struct weights *weights, const struct model_tensor *tensor, int which,
			  struct err *err);
/* Row `row` of it, as fp32; a vector is one row. */
void weights_row(const struct weights *weights, size_t row, float *to);

/* Of any tensor. */
static inline size_t tensor_width(const struct model_tensor *t)
{
	return t->columns ? t->columns : t->rows;
}

static inline size_t tensor_rows(const struct model_tensor *t)
{
	return t->columns ? t->rows : 1;
}

#endif
