/* SPDX-License-Identifier: MIT */
/* hf.h - models as Hugging Face's transformers keeps them: a folder with config.json and weights in
 * model.safetensors, or in several files that model.safetensors.index.json lists.
 *
 * Tensors carry the same names on both sides, so nothing is permuted; config.json is
 * families/hf_config.h. */
#ifndef LBWORKER_HF_H
#define LBWORKER_HF_H

#include "common/base/err.h"
#include "worker/lbworker/families/hf_config.h"
#include "worker/lbworker/model/model.h"
#include "worker/lbworker/base/safetensors.h"

/* -1 unless weights of the shape that `path` says compute the same in a model of that one. Sizes
 * show in the tensors; this is what does not. */
int hf_check_same(const struct model_shape *have, const struct model_shape *want, const char *path,
		  struct err *err);

/* The same of folder/config.json, with the u-muP of that shape. */
int hf_check_config(const struct model_shape *want, const char *folder, struct err *err);

/* The weights of a folder, of a model of that shape; `file` of it holds all of them, NULL: its
 * usual one, or those of its index. */
struct hf_weights;
struct hf_weights *hf_weights_open(const char *folder, const char *file,
				   const struct model_shape *shape, struct err *err);
void hf_weights_close(struct hf_weights *weights); /* NULL is fine */
/* The tensor of that name and shape (columns 0: a vector), of any floating type; NULL with err. */
const struct st_tensor *hf_weights_find(const struct hf_weights *weights,
					const struct model_tensor *tensor, struct err *err);

/* Fills the weights of a model, whose shape must be that of folder/config.json; file: as above. */
int hf_load(struct model *model, const char *folder, const char *file, struct err *err);

#endif
