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
#include "worker/lbworker/checkpoint/checkpoint_names.h"
#include "worker/lbworker/checkpoint/model_path.h"
#include "worker/lbworker/base/narrow.h"
#include "worker/lbworker/commands/weights.h"
#include "worker/lbworker/lora/lora.h"
#include "worker/lbworker/model/hf_config.h"
#include "worker/lbworker/torch/foreign.h"

enum {
	MAX_SIDE_BYTES = 256 << 20,
	MAX_STATE_BYTES = 16 << 20,
	FOLDER_MODE = 0755,
	FILE_MODE = 0644
};

static const char USAGE[] =
	"convert wants FROM TO [--to huggingface|meta|litgpt|torch|dcp|torchtitan] "
	"[--dtype float32|bfloat16|float16] [--max-shard-size 5GB] "
	"[--flavor NAME] [--weights trained|ema] [--adapter FOLDER] "
	"[--parts N] [--moments on|off]";

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
	struct lora_merge *merge;            /* an adapter to be added, or NULL */
	struct foreign_want want;            /* of files of others */
	bool fold;
	struct shard *shard; /* as many as there are tensors, at most */
	size_t shards;
};

static uint64_t target_bytes(const struct conversion *c, size_t i)
{
	const struct model_tensor *t = &c->model->tensor[i];

	return tensor_rows(t) * tensor_width(t) * c->target->bytes;
}

/* What of a tensor goes into a file. */
static struct foreign_piece piece_of(const struct conversion *c, const struct model_tensor *t)
{
	if (c->layout)
		return foreign_piece(c->layout, c->model, t, &c->want);
	return (struct foreign_piece){ 0, tensor_rows(t), 0, tensor_width(t) };
}

/* The one that was selected, in the order of rows that the target wants. */
static int put_tensor(const struct conversion *c, const struct sink *out,
		      const struct model_tensor *t, struct err *err)
{
	const struct foreign_piece piece = piece_of(c, t);
	size_t width = tensor_width(t);
	double times = c->fold ? t->folded : 1;
	float *wide = xmalloc(width * sizeof(*wide));
	uint16_t *narrow = xmalloc(width * sizeof(*narrow));
	int rc = 0;

	for (size_t row = piece.row; row < piece.row + piece.rows && rc == 0; row++) {
		size_t ours = c->layout ? foreign_order(c->layout, c->model, t, row) : row;
		weights_row(c->weights, ours, wide);
		if (c->merge)
			lora_merge_row(c->merge, c->model, t, ours, wide);
		for (size_t i = 0; i < width && times != 1; i++)
			wide[i] = (float)((double)wide[i] * times);
		rc = put_row(out, c->target, wide + piece.column, narrow, piece.columns, err);
	}
	free(wide);
	free(narrow);
	return rc;
}

static int put_weights(const struct conversion *c, const struct sink *out,
		       const struct model_tensor *t, struct err *err)
{
	return weights_select(c->weights, t, err) ? -1 : put_tensor(c, out, t, err);
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
		rc = put_weights(c, &out, &tensor[i], err);
	if (st_end(out.st, err))
		rc = -1;
	free(list);
	return rc;
}

/* Of each tensor, and of a head that is the embedding once more: its weights (-1), or a moment (0, 1). */
static int put_all(const struct conversion *c, const struct sink *out, int moment, struct err *err)
{
	const struct model *m = c->model;
	int rc = 0;

	for (size_t i = 0; i < m->tensors + m->shape.tied && rc == 0; i++) {
		const struct model_tensor *t = &m->tensor[i < m->tensors ? i : 0];
		if (moment < 0)
			rc = weights_select(c->weights, t, err);
		else
			rc = weights_select_moment(c->weights, t, moment, err);
		if (rc == 0)
			rc = put_tensor(c, out, t, err);
	}
	return rc;
}

/* What a checkpoint of ours knows of its optimizer; -1 with err where it is none. */
static int read_settings(const char *folder, struct foreign_settings *s, struct err *err)
{
	char *path = path_join("%s/%s", folder, CHECKPOINT_STATE);
	json_t *o = js_load(path, MAX_STATE_BYTES, err);
	int64_t step = js_int(o, "step", -1), skipped = js_int(o, "skipped", 0);

	*s = (struct foreign_settings){ js_real(o, "lr", 0),           js_real(o, "beta1", 0.9),
					js_real(o, "beta2", 0.95),     js_real(o, "eps", 1e-8),
					js_real(o, "weight_decay", 0), step - skipped,
					js_int(o, "tokens", 0) };
	if (o && (step < 0 || skipped < 0 || skipped > step))
		err_set(err, ERR_USAGE, "%s: step or skipped is no number of steps", path);
	bool is_sound = o && s->step >= 0 && skipped >= 0 && skipped <= step;
	json_decref(o);
	free(path);
	return is_sound ? 0 : err_wrap(err, "--moments on");
}

/* Moments, steps, settings of a checkpoint; list: of which a quarter are weights. */
static int put_optimizer(const struct conversion *c, const struct sink *out, const char *from,
			 const struct st_tensor *list, size_t count, struct err *err)
{
	struct foreign_settings settings;

	if (read_settings(from, &settings, err) || put_all(c, out, 0, err) ||
	    put_all(c, out, 1, err))
		return -1;
	float step = (float)settings.step;
	for (size_t i = 0; i < count / 4; i++)
		if (foreign_append(out->foreign, &step, sizeof(step), err))
			return -1;
	return foreign_put_settings(out->foreign, list, count / 4, &settings, err);
}

