/* SPDX-License-Identifier: MIT */
/* experts.c - rows to some of several experts and back, and which (struct routing).
 *
 * Forward: scores of a row, the K experts with the largest of them, their weights. Then all places
 * are sorted by expert, and in each by row, so that every product and every sum has one order.
 * Backward, with g the gradient of a row's weights w, c = scale, and S the sum of its K scores s:
 *   ds = c (g - (g . s)/S)/S, or c g when they are not normed;  softmax: dz = p (dp - p . dp) with
 *   dp = ds + push;  sigmoid: dz = (ds + push) s (1 - s).
 * A task owns some rows, or some places. */
#include <math.h>

#include "kernels/cpu/cpu.h"

/* What keeps the sum of a row's sigmoids from being 0. */
static const float LEAST_SUM = 1e-20f;

struct routes {
	const struct routing *r;
	const float *logits, *bias; /* forward */
	float *dlogits;             /* backward */
	const float *dweight, *push;
	size_t rows_per_task;
};

/* --- scores ---------------------------------------------------------------------------------- */

static void sigmoids(float *scores, const float *logits, size_t count)
{
#pragma omp simd
	for (size_t i = 0; i < count; i++)
		scores[i] = 1.0f / (1.0f + cpu_exp(-logits[i]));
}

static void softmax(float *scores, const float *logits, size_t count)
{
	float most = logits[0];

	for (size_t i = 1; i < count; i++)
		most = logits[i] > most ? logits[i] : most;
#pragma omp simd
	for (size_t i = 0; i < count; i++)
		scores[i] = cpu_exp(logits[i] - most);
	float sum = cpu_sum(scores, count);
	for (size_t i = 0; i < count; i++)
		scores[i] /= sum;
}

/* --- the choice ------------------------------------------------------------------------------ */

static bool is_among(const int32_t *chosen, size_t count, size_t expert)
{
	for (size_t k = 0; k < count; k++)
		if (chosen[k] == (int32_t)expert)
			return true;
	return false;
}

static float wish(const float *scores, const float *bias, size_t expert)
{
	return bias ? scores[expert] + bias[expert] : scores[expert];
}

/* The next best that is not chosen yet, of two alike the first. What is no number is chosen only
 * where nothing else is left. */
static size_t next_best(const struct routing *r, const float *scores, const float *bias,
			const int32_t *chosen, size_t count)
{
	size_t best = r->experts;

	for (size_t e = 0; e < r->experts; e++) {
		if (is_among(chosen, count, e))
			continue;
		float most = best < r->experts ? wish(scores, bias, best) : NAN;
		float mine = wish(scores, bias, e);
		if (best == r->experts || mine > most || (most != most && mine == mine))
			best = e;
	}
	return best;
}

/* In rising order, which sums over them have then, too. */
static void insert(int32_t *chosen, size_t count, size_t expert)
{
	for (; count > 0 && chosen[count - 1] > (int32_t)expert; count--)
		chosen[count] = chosen[count - 1];
	chosen[count] = (int32_t)expert;
}

/* Of a row's K scores. */
static float chosen_sum(const struct routing *r, const float *scores, const int32_t *chosen)
{
	float sum = r->sigmoid ? LEAST_SUM : 0.0f;

	for (size_t k = 0; k < r->top; k++)
		sum += scores[chosen[k]];
	return sum;
}

static void route_row(const struct routes *a, size_t row)
{
	const struct routing *r = a->r;
	float *scores = r->scores + row * r->experts, *weight = r->weight + row * r->top;
	int32_t *chosen = r->expert + row * r->top;

	(r->sigmoid ? sigmoids : softmax)(scores, a->logits + row * r->experts, r->experts);
	for (size_t k = 0; k < r->top; k++)
		insert(chosen, k, next_best(r, scores, a->bias, chosen, k));
	float sum = r->normed ? chosen_sum(r, scores, chosen) : 1.0f;
	for (size_t k = 0; k < r->top; k++)
		weight[k] = scores[chosen[k]] / sum * r->scale;
}

static void route_task(const void *args, size_t index, unsigned worker)
{
	const struct routes *a = args;
	size_t row = index * a->rows_per_task, end = cpu_min(row + a->rows_per_task, a->r->rows);

	(void)worker;
	for (; row < end; row++)
		route_row(a, row);
}

/* Counted, then each in its turn. */
static void sort_places(const struct routing *r)
{
	size_t count = r->rows * r->top;

	memset(r->begin, 0, (r->experts + 1) * sizeof(*r->begin));
	for (size_t i = 0; i < count; i++)
		r->begin[r->expert[i] + 1]++;
	for (size_t e = 0; e < r->experts; e++)
		r->begin[e + 1] += r->begin[e];
	for (size_t i = 0; i < count; i++) { /* begin[e] runs to the end of e, where e + 1 begins */
		int32_t at = r->begin[r->expert[i]]++;
		r->place[i] = at;
		r->choice[at] = (int32_t)i;
	}
	for (size_t e = r->experts; e > 0; e--)
		r->begin[e] = r->begin[e - 1];
	r->begin[0] = 0;
}

void cpu_route_forward(struct device *dev, const float *logits, const float *bias,
		       const struct routing *r)
{
	const struct routes a = { .r = r,
				  .logits = logits,
				  .bias = bias,
				  .rows_per_task = cpu_rows_per_task(r->experts * r->top) };

	pool_run(dev->pool, cpu_tasks(r->rows, a.rows_per_task), route_task, &a);
	sort_places(r);
}

