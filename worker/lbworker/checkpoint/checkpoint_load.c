/* SPDX-License-Identifier: MIT */
/* checkpoint_load.c - a checkpoint back onto the device, each rank its part. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "worker/lbworker/base/narrow.h"
#include "worker/lbworker/base/safetensors.h"
#include "worker/lbworker/checkpoint/checkpoint.h"
#include "worker/lbworker/checkpoint/checkpoint_names.h"
#include "worker/lbworker/checkpoint/hf.h"
#include "worker/lbworker/model/slice.h"

enum { MAX_STATE_BYTES = 16 << 20, NAME_BYTES = 160 };

/* Of tensor number i what is here and lies within the range, to its place in `host`. */
static void take_within(const struct model *m, size_t i, const struct st_tensor *from, size_t bytes,
			const struct model_unit *range, char *host)
{
	size_t behind = range->first + range->count;
	struct slice_walk walk = slice_begin(m, i);
	struct slice_run run;

	while (slice_next(&walk, &run)) {
		size_t at = m->tensor[i].offset + run.local, end = at + run.count;
		size_t first = at > range->first ? at : range->first;
		end = end < behind ? end : behind;
		if (first < end)
			memcpy(host + first * bytes,
			       (const char *)from->data + (run.whole + (first - at)) * bytes,
			       (end - first) * bytes);
	}
}

static bool is_within(const struct model_tensor *t, const struct model_unit *range)
{
	size_t count = t->rows * (t->columns ? t->columns : 1);

	return t->offset < range->first + range->count && range->first < t->offset + count;
}

/* An array as files hold it: its tensors have a prefix, a type, and so many bytes an element. */
struct stored_as {
	const char *prefix;
	enum st_type type;
	size_t bytes;
	bool narrow;               /* to be bf16 on the device */
	struct model_unit without; /* units within it have no place there; count 0: none */
};

/* Ranges come in order, so that narrow numbers may lie where earlier ones were. */
static void upload_range(const struct model *m, char *device, const struct model_unit *range,
			 const struct stored_as *as, float *host)
{
	size_t each = as->narrow ? sizeof(uint16_t) : as->bytes;
	uint16_t *halves = (uint16_t *)(void *)host;

	if (as->narrow)
		narrow_to_bf16(halves + range->first, host + range->first, range->count);
	m->backend->upload(m->device, device + range->first * each,
			   (char *)host + range->first * each, range->count * each);
}

static int load_array(const struct checkpoint_parts *p, const struct st_file *file,
		      const struct stored_as *as, void *device, float *host, struct err *err)
{
	const struct model *m = p->model;
	const struct model_unit all = { 0, m->parameters }, *out = &as->without;
	bool in_units = p->sharded || out->count > 0;

	for (size_t u = 0; u < (in_units ? m->units : 1); u++) {
		const struct model_unit *unit = in_units ? &m->unit[u] : &all;
		const struct model_unit own = p->sharded ? sharded_own(p->sharded, u) : *unit;
		if (unit->first >= out->first && unit->first < out->first + out->count)
			continue;
		for (size_t i = 0; i < m->tensors; i++) {
			const struct model_tensor *t = &model_whole(m)->tensor[i];
			const uint64_t shape[ST_MAX_DIMENSIONS] = { t->rows, t->columns };
			char name[128];
			snprintf(name, sizeof(name), "%s%s", as->prefix, t->name);
			const struct st_tensor *from = st_find(file, name, as->type, shape, err);
			if (!from)
				return -1;
			if (is_within(&m->tensor[i], &own))
				take_within(m, i, from, as->bytes, &own, (char *)host);
		}
		upload_range(m, device, &own, as, host);
	}
	return 0;
}

/* Scales of 8-bit moments: all of them, wherever they are used. */
static int load_scales(const struct checkpoint_parts *p, const struct st_file *file,
		       const char *name, char *moment, struct err *err)
{
	const struct model *m = p->model;
	const uint64_t shape[ST_MAX_DIMENSIONS] = { kept_scales(m->parameters) };
	const struct st_tensor *from = st_find(file, name, ST_F32, shape, err);

	if (from)
		m->backend->upload(m->device, moment + kept_scales_at(m->parameters), from->data,
				   from->bytes);
	return from ? 0 : -1;
}

