/* SPDX-License-Identifier: MIT */
/* convert.c - lbworker convert: a model of Hugging Face, of Meta or LitGPT, or the weights of a
 * checkpoint of ours, to one folder with config.json and model.safetensors that both can read, or
 * back to the files of others (torch/foreign.h). Weights trained with u-muP
 * become those of a plain model: each times its multiplier.
 *
 * With a limit on the size of a file there are several, model-00001-of-0000N.safetensors, and
 * model.safetensors.index.json, as transformers writes them: tensors in order, each file as full as
 * they allow, a larger tensor in a file of its own.
 *
 * Tensors pass by row by row, so models larger than memory are fine. The folder appears whole, by
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
#include "worker/lbworker/checkpoint/model_path.h"
#include "worker/lbworker/base/narrow.h"
#include "worker/lbworker/commands/weights.h"
#include "worker/lbworker/model/hf_config.h"
#include "worker/lbworker/torch/foreign.h"

enum { MAX_SIDE_BYTES = 256 << 20, FOLDER_MODE = 0755, FILE_MODE = 0644 };

static const char USAGE[] = "convert wants FROM TO [--to huggingface|meta|litgpt|torch|dcp] "
			    "[--dtype float32|bfloat16|float16] [--max-shard-size 5GB] "
			    "[--flavor NAME]";

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

/* A file that is being written: one of the two. */
struct sink {
	struct st_writer *st;
	struct foreign_writer *foreign;
};

static int put_row(const struct sink *out, const struct target *target, const float *wide,
		   uint16_t *narrow, size_t count, struct err *err)
{
	const void *data = wide;

	if (target->type != ST_F32)
		data = narrow;
	if (target->type == ST_BF16)
		narrow_to_bf16(narrow, wide, count);
	if (target->type == ST_F16)
		narrow_to_f16(narrow, wide, count);
	return out->st ? st_append(out->st, data, count * target->bytes, err)
		       : foreign_append(out->foreign, data, count * target->bytes, err);
}

/* What goes into one file: tensors first to first + count - 1 of the model. */
struct shard {
	size_t first, count;
};

struct conversion {
	const struct model *model;
	struct weights *weights;
	const struct target *target;
	const struct foreign_layout *layout; /* NULL: that of Hugging Face */
	uint64_t max_bytes;                  /* of a file's data */
	bool fold;
	struct shard *shard; /* as many as there are tensors, at most */
	size_t shards;
};

static uint64_t target_bytes(const struct conversion *c, size_t i)
{
	const struct model_tensor *t = &c->model->tensor[i];

	return tensor_rows(t) * tensor_width(t) * c->target->bytes;
}

/* In the order of rows that the target wants. */
static int put_tensor(const struct conversion *c, const struct sink *out,
		      const struct model_tensor *t, struct err *err)
{
	size_t width = tensor_width(t), rows = tensor_rows(t);
	double times = c->fold ? t->folded : 1;
	float *wide = xmalloc(width * sizeof(*wide));
	uint16_t *narrow = xmalloc(width * sizeof(*narrow));
	int rc = weights_select(c->weights, t, err);

	for (size_t row = 0; row < rows && rc == 0; row++) {
		weights_row(c->weights,
			    c->layout ? foreign_order(c->layout, c->model, t, row) : row, wide);
		for (size_t i = 0; i < width && times != 1; i++)
			wide[i] = (float)((double)wide[i] * times);
		rc = put_row(out, c->target, wide, narrow, width, err);
	}
	free(wide);
	free(narrow);
	return rc;
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
	struct sink out = { 0 };
	int rc = 0;

	for (size_t i = 0; i < shard->count && rc == 0; i++) {
		const struct model_tensor *t = &tensor[i];
		list[i] = (struct st_tensor){ .name = t->name,
					      .type = c->target->type,
					      .dimensions = t->columns ? 2 : 1,
					      .shape = { t->rows, t->columns } };
		rc = weights_select(c->weights, t, err);
	}
	if (rc == 0) {
		out.st = st_begin(path, list, shard->count, metadata, err);
		rc = out.st ? 0 : -1;
	}
	for (size_t i = 0; i < shard->count && rc == 0; i++)
		rc = put_tensor(c, &out, &tensor[i], err);
	if (st_end(out.st, err))
		rc = -1;
	free(list);
	return rc;
}

