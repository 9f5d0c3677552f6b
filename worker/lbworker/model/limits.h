/* SPDX-License-Identifier: MIT */
/* limits.h - what shapes a model may have. */
#ifndef LBWORKER_MODEL_LIMITS_H
#define LBWORKER_MODEL_LIMITS_H

#include "common/base/err.h"
#include "worker/lbworker/model/model.h"

/* 0, or -1 with an ERR_USAGE that names the size, and what it may be; the first looks at each size
 * alone. */
int limits_check_sizes(const struct model_shape *shape, struct err *err);
int limits_check(const struct model_shape *shape, const struct model_options *options,
		 struct err *err);

#endif