/* One of a training that kept no mean begins it with its next step. */
static int load_mean(const struct checkpoint_parts *p, const char *folder, float *host,
		     struct err *err)
{
	const struct stored_as as = { .prefix = "", .type = ST_F32, .bytes = sizeof(float) };

	if (!p->kept->mean || p->state->averaged == 0)
		return 0;
	char *path = path_join("%s/%s", folder, CHECKPOINT_MEAN);
	struct st_file *file = st_open(path, err);
	int rc = file ? load_array(p, file, &as, p->kept->mean, host, err) : -1;
	st_close(file);
	free(path);
	return rc;
}

static int load_weights(const struct checkpoint_parts *p, const char *folder, float *host,
			struct err *err)
{
	const struct stored_as as = { .prefix = "", .type = ST_F32, .bytes = sizeof(float) };
	char *path = path_join("%s/%s", folder, CHECKPOINT_WEIGHTS);
	struct st_file *file = st_open(path, err);
	const struct model *whole = model_whole(p->model);
	int rc = file ? load_array(p, file, &as, p->model->weights, host, err) : -1;

	if (rc == 0 && st_count(file) != whole->tensors)
		rc = err_set(err, ERR_USAGE,
			     "%s: holds %zu tensors, the model of the config has %zu: "
			     "model.n_layers, or another key of [model], was another one",
			     path, st_count(file), whole->tensors);
	if (rc == 0)
		rc = hf_check_config(&whole->shape, folder, err);
	st_close(file);
	free(path);
	return rc;
}

/* A training that kept nothing of it has lost nothing so far. */
static bool keeps_lost(const struct st_file *file, const struct model *whole)
{
	char name[NAME_BYTES];

	snprintf(name, sizeof(name), CHECKPOINT_LOST "%s", whole->tensor[0].name);
	return st_named(file, name);
}

static int load_moments(const struct checkpoint_parts *p, const char *folder, float *host,
			struct err *err)
{
	char *path = path_join("%s/%s", folder, CHECKPOINT_OPTIMIZER);
	struct st_file *file = st_open(path, err);
	enum moments kind = p->model->options.moments;
	const struct model_unit nothing = { 0 };
	bool is_8bit = kind == MOMENTS_8BIT;
	int rc = file ? 0 : -1;

	for (size_t k = 0; rc == 0 && k < 2; k++) {
		void *moment = k == 0 ? p->kept->m : p->kept->v;
		const struct stored_as as = { checkpoint_moment_prefix(k), is_8bit ? ST_U8 : ST_F32,
					      is_8bit ? 1 : sizeof(float), kind == MOMENTS_BF16,
					      k == 0 ? nothing : p->kept->without_v };
		rc = load_array(p, file, &as, moment, host, err);
		if (rc == 0 && is_8bit)
			rc = load_scales(p, file, checkpoint_scale_name(k), moment, err);
	}
	if (rc == 0 && p->kept->lost && keeps_lost(file, model_whole(p->model))) {
		const struct stored_as as = { .prefix = CHECKPOINT_LOST,
					      .type = ST_BF16,
					      .bytes = sizeof(uint16_t) };
		rc = load_array(p, file, &as, p->kept->lost, host, err);
	}
	st_close(file);
	free(path);
	return rc;
}

