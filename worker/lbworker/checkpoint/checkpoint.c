/* SPDX-License-Identifier: MIT */
/* checkpoint.c - the copy of a training, its four files, and the way of a folder into place. */
#include "worker/lbworker/checkpoint/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/run/attempt.h"
#include "common/base/failpoint.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/log.h"
#include "common/checkpoint/manifest.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "worker/lbworker/checkpoint/checkpoint_names.h"
#include "worker/lbworker/checkpoint/hf.h"
#include "worker/lbworker/base/narrow.h"
#include "worker/lbworker/checkpoint/retention.h"
#include "worker/lbworker/base/safetensors.h"
#include "worker/lbworker/checkpoint/scratch.h"

enum { MODE = 0755 };

static const char WEIGHTS[] = CHECKPOINT_WEIGHTS;
static const char OPTIMIZER[] = CHECKPOINT_OPTIMIZER;
static const char SHAPE[] = "config.json";
static const char STATE[] = CHECKPOINT_STATE;

struct checkpoint_copy {
	const struct model *model; /* the whole one: names and shape only */
	const struct model *here;  /* what there is of it on this rank, and its device */
	struct train_state state;
	float *weights, *moment[2]; /* one allocation, which starts at weights */
	uint16_t *lost;             /* behind them; NULL: none is kept */
	bool is_narrow;             /* moments are still bf16, at the start of their room */
	const struct tokenizer_file *tokenizer; /* borrowed; or NULL */
	float *amax;   /* of past steps, for delayed scaling; NULL: there is none */
	char *choices; /* of the device; NULL: it makes none */
};

/* --- the copy ------------------------------------------------------------------------------- */

static float *make_amax(const struct model *m)
{
	size_t count = precision_history_count(m->precision);

	return count > 0 ? xcalloc(count, sizeof(float)) : NULL;
}

struct checkpoint_copy *checkpoint_copy_create(const struct model *here, struct err *err)
{
	const struct model *m = model_whole(here);
	size_t floats = 3 * m->parameters, lost = kept_lost_bytes(m);
	size_t bytes = floats * sizeof(float) + lost;
	const struct backend *be = here->backend;
	float *host = be->alloc_host ? be->alloc_host(here->device, bytes) : malloc(bytes);

	if (!host) {
		err_set(err, ERR_IO,
			"no memory for the copy that checkpoints are written from "
			"(%zu MiB)",
			bytes >> 20);
		return NULL;
	}
	memset(host, 0, bytes); /* page faults now, not in the first save */
	struct checkpoint_copy *c = xcalloc(1, sizeof(*c));
	*c = (struct checkpoint_copy){ .model = m,
				       .here = here,
				       .weights = host,
				       .lost = lost ? (uint16_t *)(void *)(host + floats) : NULL,
				       .amax = make_amax(here),
				       .moment = { host + m->parameters,
						   host + 2 * m->parameters } };
	return c;
}

void checkpoint_copy_destroy(struct checkpoint_copy *c)
{
	if (!c)
		return;
	if (c->here->backend->free_host)
		c->here->backend->free_host(c->here->device, c->weights);
	else
		free(c->weights);
	free(c->choices);
	free(c->amax);
	free(c);
}

/* An array that a checkpoint takes as it lies on the device: `bytes` an element, one for so many
 * parameters. */
struct held {
	void *from;
	size_t at, bytes, each; /* at: bytes from the beginning of its host memory */
};
enum { HELD_MAX = 6 };

/* weights, then m, v with 8 bits their scales; then what bf16 weights have lost. */
static size_t list_held(const struct checkpoint_parts *p, struct held out[HELD_MAX])
{
	const struct model *m = p->model;
	enum moments kind = m->options.moments;
	size_t n = 0, scales = kept_scales_at(m->parameters),
	       each = model_whole(m)->parameters * sizeof(float);

	out[n++] = (struct held){ m->weights, 0, sizeof(float), 1 };
	for (size_t k = 0; k < 2; k++) {
		char *moment = k == 0 ? p->kept->m : p->kept->v;
		size_t at = (1 + k) * each;
		out[n++] = (struct held){ moment, at, kept_at(kind, 1), 1 };
		if (kind == MOMENTS_8BIT)
			out[n++] = (struct held){ moment + scales, at + scales, sizeof(float),
						  MOMENTS_SHARE };
	}
	if (p->kept->lost)
		out[n++] = (struct held){ p->kept->lost, 3 * each, sizeof(uint16_t), 1 };
	return n;
}

