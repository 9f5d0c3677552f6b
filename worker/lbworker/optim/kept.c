/* SPDX-License-Identifier: MIT */
/* kept.c - room for moments, and the numbers that 8 bits of them mean. */
#include "worker/lbworker/optim/kept.h"

#include <stdlib.h>

#include "common/base/mem.h"
#include "worker/lbworker/optim/muon.h"

size_t kept_at(enum moments kind, size_t first)
{
	static const size_t bytes[] = { [MOMENTS_FP32] = sizeof(float),
					[MOMENTS_BF16] = sizeof(uint16_t),
					[MOMENTS_8BIT] = 1 };

	return first * bytes[kind];
}

size_t kept_scales_at(size_t parameters)
{
	return (parameters + sizeof(float) - 1) / sizeof(float) * sizeof(float);
}

size_t kept_moment_bytes(enum moments kind, size_t parameters)
{
	if (kind != MOMENTS_8BIT)
		return kept_at(kind, parameters);
	return kept_scales_at(parameters) + kept_scales(parameters) * sizeof(float);
}

size_t kept_bytes(const struct model_options *o, size_t parameters)
{
	size_t lost = o->weights == WEIGHTS_KAHAN ? sizeof(uint16_t) : 0;
	size_t mean = o->averaged ? sizeof(float) : 0;
	size_t moments = o->is_base ? 0 : 2 * kept_moment_bytes(o->moments, parameters);

	return moments + (lost + mean) * parameters;
}

size_t kept_lost_bytes(const struct model *m)
{
	return m->options.weights == WEIGHTS_KAHAN ? m->parameters * sizeof(uint16_t) : 0;
}

/* --- room ------------------------------------------------------------------------------------- */

static bool is_in(const struct model_unit *unit, const struct model_unit *range)
{
	return unit->first >= range->first && unit->first < range->first + range->count;
}

/* Where memory is laid out once: all that is not ours is lost. */
static void *make_shares(const struct model *m, const struct model_unit *own, size_t each,
			 const struct model_unit *without)
{
	struct share *share = xcalloc(m->units, sizeof(*share));

	for (size_t u = 0; u < m->units; u++) {
		const struct model_unit all = m->unit[u], part = own ? own[u] : all;
		share[u] = (struct share){ all.first, all.count, part.first, part.count,
					   REST_IS_LOST };
		if (is_in(&all, without))
			share[u].own_first = all.first, share[u].own_count = 0;
	}
	void *memory = m->backend->reserve_shares(m->device, m->parameters, each, share, m->units);
	free(share);
	return memory;
}

/* None of it for the parameters of `without`. */
static void *make_moment(const struct model *m, const struct model_unit *own,
			 const struct model_unit *without)
{
	const struct backend *be = m->backend;
	enum moments kind = m->options.moments;
	size_t bytes = kept_moment_bytes(kind, m->parameters), at = kept_scales_at(m->parameters);

	if (!own && without->count == 0)
		return be->alloc(m->device, bytes, "moments");
	if (be->reserve_shares && kind != MOMENTS_8BIT)
		return make_shares(m, own, kept_at(kind, 1), without);
	char *moment = be->reserve(m->device, bytes);
	for (size_t u = 0; moment && u < m->units; u++) {
		const struct model_unit part = own ? own[u] : m->unit[u];
		if (is_in(&m->unit[u], without))
			continue;
		be->zero(m->device, moment + kept_at(kind, part.first), kept_at(kind, part.count));
		if (kind == MOMENTS_8BIT)
			be->zero(m->device,
				 moment + at + part.first / MOMENTS_SHARE * sizeof(float),
				 kept_scales(part.count) * sizeof(float));
	}
	return moment;
}

/* One number of so many bytes for each parameter. */
static void *make_array(const struct model *m, const struct model_unit *own, size_t each)
{
	const struct backend *be = m->backend;
	size_t bytes = m->parameters * each;

	if (!own)
		return be->alloc(m->device, bytes, "moments");
	char *array = be->reserve(m->device, bytes);
	for (size_t u = 0; array && u < m->units; u++)
		be->zero(m->device, array + own[u].first * each, own[u].count * each);
	return array;
}

int kept_make(struct kept *k, const struct model *m, const struct model_unit *own, bool by_muon)
{
	const struct model_unit nothing = { 0 };
	size_t work = by_muon ? muon_floats(m) : 0;
	bool is_kahan = m->options.weights == WEIGHTS_KAHAN;
	bool is_8bit = m->options.moments == MOMENTS_8BIT;

	*k = (struct kept){ 0 };
	if (m->options.is_base)
		return 0;
	k->without_v = by_muon ? muon_range(m) : nothing;
	k->m = make_moment(m, own, &nothing);
	k->v = make_moment(m, own, &k->without_v);
	k->lost = is_kahan ? make_array(m, own, sizeof(*k->lost)) : NULL;
	k->mean = m->options.averaged ? make_array(m, own, sizeof(*k->mean)) : NULL;
	for (int i = 0; is_8bit && i < 2; i++)
		k->window[i] = m->backend->alloc(m->device, KEPT_WINDOW * sizeof(float), "moments");
	if (work > 0)
		k->work = m->backend->alloc(m->device, work * sizeof(float), "moments");
	bool is_there = (k->work || work == 0) && k->m && k->v && (k->lost || !is_kahan) &&
			(k->mean || !m->options.averaged) &&
			((k->window[0] && k->window[1]) || !is_8bit);
	return is_there ? 0 : -1;
}

void kept_free(struct kept *k, const struct model *m)
{
	void *const all[] = { k->m, k->v, k->mean, k->lost, k->window[0], k->window[1], k->work };

	for (size_t i = 0; m && i < sizeof(all) / sizeof(all[0]); i++)
		m->backend->free(m->device, all[i]);
	*k = (struct kept){ 0 };
}

/* --- the maps --------------------------------------------------------------------------------- */

enum { DECADES = 7 };

static int compare(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

/* torch.linspace(0.1, 1, count)[i], in fp32: product and sum are rounded once */
static float bound(size_t i, size_t count)
{
	float step = (1.0f - 0.1f) / (float)(count - 1);

	return i < count / 2 ? fmaf(step, (float)i, 0.1f)
			     : fmaf(-step, (float)(count - 1 - i), 1.0f);
}

/* Seven decades; each next one has twice as many numbers, the middles of as many equal parts of its
 * 0.1 to 1. Dettmers et al. 2022, after Dettmers 2016 (dynamic tree quantization). */
static void fill(float map[MOMENTS_CODES], bool is_signed)
{
	static const float decade[DECADES] = { 1e-6f, 1e-5f, 1e-4f, 1e-3f, 1e-2f, 1e-1f, 1 };
	size_t n = 0;

	for (size_t d = 0; d < DECADES; d++) {
		size_t count = ((size_t)1 << (is_signed ? d : d + 1)) + 1;
		for (size_t i = 0; i + 1 < count; i++) {
			float mean = decade[d] * ((bound(i, count) + bound(i + 1, count)) / 2);
			map[n++] = mean;
			if (is_signed)
				map[n++] = -mean;
		}
	}
	map[n++] = 0;
	map[n++] = 1;
	qsort(map, n, sizeof(*map), compare);
}

const float *kept_map(bool is_signed)
{
	static float map[2][MOMENTS_CODES];
	float *of = map[is_signed];

	if (of[MOMENTS_CODES - 1] == 0)
		fill(of, is_signed);
	return of;
}
