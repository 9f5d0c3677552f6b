/* SPDX-License-Identifier: MIT */
/* dcp.c - reading: pieces of a tensor by name, and rows out of them. */
#include "worker/lbworker/torch/dcp.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/files.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "worker/lbworker/torch/pickle.h"
#include "worker/lbworker/torch/torch_file.h"

enum { MAX_METADATA_BYTES = 1 << 30 };

struct chunk {
	struct torch_file *file;
	const struct st_tensor *tensor; /* of the file */
	size_t row, column;             /* where it begins in the whole */
	size_t rows, columns;
};

struct dcp {
	char *folder;
	struct pickle *metadata;
	const struct pickle_value *tensors, *storage;
	struct chunk *chunk; /* of the tensor that was selected */
	size_t chunks;
};

/* What Python would set in an object: its state. */
static const struct pickle_value *state_of(const struct pickle_value *v)
{
	return v && v->kind == PICKLE_MADE && v->count > 2 ? v->item[2] : NULL;
}

static const struct pickle_value *field(const struct pickle_value *object, const char *name)
{
	return pickle_member(state_of(object), name);
}

/* torch.Size((rows, columns)), or as long as it is; false: it has more sides. */
static bool size_of(const struct pickle_value *v, size_t out[2])
{
	if (!pickle_is(v, "torch.Size") || v->kind != PICKLE_MADE || v->item[1]->count != 1)
		return false;
	v = v->item[1]->item[0];
	out[0] = out[1] = 0;
	for (size_t i = 0; i < v->count; i++)
		if (i == 2 || v->item[i]->kind != PICKLE_INT || v->item[i]->integer < 0)
			return false;
		else
			out[i] = (size_t)v->item[i]->integer;
	return v->kind == PICKLE_LIST;
}

struct dcp *dcp_open(const char *folder, struct err *err)
{
	struct dcp *d = xcalloc(1, sizeof(*d));
	char *path = path_join("%s/.metadata", folder);
	size_t bytes;
	char *text = file_read(path, MAX_METADATA_BYTES, &bytes, err);

	d->folder = xstrdup(folder);
	d->metadata = text ? pickle_read(text, bytes, err) : NULL;
	if (text && !d->metadata)
		err_wrap(err, "%s", path);
	const struct pickle_value *root = d->metadata ? pickle_root(d->metadata) : NULL;
	d->tensors = pickle_dict(field(root, "state_dict_metadata"));
	d->storage = pickle_dict(field(root, "storage_data"));
	if (root && (!d->tensors || !d->storage))
		err_set(err, ERR_USAGE, "%s: is no metadata of torch.distributed.checkpoint", path);
	free(text);
	free(path);
	if (d->tensors && d->storage)
		return d;
	dcp_close(d);
	return NULL;
}

static void let_go(struct dcp *d)
{
	for (size_t i = 0; i < d->chunks; i++)
		torch_file_close(d->chunk[i].file);
	free(d->chunk);
	d->chunk = NULL;
	d->chunks = 0;
}

void dcp_close(struct dcp *d)
{
	if (!d)
		return;
	let_go(d);
	pickle_free(d->metadata);
	free(d->folder);
	free(d);
}

size_t dcp_rows(const struct dcp *d, const char *name)
{
	size_t size[2];

	return size_of(field(pickle_member(d->tensors, name), "size"), size) ? size[0] : 0;
}

static int bad(const struct dcp *d, const char *name, const char *why, struct err *err)
{
	return err_set(err, ERR_USAGE, "%s/.metadata: %.80s %s", d->folder, name, why);
}

/* One piece: MetadataIndex(fqn, offset, …) lies at _StorageInfo(relative_path, offset, length). */
static int open_chunk(struct dcp *d, const char *name, const struct pickle_value *index,
		      const struct pickle_value *info, struct err *err)
{
	const struct pickle_value *file = field(info, "relative_path"), *at = field(info, "offset"),
				  *length = field(info, "length");
	struct chunk c = { 0 };
	size_t begin[2];

	if (!file || file->kind != PICKLE_TEXT || file->text[0] == '.' || strchr(file->text, '/') ||
	    !at || at->kind != PICKLE_INT || !length || length->kind != PICKLE_INT ||
	    at->integer < 0 || length->integer < 0 || at->integer > INT64_MAX / 2 ||
	    length->integer > INT64_MAX / 2 || !size_of(field(index, "offset"), begin))
		return bad(d, name, "has a piece without a place", err);
	char *path = path_join("%s/%s", d->folder, file->text);
	c.file = torch_file_open_until(path, (uint64_t)(at->integer + length->integer), err);
	free(path);
	if (!c.file)
		return -1;
	c.tensor = torch_file_named(c.file, "");
	c.row = begin[0];
	c.column = begin[1];
	d->chunk = xrealloc(d->chunk, (d->chunks + 1) * sizeof(*d->chunk));
	d->chunk[d->chunks++] = c;
	if (!c.tensor)
		return bad(d, name, "has a piece that is no tensor of fp32, bf16 or fp16", err);
	return 0;
}

