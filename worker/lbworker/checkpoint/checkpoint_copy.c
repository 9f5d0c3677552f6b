/* SPDX-License-Identifier: MIT */
/* checkpoint_copy.c - the copy of a training: weights, moments, and what else goes into a
 * checkpoint. */
#include "worker/lbworker/checkpoint/checkpoint_copy.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "worker/lbworker/base/narrow.h"
#include "worker/lbworker/optim/muon.h"

static float *make_amax(const struct model *m)
{
	size_t count = precision_history_count(m->precision);

	return count > 0 ? xcalloc(count, sizeof(float)) : NULL;
}

/* Floats of the copy: weights, moments of all of them or of adapters, their mean. */
static size_t floats_of(const struct model *m, const struct lora *lora)
{
	if (lora)
		return m->parameters + 3 * lora->count;
	return (m->options.averaged ? 4 : 3) * m->parameters;
}

/* Page faults now, not in the first save. Moments of 8 bits leave most of their room alone, Muon's
 * matrices their second one, and it takes no memory: it stays as calloc has it. */
static void touch(float *host, const struct model *m, size_t bytes, bool is_muon)
{
	size_t each = m->parameters * sizeof(*host), moment = each;
	const struct model_unit out = is_muon ? muon_range(m) : (struct model_unit){ 0 };
	size_t behind = out.first + out.count;

	if (m->options.moments == MOMENTS_8BIT)
		moment = kept_moment_bytes(MOMENTS_8BIT, m->parameters);
	memset(host, 0, each);
	if (bytes < 3 * each) { /* of adapters */
		memset(host + m->parameters, 0, bytes - each);
		return;
	}
	memset(host + m->parameters, 0, moment);
	memset(host + 2 * m->parameters, 0, is_muon ? out.first * sizeof(*host) : moment);
	if (is_muon)
		memset(host + 2 * m->parameters + behind, 0,
		       (m->parameters - behind) * sizeof(*host));
	memset(host + 3 * m->parameters, 0, bytes - 3 * each);
}

struct checkpoint_copy *checkpoint_copy_create(const struct checkpoint_parts *parts,
					       struct err *err)
{
	const struct model *here = parts->model, *m = model_whole(here);
	size_t floats = floats_of(m, parts->lora), lost = kept_lost_bytes(m);
	size_t bytes = floats * sizeof(float) + lost;
	const struct backend *be = here->backend;
	float *host = be->alloc_host ? be->alloc_host(here->device, bytes) : calloc(1, bytes);

	if (!host) {
		err_set(err, ERR_IO,
			"no memory for the copy that checkpoints are written from "
			"(%zu MiB)",
			bytes >> 20);
		return NULL;
	}
	touch(host, m, bytes, parts->kept->without_v.count > 0);
	struct checkpoint_copy *c = xcalloc(1, sizeof(*c));
	*c = (struct checkpoint_copy){
		.model = m,
		.here = here,
		.weights = host,
		.lora = parts->lora,
		.base = parts->base,
		.adapters = parts->lora ? host + m->parameters : NULL,
		.mean = m->options.averaged ? host + 3 * m->parameters : NULL,
		.lost = lost ? (uint16_t *)(void *)(host + floats) : NULL,
		.amax = make_amax(here),
		.moment = { host + m->parameters, host + 2 * m->parameters }
	};
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

/* An array that a checkpoint takes as it lies on the device, to so many bytes from the beginning of
 * the copy. */
struct held {
	size_t at;
	struct sharded_array array;
};
enum { HELD_MAX = 7 };

/* weights, then m, v with 8 bits their scales; then the mean; then what bf16 weights have lost. */
static size_t list_held(const struct checkpoint_parts *p, struct held out[HELD_MAX])
{
	const struct model *m = p->model;
	enum moments kind = m->options.moments;
	size_t n = 0, scales = kept_scales_at(m->parameters),
	       each = model_whole(m)->parameters * sizeof(float);

	out[n++] = (struct held){
		0, { .from = m->weights, .element_bytes = sizeof(float), .each = 1 }
	};
	for (size_t k = 0; k < 2 && !p->lora; k++) {
		char *moment = k == 0 ? p->kept->m : p->kept->v;
		const struct model_unit nothing = { 0 };
		size_t at = (1 + k) * each;
		out[n++] = (struct held){
			at, { moment, kept_at(kind, 1), 1, k == 0 ? nothing : p->kept->without_v }
		};
		if (kind == MOMENTS_8BIT)
			out[n++] = (struct held){ at + scales,
						  { .from = moment + scales,
						    .element_bytes = sizeof(float),
						    .each = MOMENTS_SHARE } };
	}
	if (p->kept->mean)
		out[n++] = (struct held){
			3 * each,
			{ .from = p->kept->mean, .element_bytes = sizeof(float), .each = 1 }
		};
	if (p->kept->lost)
		out[n++] = (struct held){
			(p->kept->mean ? 4 : 3) * each,
			{ .from = p->kept->lost, .element_bytes = sizeof(uint16_t), .each = 1 }
		};
	return n;
}

/* host: the copy's memory; NULL: on another rank. */
static int collect(const struct checkpoint_parts *p, char *host, struct err *err)
{
	struct held held[HELD_MAX];
	size_t count = list_held(p, held);

	for (size_t i = 0; i < count; i++)
		if (sharded_collect_whole(p->sharded, &held[i].array,
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

	for (size_t i = 0; i < count; i++) {
		const struct sharded_array *a = &held[i].array;
		size_t bytes = (m->parameters + a->each - 1) / a->each * a->element_bytes;
		size_t first = a->without.first * a->element_bytes;
		size_t behind = first + a->without.count * a->element_bytes;
		char *to = (char *)c->weights + held[i].at, *from = a->from;
		if (first > 0)
			take(m->device, to, from, first);
		take(m->device, to + behind, from + behind, bytes - behind);
	}
	if (p->lora)
		take(m->device, c->adapters, p->lora->values, 3 * p->lora->count * sizeof(float));
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

int checkpoint_copy_complete(struct checkpoint_copy *c, struct err *err)
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
