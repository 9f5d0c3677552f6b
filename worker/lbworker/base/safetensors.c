/* SPDX-License-Identifier: MIT */
/* safetensors.c - the header is jansson's work; what the format forbids is refused here. */
#include "worker/lbworker/base/safetensors.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "worker/lbworker/base/narrow.h"

enum { PREFIX_BYTES = 8, MAX_HEADER_BYTES = 100 * 1000 * 1000, DATA_ALIGN = 8 };

static const struct {
	const char *name;
	uint64_t bytes;
} types[ST_TYPE_COUNT] = {
	[ST_F32] = { "F32", 4 },
	[ST_I32] = { "I32", 4 },
	[ST_BF16] = { "BF16", 2 },
	[ST_F16] = { "F16", 2 },
	[ST_F64] = { "F64", 8 },
	[ST_U8] = { "U8", 1 },
	[ST_OTHER] = { "another type", 1 },
};

struct st_file {
	char *path;
	void *map;
	uint64_t bytes;
	json_t *header;
	struct st_tensor *tensors;
	const struct st_tensor **by_name; /* each of them, in the order of their names */
	size_t count;
};

/* Elements times element size; false when it does not fit. */
static bool tensor_bytes(const struct st_tensor *t, uint64_t *out)
{
	uint64_t bytes = types[t->type].bytes;

	for (int i = 0; i < t->dimensions; i++)
		if (__builtin_mul_overflow(bytes, t->shape[i], &bytes))
			return false;
	*out = bytes;
	return true;
}

/* --- writing -------------------------------------------------------------------------------- */

static json_t *describe(const struct st_tensor *t, uint64_t begin, uint64_t end)
{
	json_t *shape = json_array();

	for (int i = 0; i < t->dimensions; i++)
		json_array_append_new(shape, json_integer((json_int_t)t->shape[i]));
	return json_pack("{s:s, s:o, s:[I,I]}", "dtype", types[t->type].name, "shape", shape,
			 "data_offsets", (json_int_t)begin, (json_int_t)end);
}

/* The header's text, padded with spaces so that the data starts aligned. */
static char *make_header(const struct st_tensor *tensors, size_t count, const char *const *metadata,
			 size_t *out_bytes)
{
	json_t *header = json_object();
	uint64_t at = 0;

	if (metadata) {
		json_t *pairs = json_object();
		for (; metadata[0]; metadata += 2)
			json_object_set_new(pairs, metadata[0], json_string(metadata[1]));
		json_object_set_new(header, "__metadata__", pairs);
	}
	for (size_t i = 0; i < count; i++) {
		uint64_t bytes = 0;
		(void)tensor_bytes(&tensors[i], &bytes);
		json_object_set_new(header, tensors[i].name, describe(&tensors[i], at, at + bytes));
		at += bytes;
	}
	char *text = js_line(header);
	size_t length = strlen(text);
	size_t padded = (length + DATA_ALIGN - 1) / DATA_ALIGN * DATA_ALIGN;
	text = xrealloc(text, padded + 1);
	memset(text + length, ' ', padded - length);
	json_decref(header);
	*out_bytes = padded;
	return text;
}

static void put_u64(unsigned char to[PREFIX_BYTES], uint64_t value)
{
	for (int i = 0; i < PREFIX_BYTES; i++)
		to[i] = (unsigned char)(value >> (8 * i));
}

struct st_writer {
	FILE *out;
	char *path;
};

struct st_writer *st_begin(const char *path, const struct st_tensor *tensors, size_t count,
			   const char *const *metadata, struct err *err)
{
	unsigned char prefix[PREFIX_BYTES];
	size_t header_bytes;
	char *header = make_header(tensors, count, metadata, &header_bytes);
	struct st_writer *w = xcalloc(1, sizeof(*w));

	w->path = xstrdup(path);
	w->out = fopen(path, "wbe");
	put_u64(prefix, header_bytes);
	if (!w->out)
		err_errno(err, "%s", path);
	if (!w->out || st_append(w, prefix, sizeof(prefix), err) ||
	    st_append(w, header, header_bytes, err)) {
		(void)st_end(w, NULL);
		w = NULL;
	}
	free(header);
	return w;
}

int st_append(struct st_writer *w, const void *data, size_t bytes, struct err *err)
{
	if (bytes == 0 || fwrite(data, bytes, 1, w->out) == 1)
		return 0;
	return err_errno(err, "%s", w->path);
}

int st_end(struct st_writer *w, struct err *err)
{
	int rc = 0;

	if (!w)
		return 0;
	if (w->out && fclose(w->out) != 0)
		rc = err_errno(err, "%s", w->path);
	free(w->path);
	free(w);
	return rc;
}

int st_write(const char *path, const struct st_tensor *tensors, size_t count,
	     const char *const *metadata, struct err *err)
{
	struct st_writer *w = st_begin(path, tensors, count, metadata, err);
	int rc = w ? 0 : -1;

	for (size_t i = 0; rc == 0 && i < count; i++) {
		uint64_t bytes = 0;
		(void)tensor_bytes(&tensors[i], &bytes);
		rc = st_append(w, tensors[i].data, bytes, err);
	}
	return st_end(w, err) ? -1 : rc;
}

