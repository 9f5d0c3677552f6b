/* SPDX-License-Identifier: MIT */
/* model.c - where each parameter lies, what it is called, and how it starts. */
#include "worker/lbworker/model.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/mem.h"
#include "worker/lbworker/rng.h"

/* Limits that keep every product below within 64 bits; far above any model. */
enum { MAX_WIDTH = 1 << 20, MAX_LAYERS = 4096, MAX_SEQ = 1 << 20, MAX_BATCH = 1 << 20 };
enum { TENSORS_PER_LAYER = 9, TENSORS_OUTSIDE = 3 };

static bool within(size_t value, size_t max)
{
	return value >= 1 && value <= max;
}

static int check_shape(const struct model_shape *s, size_t batch, size_t seq, struct err *err)
{
	if (!within(s->vocab, MAX_WIDTH) || !within(s->dim, MAX_WIDTH) ||
	    !within(s->ffn, MAX_WIDTH) || !within(s->layers, MAX_LAYERS) ||
	    !within(s->heads, s->dim) || !within(s->kv_heads, s->heads))
		return err_set(err, ERR_USAGE, "model: a size is zero or out of range");
	if (s->dim % s->heads != 0 || s->dim / s->heads % 2 != 0)
		return err_set(err, ERR_USAGE, "model: dim %zu must be heads %zu times an even number",
			       s->dim, s->heads);
	if (s->heads % s->kv_heads != 0)
		return err_set(err, ERR_USAGE, "model: heads %zu must be a multiple of kv_heads %zu",
			       s->heads, s->kv_heads);
	if (!within(batch, MAX_BATCH) || !within(seq, MAX_SEQ))
		return err_set(err, ERR_USAGE, "model: batch %zu x seq_len %zu is out of range",
			       batch, seq);
	return 0;
}

/* --- layout --------------------------------------------------------------------------------- */

static size_t place(size_t *end, size_t count)
{
	size_t at = *end;
	*end += count;
	return at;
}

static void lay_out(struct model *m)
{
	const struct model_shape *s = &m->shape;
	size_t head_dim = s->dim / s->heads, end = 0;

	m->embedding = place(&end, s->vocab * s->dim);
	for (size_t l = 0; l < s->layers; l++) {
		m->layer[l].qkv = place(&end, (s->heads + 2 * s->kv_heads) * head_dim * s->dim);
		m->layer[l].out = place(&end, s->dim * s->dim);
		m->layer[l].gate_up = place(&end, 2 * s->ffn * s->dim);
		m->layer[l].down = place(&end, s->dim * s->ffn);
	}
	m->head = s->tied ? m->embedding : place(&end, s->vocab * s->dim);
	m->decayed = end;
	for (size_t l = 0; l < s->layers; l++) {
		m->layer[l].attention_norm = place(&end, s->dim);
		m->layer[l].ffn_norm = place(&end, s->dim);
	}
	m->final_norm = place(&end, s->dim);
	m->parameters = end;
}

__attribute__((format(printf, 5, 6)))
static void name_tensor(struct model *m, size_t offset, size_t rows, size_t columns,
			const char *fmt, ...)
{
	struct model_tensor *t = &m->tensor[m->tensors++];
	va_list args;

	t->offset = offset;
	t->rows = rows;
	t->columns = columns;
	va_start(args, fmt);
	(void)vsnprintf(t->name, sizeof(t->name), fmt, args);
	va_end(args);
}

static void name_layer(struct model *m, size_t l)
{
	const struct model_shape *s = &m->shape;
	const struct model_layer *at = &m->layer[l];
	size_t head_dim = s->dim / s->heads;
	size_t q = s->heads * head_dim, kv = s->kv_heads * head_dim, d = s->dim;

	name_tensor(m, at->qkv, q, d, "model.layers.%zu.self_attn.q_proj.weight", l);
	name_tensor(m, at->qkv + q * d, kv, d, "model.layers.%zu.self_attn.k_proj.weight", l);
	name_tensor(m, at->qkv + (q + kv) * d, kv, d, "model.layers.%zu.self_attn.v_proj.weight",
		    l);
	name_tensor(m, at->out, d, q, "model.layers.%zu.self_attn.o_proj.weight", l);
	name_tensor(m, at->gate_up, s->ffn, d, "model.layers.%zu.mlp.gate_proj.weight", l);
	name_tensor(m, at->gate_up + s->ffn * d, s->ffn, d, "model.layers.%zu.mlp.up_proj.weight",
		    l);
	name_tensor(m, at->down, d, s->ffn, "model.layers.%zu.mlp.down_proj.weight", l);
	name_tensor(m, at->attention_norm, d, 0, "model.layers.%zu.input_layernorm.weight", l);
	name_tensor(m, at->ffn_norm, d, 0, "model.layers.%zu.post_attention_layernorm.weight", l);
}

