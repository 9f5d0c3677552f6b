/* SPDX-License-Identifier: MIT */
/* dcp.h - a checkpoint of torch.distributed.checkpoint, as torchtitan writes it: a folder with
 * .metadata, a pickle that says which piece of which tensor lies where, and files in which each
 * piece is an archive of torch.save. */
#ifndef LBWORKER_DCP_H
#define LBWORKER_DCP_H

#include <stddef.h>

#include "common/base/err.h"
#include "common/base/mem.h"
#include "worker/lbworker/base/safetensors.h"

struct dcp;
/* NULL with err. */
struct dcp *dcp_open(const char *folder, struct err *err);
void dcp_close(struct dcp *dcp); /* NULL is fine */

/* Rows of the tensor of that name; 0: there is none. */
size_t dcp_rows(const struct dcp *dcp, const char *name);
/* The one that dcp_row reads from then on; of rows, of columns (0: a vector). -1 with err when it
 * is not there in that shape, or not all of it. */
int dcp_select(struct dcp *dcp, const char *name, size_t rows, size_t columns, struct err *err);
/* A tensor that is one number. */
int dcp_number(struct dcp *dcp, const char *name, float *out, struct err *err);
/* Row `row` (a vector has one), as fp32. */
void dcp_row(const struct dcp *dcp, size_t row, float *to);

/* The same as a new checkpoint of one file, in this order; the data row by row as torch_file.h has
 * it. A name "optimizer.x", "train_state.x" or "lr_scheduler.x" is that of a member of those. */
struct dcp_writer;
struct dcp_writer *dcp_begin(const char *folder, const struct st_tensor *list, size_t count,
			     struct err *err);
int dcp_append(struct dcp_writer *writer, const void *data, size_t bytes, struct err *err);
/* Behind all tensors: a value that is none, as the opcodes that make it. */
int dcp_put_value(struct dcp_writer *writer, const char *name, const struct buf *opcodes,
		  struct err *err);
int dcp_end(struct dcp_writer *writer, struct err *err); /* NULL is fine */

#endif
