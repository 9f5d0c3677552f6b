/* SPDX-License-Identifier: MIT */
/* expert_loads.c - counts of tokens, which are whole numbers: their sums are the same in any
 * order. */
#include "worker/lbworker/train/expert_loads.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"

static size_t count_of(const struct model *m)
{
	return m->shape.layers * m->shape.experts.count;
}

void expert_loads_pass(struct training *t, bool counts)
{
	uint64_t *seen = t->model->loads;

	for (size_t i = 0; t->loads && counts && i < count_of(t->model); i++)
		t->loads[i] += seen[i];
	if (t->loads)
		memset(seen, 0, count_of(t->model) * sizeof(*seen));
}

static int add_up(struct training *t, struct err *err)
{
	size_t count = count_of(t->model), ranks = (size_t)t->data_ranks.size;
	uint64_t *all = xcalloc(ranks * count, sizeof(*all));
	int rc = ranks_gather(&t->data_ranks, t->loads, count * sizeof(*all), all, err);

	memset(t->loads, 0, count * sizeof(*t->loads));
	for (size_t i = 0; i < ranks * count; i++)
		t->loads[i % count] += all[i];
	free(all);
	return rc;
}

static void tell_layer(const uint64_t *loads, size_t experts, struct report_step *s)
{
	uint64_t all = 0;

	for (size_t e = 0; e < experts; e++)
		all += loads[e];
	for (size_t e = 0; e < experts; e++) {
		double share = (double)loads[e] * (double)experts / (double)all;
		s->expert_most = fmax(s->expert_most, share); /* of a NAN and a number the number */
		s->expert_least = fmin(s->expert_least, share);
	}
}

int expert_loads_step(struct training *t, bool is_left_out, struct report_step *s, struct err *err)
{
	const struct model *m = t->model;
	const struct model_experts *e = &m->shape.experts;

	s->expert_most = s->expert_least = NAN;
	if (!t->loads)
		return 0;
	if (t->data_ranks.size > 1 && add_up(t, err))
		return -1;
	if (!is_left_out && t->config.balance_rate > 0)
		model_balance(t->model, t->loads, t->config.balance_rate);
	for (size_t l = e->dense; l < m->shape.layers; l++)
		tell_layer(t->loads + l * e->count, e->count, s);
	if (t->progress && progress_is_logged(t->progress, s))
		progress_experts(t->progress, s->step, &m->shape, t->loads);
	memset(t->loads, 0, count_of(m) * sizeof(*t->loads));
	return 0;
}
