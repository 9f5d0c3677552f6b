/* SPDX-License-Identifier: MIT */
/* experts.c - a layer's feed-forwards of which each token meets some, forward and backward.
 *
 * A row has a place with each of its K experts, and places are sorted by expert (struct routing),
 * so that an expert's products are over rows that follow one another. The host looks up how many
 * they are: a device that works beside us would wait here. */
#include <stdlib.h>

#include "common/base/mem.h"
#include "worker/lbworker/model/layer.h"

static struct routing routing_of(const struct model *m, const struct layer_kept *k, size_t rows)
{
	const struct model_experts *e = &m->shape.experts;

	return (struct routing){ .rows = rows,
				 .experts = e->count,
				 .top = e->top,
				 .sigmoid = m->family->sigmoid_scores,
				 .normed = e->normed,
				 .scale = (float)e->scale,
				 .scores = k->experts.scores,
				 .weight = k->experts.weight,
				 .expert = k->experts.expert,
				 .place = k->experts.place,
				 .choice = k->experts.choice,
				 .begin = k->experts.begin };
}

static struct linear router_of(const struct model *m, size_t l)
{
	return linear_of(m, l, PARAM_ROUTER, PARAM_BALANCE, m->shape.dim, m->shape.experts.count,
			 1.0f);
}

/* Of expert e. */
static struct linear up_of(const struct model *m, size_t l, size_t e)
{
	size_t in = m->shape.dim, out = 2 * m->shape.experts.ffn;
	struct linear up = linear_of(m, l, PARAM_EXPERT_UP, PARAM_UP_BIAS, in, out, 1.0f);

	up.weight += e * in * out;
	return up;
}

static struct linear down_of(const struct model *m, size_t l, size_t e)
{
	size_t in = m->shape.experts.ffn, out = m->shape.dim;
	struct linear down = linear_of(m, l, PARAM_EXPERT_DOWN, PARAM_DOWN_BIAS, in, out, 1.0f);

	down.weight += e * in * out;
	return down;
}

/* Where the places of each expert begin, to the host: begin[experts + 1]. */
static void look_up(const struct model *m, const struct layer_kept *k, int32_t *begin)
{
	m->backend->download(m->device, begin, k->experts.begin,
			     (m->shape.experts.count + 1) * sizeof(*begin));
}

/* --- forward --------------------------------------------------------------------------------- */

void experts_route(const struct model *m, size_t l, const struct layer_kept *k,
		   const struct layer_shared *s)
{
	const struct routing r = routing_of(m, k, s->rows);
	struct linear router = router_of(m, l);
	const size_t balance = router.bias;

	router.bias = ABSENT; /* it is for the choice alone */
	linear_forward(m, &router, s->experts.logits, k->ffn_in, s->rows, 0);
	m->backend->route_forward(m->device, s->experts.logits,
				  balance == ABSENT ? NULL : m->weights + balance, &r);
}

void experts_activate(const struct model *m, const struct layer_kept *k, size_t rows)
{
	m->backend->swiglu_forward(m->device, k->experts.hidden, k->experts.up,
				   rows * m->shape.experts.top, m->shape.experts.ffn);
}

void experts_expand(const struct model *m, size_t l, const struct layer_kept *k,
		    const struct layer_shared *s)
{
	const struct routing r = routing_of(m, k, s->rows);
	int32_t begin[EXPERTS_MAX + 1];

	look_up(m, k, begin);
	m->backend->rows_to_experts(m->device, s->experts.routed, k->ffn_in, m->shape.dim, &r);
	for (size_t e = 0; e < r.experts; e++) {
		const struct linear up = up_of(m, l, e);
		size_t at = (size_t)begin[e], rows = (size_t)begin[e + 1] - at;
		if (rows > 0)
			linear_forward(m, &up, model_row(m, k->experts.up, at, up.out),
				       model_row(m, s->experts.routed, at, up.in), rows, 0);
	}
	experts_activate(m, k, s->rows);
}

