/* SPDX-License-Identifier: MIT */
/* convert.h - weights written once more: in another type, for other programs. */
#ifndef LBWORKER_CONVERT_H
#define LBWORKER_CONVERT_H

#include "common/base/err.h"

/* Writes the model in the folder `from` (a checkpoint, or a model of Hugging Face) to the new
 * folder `to`, as `dtype`: "float32", "bfloat16" or "float16". 0, or -1 with err and nothing
 * there. */
int convert_model(const char *from, const char *to, const char *dtype, struct err *err);

#endif
