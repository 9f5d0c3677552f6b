/* SPDX-License-Identifier: MIT */
/* series.c - step lines to stretches, and a million points to a few hundred. */
#include "ctl/report/series.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "common/base/mem.h"
#include "ctl/team/ask.h"

enum { STEPS_PER_QUESTION = 10000, LOG_FROM = 50 };

void series_push(struct series *s, const struct point *p)
{
	if ((s->count & (s->count + 1)) == 0)
		s->points = xrealloc(s->points, 2 * (s->count + 1) * sizeof(*p));
	s->points[s->count++] = *p;
}

/* Ranks, and lines of an evaluation, tell more of a step that was told. */
static bool add_more(struct series *s, const struct point *more, const json_t *step)
{
	int64_t attempt_id = js_int(step, "id", 0) >> 32, launch = js_int(step, "launch", 0);
	struct point *last = s->count > 0 ? &s->points[s->count - 1] : NULL;
	bool is_same = last && more->step == last->step && attempt_id > 0 &&
		       attempt_id == s->attempt_id && launch == s->launch;

	s->attempt_id = attempt_id;
	s->launch = launch;
	if (is_same && isnan(last->loss))
		last->loss = more->loss;
	if (is_same && isnan(last->tokens_per_s))
		last->tokens_per_s = more->tokens_per_s;
	return is_same;
}

void series_add(struct series *series, const json_t *step)
{
	struct point p = {
		.step = js_int(step, "step", -1),
		.loss = js_real(step, "loss", NAN),
		.tokens_per_s = js_real(step, "tokens_per_s", NAN),
		.use = NAN,
	};

	if (p.step < 0 || add_more(series, &p, step))
		return;
	if (series->count > 0 && p.step <= series->points[series->count - 1].step)
		series->stretches++;
	p.stretch = series->stretches;
	series_push(series, &p);
}

/* From the end: whatever is not below all that came later was made again. */
void series_end(struct series *series)
{
	int64_t least_later = INT64_MAX, least = INT64_MAX;

	for (size_t i = series->count; i-- > 0;) {
		struct point *p = &series->points[i];

		if (i + 1 < series->count && p[1].stretch != p->stretch)
			least_later = least < least_later ? least : least_later;
		p->is_undone = p->step >= least_later;
		least = p->step < least ? p->step : least;
	}
	if (series->count > 0)
		series->stretches++;
}

void series_clear(struct series *series)
{
	free(series->points);
	*series = (struct series){ 0 };
}

double quantity_of(const struct point *point, enum quantity quantity)
{
	return quantity == QUANTITY_LOSS    ? point->loss
	       : quantity == QUANTITY_SPEED ? point->tokens_per_s
					    : point->use;
}

/* Which of points[from..to) stay, ascending: first, least, largest, last. */
static void thin_bucket(const struct series *s, enum quantity quantity, size_t from, size_t to,
			struct series *out)
{
	size_t least = from, largest = from;

	for (size_t i = from; i < to; i++) {
		double value = quantity_of(&s->points[i], quantity);
		double low = quantity_of(&s->points[least], quantity);
		double high = quantity_of(&s->points[largest], quantity);

		if (value < low || isnan(low))
			least = i;
		if (value > high || isnan(high))
			largest = i;
	}
	for (size_t i = from; i < to; i++) {
		if (i == from || i == least || i == largest || i + 1 == to)
			series_push(out, &s->points[i]);
	}
}

static bool goes_on(const struct point *a, const struct point *b)
{
	return a->stretch == b->stretch && a->is_undone == b->is_undone;
}

void series_thin(const struct series *s, enum quantity quantity, size_t buckets, struct series *out)
{
	size_t width = s->count / (buckets ? buckets : 1) + 1;

	*out = (struct series){ .stretches = s->stretches };
	for (size_t from = 0, to; from < s->count; from = to) {
		to = from + 1;
		while (to < s->count && to - from < width &&
		       goes_on(&s->points[to - 1], &s->points[to]))
			to++;
		thin_bucket(s, quantity, from, to, out);
	}
}

bool series_range(const struct series *s, enum quantity quantity, struct range *r)
{
	*r = (struct range){ .low = INFINITY, .high = -INFINITY, .first = INT64_MAX };
	for (size_t i = 0; i < s->count; i++) {
		double value = quantity_of(&s->points[i], quantity);
		int64_t step = s->points[i].step;

		r->first = step < r->first ? step : r->first;
		r->last = step > r->last ? step : r->last;
		if (!isfinite(value))
			continue;
		r->low = fmin(r->low, value);
		r->high = fmax(r->high, value);
	}
	r->is_log = quantity == QUANTITY_LOSS && r->low > 0 && r->high / r->low >= LOG_FROM;
	if (quantity == QUANTITY_USE && r->low <= r->high) {
		r->low = 0;
		r->high = 100;
	}
	if (r->low == r->high) { /* a line in the middle */
		r->low -= fabs(r->low) / 100 + 1e-9;
		r->high += fabs(r->high) / 100 + 1e-9;
	}
	return r->low <= r->high;
}

double range_share(const struct range *r, double value)
{
	if (r->is_log)
		return log(value / r->low) / log(r->high / r->low);
	return (value - r->low) / (r->high - r->low);
}

double range_value(const struct range *r, double share)
{
	if (r->is_log)
		return r->low * pow(r->high / r->low, share);
	return r->low + (r->high - r->low) * share;
}

int64_t series_silent_since(const struct series *s)
{
	size_t gap = 0, longest = 0;
	bool is_told = false;

	for (size_t i = 0; i < s->count; i++) {
		if (!isfinite(s->points[i].loss)) {
			gap++;
			continue;
		}
		if (is_told && gap > longest)
			longest = gap;
		is_told = true;
		gap = 0;
	}
	return is_told && gap > 2 * longest ? s->points[s->count - gap].step : -1;
}

int series_ask(struct ctl *ctl, const char *run, struct series *out, struct err *err)
{
	int64_t cursor = 0;

	*out = (struct series){ 0 };
	for (;;) {
		json_t *args = json_pack("{s:I, s:i}", "after", (json_int_t)cursor, "limit",
					 STEPS_PER_QUESTION);
		json_t *data = ask_about(ctl, VERB_PROGRESS, run, args, err), *step;
		const json_t *steps = json_object_get(data, "steps");
		int64_t next = js_int(data, "cursor", cursor);
		bool is_all = json_array_size(steps) == 0 || next <= cursor;
		size_t i;

		if (!data) {
			series_clear(out);
			return -1;
		}
		json_array_foreach(steps, i, step) {
			series_add(out, step);
		}
		json_decref(data);
		cursor = next;
		if (is_all)
			break;
	}
	series_end(out);
	return 0;
}
