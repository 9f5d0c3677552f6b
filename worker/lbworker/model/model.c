/* SPDX-License-Identifier: MIT */
/* model.c - where each parameter lies, what it is called, and how it starts. */
#include "worker/lbworker/model/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "worker/lbworker/model/activations.h"
#include "worker/lbworker/model/family.h"
#include "worker/lbworker/model/slice.h"

/* Limits that keep every product below within 64 bits; far above any model. */
enum { MAX_DIM = 1 << 17, MAX_FFN = 1 << 19, MAX_VOCAB = 1 << 24, MAX_LAYERS = 1 << 10 };
enum { MAX_ROWS = 1 << 28, MAX_EXPERTS = EXPERTS_MAX };

static bool within(size_t value, size_t max)
{
	return value >= 1 && value <= max;
}

static int check_heads(const struct model_shape *s, struct err *err)
{
	bool is_own = s->head_dim != 0; /* not what dim gives */

	if (!is_own && (s->dim % s->heads != 0 || s->dim / s->heads % 2 != 0))
		return err_set(err, ERR_USAGE,
			       "model: dim %zu must be heads %zu times an even number", s->dim,
			       s->heads);
	if (s->head_dim % 2 != 0 || s->head_dim > MAX_DIM / s->heads)
		return err_set(err, ERR_USAGE,
			       "model: head_dim %zu must be even, and heads times it at most %d",
			       s->head_dim, MAX_DIM);
	if (is_own && s->heads * s->head_dim != s->dim &&
	    (!model_has_own_heads(s->family) || s->umup.enable))
		return err_set(err, ERR_USAGE,
			       "model: head_dim %zu must be dim / heads in %s, and with u-muP",
			       s->head_dim, model_family_name(s->family));
	if (s->heads % s->kv_heads != 0)
		return err_set(err, ERR_USAGE,
			       "model: heads %zu must be a multiple of kv_heads %zu", s->heads,
			       s->kv_heads);
	if (!model_has_own_heads(s->family) && s->heads != s->kv_heads)
		return err_set(err, ERR_USAGE, "model: %s has as many kv_heads as heads",
			       family_of(s->family)->name);
	if (s->rotary % 2 != 0 || s->rotary > model_head_dim(s))
		return err_set(err, ERR_USAGE,
			       "model: rotary %zu must be even and within a head of %zu", s->rotary,
			       model_head_dim(s));
	return 0;
}

static int check_experts(const struct model_shape *s, const struct model_options *o,
			 struct err *err)
{
	const struct model_experts *e = &s->experts;

	if (!model_has_experts(s->family))
		return e->count == 0 ? 0
				     : err_set(err, ERR_USAGE, "model: %s has no experts",
					       model_family_name(s->family));
	if (!within(e->count, MAX_EXPERTS) || !within(e->top, e->count) ||
	    !within(e->ffn, MAX_FFN) || e->shared > MAX_FFN / e->ffn || e->dense > s->layers ||
	    !(e->scale > 0 && e->scale < 1e6))
		return err_set(
			err, ERR_USAGE,
			"model: %zu of %zu experts of width %zu, %zu shared ones, %zu layers "
			"without, or a scale of %g cannot be",
			e->top, e->count, e->ffn, e->shared, e->dense, e->scale);
	if (!model_has_shared_experts(s->family) && e->shared > 0)
		return err_set(err, ERR_USAGE, "model: %s has no shared experts",
			       model_family_name(s->family));
	if (model_has_shared_experts(s->family) && e->shared == 0)
		return err_set(err, ERR_USAGE, "model: %s has at least one shared expert",
			       model_family_name(s->family));
	if (o->batch * o->seq > MAX_ROWS / e->top)
		return err_set(err, ERR_USAGE,
			       "model: batch %zu x seq_len %zu is too much for %zu experts a token",
			       o->batch, o->seq, e->top);
	return 0;
}

