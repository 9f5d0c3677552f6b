/* SPDX-License-Identifier: MIT */
/* model.c - a model is made and freed; which of its parts are here. */
#include "worker/lbworker/model/model.h"

#include <stdlib.h>

#include "common/base/mem.h"
#include "worker/lbworker/model/activations.h"
#include "worker/lbworker/model/limits.h"
#include "worker/lbworker/model/slice.h"

const char *model_part_name(int part)
{
	static const char *const name[AGAIN_PARTS] = { "normed", "qkv", "attended",
						       "middle", "up",  "hidden" };
	return name[part];
}

/* --- life ----------------------------------------------------------------------------------- */

static size_t context_degree(const struct model_options *o)
{
	return o->context.degree > 1 ? (size_t)o->context.degree : 1;
}

static int plan_whole(struct model *m, const struct model_shape *shape, struct err *err)
{
	struct model_options options = m->options;

	options.split = (struct model_split){ 0 };
	options.context = (struct model_context){ 0 };
	options.pipeline = (struct model_pipeline){ 0 };
	return slice_check(shape, &m->options.split, err) ||
	       model_plan(&m->whole, shape, &options, err);
}

int model_plan(struct model **out, const struct model_shape *shape,
	       const struct model_options *options, struct err *err)
{
	*out = NULL;
	if (limits_check(shape, options, err))
		return -1;
	struct model *m = xcalloc(1, sizeof(*m));
	*m = (struct model){ .shape = slice_shape(shape, &options->split),
			     .options = *options,
			     .family = family_of(shape->family),
			     .norms_whole = family_norms_whole(family_of(shape->family)),
			     .batch = options->batch,
			     .seq = options->seq / context_degree(options),
			     .scales = umup_scales(shape) };
	if (options->split.degree > 1 && plan_whole(m, shape, err)) {
		free(m);
		return -1;
	}
	layout_make(m);
	if (shape->experts.count > 0)
		m->loads = xcalloc(shape->layers * shape->experts.count, sizeof(*m->loads));
	*out = m;
	return 0;
}

void model_fill(const struct model *m, float *to, size_t count, float value)
{
	float *host = xmalloc(count * sizeof(float));

	for (size_t i = 0; i < count; i++)
		host[i] = value;
	m->backend->upload(m->device, to, host, count * sizeof(float));
	free(host);
}

/* What this model needs of its device beside what all have; NULL: nothing that is not there. */
static const char *lacking(const struct model *m)
{
	const struct backend *be = m->backend;
	const struct model_options *o = &m->options;
	const struct model_shape *s = &m->shape;

	if ((s->window > 0 || s->score_softcap > 0 || o->mask_documents) && !be->masks_attention)
		return "windows, documents or softcaps in attention";
	if (layer_has(m, 0, PARAM_QUERY_NORM) && !be->qk_norm_forward)
		return "normed queries and keys";
	if ((layer_has(m, 0, PARAM_POST1) || m->family->scaled_embedding) && !be->scaled_sum)
		return "norms behind a layer's halves";
	if (m->family->gelu_gate && !be->geglu_forward)
		return "GeGLU";
	if (m->loads && !be->route_forward)
		return "experts";
	if (m->family->norms_at_zero && !(be->copy && be->add))
		return "norms of 1 + weight";
	if ((s->logit_softcap > 0 || o->smoothing > 0 || o->z_loss > 0) && !be->cross_entropy_with)
		return "softcaps, smoothing or z-loss in the loss";
	return NULL;
}

/* Operations that are not rounded where bf16 is emulated. */
static bool needs_fp32(const struct model *m)
{
	return !model_can_be_split(m->shape.family) || m->shape.logit_softcap > 0 ||
	       m->options.smoothing > 0 || m->options.z_loss > 0;
}

