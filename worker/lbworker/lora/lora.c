/* SPDX-License-Identifier: MIT */
/* lora.c - which matrices have adapters, how they begin, and their update by the device's
 * products. */
#include "worker/lbworker/lora/lora.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "worker/lbworker/base/rng.h"
#include "worker/lbworker/families/family.h"

/* --- which matrices --------------------------------------------------------------------------- */

/* "model.layers.0.self_attn.q_proj.weight" is called "q_proj", or "self_attn.q_proj". */
static bool is_called(const struct model_tensor *t, const char *target)
{
	static const char last[] = ".weight";
	size_t len = strlen(t->name), want = strlen(target);

	if (len < sizeof(last) || strcmp(t->name + len - (sizeof(last) - 1), last) != 0)
		return false;
	len -= sizeof(last) - 1;
	return len > want && strncmp(t->name + len - want, target, want) == 0 &&
	       t->name[len - want - 1] == '.';
}

/* A matrix of a layer. */
static bool is_adaptable(const struct model *m, const struct model_tensor *t)
{
	const struct model_unit *first = &m->unit[1], *last = &m->unit[m->shape.layers];

	return t->columns > 0 && t->offset >= first->first && t->offset < last->first + last->count;
}

static bool is_target(const struct model *m, const struct model_tensor *t, const char *target)
{
	return is_adaptable(m, t) && (strcmp(target, "all-linear") == 0 || is_called(t, target));
}

static bool is_chosen(const struct lora_rules *r, const struct model *m,
		      const struct model_tensor *t)
{
	for (size_t k = 0; k < r->target_count; k++)
		if (is_target(m, t, r->targets[k]))
			return true;
	return false;
}

int lora_check(const struct lora_rules *r, const struct model *m, struct err *err)
{
	for (size_t k = 0; k < r->target_count; k++) {
		size_t found = 0;
		for (size_t i = 0; i < m->tensors; i++)
			found += is_target(m, &m->tensor[i], r->targets[k]);
		if (found == 0)
			return err_set(
				err, ERR_USAGE,
				"no matrix of this %s is called \"%.60s\"; "
				"they are named as in Hugging Face's files, and \"all-linear\" "
				"is all of the layers",
				m->family->name, r->targets[k]);
	}
	return 0;
}

/* Which matrices, and where their adapters lie. */
static void place(struct lora *l, const struct model *m)
{
	l->pair = xcalloc(m->tensors, sizeof(*l->pair));
	for (size_t i = 0; i < m->tensors; i++) {
		const struct model_tensor *t = &m->tensor[i];
		if (!is_chosen(&l->rules, m, t))
			continue;
		size_t in = m->family->in_out ? t->rows : t->columns,
		       out = m->family->in_out ? t->columns : t->rows;
		l->pair[l->pairs++] = (struct lora_pair){
			t, in, out, l->count, l->count + l->rules.rank * in, l->base_count
		};
		l->count += l->rules.rank * (in + out);
		l->base_count += in * out;
	}
}

uint64_t lora_bytes(const struct lora_rules *rules, const struct model *m)
{
	struct lora l = { .rules = *rules };

	place(&l, m);
	free(l.pair);
	return (4 * (uint64_t)l.count + l.base_count) * sizeof(float);
}

struct lora *lora_create(const struct lora_rules *rules, struct model *m, struct err *err)
{
	struct lora *l;

	if (lora_check(rules, m, err)) {
		err_wrap(err, "lora.target_modules");
		return NULL;
	}
	l = xcalloc(1, sizeof(*l));
	l->rules = *rules;
	l->model = m;
	place(l, m);
	l->values = m->backend->alloc(m->device, 3 * l->count * sizeof(float), "moments");
	l->grads = m->backend->alloc(m->device, l->count * sizeof(float), "gradients");
	l->base = m->backend->alloc(m->device, l->base_count * sizeof(float), "weights");
	if (l->values && l->grads && l->base) {
		l->m = l->values + l->count;
		l->v = l->m + l->count;
		m->backend->zero(m->device, l->values, 3 * l->count * sizeof(float));
		return l;
	}
	err_set(err, ERR_IO, "no memory for adapters of rank %zu (%zu MiB)", rules->rank,
		(size_t)(lora_bytes(rules, m) >> 20));
	lora_destroy(l);
	return NULL;
}

void lora_destroy(struct lora *l)
{
	if (!l)
		return;
	l->model->backend->free(l->model->device, l->values);
	l->model->backend->free(l->model->device, l->grads);
	l->model->backend->free(l->model->device, l->base);
	free(l->pair);
	free(l);
}

