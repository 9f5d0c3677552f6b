/* SPDX-License-Identifier: MIT */
/* ops_update.c - sums, the decision about an update, and the update. */
#include "tests/gpu/suite.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Decided on both sides: a gradient twice as large as it may be, or one that is left out. */
static struct tensor *control_of(struct suite *s, struct tensors *all, bool is_left_out)
{
	const struct step_control d = { .norm_limit = is_left_out ? 1 : INFINITY,
					.norm_most = 2,
					.lr = 2e-2f,
					.to_m_hat = 1.7f,
					.to_v_hat = 3.1f,
					.step = (uint32_t)between(s, 1, 1000),
					.loss_sum = 3,
					.squares = 16 };
	struct tensor *t = add(s, all, sizeof(d) / sizeof(float), false);

	memcpy(t->cpu, &d, sizeof(d));
	to_gpu(s, t);
	BOTH(decide, ON(t));
	return t;
}

void ops_adamw(struct suite *s)
{
	size_t count = size(s, pick(s, 5000, 3000000));
	struct tensors all = { .count = 0 };
	bool narrow_moments = draw(s) % 2, narrow_gradient = draw(s) % 2, matrix = draw(s) % 2;
	struct tensor *w = random_weights(s, &all, count, matrix ? count : 0);
	struct tensor *m = random_tensor(s, &all, count, false, 1);
	struct tensor *v = random_tensor(s, &all, count, false, 1);
	struct tensor *g = random_tensor(s, &all, count, narrow_gradient, 1);
	struct tensor *control = control_of(s, &all, draw(s) % 5 == 0);
	const struct adamw a = { .rate = 0.5f,
				 .beta1 = 0.9f,
				 .beta2 = 0.95f,
				 .eps = 1e-8f,
				 .weight_decay = 0.1f,
				 .bf16_moments = narrow_moments,
				 .narrow_gradient = narrow_gradient,
				 .first = between(s, 0, 2) * 11,
				 .key = 0x123456789abcdefULL };

	shape(s, "%zu from %" PRIu64 "%s%s%s", count, a.first, matrix ? " matrix" : "",
	      narrow_gradient ? " narrow" : "", narrow_moments ? " bf16 moments" : "");
	for (size_t i = 0; i < count; i++) {
		v->cpu[i] = v->cpu[i] * v->cpu[i];
		if (narrow_moments) { /* two bf16 in each word */
			((uint16_t *)(void *)m->cpu)[i] = narrow(m->cpu[i]);
			((uint16_t *)(void *)v->cpu)[i] = narrow(v->cpu[i]);
		}
	}
	to_gpu(s, m);
	to_gpu(s, v);
	BOTH(adamw, ON(w), ON(m), ON(v), ON(g), count, &a, ON(control));
	compare(s, "adamw", "weight", w, 1);
	if (narrow_moments)
		m->count = v->count = count / 2; /* whole words, of two moments each */
	else
		compare(s, "adamw", "m", m, 1);
	if (!narrow_moments)
		compare(s, "adamw", "v", v, 1);
	s->be->download(s->gpu, m->got, m->gpu, m->count * sizeof(float));
	size_t apart = 0;
	for (size_t i = 0; narrow_moments && i < 2 * m->count; i++)
		apart += ((uint16_t *)(void *)m->got)[i] != ((uint16_t *)(void *)m->cpu)[i];
	if (apart > m->count / 500 + 1) { /* sums may differ in their last fp32 bit */
		printf("not ok adamw: %zu of %zu bf16 moments differ\n", apart, 2 * m->count);
		s->failed++;
	}
	release(s, &all);
}

void ops_sum_squares(struct suite *s)
{
	size_t count = size(s, pick(s, 100000, 30000000));
	struct tensors all = { .count = 0 };
	bool narrow_x = draw(s) % 2, twice = draw(s) % 2;
	struct tensor *x = random_tensor(s, &all, count, narrow_x, 1);
	struct tensor *loss = random_tensor(s, &all, count, false, 1);
	struct tensor *sums = poisoned(s, &all, 4, false); /* two of fp64 */
	double got[2], want[2];

	BOTH(sum_squares, ON(sums), ON(x), count, narrow_x, false);
	if (twice)
		BOTH(sum_squares, ON(sums), ON(loss), count / 2, false, true);
	BOTH(sum_losses, (double *)ON(sums) + 1, ON(loss), count, false);
	BOTH(sum_losses, (double *)ON(sums) + 1, ON(loss), count / 2, true);
	s->be->download(s->gpu, got, sums->gpu, sizeof(got));
	memcpy(want, sums->cpu, sizeof(want));
	bool good = fabs(got[0] - want[0]) <= 1e-6 * want[0] &&
		    fabs(got[1] - want[1]) <= 1e-9 * (double)count;

	s->compared++;
	s->failed += !good;
	printf("%-6s %-20s %-9s %-28zu %.9g, CPU %.9g; losses %.9g, CPU %.9g\n",
	       good ? "ok" : "not ok", "sums", "", count, got[0], want[0], got[1], want[1]);
	release(s, &all);
}

/* Numbers that rounding could lose: ties, the largest, the smallest, both infinities, both
 * zeros. */
static const uint32_t edges[] = { 0x3f808000, 0x3f818000, 0xbf818000, 0x7f7fffff,
				  0x7f7f8000, 0x00000001, 0x80000001, 0x00008000,
				  0x00018000, 0x7f800000, 0xff800000, 0x80000000,
				  0x3f807fff, 0x3f808001, 0x007fffff, 0x807f8000 };

