/* SPDX-License-Identifier: MIT */
/* convert.c - lbworker convert: a model of Hugging Face, or the weights of a checkpoint of ours, to
 * one folder with config.json and model.safetensors that both can read.
 *
 * Tensors pass by in pieces, so models larger than memory are fine. The folder appears whole, by
 * rename, or not at all. */
#include "worker/lbworker/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/files.h"
#include "common/json.h"
#include "common/mem.h"
#include "worker/lbworker/hf.h"
#include "worker/lbworker/narrow.h"

enum { PIECE = 1 << 16, MAX_SIDE_BYTES = 256 << 20, FOLDER_MODE = 0755, FILE_MODE = 0644 };

/* What a tokenizer needs goes along unread. */
static const char *const side_files[] = { "tokenizer.json", "tokenizer_config.json",
					  "tokenizer.model", "special_tokens_map.json",
					  "generation_config.json" };

static const struct target {
	const char *name;
	enum st_type type;
	size_t bytes;
} targets[] = {
	{ "float32", ST_F32, 4 },
	{ "bfloat16", ST_BF16, 2 },
	{ "float16", ST_F16, 2 },
};

static int put_piece(struct st_writer *out, const struct target *target, const float *wide,
		     uint16_t *narrow, size_t count, struct err *err)
{
	if (target->type == ST_F32)
		return st_append(out, wide, count * sizeof(*wide), err);
	if (target->type == ST_BF16)
		narrow_to_bf16(narrow, wide, count);
	else
		narrow_to_f16(narrow, wide, count);
	return st_append(out, narrow, count * sizeof(*narrow), err);
}

static int put_tensor(struct st_writer *out, const struct target *target,
		      const struct st_tensor *from, size_t all, struct err *err)
{
	float *wide = xmalloc(PIECE * sizeof(*wide));
	uint16_t *narrow = xmalloc(PIECE * sizeof(*narrow));
	size_t count;
	int rc = 0;

	for (size_t at = 0; at < all && rc == 0; at += count) {
		count = all - at < PIECE ? all - at : PIECE;
		hf_widen(wide, from, at, count);
		rc = put_piece(out, target, wide, narrow, count, err);
	}
	free(wide);
	free(narrow);
	return rc;
}

static size_t elements(const struct model_tensor *t)
{
	return t->rows * (t->columns ? t->columns : 1);
}

static int write_tensors(const char *path, const struct model *m, const struct hf_weights *w,
			 const struct target *target, struct err *err)
{
	static const char *const metadata[] = { "format", "pt", NULL };
	struct st_tensor *list = xcalloc(m->tensors, sizeof(*list));
	const struct st_tensor **from = xcalloc(m->tensors, sizeof(struct st_tensor *));
	struct st_writer *out = NULL;
	int rc = 0;

	for (size_t i = 0; i < m->tensors && rc == 0; i++) {
		const struct model_tensor *t = &m->tensor[i];
		list[i] = (struct st_tensor){ .name = t->name, .type = target->type,
					      .dimensions = t->columns ? 2 : 1,
					      .shape = { t->rows, t->columns } };
		from[i] = hf_weights_find(w, t, err);
		rc = from[i] ? 0 : -1;
	}
	if (rc == 0) {
		out = st_begin(path, list, m->tensors, metadata, err);
		rc = out ? 0 : -1;
	}
	for (size_t i = 0; i < m->tensors && rc == 0; i++)
		rc = put_tensor(out, target, from[i], elements(&m->tensor[i]), err);
	if (st_end(out, err))
		rc = -1;
	free(list);
	free(from);
	return rc;
}

static int write_config(const char *folder, const struct model_shape *shape, size_t positions,
			const char *dtype, struct err *err)
{
	json_t *o = hf_config_json(shape, positions, dtype);
	char *text = json_dumps(o, JSON_INDENT(2)), *path = xasprintf("%s/config.json", folder);
	int rc = file_write_atomic(path, text, strlen(text), FILE_MODE, err);

	free(text);
	free(path);
	json_decref(o);
	return rc;
}

static int copy_side_files(const char *from, const char *to, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; i < sizeof(side_files) / sizeof(side_files[0]) && rc == 0; i++) {
		char *source = xasprintf("%s/%s", from, side_files[i]);
		char *copy = xasprintf("%s/%s", to, side_files[i]);
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

static int fill(const char *from, const char *tmp, const struct target *target, struct err *err)
{
	const struct model_options options = { .batch = 1, .seq = 1 };
	struct model_shape shape;
	struct model *m = NULL;
	size_t positions;

	if (hf_config_read(&shape, &positions, from, err) ||
	    model_plan(&m, &shape, &options, err))
		return -1;
	struct hf_weights *w = hf_weights_open(from, err);
	char *path = xasprintf("%s/model.safetensors", tmp);
	int rc = w ? write_tensors(path, m, w, target, err) : -1;
	if (rc == 0)
		rc = write_config(tmp, &shape, positions, target->name, err);
	if (rc == 0)
		rc = copy_side_files(from, tmp, err);
	if (rc == 0)
		printf("%zu parameters in %zu tensors, %s\n", m->parameters, m->tensors, target->name);
	free(path);
	hf_weights_close(w);
	model_destroy(m);
	return rc;
}

static int convert(const char *from, const char *to, const struct target *target, struct err *err)
{
	char *tmp = xasprintf("%s.tmp-%ld", to, (long)getpid());
	int rc = -1;

	if (file_exists(to))
		err_set(err, ERR_USAGE, "%s: exists already", to);
	else if (folder_make(tmp, FOLDER_MODE, err) == 0)
		rc = fill(from, tmp, target, err);
	if (rc == 0 && rename(tmp, to) != 0)
		rc = err_errno(err, "%s", to);
	if (rc != 0)
		(void)folder_remove(tmp, NULL);
	free(tmp);
	return rc;
}

int command_convert(int argc, char **argv)
{
	const struct target *target = &targets[0];
	struct err err = { 0 };

	if (argc != 3 && !(argc == 5 && strcmp(argv[3], "--dtype") == 0))
		return command_usage("convert wants FROM TO [--dtype float32|bfloat16|float16]");
	if (argc == 5) {
		target = NULL;
		for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++)
			if (strcmp(targets[i].name, argv[4]) == 0)
				target = &targets[i];
		if (!target)
			return command_usage("--dtype is one of float32, bfloat16, float16");
	}
	return convert(argv[1], argv[2], target, &err) ? command_failed(&err) : EXIT_DONE;
}