/* host: the copy's memory; NULL: on another rank. */
static int collect(const struct checkpoint_parts *p, char *host, struct err *err)
{
	struct held held[HELD_MAX];
	size_t count = list_held(p, held);

	for (size_t i = 0; i < count; i++)
		if (sharded_collect_whole(p->sharded, held[i].from, held[i].bytes, held[i].each,
					  host ? host + held[i].at : NULL, err))
			return -1;
	return 0;
}

int checkpoint_copy_give(const struct checkpoint_parts *p, struct err *err)
{
	return collect(p, NULL, err);
}

static void copy_all(struct checkpoint_copy *c, const struct checkpoint_parts *p)
{
	const struct model *m = p->model;
	const struct backend *be = m->backend;
	void (*take)(struct device *, void *, const void *, size_t) = be->fetch ? be->fetch
										: be->download;
	struct held held[HELD_MAX];
	size_t count = list_held(p, held);

	for (size_t i = 0; i < count; i++)
		take(m->device, (char *)c->weights + held[i].at, held[i].from,
		     (m->parameters + held[i].each - 1) / held[i].each * held[i].bytes);
}

int checkpoint_copy_take(struct checkpoint_copy *c, const struct checkpoint_parts *p,
			 struct err *err)
{
	const struct model *m = p->model;
	const struct backend *be = m->backend;

	if (p->sharded && collect(p, (char *)c->weights, err))
		return -1;
	if (!p->sharded)
		copy_all(c, p);
	c->is_narrow = m->options.moments == MOMENTS_BF16;
	precision_history_get(m->precision, c->amax);
	c->state = *p->state;
	c->tokenizer = p->tokenizer;
	free(c->choices);
	c->choices = be->choices ? be->choices(m->device) : NULL;
	return 0;
}

/* Where they lie: from the end on, so that nothing is overwritten before it is read. */
static void widen_in_place(float *moment, size_t count)
{
	const uint16_t *narrow = (const uint16_t *)(const void *)moment;

	while (count-- > 0) {
		uint16_t half;
		memcpy(&half, narrow + count, sizeof(half));
		narrow_from_bf16(moment + count, &half, 1);
	}
}

/* All bytes are here, in fp32. */
static int complete(struct checkpoint_copy *c, struct err *err)
{
	const struct model *here = c->here;
	char why[BACKEND_TEXT_BYTES];

	if (here->backend->fetched && here->backend->fetched(here->device, why))
		return err_set(err, ERR_IO, "%s", why);
	for (int k = 0; c->is_narrow && k < 2; k++)
		widen_in_place(c->moment[k], c->model->parameters);
	c->is_narrow = false;
	return 0;
}

/* --- writing the files ---------------------------------------------------------------------- */

static struct st_tensor describe(const struct model_tensor *t, const char *name, enum st_type type,
				 const void *base)
{
	static const size_t bytes[ST_TYPE_COUNT] = { [ST_F32] = 4, [ST_BF16] = 2, [ST_U8] = 1 };

	return (struct st_tensor){
		.name = name,
		.type = type,
		.dimensions = t->columns ? 2 : 1,
		.shape = { t->rows, t->columns },
		.data = (const char *)base + t->offset * bytes[type],
	};
}

static int write_weights(const struct checkpoint_copy *c, const char *path, struct err *err)
{
	static const char *const metadata[] = { "format", "pt", NULL };
	const struct model *m = c->model;
	struct st_tensor *list = xcalloc(m->tensors, sizeof(*list));

	for (size_t i = 0; i < m->tensors; i++)
		list[i] = describe(&m->tensor[i], m->tensor[i].name, ST_F32, c->weights);
	int rc = st_write(path, list, m->tensors, metadata, err);
	free(list);
	return rc;
}

/* All tensors of one array, under a prefix; names are the caller's to free. */
static size_t describe_all(const struct model *m, const char *prefix, enum st_type type,
			   const void *base, struct st_tensor *list, char **names)
{
	for (size_t i = 0; i < m->tensors; i++) {
		names[i] = xasprintf("%s%s", prefix, m->tensor[i].name);
		list[i] = describe(&m->tensor[i], names[i], type, base);
	}
	return m->tensors;
}

