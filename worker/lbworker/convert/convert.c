/* SPDX-License-Identifier: MIT */
/* convert.c - the new folder: weights, config.json, and what a tokenizer needs. It appears whole,
 * by rename, or not at all. */
#include "worker/lbworker/convert/convert.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "worker/lbworker/base/scratch.h"
#include "worker/lbworker/checkpoint/checkpoint_names.h"
#include "worker/lbworker/convert/conversion.h"
#include "worker/lbworker/families/hf_config.h"

enum { MAX_SIDE_BYTES = 256 << 20, MAX_CONFIG_BYTES = 1 << 20, FOLDER_MODE = 0755 };

/* What a tokenizer needs goes along unread. */
static const char *const side_files[] = {
	"tokenizer.json",
	"tokenizer_config.json",
	"tokenizer.model",
	"tokenizer.tiktoken",
	"tekken.json",
	"vocab.json",
	"merges.txt",
	"added_tokens.json",
	"special_tokens_map.json",
	"chat_template.jinja",
	"generation_config.json",
};

static const struct convert_type types[] = {
	{ "float32", ST_F32, 4 },
	{ "bfloat16", ST_BF16, 2 },
	{ "float16", ST_F16, 2 },
};

const struct convert_type *convert_type_named(const char *name)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(types[i].name, name) == 0)
			return &types[i];
	return NULL;
}

static int write_config(const struct convert_order *w, const char *folder,
			const struct model_shape *shape, size_t positions, struct err *err)
{
	const char *dtype = w->type->name;

	if (w->layout)
		return foreign_write_config(w->layout, shape, positions, dtype, folder, err);
	json_t *o = hf_config_json(shape, positions, dtype);
	char *text = json_dumps(o, JSON_INDENT(2)), *path = path_join("%s/config.json", folder);
	int rc = file_write_atomic(path, text, strlen(text), FILE_MODE, err);

	free(text);
	free(path);
	json_decref(o);
	return rc;
}

/* What its texts begin and end with: without these keys transformers goes on beyond the end, or
 * takes those of its class, which other tokens may have the numbers of. */
static int carry_tokens(const char *from, const char *to, struct err *err)
{
	static const char *const keys[] = { "bos_token_id", "eos_token_id", "pad_token_id" };
	char *source = path_join("%s/config.json", from), *copy = path_join("%s/config.json", to);
	json_t *theirs = js_load(source, MAX_CONFIG_BYTES, NULL);
	json_t *ours = theirs ? js_load(copy, MAX_CONFIG_BYTES, NULL) : NULL;
	const json_t *part = json_object_get(theirs, "text_config");
	bool has_some = false;
	int rc = 0;

	for (size_t i = 0; ours && i < sizeof(keys) / sizeof(keys[0]); i++) {
		json_t *value = json_object_get(theirs, keys[i]),
		       *of_part = json_object_get(part, keys[i]);
		if (of_part && (!value || json_is_null(value)))
			value = of_part;
		has_some |= value && json_object_set(ours, keys[i], value) == 0;
	}
	char *text = has_some ? json_dumps(ours, JSON_INDENT(2)) : NULL;
	if (text)
		rc = file_write_atomic(copy, text, strlen(text), FILE_MODE, err);
	free(text);
	json_decref(ours);
	json_decref(theirs);
	free(copy);
	free(source);
	return rc;
}

static int copy_side_files(const char *from, const char *to, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; i < sizeof(side_files) / sizeof(side_files[0]) && rc == 0; i++) {
		char *source = path_join("%s/%s", from, side_files[i]);
		char *copy = path_join("%s/%s", to, side_files[i]);
		size_t bytes = 0;
		char *text = file_exists(source) ? file_read(source, MAX_SIDE_BYTES, &bytes, err)
						 : NULL;
		if (text)
			rc = file_write_atomic(copy, text, bytes, FILE_MODE, err);
		else if (file_exists(source))
			rc = -1;
		free(text);
		free(source);
		free(copy);
	}
	return rc;
}

/* Of that step, or of another one of its training. */
static bool has_adapter(const char *from, const char *adapter)
{
	char *of_from = path_join("%s/..", from), *of_adapter = path_join("%s/..", adapter);
	bool is_one_training = folder_holds(from, CHECKPOINT_STATE) &&
			       folder_holds(from, CHECKPOINT_ADAPTER) &&
			       file_is_same(of_from, of_adapter);

	free(of_from);
	free(of_adapter);
	return is_one_training || file_is_same(adapter, from);
}

/* What is read: weights, the model that they are of, and an adapter; whether the target can have
 * them. */
static int open_source(struct conversion *c, struct model **m, const struct convert_order *w,
		       struct model_shape *shape, size_t *positions, struct err *err)
{
	const struct model_options options = { .batch = 1, .seq = 1 };