static int write_foreign(const struct conversion *c, const char *from, const char *folder,
			 struct err *err)
{
	size_t count;
	struct st_tensor *list = foreign_list(c->layout, c->model, &c->want, &count);
	struct sink out = { .foreign = foreign_begin(c->layout, folder, c->want.part, list, count,
						     err) };
	int rc = out.foreign ? put_all(c, &out, -1, err) : -1;

	if (rc == 0 && c->want.moments)
		rc = put_optimizer(c, &out, from, list, count, err);
	if (foreign_end(out.foreign, err))
		rc = -1;
	free(list);
	return rc;
}

static int write_parts(struct conversion *c, const char *from, const char *folder, struct err *err)
{
	int rc = 0;

	for (c->want.part = 0; rc == 0 && c->want.part < c->want.parts; c->want.part++)
		rc = write_foreign(c, from, folder, err);
	c->shards = c->want.parts;
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
	const char *adapter; /* a folder; NULL: none */
	size_t parts;        /* of Meta's */
	bool moments;
	const struct target *target;
	const struct foreign_layout *layout; /* NULL: that of Hugging Face */
	uint64_t max_bytes;
	const struct model_flavor *flavor; /* of a checkpoint that does not say its shape */
	const char *file;                  /* of `from`, that has the weights; NULL: the usual */
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
				.layout = w->layout,
				.want = { w->target->type, w->moments, 0,
					  w->parts > 1 ? w->parts : 1 } };
	struct model_shape shape = w->flavor ? w->flavor->shape : (struct model_shape){ 0 };
	struct model *m = NULL;
	size_t positions;
	int rc = -1;

	c.weights = weights_open(w->from, w->file, &shape, &positions, err);
	if (c.weights && model_plan(&m, &shape, &options, err) == 0)
		rc = 0;
	c.model = m;
	c.merge = rc == 0 && w->adapter ? lora_merge_open(w->adapter, err) : NULL;
	if (w->adapter && (!c.merge || lora_merge_check(c.merge, m, err)))
		rc = -1;
	c.fold = shape.umup.enable;
	if (rc == 0)
		rc = foreign_check_parts(w->layout, &shape, w->parts, err);
	if (rc == 0 && w->moments && (c.fold || !w->layout || !foreign_has_moments(w->layout)))
		rc = err_set(err, ERR_USAGE,
			     "--moments on is for --to dcp and torchtitan, and not for u-muP");
	shape.umup.enable = false;
	if (rc == 0)
		rc = write_config(w, tmp, &shape, positions, err);
	if (rc == 0)
		rc = w->layout ? write_parts(&c, w->from, tmp, err) : write_tensors(&c, tmp, err);
	if (rc == 0)
		rc = copy_side_files(w->from, tmp, err);
	if (rc == 0)
		printf("%zu parameters in %zu tensors, %s, %zu file%s\n", m->parameters, m->tensors,
		       w->target->name, c.shards ? c.shards : 1, c.shards > 1 ? "s" : "");
	lora_merge_close(c.merge);
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
	const struct convert_args w = {
		.from = from, .to = to, .target = target_named(dtype), .max_bytes = UINT64_MAX
	};

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
	if (strcmp(name, "--moments") == 0) {
		w->moments = strcmp(value, "on") == 0;
		return w->moments || strcmp(value, "off") == 0 ? NULL : "--moments is on or off";
	}
	if (strcmp(name, "--parts") == 0) {
		w->parts = size_of(value) <= FOREIGN_PARTS_MAX ? (size_t)size_of(value) : 0;
		return w->parts ? NULL : "--parts is a number of files, 1 to 64";
	}
	if (strcmp(name, "--adapter") == 0) {
		w->adapter = value;
		return NULL;
	}
	if (strcmp(name, "--weights") == 0) {
		w->file = strcmp(value, "ema") == 0 ? CHECKPOINT_MEAN : NULL;
		return w->file || strcmp(value, "trained") == 0
			       ? NULL
			       : "--weights is one of trained, ema";
	}
	if (strcmp(name, "--to") != 0)
		return USAGE;
	w->layout = foreign_named(value);
	return w->layout || strcmp(value, "huggingface") == 0
		       ? NULL
		       : "--to is one of huggingface, meta, litgpt, torch, dcp, torchtitan";
}

/* One of peft, or of a run's newest checkpoint. Owned by the caller. */
static char *adapter_folder(const char *named, struct err *err)
{
	char *config = path_join("%s/adapter_config.json", named);
	bool is_there = file_exists(config);

	free(config);
	return is_there ? xstrdup(named) : model_path(named, err);
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
	char *adapter = w.adapter ? adapter_folder(w.adapter, &err) : NULL;
	bool is_found = from && (adapter || !w.adapter);
	w.from = from;
	w.to = argv[2];
	w.adapter = adapter;
	int rc = is_found ? convert(&w, &err) : -1;
	free(adapter);
	free(from);
	return rc ? command_failed(&err) : EXIT_DONE;
}