/* --- its gradient ---------------------------------------------------------------------------- */

static void unroute_row(const struct routes *a, size_t row)
{
	const struct routing *r = a->r;
	const float *scores = r->scores + row * r->experts, *g = a->dweight + row * r->top;
	const int32_t *chosen = r->expert + row * r->top;
	float *d = a->dlogits + row * r->experts;
	float sum = r->normed ? chosen_sum(r, scores, chosen) : 1.0f, mean = 0;

	for (size_t k = 0; r->normed && k < r->top; k++)
		mean += g[k] * scores[chosen[k]] / sum;
	for (size_t e = 0; e < r->experts; e++)
		d[e] = a->push ? a->push[e] : 0.0f;
	for (size_t k = 0; k < r->top; k++)
		d[chosen[k]] += r->scale * (g[k] - mean) / sum;
	float along = r->sigmoid ? 0.0f : cpu_dot(scores, d, r->experts);
	for (size_t e = 0; e < r->experts; e++)
		d[e] = r->sigmoid ? d[e] * scores[e] * (1.0f - scores[e])
				  : scores[e] * (d[e] - along);
}

static void unroute_task(const void *args, size_t index, unsigned worker)
{
	const struct routes *a = args;
	size_t row = index * a->rows_per_task, end = cpu_min(row + a->rows_per_task, a->r->rows);

	(void)worker;
	for (; row < end; row++)
		unroute_row(a, row);
}

void cpu_route_backward(struct device *dev, float *dlogits, const float *dweight, const float *push,
			const struct routing *r)
{
	const struct routes a = { .r = r,
				  .dlogits = dlogits,
				  .dweight = dweight,
				  .push = push,
				  .rows_per_task = cpu_rows_per_task(r->experts) };

	pool_run(dev->pool, cpu_tasks(r->rows, a.rows_per_task), unroute_task, &a);
}

/* --- rows to their places and back ----------------------------------------------------------- */

struct moved {
	const struct routing *r;
	float *out;
	const float *from;
	size_t width, count, per_task; /* count: rows of out */
	bool weighted, accumulate;
};

static void scatter_task(const void *args, size_t index, unsigned worker)
{
	const struct moved *m = args;
	size_t at = index * m->per_task, end = cpu_min(at + m->per_task, m->count);

	(void)worker;
	for (; at < end; at++)
		memcpy(m->out + at * m->width,
		       m->from + (size_t)m->r->choice[at] / m->r->top * m->width,
		       m->width * sizeof(float));
}

static void gather_row(const struct moved *m, size_t row)
{
	const struct routing *r = m->r;
	float *restrict out = m->out + row * m->width;

	if (!m->accumulate)
		memset(out, 0, m->width * sizeof(*out));
	for (size_t i = row * r->top; i < (row + 1) * r->top; i++) {
		const float *restrict from = m->from + (size_t)r->place[i] * m->width;
		float weight = m->weighted ? r->weight[i] : 1.0f;
		for (size_t c = 0; c < m->width; c++)
			out[c] += weight * from[c];
	}
}

static void gather_task(const void *args, size_t index, unsigned worker)
{
	const struct moved *m = args;
	size_t row = index * m->per_task, end = cpu_min(row + m->per_task, m->count);

	(void)worker;
	for (; row < end; row++)
		gather_row(m, row);
}

void cpu_rows_to_experts(struct device *dev, void *out, const void *x, size_t width,
			 const struct routing *r)
{
	const struct moved m = { .r = r,
				 .out = out,
				 .from = x,
				 .width = width,
				 .count = r->rows * r->top,
				 .per_task = cpu_rows_per_task(width) };

	pool_run(dev->pool, cpu_tasks(m.count, m.per_task), scatter_task, &m);
}

void cpu_rows_from_experts(struct device *dev, void *out, const void *y, size_t width,
			   bool weighted, bool accumulate, const struct routing *r)
{
	const struct moved m = { .r = r,
				 .out = out,
				 .from = y,
				 .width = width,
				 .count = r->rows,
				 .per_task = cpu_rows_per_task(width * r->top),
				 .weighted = weighted,
				 .accumulate = accumulate };

	pool_run(dev->pool, cpu_tasks(m.count, m.per_task), gather_task, &m);
}

/* --- weights --------------------------------------------------------------------------------- */

struct weighed {
	const struct routing *r;
	float *dweight, *hidden, *dhidden;
	size_t width, count, per_task;
};

static void weigh_task(const void *args, size_t index, unsigned worker)
{
	const struct weighed *w = args;
	size_t at = index * w->per_task, end = cpu_min(at + w->per_task, w->count);

	(void)worker;
	for (; at < end; at++) {
		size_t choice = (size_t)w->r->choice[at];
		float *restrict h = w->hidden + at * w->width, *restrict d = w->dhidden +
									     at * w->width;
		float weight = w->r->weight[choice];
		w->dweight[choice] = cpu_dot(d, h, w->width);
		for (size_t i = 0; i < w->width; i++) {
			h[i] *= weight;
			d[i] *= weight;
		}
	}
}

void cpu_weigh_experts(struct device *dev, float *dweight, void *hidden, void *dhidden,
		       size_t width, const struct routing *r)
{
	const struct weighed w = { .r = r,
				   .dweight = dweight,
				   .hidden = hidden,
				   .dhidden = dhidden,
				   .width = width,
				   .count = r->rows * r->top,
				   .per_task = cpu_rows_per_task(width) };

	pool_run(dev->pool, cpu_tasks(w.count, w.per_task), weigh_task, &w);
}