/* A head that is the embedding is written, too. */
static int write_foreign(const struct conversion *c, const char *folder, struct err *err)
{
	const struct model *m = c->model;
	size_t count;
	struct st_tensor *list = foreign_list(c->layout, m, c->target->type, &count);
	struct sink out = { .foreign = foreign_begin(c->layout, folder, list, count, err) };
	int rc = out.foreign ? 0 : -1;

	for (size_t i = 0; i < m->tensors && rc == 0; i++)
		rc = put_tensor(c, &out, &m->tensor[i], err);
	if (rc == 0 && m->shape.tied)
		rc = put_tensor(c, &out, &m->tensor[0], err);
	if (foreign_end(out.foreign, err))
		rc = -1;
	free(list);
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

struct convert_args {
	const char *from, *to;
	const struct target *target;
	const struct foreign_layout *layout; /* NULL: that of Hugging Face */
	uint64_t max_bytes;
	const struct model_flavor *flavor; /* of a checkpoint that does not say its shape */
};

static int write_config(const struct convert_args *w, const char *folder,
			const struct model_shape *shape, size_t positions, struct err *err)
{
	const char *dtype = w->target->name;

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

static int fill(const struct convert_args *w, const char *tmp, struct err *err)
{
	const struct model_options options = { .batch = 1, .seq = 1 };
	struct conversion c = { .target = w->target,
				.max_bytes = w->max_bytes,
				.layout = w->layout };
	struct model_shape shape = w->flavor ? w->flavor->shape : (struct model_shape){ 0 };
	struct model *m = NULL;
	size_t positions;
	int rc = -1;

	c.weights = weights_open(w->from, &shape, &positions, err);
	if (c.weights && model_plan(&m, &shape, &options, err) == 0)
		rc = 0;
	c.model = m;
	c.fold = shape.umup.enable;
	shape.umup.enable = false;
	if (rc == 0)
		rc = write_config(w, tmp, &shape, positions, err);
	if (rc == 0)
		rc = w->layout ? write_foreign(&c, tmp, err) : write_tensors(&c, tmp, err);
	if (rc == 0)
		rc = copy_side_files(w->from, tmp, err);
	if (rc == 0)
		printf("%zu parameters in %zu tensors, %s, %zu file%s\n", m->parameters, m->tensors,
		       w->target->name, c.shards ? c.shards : 1, c.shards > 1 ? "s" : "");
	weights_close(c.weights);
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
	const struct convert_args w = { from, to, target_named(dtype), NULL, UINT64_MAX, NULL };

	return w.target ? convert(&w, err) : err_set(err, ERR_USAGE, "dtype: \"%s\"", dtype);
}

/* NULL, or what is wrong with the option. */
static const char *take_option(struct convert_args *w, const char *name, const char *value)
{
	if (strcmp(name, "--dtype") == 0) {
		w->target = target_named(value);
		return w->target ? NULL : "--dtype is one of float32, bfloat16, float16";
	}
	if (strcmp(name, "--max-shard-size") == 0) {
		w->max_bytes = size_of(value);
		return w->max_bytes ? NULL : "--max-shard-size is a size like 5GB, 200MB or 2GiB";
	}
	if (strcmp(name, "--flavor") == 0) {
		w->flavor = model_flavor_find(MODEL_LLAMA, value, NULL);
		return w->flavor ? NULL : "--flavor is one of llama's that lbworker help lists";
	}
	if (strcmp(name, "--to") != 0)
		return USAGE;
	w->layout = foreign_named(value);
	return w->layout || strcmp(value, "huggingface") == 0
		       ? NULL
		       : "--to is one of huggingface, meta, litgpt, torch, dcp";
}

int command_convert(int argc, char **argv)
{
	struct convert_args w = { .target = &targets[0], .max_bytes = UINT64_MAX };
	const char *wrong = argc < 3 || argc % 2 == 0 ? USAGE : NULL;
	struct err err = { 0 };

	for (int i = 3; i + 1 < argc && !wrong; i += 2)
		wrong = take_option(&w, argv[i], argv[i + 1]);
	if (wrong)
		return command_usage(wrong);
	char *from = foreign_in(argv[1]) ? xstrdup(argv[1]) : model_path(argv[1], &err);
	w.from = from;
	w.to = argv[2];
	int rc = from ? convert(&w, &err) : -1;
	free(from);
	return rc ? command_failed(&err) : EXIT_DONE;
}
