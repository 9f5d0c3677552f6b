/* SPDX-License-Identifier: MIT */
/* shape.h - the model's shape: a flavor, a config.json of Hugging Face, or sizes, and any size over
 * the other two. */
#ifndef LBWORKER_SHAPE_H
#define LBWORKER_SHAPE_H

#include "common/config/toml.h"
#include "worker/lbworker/config/config.h"
#include "worker/lbworker/config/refusals.h"

/* Sets config->shape, and the size keys to what it has. -1 when it was refused: one line for each
 * mistake, with a number that would do. */
int shape_work_out(struct config *config, const struct toml *toml, struct refusals *refusals);

#endif