static int check_device(const struct model *m, struct err *err)
{
	const char *what = lacking(m);

	if (m->options.compute == COMPUTE_BF16_WIDE && needs_fp32(m))
		return err_set(
			err, ERR_USAGE,
			"model: bf16 is emulated for llama, neox, gpt2 and mistral, without "
			"smoothing and z-loss: training.mixed_precision_param = \"float32\"");
	return what ? err_set(err, ERR_USAGE,
			      "model: the %s backend does not have %s, as this %s needs: "
			      "device.name = \"cpu\"",
			      m->backend->name, what, m->family->name)
		    : 0;
}

/* For norm_weight() of layer.c: ones, and two places for 1 + a norm's weights. */
static int take_ones(struct model *m, struct err *err)
{
	size_t width = norm_width(&m->shape);

	if (!m->family->norms_at_zero)
		return 0;
	m->ones = m->backend->alloc(m->device, 3 * width * sizeof(float), "activations");
	if (!m->ones)
		return err_set(err, ERR_IO, "no memory for %zu weights of a norm", width);
	model_fill(m, m->ones, width, 1.0f);
	return 0;
}

static int depth_of(const struct model *m)
{
	return m->options.pipeline.depth > 1 ? m->options.pipeline.depth : 1;
}

static int take_activations(struct model *m, struct err *err)
{
	m->under_way = xcalloc((size_t)depth_of(m), sizeof(struct model_activations *));
	for (int i = 0; i < depth_of(m); i++) {
		m->under_way[i] = activations_create(m, m->under_way[0], err);
		if (!m->under_way[i])
			return -1;
	}
	m->activations = m->under_way[0];
	return 0;
}

int model_create(struct model **out, const struct model_shape *shape, const struct backend *backend,
		 struct device *device, const struct model_options *options, struct err *err)
{
	struct model *m;

	if (model_plan(out, shape, options, err))
		return -1;
	m = *out;
	m->backend = backend;
	m->device = device;
	if (check_device(m, err) || take_ones(m, err)) {
		model_destroy(m);
		*out = NULL;
		return -1;
	}
	if (options->take)
		options->take(options->take_arg, m);
	else {
		m->weights = backend->alloc_weights(device, m->parameters, m->decayed);
		m->grads = backend->alloc(device, model_grads_bytes(m), "gradients");
	}
	if (!m->weights || !m->grads)
		err_set(err, ERR_IO, "no memory for %zu parameters and their gradients (%zu MiB)",
			m->parameters, m->parameters * 2 * sizeof(float) >> 20);
	else if (take_activations(m, err) == 0)
		return 0;
	model_destroy(m);
	*out = NULL;
	return -1;
}

void model_destroy(struct model *m)
{
	if (!m)
		return;
	for (int i = depth_of(m) - 1; m->under_way && i >= 0; i--)
		activations_destroy(m, m->under_way[i]);
	free(m->under_way);
	if (m->backend) {
		m->backend->free(m->device, m->weights);
		m->backend->free(m->device, m->grads);
		m->backend->free(m->device, m->ones);
	}
	model_destroy(m->whole);
	free(m->layer);
	free(m->unit);
	free(m->vectors);
	free(m->tensor);
	free(m->loads);
	free(m);
}

/* --- stages ----------------------------------------------------------------------------------- */

int model_stage_of(const struct model *m, size_t unit)
{
	const struct model_pipeline *p = &m->options.pipeline;
	int stage = 0;

	if (unit == 0 || unit + 1 == m->units)
		return 0;
	while (stage + 1 < p->degree && unit - 1 >= p->end[stage])
		stage++;
	return stage;
}

struct model_unit model_vectors_of(const struct model *m, int stage)
{
	const struct model_pipeline *p = &m->options.pipeline;
	const struct model_unit all = m->unit[m->units - 1];
	size_t first = stage > 0 ? m->vectors[p->end[stage - 1]] : all.first;
	size_t end = stage + 1 < p->degree ? m->vectors[p->end[stage]] : all.first + all.count;

	return (struct model_unit){ first, end - first };
}

bool model_tensor_is_here(const struct model *m, size_t i)
{
	size_t u = 0;

	while (u + 1 < m->units && m->tensor[i].offset >= m->unit[u].first + m->unit[u].count)
		u++;
	return model_unit_here(m, u).count > 0;
}
