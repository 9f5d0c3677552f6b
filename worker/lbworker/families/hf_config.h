/* SPDX-License-Identifier: MIT */
/* hf_config.h - a shape as the config.json of a model of Hugging Face says it.
 *
 * What a family calls its sizes is a table in hf_config_rows.h. A config that asks for something
 * that our model does not compute (biases, another activation, …) is refused by name. */
#ifndef LBWORKER_HF_CONFIG_H
#define LBWORKER_HF_CONFIG_H

#include <jansson.h>

#include "common/base/err.h"
#include "worker/lbworker/families/shape.h"

/* config.json for a shape; a new reference. `dtype`: "float32", "bfloat16" or "float16". */
json_t *hf_config_json(const struct model_shape *shape, size_t positions, const char *dtype);

/* The shape that folder/config.json says, and the longest sequence it speaks of. */
int hf_config_read(struct model_shape *out, size_t *positions, const char *folder, struct err *err);

/* Where the head is the embedding, files may have it once more, but no other one: then -1, and err
 * says what config.json has to say. */
int hf_config_refuse_head(const char *folder, enum model_family family, struct err *err);

#endif