static int write_moments(const struct checkpoint_copy *c, const char *path, struct err *err)
{
	const struct model *m = c->model;
	size_t most = 3 * m->tensors + 2, n = 0;
	struct st_tensor *list = xcalloc(most, sizeof(*list));
	char **names = xcalloc(most, sizeof(*names));
	bool is_8bit = m->options.moments == MOMENTS_8BIT;

	for (size_t k = 0; k < 2; k++)
		n += describe_all(m, checkpoint_moment_prefix(k), is_8bit ? ST_U8 : ST_F32,
				  c->moment[k], list + n, names + n);
	for (size_t k = 0; is_8bit && k < 2; k++, n++) {
		names[n] = xstrdup(checkpoint_scale_name(k));
		list[n] = (struct st_tensor){ .name = names[n],
					      .type = ST_F32,
					      .dimensions = 1,
					      .shape = { kept_scales(m->parameters) },
					      .data = (const char *)c->moment[k] +
						      kept_scales_at(m->parameters) };
	}
	if (c->lost)
		n += describe_all(m, CHECKPOINT_LOST, ST_BF16, c->lost, list + n, names + n);
	int rc = st_write(path, list, n, NULL, err);
	for (size_t i = 0; i < n; i++)
		free(names[i]);
	free(names);
	free(list);
	return rc;
}

/* Takes the object. */
static int write_json(const char *path, json_t *object, struct err *err)
{
	FILE *out = fopen(path, "we");
	int rc = -1;

	if (out) {
		rc = json_dumpf(object, out, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
		rc = fputc('\n', out) == EOF ? -1 : rc;
		rc = fclose(out) != 0 ? -1 : rc;
	}
	json_decref(object);
	return rc == 0 ? 0 : err_errno(err, "%s", path);
}

static json_t *amax_json(const struct checkpoint_copy *c)
{
	size_t count = precision_history_count(c->here->precision);
	json_t *list = json_array();

	for (size_t i = 0; i < count; i++)
		json_array_append_new(list, json_real((double)c->amax[i]));
	return list;
}

static json_t *state_json(const struct checkpoint_copy *c)
{
	const struct train_state *s = &c->state;
	json_t *o = json_object();

	js_set_int(o, "format", CHECKPOINT_STATE_FORMAT);
	js_set_int(o, "step", s->step);
	js_set_int(o, "tokens", s->tokens);
	js_set_int(o, "samples", s->samples);
	js_set_int(o, "seed", s->seed);
	js_set_int(o, "seq_len", s->seq_len);
	js_set_real(o, "loss", s->loss);
	js_set_real(o, "usual_norm", s->spike_filter.usual_norm);
	js_set_int(o, "judged", s->spike_filter.judged);
	js_set_int(o, "skipped", s->spike_filter.skipped);
	js_set_int(o, "skipped_in_a_row", s->spike_filter.in_a_row);
	js_set_str(o, "data_digest", s->data_digest);
	js_set_str(o, "config_digest", s->config_digest);
	if (c->amax)
		json_object_set_new(o, "amax_history", amax_json(c));
	if (c->choices)
		js_set_str(o, "device_choices", c->choices);
	return o;
}

static int write_file(const struct checkpoint_copy *c, const char *folder, const char *name,
		      struct err *err)
{
	char *path = path_join("%s/%s", folder, name);
	int rc;

	if (name == WEIGHTS)
		rc = write_weights(c, path, err);
	else if (name == OPTIMIZER)
		rc = write_moments(c, path, err);
	else if (name == SHAPE)
		rc = write_json(path,
				hf_config_json(&c->model->shape, c->model->options.seq, "float32"),
				err);
	else
		rc = write_json(path, state_json(c), err);
	free(path);
	return rc;
}

static int write_tokenizer(const struct tokenizer_file *t, const char *folder, struct err *err)
{
	char *path = path_join("%s/%s", folder, t->name);
	FILE *out = fopen(path, "we");
	int rc = out && fwrite(t->bytes, 1, t->len, out) == t->len ? 0 : -1;

	if (out && fclose(out) != 0)
		rc = -1;
	if (rc)
		err_errno(err, "%s", path);
	free(path);
	return rc;
}

static int write_files(const struct checkpoint_copy *c, const char *folder, struct err *err)
{
	static const char *const names[] = { WEIGHTS, OPTIMIZER, SHAPE, STATE };
	static const enum failpoint points[] = { FP_CHECKPOINT_WEIGHTS, FP_CHECKPOINT_OPTIMIZER,
						 FP_CHECKPOINT_SHAPE, FP_CHECKPOINT_STATE };
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < sizeof(names) / sizeof(names[0]); i++) {
		rc = write_file(c, folder, names[i], err);
		if (rc == 0)
			rc = failpoint(points[i], err);
	}
	return rc == 0 && c->tokenizer ? write_tokenizer(c->tokenizer, folder, err) : rc;
}

/* --- publishing ----------------------------------------------------------------------------- */

