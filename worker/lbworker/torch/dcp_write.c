/* SPDX-License-Identifier: MIT */
/* dcp_write.c - a checkpoint of torch.distributed.checkpoint of one file: archives of one tensor
 * each behind each other, then .metadata, which names the classes that PyTorch makes of it
 * (torch/distributed/checkpoint/metadata.py). */
#include "worker/lbworker/torch/dcp.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/files.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "worker/lbworker/torch/pickle_write.h"
#include "worker/lbworker/torch/torch_file.h"

enum { FILE_MODE = 0644, METADATA_MAX = 1 << 30 };

static const char DATA[] = "__0_0.distcp";
#define CLASSES "torch.distributed.checkpoint."

struct value {
	char *name;
	uint64_t begin, end;
};

struct dcp_writer {
	char *folder, *path; /* of the data */
	const struct st_tensor *list;
	size_t count, next;
	uint64_t *begin;     /* of each archive, and the end of the last */
	struct value *value; /* behind them */
	size_t values;
	uint64_t left;             /* bytes of the present tensor */
	struct torch_writer *open; /* of it */
};

static int begin_tensor(struct dcp_writer *w, struct err *err)
{
	const struct st_tensor *t = &w->list[w->next];

	w->open = torch_begin_one(w->path, w->begin[w->next], t, &w->left, err);
	return w->open ? 0 : -1;
}

static int end_tensor(struct dcp_writer *w, struct err *err)
{
	struct torch_writer *open = w->open;

	w->open = NULL;
	w->next++;
	if (torch_end_at(open, &w->begin[w->next], err))
		return -1;
	return w->next < w->count ? begin_tensor(w, err) : 0;
}

struct dcp_writer *dcp_begin(const char *folder, const struct st_tensor *list, size_t count,
			     struct err *err)
{
	struct dcp_writer *w = xcalloc(1, sizeof(*w));

	w->folder = xstrdup(folder);
	w->path = path_join("%s/%s", folder, DATA);
	w->list = list;
	w->count = count;
	w->begin = xcalloc(count + 1, sizeof(*w->begin));
	if (begin_tensor(w, err) == 0)
		return w;
	free(w->begin);
	free(w->path);
	free(w->folder);
	free(w);
	return NULL;
}

int dcp_append(struct dcp_writer *w, const void *data, size_t bytes, struct err *err)
{
	const char *at = data;

	while (bytes > 0) {
		if (!w->open)
			return err_set(err, ERR_INTERNAL, "%s: more data than tensors", w->path);
		size_t count = bytes < w->left ? bytes : (size_t)w->left;
		if (torch_append(w->open, at, count, err))
			return -1;
		at += count;
		bytes -= count;
		w->left -= count;
		if (w->left == 0 && end_tensor(w, err))
			return -1;
	}
	return 0;
}

int dcp_put_value(struct dcp_writer *w, const char *name, const struct buf *opcodes,
		  struct err *err)
{
	struct value v = { .begin = w->values ? w->value[w->values - 1].end : w->begin[w->count] };

	if (w->open)
		return err_set(err, ERR_INTERNAL, "%s: a value before all tensors", w->path);
	if (torch_write_value(w->path, v.begin, opcodes, &v.end, err))
		return -1;
	v.name = xstrdup(name);
	if ((w->values & (w->values - 1)) == 0) /* room doubles */
		w->value = xrealloc(w->value, (w->values ? 2 * w->values : 1) * sizeof(v));
	w->value[w->values++] = v;
	return 0;
}

/* --- .metadata ------------------------------------------------------------------------------ */

/* torch.Size(shape), or of zeros */
static void add_size(struct buf *b, const struct st_tensor *t, bool zeros)
{
	pickle_put(b, "ctorch\nSize\n((");
	for (int i = 0; i < t->dimensions; i++)
		pickle_put_size(b, zeros ? 0 : t->shape[i]);
	pickle_put(b, "ttR");
}

/* An object of that class, up to its state: a dictionary that is then open. */
static void begin_object(struct buf *b, const char *module, const char *name)
{
	pickle_put(b, "c");
	pickle_put(b, module);
	pickle_put(b, "\n");
	pickle_put(b, name);
	pickle_put(b, "\n)\x81}("); /* NEWOBJ */
}

static void end_object(struct buf *b)
{
	pickle_put(b, "ub"); /* SETITEMS, BUILD */
}

