/* SPDX-License-Identifier: MIT */
/* shape_json.h - a model's shape as the config.json of Hugging Face's transformers. */
#ifndef LBWORKER_SHAPE_JSON_H
#define LBWORKER_SHAPE_JSON_H

#include <jansson.h>
#include <stddef.h>

#include "worker/lbworker/model.h"

/* LlamaForCausalLM, GPTNeoXForCausalLM or GPT2LMHeadModel; seq: what it was trained with. Owned by
 * the caller. */
json_t *shape_to_json(const struct model_shape *shape, size_t seq);

#endif
