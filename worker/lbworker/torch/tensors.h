/* SPDX-License-Identifier: MIT */
/* tensors.h - named tensors, whether one file of torch.save holds them, several hold parts of each
 * (Meta's consolidated.00.pth, consolidated.01.pth, ...), several hold some of them and an index
 * says so (transformers' pytorch_model-00001-of-00002.bin, ...), or a folder of
 * torch.distributed.checkpoint. */
#ifndef LBWORKER_TENSORS_H
#define LBWORKER_TENSORS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/err.h"

/* Names are found also where all of them begin with "model.". */
struct tensors;
/* `file` of a folder, or those that its index lists; ".metadata" is that of a checkpoint. NULL with
 * err. */
struct tensors *tensors_open(const char *folder, const char *file, struct err *err);
#define TENSORS_INDEX ".index.json" /* behind the file's name */
/* Finds, by the name of one tensor of files, what others have put in front of all names ("module.",
 * "state_dict.", ...), or that they left the first part of names out. -1 with err where there is no
 * such tensor, or several that could be meant. */
int tensors_find_prefix(struct tensors *tensors, const char *name, struct err *err);
void tensors_close(struct tensors *tensors); /* NULL is fine */
/* Rows of the tensor of that name; 0: there is none. columns: how many it has, which tells whether
 * its parts lie side by side or below each other; 0: they are not asked. */
size_t tensors_rows(const struct tensors *tensors, const char *name, size_t columns);
/* Of files: whether both are there and hold the same bytes. */
bool tensors_same(const struct tensors *tensors, const char *a, const char *b);
/* The one that tensors_row reads from then on; columns 0: a vector. -1 with err when it is not
 * there in that shape. */
int tensors_select(struct tensors *tensors, const char *name, size_t rows, size_t columns,
		   struct err *err);
/* A tensor that is one number, in a checkpoint. */
int tensors_number(const struct tensors *tensors, const char *name, float *out, struct err *err);
/* Row `row` (a vector has one), as fp32. */
void tensors_row(const struct tensors *tensors, size_t row, float *to);

#endif