void experts_contract(const struct model *m, size_t l, const struct layer_kept *k,
		      const struct layer_shared *s, bool add)
{
	const struct routing r = routing_of(m, k, s->rows);
	int32_t begin[EXPERTS_MAX + 1];

	look_up(m, k, begin);
	for (size_t e = 0; e < r.experts; e++) {
		const struct linear down = down_of(m, l, e);
		size_t at = (size_t)begin[e], rows = (size_t)begin[e + 1] - at;
		if (rows > 0)
			linear_forward(m, &down, model_row(m, s->experts.routed, at, down.out),
				       model_row(m, k->experts.hidden, at, down.in), rows, 0);
	}
	m->backend->rows_from_experts(m->device, s->delta, s->experts.routed, m->shape.dim, true,
				      add, &r);
}

/* --- backward -------------------------------------------------------------------------------- */

/* An expert that no row went to has a gradient of zeros. */
static void weight_gradient(const struct model *m, const struct linear *w, const void *dy,
			    const void *x, size_t rows, bool accumulate)
{
	if (rows > 0)
		linear_backward_weight(m, w, dy, x, rows, accumulate);
	else if (!accumulate)
		m->backend->zero(m->device, model_grad(m, w->weight),
				 w->in * w->out * sizeof(float));
}

/* From the gradient of what each place gave, drouted, to that of the K weights of each row and of
 * what is in `hidden`, which is weighted from then on. */
static void contract_backward(const struct model *m, size_t l, const struct layer_kept *k,
			      const struct experts_shared *s, const int32_t *begin,
			      const struct routing *r, bool accumulate)
{
	for (size_t e = 0; e < r->experts; e++) {
		const struct linear down = down_of(m, l, e);
		size_t at = (size_t)begin[e], rows = (size_t)begin[e + 1] - at;
		if (rows > 0)
			linear_backward_input(m, &down, model_row(m, s->dhidden, at, down.in),
					      model_row(m, s->drouted, at, down.out), rows);
	}
	m->backend->weigh_experts(m->device, s->dweight, k->experts.hidden, s->dhidden,
				  m->shape.experts.ffn, r);
	for (size_t e = 0; e < r->experts; e++) {
		const struct linear down = down_of(m, l, e);
		size_t at = (size_t)begin[e], rows = (size_t)begin[e + 1] - at;
		weight_gradient(m, &down, model_row(m, s->drouted, at, down.out),
				model_row(m, k->experts.hidden, at, down.in), rows, accumulate);
	}
	backend_join(m->backend, m->device);
}

/* From the gradient of `hidden` to that of what went to each place, in drouted. */
static void expand_backward(const struct model *m, size_t l, const struct layer_kept *k,
			    const struct experts_shared *s, const int32_t *begin,
			    const struct routing *r, bool accumulate)
{
	m->backend->swiglu_backward(m->device, k->experts.up, s->dhidden, k->experts.up,
				    r->rows * r->top, m->shape.experts.ffn);
	m->backend->rows_to_experts(m->device, s->routed, k->ffn_in, m->shape.dim, r);
	for (size_t e = 0; e < r->experts; e++) {
		const struct linear up = up_of(m, l, e);
		size_t at = (size_t)begin[e], rows = (size_t)begin[e + 1] - at;
		const void *dup = model_row(m, k->experts.up, at, up.out);
		weight_gradient(m, &up, dup, model_row(m, s->routed, at, up.in), rows, accumulate);
		if (rows > 0)
			linear_backward_input(m, &up, model_row(m, s->drouted, at, up.in), dup,
					      rows);
	}
	backend_join(m->backend, m->device);
}

/* dnormed += what comes back through the router; s->delta is free. */
static void route_backward(const struct model *m, size_t l, const struct layer_kept *k,
			   const struct layer_shared *s, const struct routing *r, void *dnormed,
			   bool accumulate)
{
	struct linear router = router_of(m, l);

	if (router.bias != ABSENT && !accumulate) /* nothing of the loss depends on it */
		m->backend->zero(m->device, model_grad(m, router.bias), r->experts * sizeof(float));
	router.bias = ABSENT;
	m->backend->route_backward(m->device, s->experts.logits, s->experts.dweight,
				   s->experts.push, r);
	linear_backward_weight(m, &router, s->experts.logits, k->ffn_in, r->rows, accumulate);
	linear_backward_input(m, &router, s->delta, s->experts.logits, r->rows);
	backend_join(m->backend, m->device);
	m->backend->scaled_sum(m->device, dnormed, dnormed, 1.0f, s->delta, r->rows * router.in);
}

