/* SPDX-License-Identifier: MIT */
/* safetensors.h - the tensor file of Hugging Face: u64 header bytes, a JSON header, raw data.
 *
 * Reading maps the file and believes nothing: sizes, offsets, overlaps, types and shapes are
 * checked before a tensor is handed out. Files of models also hold masks and counters of types, and
 * tensors of more dimensions, that no weight of ours has: they are ST_OTHER. */
#ifndef LBWORKER_SAFETENSORS_H
#define LBWORKER_SAFETENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

/* ST_OTHER: nothing that is read here; such a tensor may lie beside those that are. */
enum st_type { ST_F32, ST_I32, ST_BF16, ST_F16, ST_F64, ST_U8, ST_OTHER, ST_TYPE_COUNT };
enum { ST_MAX_DIMENSIONS = 4 };

struct st_tensor {
	const char *name;
	enum st_type type;
	const char *dtype; /* what the file that it was read from calls it */
	int dimensions;
	uint64_t shape[ST_MAX_DIMENSIONS];
	const void *data; /* little-endian, row-major */
	uint64_t bytes;   /* of data; the writer computes it */
};

/* Writes the file anew (no fsync: the manifest's publisher does that). `metadata` is
 * NULL-terminated pairs of key and value, may be NULL. */
int st_write(const char *path, const struct st_tensor *tensors, size_t count,
	     const char *const *metadata, struct err *err);

/* The same piece by piece: the header for all tensors (their data is not looked at), then the data
 * in that order, in calls of any size. st_end closes; 0 when every byte was taken. */
struct st_writer;
struct st_writer *st_begin(const char *path, const struct st_tensor *tensors, size_t count,
			   const char *const *metadata, struct err *err);
int st_append(struct st_writer *writer, const void *data, size_t bytes, struct err *err);
int st_end(struct st_writer *writer, struct err *err); /* NULL is fine */

struct st_file;
/* NULL with err (ERR_USAGE: not a sound safetensors file; ERR_NOT_FOUND, ERR_IO). */
struct st_file *st_open(const char *path, struct err *err);
void st_close(struct st_file *file); /* NULL is fine; tensors die with it */

/* The tensor of that name, type and exact shape (trailing zeros of shape[] = fewer dimensions), or
 * NULL with err saying what the file holds instead. Borrowed. */
const struct st_tensor *st_find(const struct st_file *file, const char *name, enum st_type type,
				const uint64_t shape[ST_MAX_DIMENSIONS], struct err *err);
/* The one of that name, whatever it is; NULL when there is none. Borrowed. */
const struct st_tensor *st_named(const struct st_file *file, const char *name);
size_t st_count(const struct st_file *file);
const struct st_tensor *st_at(const struct st_file *file, size_t index); /* in order of data */

bool st_is_float(const struct st_tensor *tensor);
/* `count` elements of a tensor of any floating type, from `first` on, as fp32 (those of F64 are
 * rounded to nearest). */
void st_widen(float *to, const struct st_tensor *tensor, size_t first, size_t count);

#endif
