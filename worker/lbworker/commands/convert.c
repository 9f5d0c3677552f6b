/* SPDX-License-Identifier: MIT */
/* convert.c - lbworker convert: a model of Hugging Face, or the weights of a checkpoint of ours, to
 * one folder with config.json and model.safetensors that both can read. Weights trained with u-muP
 * become those of a plain model: each times its multiplier.
 *
 * With a limit on the size of a file there are several, model-00001-of-0000N.safetensors, and
 * model.safetensors.index.json, as transformers writes them: tensors in order, each file as full as
 * they allow, a larger tensor in a file of its own.
 *
 * Tensors pass by in pieces, so models larger than memory are fine. The folder appears whole, by
 * rename, or not at all. */
#include "worker/lbworker/commands/convert.h"
#include "worker/lbworker/commands/command.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "worker/lbworker/checkpoint/hf.h"
#include "worker/lbworker/checkpoint/model_path.h"
#include "worker/lbworker/base/narrow.h"

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
		      const struct st_tensor *from, size_t all, double times, struct err *err)
{
	float *wide = xmalloc(PIECE * sizeof(*wide));
	uint16_t *narrow = xmalloc(PIECE * sizeof(*narrow));
	size_t count;
	int rc = 0;

	for (size_t at = 0; at < all && rc == 0; at += count) {
		count = all - at < PIECE ? all - at : PIECE;
		hf_widen(wide, from, at, count);
		for (size_t i = 0; i < count && times != 1; i++)
			wide[i] = (float)((double)wide[i] * times);
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

/* What goes into one file: tensors first to first + count - 1 of the model. */
struct shard {
	size_t first, count;
};

struct conversion {
	const struct model *model;
	const struct hf_weights *weights;
	const struct target *target;
	uint64_t max_bytes; /* of a file's data */
	bool fold;
	struct shard *shard; /* as many as there are tensors, at most */
	size_t shards;
};

static uint64_t target_bytes(const struct conversion *c, size_t i)
{
	return elements(&c->model->tensor[i]) * c->target->bytes;
}

static void cut(struct conversion *c)
{
	uint64_t bytes = 0;

	c->shard = xcalloc(c->model->tensors, sizeof(*c->shard));
	for (size_t i = 0; i < c->model->tensors; i++) {
		uint64_t more = target_bytes(c, i);
		if (i == 0 || bytes + more > c->max_bytes) {
			c->shard[c->shards++] = (struct shard){ .first = i };
			bytes = 0;
		}
		c->shard[c->shards - 1].count++;
		bytes += more;
	}
}

static char *shard_name(const struct conversion *c, size_t k)
{
	if (c->shards == 1)
		return xstrdup("model.safetensors");
	return xasprintf("model-%05zu-of-%05zu.safetensors", k + 1, c->shards);
}

static int write_shard(const struct conversion *c, const char *path, const struct shard *shard,
		       struct err *err)
{
	static const char *const metadata[] = { "format", "pt", NULL };
	const struct model_tensor *tensor = c->model->tensor + shard->first;
	struct st_tensor *list = xcalloc(shard->count, sizeof(*list));
	const struct st_tensor **from = xcalloc(shard->count, sizeof(struct st_tensor *));
	struct st_writer *out = NULL;
	int rc = 0;

	for (size_t i = 0; i < shard->count && rc == 0; i++) {
		const struct model_tensor *t = &tensor[i];
		list[i] = (struct st_tensor){ .name = t->name,
					      .type = c->target->type,
					      .dimensions = t->columns ? 2 : 1,
					      .shape = { t->rows, t->columns } };
		from[i] = hf_weights_find(c->weights, t, err);
		rc = from[i] ? 0 : -1;
	}
	if (rc == 0) {
		out = st_begin(path, list, shard->count, metadata, err);
		rc = out ? 0 : -1;
	}
	for (size_t i = 0; i < shard->count && rc == 0; i++)
		rc = put_tensor(out, c->target, from[i], elements(&tensor[i]),
				c->fold ? tensor[i].folded : 1, err);
	if (st_end(out, err))
		rc = -1;
	free(list);
	free(from);
	return rc;
}

/* Of several files: which tensor is where. */
static int write_index(const struct conversion *c, const char *folder, struct err *err)
{
	json_t *map = json_object(), *index;
	uint64_t total = 0;

	for (size_t k = 0; k < c->shards; k++) {
		char *name = shard_name(c, k);
		for (size_t i = 0; i < c->shard[k].count; i++) {
			js_set_str(map, c->model->tensor[c->shard[k].first + i].name, name);
			total += target_bytes(c, c->shard[k].first + i);
		}
		free(name);
	}
	index = json_pack("{s:{s:I}, s:o}", "metadata", "total_size", (json_int_t)total,
			  "weight_map", map);
	char *text = json_dumps(index, JSON_INDENT(2) | JSON_SORT_KEYS);
	char *path = path_join("%s/model.safetensors.index.json", folder);
	int rc = file_write_atomic(path, text, strlen(text), FILE_MODE, err);
	free(path);
	free(text);
	json_decref(index);
	return rc;
}

static int write_tensors(struct conversion *c, const char *folder, struct err *err)
{
	int rc = 0;

	cut(c);
	for (size_t k = 0; k < c->shards && rc == 0; k++) {
		char *name = shard_name(c, k), *path = path_join("%s/%s", folder, name);
		rc = write_shard(c, path, &c->shard[k], err);
		free(path);
		free(name);
	}
	if (rc == 0 && c->shards > 1)
		rc = write_index(c, folder, err);
	free(c->shard);
	return rc;
}

static int write_config(const char *folder, const struct model_shape *shape, size_t positions,
			const char *dtype, struct err *err)
{
	json_t *o = hf_config_json(shape, positions, dtype);
	char *text = json_dumps(o, JSON_INDENT(2)), *path = path_join("%s/config.json", folder);
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

struct convert_args {
	const char *from, *to;
	const struct target *target;
	uint64_t max_bytes;
};

static int fill(const struct convert_args *w, const char *tmp, struct err *err)
{
	const struct model_options options = { .batch = 1, .seq = 1 };
	struct conversion c = { .target = w->target, .max_bytes = w->max_bytes };
	struct model_shape shape;
	struct model *m = NULL;
	size_t positions;

	if (hf_config_read(&shape, &positions, w->from, err) ||
	    model_plan(&m, &shape, &options, err))
		return -1;
	struct hf_weights *weights = hf_weights_open(w->from, err);
	c.model = m;
	c.weights = weights;
	c.fold = shape.umup.enable;
	shape.umup.enable = false;
	int rc = weights ? write_tensors(&c, tmp, err) : -1;
	if (rc == 0)
		rc = write_config(tmp, &shape, positions, w->target->name, err);
	if (rc == 0)
		rc = copy_side_files(w->from, tmp, err);
	if (rc == 0)
		printf("%zu parameters in %zu tensors, %s, %zu file%s\n", m->parameters, m->tensors,
		       w->target->name, c.shards, c.shards == 1 ? "" : "s");
	hf_weights_close(weights);
	model_destroy(m);
	return rc;
}

static int convert(const struct convert_args *w, struct err *err)
{
	char *tmp = xasprintf("%s.tmp-%ld", w->to, (long)getpid());
	int rc = -1;

	if (file_exists(w->to))
		err_set(err, ERR_USAGE, "%s: exists already", w->to);
	else if (folder_make(tmp, FOLDER_MODE, err) == 0)
		rc = fill(w, tmp, err);
	if (rc == 0 && rename(tmp, w->to) != 0)
		rc = err_errno(err, "%s", w->to);
	if (rc != 0)
		(void)folder_remove(tmp, NULL);
	free(tmp);
	return rc;
}

/* --- the command line ------------------------------------------------------------------------- */

static const struct target *target_named(const char *name)
{
	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++)
		if (strcmp(targets[i].name, name) == 0)
			return &targets[i];
	return NULL;
}

/* "5GB", "200MB", "2GiB", "1000": as transformers reads it; 0 for anything else. */
static uint64_t size_of(const char *text)
{
	static const struct {
		const char *name;
		double bytes;
	} units[] = {
		{ "", 1 },         { "KB", 1e3 },        { "MB", 1e6 },          { "GB", 1e9 },
		{ "KiB", 1024.0 }, { "MiB", 1048576.0 }, { "GiB", 1073741824.0 }
	};
	char *end;
	double number = strtod(text, &end);

	for (size_t i = 0; end != text && i < sizeof(units) / sizeof(units[0]); i++)
		if (strcmp(units[i].name, end) == 0 && number > 0 && number < 1e9)
			return (uint64_t)ceil(number * units[i].bytes);
	return 0;
}

int convert_model(const char *from, const char *to, const char *dtype, struct err *err)
{
	const struct convert_args w = { from, to, target_named(dtype), UINT64_MAX };

	return w.target ? convert(&w, err) : err_set(err, ERR_USAGE, "dtype: \"%s\"", dtype);
}

int command_convert(int argc, char **argv)
{
	struct convert_args w = { .target = &targets[0], .max_bytes = UINT64_MAX };
	struct err err = { 0 };
	int i = 3;

	for (; i + 1 < argc; i += 2) {
		bool is_type = strcmp(argv[i], "--dtype") == 0;
		if (!is_type && strcmp(argv[i], "--max-shard-size") != 0)
			break;
		if (is_type)
			w.target = target_named(argv[i + 1]);
		else
			w.max_bytes = size_of(argv[i + 1]);
		if (!w.target)
			return command_usage("--dtype is one of float32, bfloat16, float16");
		if (w.max_bytes == 0)
			return command_usage("--max-shard-size is a size like 5GB, 200MB or 2GiB");
	}
	if (argc < 3 || i < argc)
		return command_usage("convert wants FROM TO [--dtype float32|bfloat16|float16] "
				     "[--max-shard-size 5GB]");
	char *from = model_path(argv[1], &err);
	w.from = from;
	w.to = argv[2];
	int rc = from ? convert(&w, &err) : -1;
	free(from);
	return rc ? command_failed(&err) : EXIT_DONE;
}