	if (w->moments && w->adapter) /* they are of the weights without it */
		return err_set(err, ERR_USAGE, "--moments on goes without --adapter");
	if (w->adapter && has_adapter(w->from, w->adapter))
		return err_set(err, ERR_USAGE,
			       "--adapter: what is trained in %s has it in its weights already",
			       w->from);
	c->weights = weights_open(w->from, w->file, shape, positions, err);
	if (!c->weights || model_plan(m, shape, &options, err))
		return -1;
	c->model = *m;
	c->merge = w->adapter ? lora_merge_open(w->adapter, err) : NULL;
	if (w->adapter && (!c->merge || lora_merge_check(c->merge, *m, err)))
		return -1;
	c->fold = shape->umup.enable;
	if (foreign_check_parts(w->layout, shape, w->parts, err))
		return -1;
	if (w->moments && (c->fold || !w->layout || !foreign_has_moments(w->layout)))
		return err_set(err, ERR_USAGE,
			       "--moments on is for --to dcp and torchtitan, and not for u-muP");
	return 0;
}

static int write_all(struct conversion *c, const struct convert_order *w, const char *folder,
		     const struct model_shape *shape, size_t positions, struct err *err)
{
	if (write_config(w, folder, shape, positions, err) ||
	    carry_tokens(w->base ? w->base : w->from, folder, err))
		return -1;
	if (w->layout ? foreign_files_write(c, w->from, folder, err) : shards_write(c, folder, err))
		return -1;
	return copy_side_files(w->from, folder, err);
}

static int fill(const struct convert_order *w, const char *folder, struct err *err)
{
	struct conversion c = { .type = w->type,
				.max_bytes = w->max_bytes,
				.layout = w->layout,
				.want = { w->type->type, w->moments, 0,
					  w->parts > 1 ? w->parts : 1 } };
	struct model_shape shape = w->flavor ? w->flavor->shape : (struct model_shape){ 0 };
	struct model *m = NULL;
	size_t positions;
	int rc = open_source(&c, &m, w, &shape, &positions, err);

	shape.umup.enable = false;
	if (rc == 0)
		rc = write_all(&c, w, folder, &shape, positions, err);
	if (rc == 0)
		printf("%zu parameters in %zu tensors, %s, %zu file%s\n", m->parameters, m->tensors,
		       w->type->name, c.shards ? c.shards : 1, c.shards > 1 ? "s" : "");
	lora_merge_close(c.merge);
	weights_close(c.weights);
	model_destroy(m);
	return rc;
}

/* What is in a folder, each file's bytes, to the disk. */
static int sync_files(const char *folder, struct err *err)
{
	DIR *dir = opendir(folder);
	const struct dirent *entry;
	int rc = 0;

	if (!dir)
		return err_errno(err, "%s", folder);
	errno = 0;
	while (rc == 0 && (entry = readdir(dir)) != NULL) {
		char *path = path_join("%s/%s", folder, entry->d_name);
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			rc = file_sync(path, err);
		free(path);
		errno = 0;
	}
	if (rc == 0 && errno != 0)
		rc = err_errno(err, "%s", folder);
	closedir(dir);
	return rc == 0 ? folder_sync(folder, err) : rc;
}

/* A power cut would leave the name, and not what belongs under it. */
static int put_in_place(const char *tmp, const char *to, struct err *err)
{
	if (sync_files(tmp, err))
		return -1;
	return rename(tmp, to) == 0 ? file_sync_name(tmp, err) : err_errno(err, "%s", to);
}

int convert(const struct convert_order *w, struct err *err)
{
	size_t len = strlen(w->to);
	int rc = -1;

	while (len > 1 && w->to[len - 1] == '/') /* it is to lie beside it */
		len--;
	char *to = xstrndup(w->to, len), *tmp = scratch_name(to, "tmp");

	scratch_sweep_of(to);

	if (file_exists(w->to))
		err_set(err, ERR_USAGE, "%s: exists already", w->to);
	else if (folder_make(tmp, FOLDER_MODE, err) == 0)
		rc = fill(w, tmp, err);
	if (rc == 0)
		rc = put_in_place(tmp, w->to, err);
	if (rc != 0)
		(void)folder_remove(tmp, NULL);
	free(tmp);
	free(to);
	return rc;
}

int convert_model(const char *from, const char *base, const char *to, const char *dtype,
		  struct err *err)
{
	const struct convert_order w = { .from = from,
					 .base = base,
					 .to = to,
					 .type = convert_type_named(dtype),
					 .max_bytes = UINT64_MAX };

	return w.type ? convert(&w, err) : err_set(err, ERR_USAGE, "dtype: \"%s\"", dtype);
}