static int check_shape(const struct model_shape *s, const struct model_options *o, struct err *err)
{
	if (!within(s->vocab, MAX_VOCAB) || !within(s->dim, MAX_DIM) || !within(s->ffn, MAX_FFN) ||
	    !within(s->layers, MAX_LAYERS) || !within(s->heads, s->dim) ||
	    !within(s->kv_heads, s->heads) || s->positions > MAX_ROWS)
		return err_set(err, ERR_USAGE, "model: a size is zero or out of range");
	if (check_heads(s, err))
		return -1;
	if (!within(o->batch, MAX_ROWS) || !within(o->seq, MAX_ROWS / o->batch))
		return err_set(err, ERR_USAGE, "model: batch %zu x seq_len %zu is out of range",
			       o->batch, o->seq);
	if ((s->window > 0 && !model_has_windows(s->family)) ||
	    ((s->query_scalar > 0 || s->score_softcap > 0 || s->logit_softcap > 0) &&
	     !model_has_softcaps(s->family)))
		return err_set(err, ERR_USAGE, "model: %s has no %s", model_family_name(s->family),
			       s->window > 0 && !model_has_windows(s->family) ? "sliding window"
									      : "softcaps");
	if (umup_check(s, err) || check_experts(s, o, err))
		return -1;
	if (o->context.degree > 1 && o->seq % (2 * (size_t)o->context.degree) != 0)
		return err_set(err, ERR_USAGE,
			       "model: seq_len %zu must be a multiple of %d where %d ranks share "
			       "a sequence: %zu would do",
			       o->seq, 2 * o->context.degree, o->context.degree,
			       (o->seq / (2 * (size_t)o->context.degree) + 1) * 2 *
				       (size_t)o->context.degree);
	if (family_of(s->family)->learned_positions && o->seq > s->positions)
		return err_set(err, ERR_USAGE, "model: seq_len %zu is more than its %zu positions",
			       o->seq, s->positions);
	return 0;
}

const char *model_part_name(int part)
{
	static const char *const name[AGAIN_PARTS] = { "normed", "qkv", "attended",
						       "middle", "up",  "hidden" };
	return name[part];
}

/* --- layout: the matrices of all tables in order, then the vectors ---------------------------- */

bool model_has_row(const struct model *m, const struct family_tensor *row)
{
	return row->name && !(row->param == PARAM_HEAD && m->shape.tied);
}

static bool is_of_each_expert(enum param param)
{
	return param == PARAM_EXPERT_UP || param == PARAM_EXPERT_DOWN;
}

size_t model_copies(const struct model *m, const struct family_tensor *row)
{
	return is_of_each_expert(row->param) ? m->shape.experts.count : 1;
}

const struct family_tensor *model_layer_table(const struct model *m, size_t l)
{
	return model_is_sparse(&m->shape, l) ? m->family->sparse : m->family->layer;
}

/* Gives the table's matrices (or its vectors) the next places behind m->parameters. */
static void place_table(struct model *m, const struct family_tensor *table, size_t l, bool matrices)
{
	size_t *at = m->layer[l].at;

	for (const struct family_tensor *row = table; model_has_row(m, row); row++) {
		if ((row->columns != EXTENT_NONE) != matrices)
			continue;
		if (at[row->param] == ABSENT)
			at[row->param] = m->parameters;
		m->parameters += model_copies(m, row) * slice_extent(&m->shape, row->rows) *
				 slice_extent(&m->shape, row->columns);
	}
}

/* Of matrices: what was placed since the unit before ended. */
static void end_unit(struct model *m, size_t unit, bool matrices)
{
	size_t first = unit > 0 ? m->unit[unit - 1].first + m->unit[unit - 1].count : 0;

	if (matrices)
		m->unit[unit] = (struct model_unit){ first, m->parameters - first };
}