static void add_tensor(struct buf *b, const struct st_tensor *t)
{
	static const char *const types[ST_TYPE_COUNT] = {
		[ST_F32] = "float32", [ST_BF16] = "bfloat16", [ST_F16] = "float16"
	};
	uint64_t stride = 1;

	pickle_put_text(b, t->name);
	begin_object(b, CLASSES "metadata", "TensorStorageMetadata");
	pickle_put_text(b, "properties");
	pickle_put(b, "c" CLASSES "metadata\nTensorProperties\n)\x81(ctorch\n");
	pickle_put(b, types[t->type]);
	pickle_put(b, "\nctorch.serialization\n_get_layout\n(");
	pickle_put_text(b, "torch.strided");
	pickle_put(b, "tR\x89"
		      "c" CLASSES "metadata\n_MEM_FORMAT_ENCODING\n(");
	pickle_put_size(b, 0);
	pickle_put(b, "tR\x89(");
	for (int i = 1; i < t->dimensions; i++)
		stride *= t->shape[i];
	for (int i = 0; i < t->dimensions; i++) {
		pickle_put_size(b, stride);
		stride /= i + 1 < t->dimensions ? t->shape[i + 1] : 1;
	}
	pickle_put(b, "ttb");
	pickle_put_text(b, "size");
	add_size(b, t, false);
	pickle_put_text(b, "chunks");
	pickle_put(b, "]");
	begin_object(b, CLASSES "metadata", "ChunkStorageMetadata");
	pickle_put_text(b, "offsets");
	add_size(b, t, true);
	pickle_put_text(b, "sizes");
	add_size(b, t, false);
	end_object(b);
	pickle_put(b, "a");
	end_object(b);
}

/* Where what is called so lies; of a tensor, its only piece. */
static void add_storage(struct buf *b, const char *name, const struct st_tensor *tensor,
			uint64_t begin, uint64_t end)
{
	begin_object(b, CLASSES "metadata", "MetadataIndex");
	pickle_put_text(b, "fqn");
	pickle_put_text(b, name);
	pickle_put_text(b, "offset");
	if (tensor)
		add_size(b, tensor, true);
	else
		pickle_put(b, "N");
	pickle_put_text(b, "index");
	if (tensor)
		pickle_put_size(b, 0);
	else
		pickle_put(b, "N");
	end_object(b);
	begin_object(b, CLASSES "filesystem", "_StorageInfo");
	pickle_put_text(b, "relative_path");
	pickle_put_text(b, DATA);
	pickle_put_text(b, "offset");
	pickle_put_size(b, begin);
	pickle_put_text(b, "length");
	pickle_put_size(b, end - begin);
	pickle_put_text(b, "transform_descriptors");
	pickle_put(b, "N");
	end_object(b);
}

/* Its path in what is saved: members of a state are theirs. */
static void add_path(struct buf *b, const char *name)
{
	static const char *const states[] = { "optimizer", "train_state", "lr_scheduler" };

	pickle_put_text(b, name);
	pickle_put(b, "(");
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		size_t len = strlen(states[i]);
		if (strncmp(name, states[i], len) != 0 || name[len] != '.')
			continue;
		pickle_put_text(b, states[i]);
		name += len + 1;
		break;
	}
	pickle_put_text(b, name);
	pickle_put(b, "t");
}

static int write_metadata(const struct dcp_writer *w, struct err *err)
{
	char *path = path_join("%s/.metadata", w->folder);
	struct buf b;

	buf_init(&b, METADATA_MAX);
	pickle_put(&b, "\x80\x02");
	begin_object(&b, CLASSES "metadata", "Metadata");
	pickle_put_text(&b, "state_dict_metadata");
	pickle_put(&b, "}(");
	for (size_t i = 0; i < w->count; i++)
		add_tensor(&b, &w->list[i]);
	for (size_t i = 0; i < w->values; i++) {
		pickle_put_text(&b, w->value[i].name);
		pickle_put(&b, "c" CLASSES "metadata\nBytesStorageMetadata\n)\x81");
	}
	pickle_put(&b, "u");
	pickle_put_text(&b, "planner_data");
	pickle_put(&b, "}(");
	for (size_t i = 0; i < w->count; i++)
		add_path(&b, w->list[i].name);
	for (size_t i = 0; i < w->values; i++)
		add_path(&b, w->value[i].name);
	pickle_put(&b, "u");
	pickle_put_text(&b, "storage_data");
	pickle_put(&b, "}(");
	for (size_t i = 0; i < w->count; i++)
		add_storage(&b, w->list[i].name, &w->list[i], w->begin[i], w->begin[i + 1]);
	for (size_t i = 0; i < w->values; i++)
		add_storage(&b, w->value[i].name, NULL, w->value[i].begin, w->value[i].end);
	pickle_put(&b, "u");
	pickle_put_text(&b, "storage_meta");
	pickle_put(&b, "N");
	pickle_put_text(&b, "version");
	pickle_put(&b, "N");
	end_object(&b);
	pickle_put(&b, ".");
	int rc = file_write_atomic(path, b.data, b.len, FILE_MODE, err);
	buf_fini(&b);
	free(path);
	return rc;
}

int dcp_end(struct dcp_writer *w, struct err *err)
{
	int rc = 0;

	if (!w)
		return 0;
	if (w->open) {
		(void)torch_end_at(w->open, &w->begin[w->count], NULL);
		rc = err_set(err, ERR_INTERNAL, "%s: tensors without data", w->path);
	}
	if (rc == 0)
		rc = write_metadata(w, err);
	for (size_t i = 0; i < w->values; i++)
		free(w->value[i].name);
	free(w->value);
	free(w->begin);
	free(w->path);
	free(w->folder);
	free(w);
	return rc;
}