/* --- reading -------------------------------------------------------------------------------- */

static uint64_t get_u64(const unsigned char *from)
{
	uint64_t value = 0;

	for (int i = PREFIX_BYTES - 1; i >= 0; i--)
		value = value << 8 | from[i];
	return value;
}

static void read_type(const json_t *entry, struct st_tensor *t)
{
	t->dtype = js_str(entry, "dtype", "");
	t->type = ST_OTHER;
	for (int i = 0; i < ST_OTHER; i++)
		if (strcmp(types[i].name, t->dtype) == 0)
			t->type = (enum st_type)i;
}

static int read_shape(const json_t *entry, struct st_tensor *t, const char *path, struct err *err)
{
	const json_t *shape = json_object_get(entry, "shape");
	size_t dimensions = json_array_size(shape);

	if (!json_is_array(shape))
		return err_set(err, ERR_USAGE, "%s: %s: shape must be a list of sizes", path,
			       t->name);
	if (dimensions > ST_MAX_DIMENSIONS) {
		t->type = ST_OTHER;
		dimensions = ST_MAX_DIMENSIONS;
	}
	t->dimensions = (int)dimensions;
	for (size_t i = 0; i < dimensions; i++) {
		const json_t *size = json_array_get(shape, i);
		if (!json_is_integer(size) || json_integer_value(size) < 0)
			return err_set(err, ERR_USAGE,
				       "%s: %s: shape holds something that is no size", path,
				       t->name);
		t->shape[i] = (uint64_t)json_integer_value(size);
	}
	return 0;
}

static int read_entry(struct st_file *f, const json_t *entry, struct st_tensor *t,
		      const unsigned char *data, uint64_t data_bytes, struct err *err)
{
	const json_t *offsets = json_object_get(entry, "data_offsets");
	const json_t *first = json_array_get(offsets, 0), *last = json_array_get(offsets, 1);

	if (!json_is_object(entry) || json_array_size(offsets) != 2 || !json_is_integer(first) ||
	    !json_is_integer(last))
		return err_set(err, ERR_USAGE, "%s: %s: dtype, shape or data_offsets is missing",
			       f->path, t->name);
	read_type(entry, t);
	if (read_shape(entry, t, f->path, err))
		return -1;
	json_int_t begin = json_integer_value(first), end = json_integer_value(last);
	if (begin < 0 || end < begin || (uint64_t)end > data_bytes)
		return err_set(err, ERR_USAGE,
			       "%s: %s: data_offsets [%" PRId64 ", %" PRId64
			       "] lie outside the data (%" PRIu64 " bytes)",
			       f->path, t->name, (int64_t)begin, (int64_t)end, data_bytes);
	t->data = data + begin;
	if (t->type == ST_OTHER) {
		t->bytes = (uint64_t)(end - begin);
		return 0;
	}
	if (!tensor_bytes(t, &t->bytes) || t->bytes != (uint64_t)(end - begin))
		return err_set(err, ERR_USAGE, "%s: %s: shape and data_offsets disagree", f->path,
			       t->name);
	if (t->type != ST_F64 && (uint64_t)begin % types[t->type].bytes != 0)
		return err_set(err, ERR_USAGE, "%s: %s: data is not aligned to its type", f->path,
			       t->name);
	return 0;
}