/* Completes tmp under the name `sealed`: files on disk, manifest written. */
static int seal(const struct checkpoint_copy *c, const struct checkpoint_rules *rules,
		const char *tmp, const char *sealed, struct err *err)
{
	const char *const names[] = { WEIGHTS, OPTIMIZER, SHAPE, STATE,
				      c->tokenizer ? c->tokenizer->name : NULL };
	enum { FILES = sizeof(names) / sizeof(names[0]) };
	const size_t count = c->tokenizer ? FILES : FILES - 1;
	struct manifest_file files[FILES];
	struct manifest m = { .step = c->state.step,
			      .tokens = c->state.tokens,
			      .world_size = 1,
			      .attempt = rules->attempt,
			      .files = files,
			      .file_count = count };

	memset(files, 0, sizeof(files));
	snprintf(m.config_hash, sizeof(m.config_hash), "%s", c->state.config_digest);
	for (size_t i = 0; i < count; i++)
		files[i].name = xstrdup(names[i]);
	int rc = manifest_publish(tmp, sealed, &m, err);
	for (size_t i = 0; i < count; i++)
		free(files[i].name);
	return rc;
}

/* A newer attempt may train from what lies here already: nothing may appear under its feet. */
static int check_fence(const struct checkpoint_rules *rules, struct err *err)
{
	if (!rules->run_dir || rules->attempt <= 0)
		return 0;
	int64_t newest = attempt_newest_claim(rules->run_dir);
	if (newest <= rules->attempt)
		return 0;
	return err_set(err, ERR_REFUSED,
		       "attempt %" PRId64 " was replaced by attempt %" PRId64 ": nothing published",
		       rules->attempt, newest);
}

/* A folder of that name is there already (a torn one that was passed over, or the run went back to
 * an older one): the two change places in one move. */
static int replace(const char *sealed, const char *folder, struct err *err)
{
	char *aside = scratch_name(folder, "old");
	int rc = 0;

	if (renameat2(AT_FDCWD, sealed, AT_FDCWD, folder, RENAME_EXCHANGE) != 0) {
		/* not every file system can: two moves then */
		if (rename(folder, aside) != 0 || rename(sealed, folder) != 0)
			rc = err_errno(err, "%s", folder);
	}
	if (rc == 0)
		log_info("%s: replaced", folder);
	if (folder_remove(aside, NULL))
		log_warn("%s: a replaced checkpoint could not be removed", folder);
	free(aside);
	return rc;
}

static int put_in_place(const char *sealed, const char *folder, const char *parent, struct err *err)
{
	int rc;

	if (file_exists(folder))
		rc = replace(sealed, folder, err);
	else
		rc = rename(sealed, folder) == 0 ? 0 : err_errno(err, "%s", folder);
	return rc == 0 ? folder_sync(parent, err) : -1;
}

static int publish(const struct checkpoint_copy *c, const struct checkpoint_rules *rules,
		   const char *parent, const char *folder, struct err *err)
{
	char *tmp = scratch_name(folder, "tmp"), *sealed = scratch_name(folder, "new");
	int rc = -1;

	if (check_fence(rules, err) == 0 && folder_remove(tmp, err) == 0 &&
	    folder_remove(sealed, err) == 0 && folder_make(tmp, MODE, err) == 0 &&
	    write_files(c, tmp, err) == 0 && seal(c, rules, tmp, sealed, err) == 0 &&
	    failpoint(FP_CHECKPOINT_SEALED, err) == 0 && check_fence(rules, err) == 0)
		rc = put_in_place(sealed, folder, parent, err);
	failpoint(FP_CHECKPOINT_PLACED, NULL);
	if (folder_remove(tmp, NULL) || folder_remove(sealed, NULL))
		log_warn("%s: what is left of it could not be removed", tmp);
	free(tmp);
	free(sealed);
	return rc;
}

int checkpoint_publish(struct checkpoint_copy *c, const struct checkpoint_rules *rules, char **path,
		       struct err *err)
{
	char parent[PATH_MAX];

	*path = NULL;
	if (complete(c, err) || folder_make(rules->parent, MODE, err))
		return -1;
	if (!realpath(rules->parent, parent))
		return err_errno(err, "%s", rules->parent);
	char *folder = path_join("%s/step-%08" PRId64, parent, c->state.step);
	if (publish(c, rules, parent, folder, err)) {
		free(folder);
		return -1;
	}
	retention_apply(parent, c->state.step, rules->keep_latest_k, rules->keep_every);
	*path = folder;
	return 0;
}