static int check_state(const struct train_state *now, const json_t *o, const char *path,
		       struct err *err)
{
	if (js_int(o, "format", 0) != CHECKPOINT_STATE_FORMAT)
		return err_set(err, ERR_USAGE, "%s: format is not %d", path,
			       CHECKPOINT_STATE_FORMAT);
	if (js_int(o, "seq_len", -1) != now->seq_len)
		return err_set(err, ERR_USAGE,
			       "%s: was trained with training.seq_len = %" PRId64
			       ", the config says %" PRId64,
			       path, js_int(o, "seq_len", -1), now->seq_len);
	if (js_int(o, "seed", -1) != now->seed)
		return err_set(err, ERR_USAGE,
			       "%s: was trained with training.seed = %" PRId64
			       ", the config says %" PRId64,
			       path, js_int(o, "seed", -1), now->seed);
	/* earlier programs did not say it */
	const char *optimizer = js_str(o, "optimizer", now->optimizer.name);
	if (strcmp(optimizer, now->optimizer.name) != 0)
		return err_set(err, ERR_USAGE,
			       "%s: was trained with optimizer.name = \"%s\", whose moments are of "
			       "no use to %s: begin a new training with --init-from its folder",
			       path, optimizer, now->optimizer.name);
	if (strcmp(js_str(o, "data_digest", ""), now->data_digest) != 0)
		return err_set(err, ERR_USAGE,
			       "%s: was trained on other data than training.dataset_path holds now",
			       path);
	if (js_int(o, "step", -1) < 0 || js_int(o, "tokens", -1) < 0 ||
	    js_int(o, "samples", -1) < 0)
		return err_set(err, ERR_USAGE, "%s: step, tokens or samples is missing", path);
	return 0;
}

/* The algorithms that the training had: with them it goes on to the bit. Written on another GPU or
 * by another library they are of no use here. */
static void take_choices(const struct model *m, const json_t *o)
{
	const char *text = js_str(o, "device_choices", "");

	if (m->backend->choose && text[0] != '\0' && m->backend->choose(m->device, text) < 0)
		log_info("the checkpoint was written on another GPU: algorithms are chosen anew");
}

/* One of another recipe begins anew: a current scale, until there is a past. */
static void take_amax(struct precision *precision, const json_t *o)
{
	const json_t *list = json_object_get(o, "amax_history");
	size_t count = precision_history_count(precision);

	if (count == 0 || json_array_size(list) != count)
		return;
	float *amax = xcalloc(count, sizeof(*amax));
	for (size_t i = 0; i < count; i++)
		amax[i] = (float)json_number_value(json_array_get(list, i));
	precision_history_set(precision, amax);
	free(amax);
}

static int load_state(const struct checkpoint_parts *p, const char *folder, struct err *err)
{
	struct train_state *state = p->state;
	char *path = path_join("%s/%s", folder, CHECKPOINT_STATE);
	json_t *o = js_load(path, MAX_STATE_BYTES, err);
	int rc = o ? check_state(state, o, path, err) : -1;

	if (rc == 0) {
		state->step = js_int(o, "step", 0);
		state->tokens = js_int(o, "tokens", 0);
		state->samples = js_int(o, "samples", 0);
		state->loss = js_real(o, "loss", 0);
		state->spike_filter = (struct spike_filter){ js_real(o, "usual_norm", 0),
							     js_int(o, "judged", 0),
							     js_int(o, "skipped", 0),
							     js_int(o, "skipped_in_a_row", 0) };
		state->averaged = p->kept->mean ? js_int(o, "averaged", 0) : 0;
		state->noise = (struct noise_scale){ js_real(o, "noise_square", 0),
						     js_real(o, "noise_trace", 0) };
		take_choices(p->model, o);
		take_amax(p->model->precision, o);
	}
	json_decref(o);
	free(path);
	return rc;
}

/* One of the three arrays of adapters. */
static int load_adapters(const struct lora *l, const struct st_file *file, const char *prefix,
			 float *values, struct err *err)
{
	const struct backend *be = l->model->backend;
	char name[NAME_BYTES], of[NAME_BYTES];

	for (size_t i = 0; i < 2 * l->pairs; i++) {
		const struct lora_pair *p = &l->pair[i / 2];
		bool is_a = i % 2 == 0;
		const uint64_t shape[ST_MAX_DIMENSIONS] = { is_a ? l->rules.rank : p->out,
							    is_a ? p->in : l->rules.rank };
		lora_name(of, sizeof(of), p->tensor->name, is_a ? 'A' : 'B');
		snprintf(name, sizeof(name), "%s%s", prefix, of);
		const struct st_tensor *from = st_find(file, name, ST_F32, shape, err);
		if (!from)
			return -1;
		be->upload(l->model->device, values + (is_a ? p->a : p->b), from->data,
			   from->bytes);
	}
	return 0;
}

