/* SPDX-License-Identifier: MIT */
/* torch_file.c - reading: the archive's entries, what its pickle says of tensors, and where each
 * lies. */
#include "worker/lbworker/torch/torch_file.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/files.h"
#include "common/base/mem.h"
#include "common/checkpoint/zip_check.h"

/* MAX_VALUES: a dictionary may stand in others any number of times, and those again. */
enum { MAX_DEPTH = 16, MAX_NAME = 256, MAX_VALUES = 1 << 22 };

struct stored {
	char *name; /* "data/0": behind the archive's, which is the first word of all names */
	uint64_t at, bytes;
};

struct torch_file {
	char *path;
	char *map;
	size_t bytes;
	uint64_t end;    /* of the archive; the last one's is that of the file */
	uint64_t copied; /* bytes that copies of tensors take, at most those of the file */
	struct stored *entry;
	size_t entries;
	struct pickle *pickle;
	struct st_tensor *tensor;
	char **name; /* of each */
	void **copy; /* of its data; NULL: it lies well */
	size_t tensors;
	size_t values; /* that were looked at */
};

static const struct storage_kind {
	const char *name;
	enum st_type type;
	size_t bytes;
} storage_kinds[] = {
	{ "torch.FloatStorage", ST_F32, 4 },
	{ "torch.BFloat16Storage", ST_BF16, 2 },
	{ "torch.HalfStorage", ST_F16, 2 },
	{ "torch.DoubleStorage", ST_F32, 8 }, /* narrowed as it is read */
};

static int bad(const struct torch_file *f, const char *name, const char *why, struct err *err)
{
	return err_set(err, ERR_USAGE, "%s: %.80s %s", f->path, name, why);
}

/* --- the archive ---------------------------------------------------------------------------- */

static int note_entry(const struct zip_entry *e, void *arg)
{
	struct torch_file *f = arg;
	const char *slash = strchr(e->name, '/');

	/* torch.save never packs; it will be missed where it is needed */
	if (!e->is_stored || !slash)
		return 0;
	if ((f->entries & (f->entries - 1)) == 0)
		f->entry = xrealloc(f->entry,
				    (f->entries ? 2 * f->entries : 1) * sizeof(*f->entry));
	f->entry[f->entries++] = (struct stored){ xstrdup(slash + 1), e->at, e->bytes };
	return 0;
}

static int by_name(const void *x, const void *y)
{
	return strcmp(((const struct stored *)x)->name, ((const struct stored *)y)->name);
}

static int by_key(const void *name, const void *entry)
{
	return strcmp(name, ((const struct stored *)entry)->name);
}

static const struct stored *entry_named(const struct torch_file *f, const char *name)
{
	return f->entries ? bsearch(name, f->entry, f->entries, sizeof(*f->entry), by_key) : NULL;
}

/* A pickle begins with its version's opcode, an archive does not. */
static bool is_bare_pickle(const struct torch_file *f)
{
	return f->bytes > 0 && *(const unsigned char *)f->map == 0x80;
}

static int read_archive(struct torch_file *f, struct err *err)
{
	if (is_bare_pickle(f))
		return err_set(err, ERR_USAGE,
			       "%s: is of torch.save before PyTorch 1.6, which is not read: load "
			       "and save it once more there, or as safetensors",
			       f->path);
	int fd = open(f->path, O_RDONLY | O_CLOEXEC);
	int rc = fd < 0 ? err_errno(err, "%s", f->path)
			: zip_walk(fd, (int64_t)f->end, note_entry, f, err);

	if (fd >= 0)
		close(fd);
	if (rc && err && fd >= 0)
		err->code = ERR_USAGE; /* it is the file that is wrong */
	if (rc)
		return err_wrap(err, "%s", f->path);
	if (f->entries > 0)
		qsort(f->entry, f->entries, sizeof(*f->entry), by_name);
	const struct stored *pickle = entry_named(f, "data.pkl");
	const struct stored *order = entry_named(f, "byteorder"); /* which older files lack */
	if (!pickle)
		return bad(f, "data.pkl",
			   "is not in it: it is no file of torch.save, or one of "
			   "before 2020",
			   err);
	if (order && order->bytes == 3 && memcmp(f->map + order->at, "big", 3) == 0)
		return bad(f, "byteorder", "is big, must be little", err);
	f->pickle = pickle_read(f->map + pickle->at, (size_t)pickle->bytes, err);
	return f->pickle ? 0 : err_wrap(err, "%s", f->path);
}