static void lay_out(struct model *m)
{
	const struct family *f = m->family;
	size_t layers = m->shape.layers;

	for (size_t l = 0; l <= layers; l++)
		for (size_t i = 0; i < PARAM_COUNT; i++)
			m->layer[l].at[i] = ABSENT;
	for (int matrices = 1; matrices >= 0; matrices--) {
		place_table(m, f->first, layers, matrices);
		end_unit(m, 0, matrices);
		size_t first = m->parameters;
		for (size_t l = 0; l < layers; l++) {
			m->vectors[l] = m->parameters;
			place_table(m, model_layer_table(m, l), l, matrices);
			end_unit(m, 1 + l, matrices);
		}
		m->vectors[layers] = m->parameters;
		if (matrices && m->options.narrow_gradients) {
			m->narrow = first;
			m->narrow_end = m->parameters;
		}
		place_table(m, f->last, layers, matrices);
		end_unit(m, 1 + layers, matrices);
		if (matrices)
			m->decayed = m->parameters;
	}
	m->unit[m->units - 1] = (struct model_unit){ m->decayed, m->parameters - m->decayed };
}

/* What it takes to make a piece of a parameter that of a model without u-muP. `first`: the queries
 * among query, key and value; the gates among gates and ups. */
static double folded(const struct model *m, enum param param, bool first)
{
	const struct umup_scales *s = &m->scales;
	double root = sqrt((double)model_head_dim(&m->shape));

	switch (param) {
	case PARAM_QKV:
		return (double)s->qkv * (first && s->scores > 0 ? (double)s->scores * root : 1);
	case PARAM_OUT:
		return (double)s->out;
	case PARAM_UP:
		return (double)(first ? s->gate : s->up);
	case PARAM_DOWN:
		return (double)s->down;
	case PARAM_HEAD:
		return (double)s->head;
	default:
		return 1;
	}
}

/* "a.%zu.b" with a number in place of %zu, or as it is; the format stays a literal that a compiler can
 * check. */
static void put_number(const char *name, size_t number, char *out, size_t bytes)
{
	static const char sign[] = "%zu";
	const char *mark = strstr(name, sign);

	if (mark)
		snprintf(out, bytes, "%.*s%zu%s", (int)(mark - name), name, number,
			 mark + sizeof(sign) - 1);
	else
		snprintf(out, bytes, "%s", name);
}

/* `behind`: elements of the same parameter before this tensor. */
static void name_tensor(struct model *m, const struct family_tensor *row, size_t l,
			const char *prefix, size_t expert, size_t *behind)
{
	struct model_tensor *t = &m->tensor[m->tensors++];
	char name[64];

	t->offset = m->layer[l].at[row->param] + *behind;
	t->rows = slice_extent(&m->shape, row->rows);
	t->columns = row->columns == EXTENT_NONE ? 0 : slice_extent(&m->shape, row->columns);
	t->row_extent = row->rows;
	t->column_extent = row->columns;
	t->rate = umup_rate(&model_whole(m)->shape, row->param);
	t->unit_gradient = umup_unit_gradient(&model_whole(m)->shape, row->param);
	t->folded = folded(m, row->param, *behind == 0);
	t->is_balance = row->param == PARAM_BALANCE;
	*behind += t->rows * (t->columns ? t->columns : 1);
	put_number(row->name, expert, name, sizeof(name));
	snprintf(t->name, sizeof(t->name), "%s%s", prefix, name);
}

/* Rows of a parameter follow one another; those of experts do so for each of them. */
static void name_table(struct model *m, const struct family_tensor *table, size_t l,
		       const char *prefix)
{
	const struct family_tensor *row = table, *first;

	while (model_has_row(m, row)) {
		size_t behind = 0;
		first = row;
		for (size_t e = 0; e < model_copies(m, first); e++)
			for (row = first; model_has_row(m, row) && row->param == first->param;
			     row++)
				name_tensor(m, row, l, prefix, e, &behind);
	}
}

static size_t count_tensors(const struct model *m, const struct family_tensor *row)
{
	size_t count = 0;

	for (; model_has_row(m, row); row++)
		count += model_copies(m, row);
	return count;
}

