/* SPDX-License-Identifier: MIT */
/* stage_plan.c - newest first, one at a time, and nothing goes that may be needed. */
#include "worker/lbrun/checkpoint/stage_plan.h"

static int64_t newest_sealed(const struct stage_view *v)
{
	for (size_t i = 0; i < v->count; i++)
		if (v->items[i].is_sealed)
			return (int64_t)i;
	return -1;
}

int64_t stage_at_risk(const struct stage_view *v, int64_t *back_to)
{
	int64_t sealed = newest_sealed(v);

	*back_to = sealed >= 0 ? v->items[sealed].step : -1;
	return v->count > 0 && sealed != 0 ? 0 : -1;
}

int64_t stage_needs_ms(const struct stage_view *v, int64_t index)
{
	int64_t bytes = v->items[index].bytes;

	if (v->rate <= 0)
		return -1;
	if (index == v->draining)
		bytes -= v->copied_bytes < bytes ? v->copied_bytes : bytes;
	return (int64_t)((double)bytes / (double)v->rate * 1000);
}

static bool fits(const struct stage_view *v, int64_t index)
{
	int64_t ms = stage_needs_ms(v, index);

	return ms >= 0 && ms <= v->left_ms;
}

/* Which, when the end is near and an older one is half copied. */
static int64_t in_a_hurry(const struct stage_view *v)
{
	if (fits(v, 0) || v->rate <= 0)
		return 0;
	return fits(v, v->draining) || stage_needs_ms(v, v->draining) < stage_needs_ms(v, 0)
		       ? v->draining
		       : 0;
}

static struct stage_step choose(const struct stage_view *v)
{
	struct stage_step step = { .drain = -1, .is_unlimited = v->left_ms != INT64_MAX };
	int64_t unused;
	bool is_at_risk = stage_at_risk(v, &unused) >= 0;

	if (v->draining < 0) {
		step.drain = is_at_risk ? 0 : -1;
		return step;
	}
	step.drain = step.is_unlimited && is_at_risk ? in_a_hurry(v) : v->draining;
	step.breaks_off = step.drain != v->draining || (step.is_unlimited && v->is_limited);
	return step;
}

/* The newest stays for a relaunch in place, unless another one like it would not fit. */
static bool is_past_use(const struct stage_view *v, size_t i, int64_t sealed)
{
	const struct staged *s = &v->items[i];

	if (s->is_needed || (int64_t)i == v->draining)
		return false;
	if (i == 0)
		return s->is_sealed && (v->keeps_none || v->free_bytes < s->bytes + s->bytes / 8);
	return s->is_sealed || (sealed >= 0 && (int64_t)i > sealed);
}

struct stage_step stage_decide(const struct stage_view *v, bool *drops)
{
	int64_t sealed = newest_sealed(v);

	for (size_t i = 0; i < v->count; i++)
		drops[i] = is_past_use(v, i, sealed);
	return choose(v);
}