/* What was written as weights, matrices and vectors in one call, comes back to the bit, all of it
 * and any piece; so do normal numbers; a NaN is one still. */
void ops_weights(struct suite *s)
{
	size_t count = size(s, pick(s, 20000, 9000000)), matrices = between(s, 0, count);
	size_t first = between(s, 0, count - 1), some = between(s, 1, count - first);
	struct tensors all = { .count = 0 };
	struct tensor *w = random_weights(s, &all, count, matrices);
	const struct normal n = { .key = s->seed, .tensor = draw(s), .std = 3 };
	float nan = NAN;

	shape(s, "%zu, %zu of matrices", count, matrices);
	for (size_t i = 0; i < count; i += 3)
		memcpy(&w->cpu[i], &edges[i / 3 % (sizeof(edges) / sizeof(edges[0]))],
		       sizeof(float));
	to_gpu(s, w);
	s->be->download(s->gpu, w->got, w->gpu, count * sizeof(float));
	bool good = memcmp(w->got, w->cpu, count * sizeof(float)) == 0;
	memset(w->got, 0, count * sizeof(float));
	s->be->download(s->gpu, w->got, (float *)w->gpu + first, some * sizeof(float));
	good = good && memcmp(w->got, w->cpu + first, some * sizeof(float)) == 0;
	s->be->upload(s->gpu, (float *)w->gpu + first, &nan, sizeof(nan));
	s->be->download(s->gpu, w->got, w->gpu, count * sizeof(float));
	good = good && isnan(w->got[first]) && memcmp(w->got, w->cpu, first * sizeof(float)) == 0;
	s->compared++;
	s->failed += !good;
	printf("%-6s %-20s %-9s %s\n", good ? "ok" : "not ok", "weights", "", s->shape);
	if (matrices > 0) {
		BOTH(normal, ON(w), matrices, &n);
		w->count = matrices;
		compare_bits(s, "normal", "weights", w);
		w->count = count;
	}
	release(s, &all);
}

void ops_normal(struct suite *s)
{
	size_t count = size(s, pick(s, 5000, 3000000));
	struct tensors all = { .count = 0 };
	struct tensor *to = poisoned(s, &all, count, false);
	const struct normal n = { .key = s->seed,
				  .tensor = draw(s),
				  .step = draw(s) % 3,
				  .first = 4 * (uint64_t)draw(s),
				  .std = 0.02 };

	shape(s, "%zu from %" PRIu64, count, n.first);
	BOTH(normal, ON(to), count, &n);
	compare_bits(s, "normal", "to", to);
	release(s, &all);
}

/* --- arrays of which this rank keeps parts ---------------------------------------------------- */

enum { RUNS = 3, TURNS = 2 };

static uint64_t held(const struct suite *s, const char *what)
{
	struct memory_use use;

	s->be->memory(s->gpu, &use);
	for (size_t i = 0; i < use.count; i++)
		if (strcmp(use.held[i].what, what) == 0)
			return use.held[i].bytes;
	return 0;
}

/* What is not ours of three runs is here in turn: it is what was written last, ours stays, and
 * memory is less than of all. */
void ops_shares(struct suite *s)
{
	struct tensors all = { .count = 0 };
	/* ours: the second part; a GPU's memory comes in chunks of 2 MiB */
	const size_t part = pick(s, 1 << 19, 1 << 20), run = 4 * part;
	struct share share[RUNS];
	struct tensor *own[RUNS], *rest = random_tensor(s, &all, run, false, 1);
	struct tensor *back = add(s, &all, part, false), *is_less = add(s, &all, 1, false);
	uint64_t before = held(s, "parts of the model");

	for (size_t i = 0; i < RUNS; i++) {
		share[i] = (struct share){ i * run, run, i * run + part, part, (int)(i % TURNS) };
		own[i] = random_tensor(s, &all, part, false, 1);
	}
	shape(s, "%d x %zu", RUNS, run);
	float *at = s->be->reserve_shares(s->gpu, RUNS * run, sizeof(*at), share, RUNS);
	is_less->cpu[0] = 1;
	float less = held(s, "parts of the model") - before < RUNS * run * sizeof(*at) ? 1 : 0;
	s->be->upload(s->gpu, is_less->gpu, &less, sizeof(less));
	for (size_t i = 0; i < RUNS; i++)
		s->be->copy(s->gpu, at + i * run + part, own[i]->gpu, part * sizeof(*at));
	for (size_t i = 0; i < RUNS; i++)
		for (size_t piece = 0; piece < 4; piece++) {
			float *place = at + i * run + piece * part;
			const float *from = (const float *)rest->gpu + piece * part;
			if (piece != 1)
				s->be->copy(s->gpu, place, from, part * sizeof(*at));
		}
	for (size_t piece = 0; piece < 4; piece++) {
		if (piece == 1)
			continue;
		s->be->copy(s->gpu, back->gpu, at + (RUNS - 1) * run + piece * part,
			    part * sizeof(*at));
		memcpy(back->cpu, rest->cpu + piece * part, part * sizeof(*at));
		compare_bits(s, "shares", "rest", back);
	}
	for (size_t i = 0; i < RUNS; i++) {
		s->be->copy(s->gpu, own[i]->gpu, at + i * run + part, part * sizeof(*at));
		compare_bits(s, "shares", "own", own[i]);
	}
	compare_bits(s, "shares", "less", is_less);
	s->be->free(s->gpu, at);
	release(s, &all);
}