static void name_tensors(struct model *m)
{
	size_t count = count_tensors(m, m->family->first) + count_tensors(m, m->family->last);
	char prefix[64];

	for (size_t l = 0; l < m->shape.layers; l++)
		count += count_tensors(m, model_layer_table(m, l));
	m->tensor = xcalloc(count, sizeof(*m->tensor));
	name_table(m, m->family->first, m->shape.layers, "");
	for (size_t l = 0; l < m->shape.layers; l++) {
		put_number(m->family->prefix, l, prefix, sizeof(prefix));
		name_table(m, model_layer_table(m, l), l, prefix);
	}
	name_table(m, m->family->last, m->shape.layers, "");
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
	if (check_shape(shape, options, err))
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
	m->layer = xcalloc(shape->layers + 1, sizeof(*m->layer));
	m->vectors = xcalloc(shape->layers + 1, sizeof(*m->vectors));
	m->units = shape->layers + 3;
	m->unit = xcalloc(m->units, sizeof(*m->unit));
	lay_out(m);
	name_tensors(m);
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

/* For norm_weight(): ones, and two places for 1 + a norm's weights. */
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
	const size_t bytes = m->parameters * sizeof(float);
	m->backend = backend;
	m->device = device;
	if (check_device(m, err) || take_ones(m, err)) {
		model_destroy(m);
		*out = NULL;
		return -1;
	}
	m->weights = options->in_parts && !backend->weights_wanted
			     ? backend->reserve(device, bytes)
			     : backend->alloc_weights(device, m->parameters, m->decayed);
	m->grads = options->in_parts ? backend->reserve(device, bytes)
				     : backend->alloc(device, model_grads_bytes(m), "gradients");
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

static size_t parameters_here(const struct model *m)
{
	size_t count = 0;

	for (size_t u = 0; u < m->units; u++)
		count += model_unit_here(m, u).count;
	return count;
}

static uint64_t tables_of(const struct model *m)
{
	const struct model_shape *s = &m->shape;
	uint64_t tables = s->vocab * s->dim;

	if (m->family->learned_positions)
		tables += s->positions * s->dim;
	return tables;
}

/* Of experts that a token does not go to. */
static uint64_t idle_of(const struct model *m)
{
	const struct model_experts *e = &m->shape.experts;
	uint64_t layers = e->count > 0 ? m->shape.layers - e->dense : 0;

	return layers * (e->count - e->top) * (m->family->gated ? 3 : 2) * m->shape.dim * e->ffn;
}

/* Tables are looked up, everything else of two sides is multiplied; a tied head is both. */
uint64_t model_multiplied(const struct model *m)
{
	const struct model_shape *s = &m->shape;

	return m->decayed - tables_of(m) + (s->tied ? s->vocab * s->dim : 0) - idle_of(m);
}

uint64_t model_active(const struct model *m)
{
	return m->parameters - idle_of(m);
}

size_t model_active_ffn(const struct model_shape *s, size_t l)
{
	return model_ffn_width(s, l) +
	       (model_is_sparse(s, l) ? s->experts.top * s->experts.ffn : 0);
}

/* A stage has the tables, or it does not; and a head that is no table. */
static uint64_t multiplied_here(const struct model *m)
{
	uint64_t elsewhere = m->parameters - parameters_here(m);

	return model_multiplied(m) - elsewhere + (model_is_first_stage(m) ? 0 : tables_of(m));
}

int model_cost(struct model_cost *out, const struct model_shape *shape,
	       const struct model_options *options, struct err *err)
{
	struct model *m;

	*out = (struct model_cost){ 0 };
	if (model_plan(&m, shape, options, err))
		return -1;
	out->parameters = parameters_here(m);
	out->active = out->parameters - idle_of(m);
	out->multiplied = multiplied_here(m);
	out->matrices = out->parameters - (m->parameters - m->decayed);
	out->gradient_bytes = model_grads_bytes(m) -
			      (m->parameters - out->parameters) * sizeof(float);
	out->activation_bytes = activations_bytes(m);
	for (size_t u = 0; u < m->units; u++)
		if (model_unit_here(m, u).count > out->widest)
			out->widest = m->unit[u].count;
	model_destroy(m);
	return 0;
}