/* --- how they begin --------------------------------------------------------------------------- */

void lora_begin(struct lora *l)
{
	const struct model *m = l->model;

	for (size_t i = 0; i < l->pairs; i++) {
		const struct lora_pair *p = &l->pair[i];
		m->backend->copy(m->device, l->base + p->base, m->weights + p->tensor->offset,
				 p->in * p->out * sizeof(float));
	}
}

/* Kaiming's with a = sqrt(5), as torch.nn.Linear begins: within 1/sqrt(in). */
void lora_draw(struct lora *l, uint64_t seed)
{
	const struct model *m = l->model;

	for (size_t i = 0; i < l->pairs; i++) {
		const struct lora_pair *p = &l->pair[i];
		const struct rng rng = { seed, RNG_LORA, 0, (uint32_t)i };
		size_t count = l->rules.rank * p->in;
		float *host = xmalloc(count * sizeof(*host)), bound = 1.0f / sqrtf((float)p->in);
		for (size_t k = 0; k < count; k++) {
			uint32_t words[4];
			rng_words(&rng, k, words);
			host[k] = bound * ((float)(words[0] >> 8) / 8388608.0f - 1.0f);
		}
		m->backend->upload(m->device, l->values + p->a, host, count * sizeof(*host));
		free(host);
	}
}

/* --- products --------------------------------------------------------------------------------- */

static float factor(const struct lora *l)
{
	return (float)(l->rules.alpha / (double)l->rules.rank);
}

static void multiply(const struct lora *l, struct gemm g)
{
	g.alpha = factor(l);
	g.c_is_gradient = true; /* fp32 */
	l->model->backend->gemm(l->model->device, &g);
}

static void apply_pair(const struct lora *l, const struct lora_pair *p)
{
	const struct model *m = l->model;
	const float *a = l->values + p->a, *b = l->values + p->b;
	bool turned = m->family->in_out; /* W^T = A^T B^T */
	float *w = m->weights + p->tensor->offset;
	size_t rank = l->rules.rank;

	m->backend->copy(m->device, w, l->base + p->base, p->in * p->out * sizeof(float));
	multiply(l, (struct gemm){ .m = turned ? p->in : p->out,
				   .n = turned ? p->out : p->in,
				   .k = rank,
				   .a = turned ? a : b,
				   .lda = turned ? p->in : rank,
				   .trans_a = turned,
				   .b = turned ? b : a,
				   .ldb = turned ? rank : p->in,
				   .trans_b = turned,
				   .c = w,
				   .ldc = turned ? p->out : p->in,
				   .beta = 1 });
}

void lora_apply(const struct lora *l)
{
	for (size_t i = 0; i < l->pairs; i++)
		apply_pair(l, &l->pair[i]);
}

static void gradients_of(const struct lora *l, const struct lora_pair *p)
{
	const struct model *m = l->model;
	const float *a = l->values + p->a, *b = l->values + p->b;
	const float *dw = model_grad(m, p->tensor->offset);
	bool turned = m->family->in_out;
	size_t rank = l->rules.rank, width = turned ? p->out : p->in;

	multiply(l, (struct gemm){ .m = p->out,
				   .n = rank,
				   .k = p->in,
				   .a = dw,
				   .lda = width,
				   .trans_a = turned,
				   .b = a,
				   .ldb = p->in,
				   .trans_b = true,
				   .c = l->grads + p->b,
				   .ldc = rank });
	multiply(l, (struct gemm){ .m = rank,
				   .n = p->in,
				   .k = p->out,
				   .a = b,
				   .lda = rank,
				   .trans_a = true,
				   .b = dw,
				   .ldb = width,
				   .trans_b = turned,
				   .c = l->grads + p->a,
				   .ldc = p->in });
}

void lora_squares(const struct lora *l, double *sum)
{
	const struct model *m = l->model;

	for (size_t i = 0; i < l->pairs; i++)
		gradients_of(l, &l->pair[i]);
	m->backend->sum_squares(m->device, sum, l->grads, l->count, false, false);
}

void lora_update(const struct optimizer *o, const struct lora *l, struct step_control *control)
{
	const struct model *m = l->model;
	const struct adamw a = { .beta1 = (float)o->beta1,
				 .beta2 = (float)o->beta2,
				 .eps = (float)o->eps,
				 .weight_decay = (float)o->weight_decay,
				 .rate = 1,
				 .key = o->key };

	lora_squares(l, &control->squares);
	m->backend->decide(m->device, control);
	m->backend->adamw(m->device, l->values, l->m, l->v, l->grads, l->count, &a, control);
	lora_apply(l);
}
