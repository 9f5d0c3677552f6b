/* SPDX-License-Identifier: MIT */
/* checkpoint_files.c - the files of a checkpoint, written from a copy. */
#include "worker/lbworker/checkpoint/checkpoint_copy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/failpoint.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "worker/lbworker/base/safetensors.h"
#include "worker/lbworker/checkpoint/checkpoint_names.h"
#include "worker/lbworker/families/hf_config.h"

enum { NAME_BYTES = 160 };

static const char WEIGHTS[] = CHECKPOINT_WEIGHTS;
static const char OPTIMIZER[] = CHECKPOINT_OPTIMIZER;
static const char MEAN[] = CHECKPOINT_MEAN;
static const char ADAPTER[] = CHECKPOINT_ADAPTER;
static const char ADAPTER_CONFIG[] = CHECKPOINT_ADAPTER_CONFIG;
static const char SHAPE[] = "config.json";
static const char STATE[] = CHECKPOINT_STATE;

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

static int write_weights(const struct checkpoint_copy *c, const float *weights, const char *path,
			 struct err *err)
{
	static const char *const metadata[] = { "format", "pt", NULL };
	const struct model *m = c->model;
	struct st_tensor *list = xcalloc(m->tensors, sizeof(*list));

	for (size_t i = 0; i < m->tensors; i++)
		list[i] = describe(&m->tensor[i], m->tensor[i].name, ST_F32, weights);
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

/* A and B of each adapter, from one of the three arrays of them. */
static size_t describe_adapters(const struct lora *l, const char *prefix, const float *values,
				struct st_tensor *list, char **names)
{
	char name[NAME_BYTES];
	size_t n = 0;

	for (size_t i = 0; i < l->pairs; i++) {
		const struct lora_pair *p = &l->pair[i];
		for (int k = 0; k < 2; k++, n++) {
			lora_name(name, sizeof(name), p->tensor->name, k == 0 ? 'A' : 'B');
			names[n] = xasprintf("%s%s", prefix, name);
			list[n] = (struct st_tensor){
				.name = names[n],
				.type = ST_F32,
				.dimensions = 2,
				.shape = { k == 0 ? l->rules.rank : p->out,
					   k == 0 ? p->in : l->rules.rank },
				.data = values + (k == 0 ? p->a : p->b),
			};
		}
	}
	return n;
}

/* Of adapters: themselves (first 0, count 1), or their moments (1, 2). */
static int write_adapters(const struct checkpoint_copy *c, size_t first, size_t count,
			  const char *path, struct err *err)
{
	static const char *const metadata[] = { "format", "pt", NULL };
	const struct lora *l = c->lora;
	struct st_tensor *list = xcalloc(count * 2 * l->pairs, sizeof(*list));
	char **names = xcalloc(count * 2 * l->pairs, sizeof(*names));
	size_t n = 0;

	for (size_t k = first; k < first + count; k++)
		n += describe_adapters(l, k == 0 ? "" : checkpoint_moment_prefix(k - 1),
				       c->adapters + k * l->count, list + n, names + n);
	int rc = st_write(path, list, n, metadata, err);
	for (size_t i = 0; i < n; i++)
		free(names[i]);
	free(names);
	free(list);
	return rc;
}

static int write_adapter_config(const struct checkpoint_copy *c, const char *path, struct err *err)
{
	char *text = lora_config_json(c->lora, c->base);
	FILE *out = fopen(path, "we");
	int rc = out && fprintf(out, "%s\n", text) > 0 ? 0 : -1;

	if (out && fclose(out) != 0)
		rc = -1;
	free(text);
	return rc == 0 ? 0 : err_errno(err, "%s", path);
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
	js_set_str(o, "optimizer", s->optimizer.name);
	js_set_real(o, "lr", s->optimizer.lr);
	js_set_real(o, "beta1", s->optimizer.beta1);
	js_set_real(o, "beta2", s->optimizer.beta2);
	js_set_real(o, "eps", s->optimizer.eps);
	js_set_real(o, "weight_decay", s->optimizer.weight_decay);
	if (c->mean)
		js_set_int(o, "averaged", s->averaged);
	if (s->noise.trace != 0) {
		js_set_real(o, "noise_square", s->noise.square);
		js_set_real(o, "noise_trace", s->noise.trace);
	}
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

	if (name == WEIGHTS || name == MEAN)
		rc = write_weights(c, name == MEAN ? c->mean : c->weights, path, err);
	else if (name == ADAPTER)
		rc = write_adapters(c, 0, 1, path, err);
	else if (name == ADAPTER_CONFIG)
		rc = write_adapter_config(c, path, err);
	else if (name == OPTIMIZER)
		rc = c->lora ? write_adapters(c, 1, 2, path, err) : write_moments(c, path, err);
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

size_t checkpoint_files(const struct checkpoint_copy *c, const char *names[CHECKPOINT_FILES_MAX])
{
	static const char *const always[] = { WEIGHTS, OPTIMIZER, SHAPE, STATE };
	size_t count = sizeof(always) / sizeof(always[0]);

	memcpy(names, always, sizeof(always));
	if (c->mean)
		names[count++] = MEAN;
	if (c->lora) {
		names[count++] = ADAPTER;
		names[count++] = ADAPTER_CONFIG;
	}
	if (c->tokenizer)
		names[count++] = c->tokenizer->name;
	return count;
}

int checkpoint_files_write(const struct checkpoint_copy *c, const char *folder, struct err *err)
{
	static const enum failpoint points[] = { FP_CHECKPOINT_WEIGHTS, FP_CHECKPOINT_OPTIMIZER,
						 FP_CHECKPOINT_SHAPE, FP_CHECKPOINT_STATE };
	const char *names[CHECKPOINT_FILES_MAX];
	size_t count = checkpoint_files(c, names);
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < count; i++) {
		if (c->tokenizer && names[i] == c->tokenizer->name)
			rc = write_tokenizer(c->tokenizer, folder, err);
		else
			rc = write_file(c, folder, names[i], err);
		if (rc == 0 && i < sizeof(points) / sizeof(points[0]))
			rc = failpoint(points[i], err);
	}
	return rc;
}