static int load_adapter_file(const struct lora *l, const char *folder, const char *file_name,
			     bool is_moments, struct err *err)
{
	char *path = path_join("%s/%s", folder, file_name);
	struct st_file *file = st_open(path, err);
	int rc = file ? 0 : -1;

	if (rc == 0 && is_moments)
		rc = load_adapters(l, file, checkpoint_moment_prefix(0), l->m, err) ||
				     load_adapters(l, file, checkpoint_moment_prefix(1), l->v, err)
			     ? -1
			     : 0;
	else if (rc == 0)
		rc = load_adapters(l, file, "", l->values, err);
	st_close(file);
	free(path);
	return rc;
}

/* What was adapted must be what the checkpoint's model was made of: it is made again, and
 * compared. */
static int check_base(const struct checkpoint_parts *p, const char *folder, float *host,
		      struct err *err)
{
	const struct model *m = p->model;
	struct hf_weights *w = hf_weights_open(folder, NULL, &m->shape, err);
	int rc = w ? 0 : -1;

	m->backend->download(m->device, host, m->weights, m->parameters * sizeof(*host));
	for (size_t i = 0; i < m->tensors && rc == 0; i++) {
		const struct model_tensor *t = &m->tensor[i];
		const struct st_tensor *saved = hf_weights_find(w, t, err);
		if (!saved)
			rc = -1;
		else if (memcmp(saved->data, host + t->offset, saved->bytes) != 0)
			rc = err_set(err, ERR_USAGE,
				     "%s: %s is not what its adapter makes of the model in "
				     "checkpoint.initial_load_path: that model, lora.alpha or "
				     "lora.target_modules is another one by now",
				     folder, t->name);
	}
	hf_weights_close(w);
	return rc;
}

static int load_adapted(const struct checkpoint_parts *p, const char *folder, struct err *err)
{
	const struct lora *l = p->lora;

	if (load_state(p, folder, err) ||
	    hf_check_config(&model_whole(p->model)->shape, folder, err) ||
	    load_adapter_file(l, folder, CHECKPOINT_ADAPTER, false, err) ||
	    load_adapter_file(l, folder, CHECKPOINT_OPTIMIZER, true, err))
		return -1;
	lora_apply(l);
	float *host = xmalloc(p->model->parameters * sizeof(*host));
	int rc = check_base(p, folder, host, err);
	free(host);
	return rc;
}

/* Moments are of what was trained: adapters, or all weights. */
static int check_what_is_trained(const struct checkpoint_parts *p, const char *folder,
				 struct err *err)
{
	bool had_adapters = folder_holds(folder, CHECKPOINT_ADAPTER);

	if (had_adapters == (p->lora != NULL))
		return 0;
	return err_set(err, ERR_USAGE,
		       "%s: was trained %s lora.rank, the config has %s: begin a new training with "
		       "--init-from its folder",
		       folder, had_adapters ? "with" : "without", had_adapters ? "none" : "it");
}

int checkpoint_load(const struct checkpoint_parts *p, const char *folder, struct err *err)
{
	float *host;
	int rc;

	if (check_what_is_trained(p, folder, err))
		return -1;
	if (p->lora)
		return load_adapted(p, folder, err);
	if (load_state(p, folder, err))
		return -1;
	host = xmalloc(p->model->parameters * sizeof(float));
	rc = load_weights(p, folder, host, err);
	if (rc == 0)
		rc = load_moments(p, folder, host, err);
	if (rc == 0)
		rc = load_mean(p, folder, host, err);
	free(host);
	if (p->sharded)
		sharded_updated(p->sharded);
	return rc;
}