/* Whether two ranges have something in common. */
static bool share(size_t a, size_t a_count, size_t b, size_t b_count)
{
	size_t a_end = a + a_count, b_end = b + b_count;

	return (a > b ? a : b) < (a_end < b_end ? a_end : b_end);
}

/* A vector is one row. Pieces lie within the whole, none on another, and have together as many
 * elements: so each element is in one of them. */
static int check_chunks(struct dcp *d, const char *name, size_t rows, size_t columns,
			struct err *err)
{
	size_t height = columns ? rows : 1, width = columns ? columns : rows, all = 0;

	for (size_t i = 0; i < d->chunks; i++) {
		struct chunk *c = &d->chunk[i];
		c->rows = columns ? (size_t)c->tensor->shape[0] : 1;
		c->columns = (size_t)c->tensor->shape[columns ? 1 : 0];
		if (!columns) {
			c->column = c->row;
			c->row = 0;
		}
		if (c->tensor->dimensions != (columns ? 2 : 1) || c->row > height ||
		    c->rows > height - c->row || c->column > width ||
		    c->columns > width - c->column)
			return bad(d, name, "has a piece that is not within it", err);
		for (size_t k = 0; k < i; k++)
			if (share(d->chunk[k].row, d->chunk[k].rows, c->row, c->rows) &&
			    share(d->chunk[k].column, d->chunk[k].columns, c->column, c->columns))
				return bad(d, name, "has pieces that overlap", err);
		all += c->rows * c->columns;
	}
	return all == height * width ? 0 : bad(d, name, "is not all there", err);
}

/* Where rows are fewer than ranks, or do not come out even, some rank has none: its piece begins
 * where the tensor ends. */
static bool is_empty(const struct pickle_value *index, const size_t size[2])
{
	size_t begin[2];

	return size_of(field(index, "offset"), begin) &&
	       ((size[0] > 0 && begin[0] >= size[0]) || (size[1] > 0 && begin[1] >= size[1]));
}

/* size: of the whole. */
static int open_chunks(struct dcp *d, const char *name, const size_t size[2], struct err *err)
{
	let_go(d);
	for (size_t i = 0; i + 1 < d->storage->count; i += 2) {
		const struct pickle_value *index = d->storage->item[i];
		const struct pickle_value *of = field(index, "fqn");
		if (of && of->kind == PICKLE_TEXT && strcmp(of->text, name) == 0 &&
		    !is_empty(index, size) &&
		    open_chunk(d, name, index, d->storage->item[i + 1], err))
			return -1;
	}
	return 0;
}

int dcp_number(struct dcp *d, const char *name, float *out, struct err *err)
{
	const size_t size[2] = { 0 };

	if (open_chunks(d, name, size, err))
		return -1;
	if (d->chunks != 1 || d->chunk[0].tensor->dimensions != 0)
		return bad(d, name, "is no number that is there", err);
	st_widen(out, d->chunk[0].tensor, 0, 1);
	return 0;
}

int dcp_select(struct dcp *d, const char *name, size_t rows, size_t columns, struct err *err)
{
	const struct pickle_value *whole = field(pickle_member(d->tensors, name), "size");
	size_t size[2];

	if (!size_of(whole, size))
		return err_set(err, ERR_USAGE, "%s/.metadata: there is no tensor %s", d->folder,
			       name);
	if (size[0] != rows || size[1] != columns)
		return err_set(err, ERR_USAGE,
			       "%s/.metadata: %s has %zux%zu elements, the model needs %zux%zu",
			       d->folder, name, size[0], size[1], rows, columns);
	if (open_chunks(d, name, size, err))
		return -1;
	return check_chunks(d, name, rows, columns, err);
}

void dcp_row(const struct dcp *d, size_t row, float *to)
{
	for (size_t i = 0; i < d->chunks; i++) {
		const struct chunk *c = &d->chunk[i];
		if (row >= c->row && row - c->row < c->rows)
			st_widen(to + c->column, c->tensor, (row - c->row) * c->columns,
				 c->columns);
	}
}