static void count_loads(const struct model *m, size_t l, const int32_t *begin)
{
	const size_t experts = m->shape.experts.count;

	for (size_t e = 0; e < experts; e++)
		m->loads[l * experts + e] += (uint64_t)(begin[e + 1] - begin[e]);
}

void experts_backward(const struct model *m, size_t l, const struct layer_kept *k,
		      const struct layer_shared *s, void *dnormed, bool add, bool accumulate)
{
	const struct routing r = routing_of(m, k, m->batch * m->seq);
	int32_t begin[EXPERTS_MAX + 1];

	look_up(m, k, begin);
	count_loads(m, l, begin);
	m->backend->rows_to_experts(m->device, s->experts.drouted, s->dx, m->shape.dim, &r);
	contract_backward(m, l, k, &s->experts, begin, &r, accumulate);
	expand_backward(m, l, k, &s->experts, begin, &r, accumulate);
	m->backend->rows_from_experts(m->device, dnormed, s->experts.drouted, m->shape.dim, false,
				      add, &r);
	route_backward(m, l, k, s, &r, dnormed, accumulate);
}

/* --- balance --------------------------------------------------------------------------------- */

/* With L layers, N rows and f(e) the share of all L N rows that went to expert e, the loss is E
 * times the sum of f(e) p(e), where p(e) is the mean of its scores: of each score the gradient is E
 * f(e)/(L N). The pass counts N scale as much as its mean loss. */
void experts_push(const struct model *m, const struct layer_kept *layer,
		  const struct layer_shared *s, float scale)
{
	const size_t experts = m->shape.experts.count, first = m->shape.experts.dense;
	int32_t begin[EXPERTS_MAX + 1];

	if (!s->experts.push)
		return;
	float *push = xcalloc(experts, sizeof(*push));
	double seen = (double)(m->batch * m->seq) * (double)(m->shape.layers - first);
	double each = (double)m->options.expert_loss * (double)experts *
		      (double)(m->batch * m->seq) * (double)scale / seen / seen;
	for (size_t l = first; l < m->shape.layers; l++) {
		look_up(m, &layer[l], begin);
		for (size_t e = 0; e < experts; e++)
			push[e] += (float)(begin[e + 1] - begin[e]);
	}
	for (size_t e = 0; e < experts; e++)
		push[e] = (float)(each * (double)push[e]);
	m->backend->upload(m->device, s->experts.push, push, experts * sizeof(*push));
	free(push);
}

static void balance_layer(const struct model *m, size_t l, const uint64_t *loads, double rate)
{
	const size_t experts = m->shape.experts.count, bytes = experts * sizeof(float);
	float *bias = m->weights + m->layer[l].at[PARAM_BALANCE], *host = xmalloc(bytes);
	uint64_t all = 0;
	double mean = 0;

	for (size_t e = 0; e < experts; e++)
		all += loads[e];
	for (size_t e = 0; e < experts;
	     e++) /* the sign of the mean less the load, in whole numbers */
		mean += (double)((all > loads[e] * experts) - (all < loads[e] * experts));
	mean /= (double)experts;
	m->backend->download(m->device, host, bias, bytes);
	for (size_t e = 0; e < experts; e++) {
		double sign = (double)((all > loads[e] * experts) - (all < loads[e] * experts));
		host[e] += (float)(rate * (sign - mean));
	}
	m->backend->upload(m->device, bias, host, bytes);
	free(host);
}

void model_balance(struct model *m, const uint64_t *loads, double rate)
{
	for (size_t l = m->shape.experts.dense; l < m->shape.layers; l++)
		if (layer_has(m, l, PARAM_BALANCE))
			balance_layer(m, l, loads + l * m->shape.experts.count, rate);
}