/* --- tensors -------------------------------------------------------------------------------- */

static bool sizes_of(const struct pickle_value *list, uint64_t out[ST_MAX_DIMENSIONS])
{
	for (size_t i = 0; i < list->count; i++) {
		if (list->item[i]->kind != PICKLE_INT || list->item[i]->integer < 0)
			return false;
		out[i] = (uint64_t)list->item[i]->integer;
	}
	return true;
}

static bool is_empty(const struct st_tensor *t)
{
	for (int i = 0; i < t->dimensions; i++)
		if (t->shape[i] == 0)
			return true;
	return false;
}

/* Rows behind each other; *count: all elements. */
static bool is_dense(const struct st_tensor *t, const uint64_t *stride, uint64_t *count)
{
	*count = 1;
	for (int i = t->dimensions; i-- > 0;) {
		if (t->shape[i] != 1 && stride[i] != *count)
			return false;
		if (*count > UINT64_MAX / 8 / t->shape[i])
			return false;
		*count *= t->shape[i];
	}
	return true;
}

/* The bytes of a storage: ('storage', torch.FloatStorage, '0', 'cpu', 24). */
static const struct stored *storage_of(const struct torch_file *f, const struct pickle_value *v,
				       const struct storage_kind **kind)
{
	const struct pickle_value *id = v->kind == PICKLE_OUTSIDE ? v->item[0] : NULL;

	*kind = NULL;
	if (!id || id->kind != PICKLE_LIST || id->count < 3 || id->item[2]->kind != PICKLE_TEXT)
		return NULL;
	for (size_t i = 0; i < sizeof(storage_kinds) / sizeof(storage_kinds[0]); i++)
		if (pickle_is(id->item[1], storage_kinds[i].name))
			*kind = &storage_kinds[i];
	char *name = xasprintf("data/%s", id->item[2]->text);
	const struct stored *found = entry_named(f, name);
	free(name);
	return found;
}

static float *narrowed(const char *doubles, uint64_t count)
{
	float *to = xmalloc(count * sizeof(*to));
	double wide;

	for (uint64_t i = 0; i < count; i++) {
		memcpy(&wide, doubles + i * sizeof(wide), sizeof(wide));
		to[i] = (float)wide;
	}
	return to;
}

/* _rebuild_tensor_v2(storage, offset, size, stride, …) */
static int add_tensor(struct torch_file *f, const char *name, const struct pickle_value *inputs,
		      struct err *err)
{
	uint64_t stride[ST_MAX_DIMENSIONS] = { 0 }, count;
	const struct storage_kind *kind;
	struct st_tensor t = { 0 };

	if (inputs->kind != PICKLE_LIST || inputs->count < 4 ||
	    inputs->item[1]->kind != PICKLE_INT || inputs->item[2]->kind != PICKLE_LIST ||
	    inputs->item[3]->kind != PICKLE_LIST ||
	    inputs->item[2]->count != inputs->item[3]->count)
		return bad(f, name, "is no tensor as PyTorch writes them", err);
	const struct stored *data = storage_of(f, inputs->item[0], &kind);
	if (!kind || inputs->item[2]->count > ST_MAX_DIMENSIONS)
		return 0; /* of another type: nothing of a model's, as is an empty one */
	t.dimensions = (int)inputs->item[2]->count;
	t.type = kind->type;
	if (!sizes_of(inputs->item[2], t.shape) || !sizes_of(inputs->item[3], stride))
		return bad(f, name, "is no tensor as PyTorch writes them", err);
	if (is_empty(&t))
		return 0;
	if (!is_dense(&t, stride, &count))
		return bad(f, name, "is not stored row by row", err);
	int64_t offset = inputs->item[1]->integer;
	t.bytes = count * kind->bytes;
	if (!data || offset < 0 || (uint64_t)offset > data->bytes / kind->bytes ||
	    t.bytes > data->bytes - (uint64_t)offset * kind->bytes)
		return bad(f, name, "is longer than what is stored of it", err);
	t.data = f->map + data->at + (uint64_t)offset * kind->bytes;
	if ((f->tensors & (f->tensors - 1)) == 0) { /* room doubles */
		size_t room = f->tensors ? 2 * f->tensors : 1;
		f->tensor = xrealloc(f->tensor, room * sizeof(*f->tensor));
		f->name = xrealloc(f->name, room * sizeof(char *));
		f->copy = xrealloc(f->copy, room * sizeof(void *));
	}
	f->copy[f->tensors] = NULL;
	bool is_wide = kind->bytes == sizeof(double);
	/* behind other archives in its file */
	if (is_wide || (uintptr_t)t.data % kind->bytes != 0) {
		if (is_wide)
			t.bytes = count * sizeof(float);
		/* of fp64 two tensors may share what is stored: a head, and its embedding */
		if (t.bytes > f->bytes - f->copied)
			return bad(f, name, "lies at an odd place", err);
		f->copied += t.bytes;
		f->copy[f->tensors] = is_wide ? (void *)narrowed(t.data, count)
					      : memcpy(xmalloc(t.bytes), t.data, t.bytes);
		t.data = f->copy[f->tensors];
	}
	t.name = f->name[f->tensors] = xstrdup(name);
	f->tensor[f->tensors++] = t;
	return 0;
}

