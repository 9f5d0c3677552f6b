/* SPDX-License-Identifier: MIT */
/* torch_file.h - the tensors in a file of torch.save (a zip archive: data.pkl, data/0, data/1, …),
 * and such files anew. */
#ifndef LBWORKER_TORCH_FILE_H
#define LBWORKER_TORCH_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/base/mem.h"
#include "worker/lbworker/base/safetensors.h"
#include "worker/lbworker/torch/pickle.h"

struct torch_file;
/* NULL with err, which names the file: it is none, is damaged, or stores its tensors in a way that
 * is not known. Tensors that are neither fp64 (which becomes fp32), fp32, bf16 nor fp16, and
 * empty ones, are left out. */
struct torch_file *torch_file_open(const char *path, struct err *err);
/* The archive that ends where the file has so many bytes: one of several in it. */
struct torch_file *torch_file_open_until(const char *path, uint64_t end, struct err *err);
const char *torch_file_path(const struct torch_file *file);
void torch_file_close(struct torch_file *file); /* NULL is fine; tensors die with it */

/* Keys of dictionaries within dictionaries are joined by dots: model.norm.weight. A tensor that was
 * saved alone has no name: "". */
size_t torch_file_count(const struct torch_file *file);
const struct st_tensor *torch_file_at(const struct torch_file *file, size_t index);
const struct st_tensor *torch_file_named(const struct torch_file *file, const char *name);

/* A dictionary of tensors, as torch.save(dict, path) writes it: the header for all of them (their
 * data is not looked at), then the data in that order, in calls of any size. */
struct torch_writer;
struct torch_writer *torch_begin(const char *path, const struct st_tensor *tensors, size_t count,
				 struct err *err);
int torch_append(struct torch_writer *writer, const void *data, size_t bytes, struct err *err);
/* Closes; 0 when every byte was taken. NULL is fine. */
int torch_end(struct torch_writer *writer, struct err *err);
/* One tensor alone, as torch.save(tensor, file) writes it at byte `at` of a file that is there or
 * not; *bytes of data. */
struct torch_writer *torch_begin_one(const char *path, uint64_t at, const struct st_tensor *tensor,
				     uint64_t *bytes, struct err *err);
/* An object that is no tensor, whole: the opcodes that make it. *end: as below. */
int torch_write_value(const char *path, uint64_t at, const struct buf *opcodes, uint64_t *end,
		      struct err *err);
/* Closes; *end: the file's bytes up to there. */
int torch_end_at(struct torch_writer *writer, uint64_t *end, struct err *err);

#endif