/* One without elements lies in front of the one that begins there. */
static int by_address(const void *a, const void *b)
{
	const struct st_tensor *x = a, *y = b;
	const char *p = x->data, *q = y->data;

	if (p != q)
		return p < q ? -1 : 1;
	return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* The format wants the tensors to cover the data once, without gaps. */
static int check_cover(struct st_file *f, const unsigned char *data, uint64_t data_bytes,
		       struct err *err)
{
	uint64_t at = 0;

	qsort(f->tensors, f->count, sizeof(*f->tensors), by_address);
	for (size_t i = 0; i < f->count; i++) {
		const struct st_tensor *t = &f->tensors[i];
		if ((const unsigned char *)t->data != data + at)
			return err_set(err, ERR_USAGE,
				       "%s: %s: its data overlaps, or follows a gap", f->path,
				       t->name);
		at += t->bytes;
	}
	if (at != data_bytes)
		return err_set(err, ERR_USAGE, "%s: %" PRIu64 " bytes of data belong to no tensor",
			       f->path, data_bytes - at);
	return 0;
}

static int by_name(const void *a, const void *b)
{
	const struct st_tensor *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

/* A mixture of experts has tens of thousands, and each is looked for once for each layer. */
static void sort_names(struct st_file *f)
{
	f->by_name = xcalloc(f->count + 1, sizeof(struct st_tensor *));
	for (size_t i = 0; i < f->count; i++)
		f->by_name[i] = &f->tensors[i];
	qsort(f->by_name, f->count, sizeof(struct st_tensor *), by_name);
}

static int read_header(struct st_file *f, struct err *err)
{
	const unsigned char *bytes = f->map;
	uint64_t length = f->bytes < PREFIX_BYTES ? 0 : get_u64(bytes);
	const char *name;
	json_t *entry;

	if (length == 0 || length > MAX_HEADER_BYTES || length > f->bytes - PREFIX_BYTES)
		return err_set(err, ERR_USAGE, "%s: not a safetensors file, or cut short", f->path);
	f->header = js_parse((const char *)bytes + PREFIX_BYTES, (size_t)length, err);
	if (!f->header)
		return err_wrap(err, "%s: header", f->path);
	if (!json_is_object(f->header))
		return err_set(err, ERR_USAGE, "%s: the header is no JSON object", f->path);
	const unsigned char *data = bytes + PREFIX_BYTES + length;
	uint64_t data_bytes = f->bytes - PREFIX_BYTES - length;
	f->tensors = xcalloc(json_object_size(f->header) + 1, sizeof(*f->tensors));
	json_object_foreach(f->header, name, entry) {
		if (strcmp(name, "__metadata__") == 0)
			continue;
		struct st_tensor *t = &f->tensors[f->count++];
		t->name = name;
		if (read_entry(f, entry, t, data, data_bytes, err))
			return -1;
	}
	if (check_cover(f, data, data_bytes, err))
		return -1;
	sort_names(f);
	return 0;
}

static int map_file(struct st_file *f, struct err *err)
{
	size_t bytes;

	f->map = file_map(f->path, &bytes, err);
	f->bytes = bytes;
	if (!f->map)
		return -1;
	if (bytes < PREFIX_BYTES)
		return err_set(err, ERR_USAGE, "%s: not a safetensors file, or cut short", f->path);
	return 0;
}

struct st_file *st_open(const char *path, struct err *err)
{
	struct st_file *f = xcalloc(1, sizeof(*f));

	f->path = xstrdup(path);
	if (map_file(f, err) || read_header(f, err)) {
		st_close(f);
		return NULL;
	}
	return f;
}

void st_close(struct st_file *f)
{
	if (!f)
		return;
	if (f->map)
		munmap(f->map, f->bytes);
	json_decref(f->header);
	free(f->tensors);
	free(f->by_name);
	free(f->path);
	free(f);
}

size_t st_count(const struct st_file *f)
{
	return f->count;
}

const struct st_tensor *st_at(const struct st_file *f, size_t index)
{
	return &f->tensors[index];
}

static void print_shape(char *to, size_t bytes, const uint64_t *shape)
{
	size_t at = 0;

	to[0] = '\0';
	for (int i = 0; i < ST_MAX_DIMENSIONS && shape[i] > 0 && at < bytes; i++)
		at += (size_t)snprintf(to + at, bytes - at, "%s%" PRIu64, i ? "x" : "", shape[i]);
}

static int by_key(const void *name, const void *tensor)
{
	return strcmp(name, (*(const struct st_tensor *const *)tensor)->name);
}

const struct st_tensor *st_named(const struct st_file *f, const char *name)
{
	const struct st_tensor *const *found = bsearch(name, f->by_name, f->count,
						       sizeof(struct st_tensor *), by_key);

	return found ? *found : NULL;
}

const struct st_tensor *st_find(const struct st_file *f, const char *name, enum st_type type,
				const uint64_t shape[ST_MAX_DIMENSIONS], struct err *err)
{
	const struct st_tensor *t = st_named(f, name);
	char have[96], want[96];

	if (!t) {
		err_set(err, ERR_USAGE, "%s: there is no tensor %s", f->path, name);
		return NULL;
	}
	if (t->type == type && type != ST_OTHER && memcmp(t->shape, shape, sizeof(t->shape)) == 0)
		return t;
	print_shape(have, sizeof(have), t->shape);
	print_shape(want, sizeof(want), shape);
	err_set(err, ERR_USAGE, "%s: %s is %s %s, the model needs %s %s", f->path, name, t->dtype,
		have, types[type].name, want);
	return NULL;
}

bool st_is_float(const struct st_tensor *t)
{
	return t->type == ST_F32 || t->type == ST_BF16 || t->type == ST_F16 || t->type == ST_F64;
}

/* From any alignment. */
static void narrow_from_f64(float *to, const char *from, size_t count)
{
	double value;

	for (size_t i = 0; i < count; i++) {
		memcpy(&value, from + i * sizeof(value), sizeof(value));
		to[i] = (float)value;
	}
}

void st_widen(float *to, const struct st_tensor *t, size_t first, size_t count)
{
	const char *from = (const char *)t->data + first * types[t->type].bytes;

	if (t->type == ST_BF16)
		narrow_from_bf16(to, from, count);
	else if (t->type == ST_F16)
		narrow_from_f16(to, from, count);
	else if (t->type == ST_F64)
		narrow_from_f64(to, from, count);
	else if (t->type == ST_U8)
		for (size_t i = 0; i < count; i++)
			to[i] = (unsigned char)from[i];
	else
		memcpy(to, from, count * sizeof(*to));
}