static int add_value(struct torch_file *f, const char *name, const struct pickle_value *v,
		     int depth, struct err *err);

static int add_members(struct torch_file *f, const char *name, const struct pickle_value *dict,
		       int depth, struct err *err)
{
	char below[MAX_NAME];
	int rc = 0;

	for (size_t i = 0; i + 1 < dict->count && rc == 0; i += 2) {
		const struct pickle_value *key = dict->item[i];
		if (key->kind != PICKLE_TEXT)
			continue;
		int len = snprintf(below, sizeof(below), "%s%s%s", name, name[0] ? "." : "",
				   key->text);
		if (len < 0 || (size_t)len >= sizeof(below))
			return bad(f, below, "… is too long a name", err);
		rc = add_value(f, below, dict->item[i + 1], depth, err);
	}
	return rc;
}

static int add_value(struct torch_file *f, const char *name, const struct pickle_value *v,
		     int depth, struct err *err)
{
	const struct pickle_value *dict = pickle_dict(v);

	if (f->values++ == MAX_VALUES)
		return bad(f, name, "lies within more dictionaries than a model has", err);
	/* A parameter is made of a tensor. */
	if (pickle_is(v, "torch._utils._rebuild_parameter") && v->kind == PICKLE_MADE &&
	    v->item[1]->count > 0)
		v = v->item[1]->item[0];
	if (v->kind == PICKLE_MADE && pickle_is(v, "torch._utils._rebuild_tensor_v2"))
		return add_tensor(f, name, v->item[1], err);
	if (!dict)
		return 0;
	if (depth == MAX_DEPTH)
		return bad(f, name, "lies too deep", err);
	return add_members(f, name, dict, depth + 1, err);
}

struct torch_file *torch_file_open_until(const char *path, uint64_t end, struct err *err)
{
	struct torch_file *f = xcalloc(1, sizeof(*f));

	f->path = xstrdup(path);
	f->map = file_map(path, &f->bytes, err);
	f->end = end < f->bytes ? end : f->bytes;
	if (f->map && read_archive(f, err) == 0 &&
	    add_value(f, "", pickle_root(f->pickle), 0, err) == 0)
		return f;
	torch_file_close(f);
	return NULL;
}

struct torch_file *torch_file_open(const char *path, struct err *err)
{
	return torch_file_open_until(path, UINT64_MAX, err);
}

const char *torch_file_path(const struct torch_file *f)
{
	return f->path;
}

void torch_file_close(struct torch_file *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->entries; i++)
		free(f->entry[i].name);
	for (size_t i = 0; i < f->tensors; i++) {
		free(f->name[i]);
		free(f->copy[i]);
	}
	if (f->map)
		munmap(f->map, f->bytes);
	pickle_free(f->pickle);
	free(f->entry);
	free(f->tensor);
	free(f->name);
	free(f->copy);
	free(f->path);
	free(f);
}

size_t torch_file_count(const struct torch_file *f)
{
	return f->tensors;
}

const struct st_tensor *torch_file_at(const struct torch_file *f, size_t index)
{
	return &f->tensor[index];
}

const struct st_tensor *torch_file_named(const struct torch_file *f, const char *name)
{
	for (size_t i = 0; i < f->tensors; i++)
		if (strcmp(f->tensor[i].name, name) == 0)
			return &f->tensor[i];
	return NULL;
}
