/* SPDX-License-Identifier: MIT */
/* foreign.h - a Llama in the files of others: Meta's consolidated.00.pth with params.json, LitGPT's
 * lit_model.pth with model_config.yaml, transformers' pytorch_model.bin with config.json,
 * torchtitan's checkpoints (dcp.h).
 *
 * Their tensors are ours under other names, but for two things. Meta (and torchtitan) turn
 * neighbours (2i, 2i+1) of a query's or key's head by its position, Hugging Face i and i + C/2, so
 * rows of a head stand in another order. And LitGPT has query, key and value in one tensor. */
#ifndef LBWORKER_FOREIGN_H
#define LBWORKER_FOREIGN_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "worker/lbworker/base/safetensors.h"
#include "worker/lbworker/model/model.h"

struct foreign_layout; /* one of them */
/* "meta", "litgpt", "torch", "dcp" or "torchtitan"; NULL: there is no such. */
const struct foreign_layout *foreign_named(const char *name);
/* The one whose files lie in a folder, NULL: none's. */
const struct foreign_layout *foreign_in(const char *folder);

/* Weights in a folder, and the shape that they have; *shape is all zero, or what is known of it
 * beforehand, for a checkpoint that does not say its own. */
struct foreign;
struct foreign *foreign_open(const struct foreign_layout *layout, const char *folder,
			     struct model_shape *shape, size_t *positions, struct err *err);
void foreign_close(struct foreign *foreign); /* NULL is fine */
/* The tensor that foreign_row reads from then on; -1 with err when it is not there in its shape. */
int foreign_select(struct foreign *foreign, const struct model_tensor *tensor, struct err *err);
/* The same for a moment of it, "exp_avg" or "exp_avg_sq", in a checkpoint of torchtitan. */
int foreign_select_moment(struct foreign *foreign, const struct model_tensor *tensor,
			  const char *moment, struct err *err);
/* Steps that the optimizer of a checkpoint has done; -1 with err where it does not say. */
int foreign_steps(const struct foreign *foreign, int64_t *steps, struct err *err);
/* Row `row` (a vector has one), as fp32. */
void foreign_row(const struct foreign *foreign, size_t row, float *to);

/* --- the way back --- */

enum { FOREIGN_PARTS_MAX = 64 };
/* Whether files of that layout have room for moments. */
bool foreign_has_moments(const struct foreign_layout *layout);
/* What a file shall hold: with AdamW's moments and step (checkpoints only), or one of several parts
 * of each matrix. */
struct foreign_want {
	enum st_type type;
	bool moments;
	size_t part, parts; /* 0 or 1: no parts */
};
/* -1 with err where a model of that shape cannot have so many. */
int foreign_check_parts(const struct foreign_layout *layout, const struct model_shape *shape,
			size_t parts, struct err *err);
/* What its file holds for a model, in the order of the model's tensors, then the head where that is
 * the embedding; then, in the same order, first moments of all, second moments, and steps: count
 * tensors with names (both owned by the caller, by free; the names lie behind the tensors). */
struct st_tensor *foreign_list(const struct foreign_layout *layout, const struct model *model,
			       const struct foreign_want *want, size_t *count);
/* Of a tensor, what is in that file: rows of theirs, and columns. A vector is a row. */
struct foreign_piece {
	size_t row, rows, column, columns;
};
struct foreign_piece foreign_piece(const struct foreign_layout *layout, const struct model *model,
				   const struct model_tensor *tensor,
				   const struct foreign_want *want);
/* Of the model's tensor: the row that stands at `row` there. */
size_t foreign_order(const struct foreign_layout *layout, const struct model *model,
		     const struct model_tensor *tensor, size_t row);
/* params.json, or model_config.yaml; -1 with err, also where it has no word for the shape. */
int foreign_write_config(const struct foreign_layout *layout, const struct model_shape *shape,
			 size_t positions, const char *dtype, const char *folder, struct err *err);

/* The file, or files: the data of that list in order, in calls of any size. */
struct foreign_writer;
struct foreign_writer *foreign_begin(const struct foreign_layout *layout, const char *folder,
				     size_t part, const struct st_tensor *list, size_t count,
				     struct err *err);
int foreign_append(struct foreign_writer *writer, const void *data, size_t bytes, struct err *err);
/* Behind all data, in a checkpoint with moments: what else torch.optim.AdamW, torchtitan's schedule
 * and its count of steps are told on loading. */
struct foreign_settings {
	double lr, beta1, beta2, eps, weight_decay;
	int64_t step, tokens;
};
int foreign_put_settings(struct foreign_writer *writer, const struct st_tensor *list, size_t count,
			 const struct foreign_settings *settings, struct err *err);
/* Closes; 0 when every byte was taken. NULL is fine. */
int foreign_end(struct foreign_writer *writer, struct err *err);

#endif