static void name_tensors(struct model *m)
{
	const struct model_shape *s = &m->shape;

	name_tensor(m, m->embedding, s->vocab, s->dim, "model.embed_tokens.weight");
	for (size_t l = 0; l < s->layers; l++)
		name_layer(m, l);
	name_tensor(m, m->final_norm, s->dim, 0, "model.norm.weight");
	if (!s->tied)
		name_tensor(m, m->head, s->vocab, s->dim, "lm_head.weight");
}

/* --- life ----------------------------------------------------------------------------------- */

int model_plan(struct model **out, const struct model_shape *shape, size_t batch, size_t seq,
	       struct err *err)
{
	*out = NULL;
	if (check_shape(shape, batch, seq, err))
		return -1;
	struct model *m = xcalloc(1, sizeof(*m));
	*m = (struct model){ .shape = *shape, .batch = batch, .seq = seq };
	m->layer = xcalloc(shape->layers, sizeof(*m->layer));
	m->tensor = xcalloc(shape->layers * TENSORS_PER_LAYER + TENSORS_OUTSIDE,
			    sizeof(*m->tensor));
	lay_out(m);
	name_tensors(m);
	*out = m;
	return 0;
}

int model_create(struct model **out, const struct model_shape *shape,
		 const struct backend *backend, struct device *device, size_t batch, size_t seq,
		 struct err *err)
{
	struct model *m;

	if (model_plan(out, shape, batch, seq, err))
		return -1;
	m = *out;
	m->backend = backend;
	m->device = device;
	m->weights = backend->alloc(device, m->parameters * sizeof(float));
	m->grads = backend->alloc(device, m->parameters * sizeof(float));
	if (!m->weights || !m->grads)
		err_set(err, ERR_IO, "no memory for %zu parameters and their gradients (%zu MiB)",
			m->parameters, m->parameters * 2 * sizeof(float) >> 20);
	else
		m->activations = activations_create(m, err);
	if (m->activations)
		return 0;
	model_destroy(m);
	*out = NULL;
	return -1;
}

void model_destroy(struct model *m)
{
	if (!m)
		return;
	if (m->backend) {
		activations_destroy(m, m->activations);
		m->backend->free(m->device, m->weights);
		m->backend->free(m->device, m->grads);
	}
	free(m->layer);
	free(m->tensor);
	free(m);
}

/* --- how it starts -------------------------------------------------------------------------- */

static void init_matrix(float *host, struct rng *rng, size_t offset, size_t count,
			double std)
{
	rng->tensor++;
	rng_normal(rng, host + offset, count, std);
}

void model_init_weights(struct model *m, uint64_t seed, double std)
{
	const struct model_shape *s = &m->shape;
	struct rng rng = { .seed = seed, .stream = RNG_INIT };
	float *host = xmalloc(m->parameters * sizeof(float));
	double residual_std = std / sqrt(2.0 * (double)s->layers);

	init_matrix(host, &rng, m->embedding, s->vocab * s->dim, std);
	for (size_t l = 0; l < s->layers; l++) {
		const struct model_layer *at = &m->layer[l];
		init_matrix(host, &rng, at->qkv, at->out - at->qkv, std);
		init_matrix(host, &rng, at->out, at->gate_up - at->out, residual_std);
		init_matrix(host, &rng, at->gate_up, at->down - at->gate_up, std);
		init_matrix(host, &rng, at->down, s->dim * s->ffn, residual_std);
	}
	if (!s->tied)
		init_matrix(host, &rng, m->head, s->vocab * s->dim, std);
	for (size_t i = m->decayed; i < m->parameters; i++)
		host[i] = 1.0f;
	m->backend->upload(m->device, m->weights, host, m->parameters * sizeof(float));
	free(host);
}
