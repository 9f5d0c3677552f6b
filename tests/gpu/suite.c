/* SPDX-License-Identifier: MIT */
/* suite.c - draws, tensors on both sides, and how far two may be apart. */
#include "tests/gpu/suite.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "kernels/load.h"
#include "worker/lbworker/base/rng.h"

/* --- draws ------------------------------------------------------------------------------------ */

uint32_t draw(struct suite *s)
{
	const struct rng rng = { .seed = s->seed, .tensor = 1u << 30 };
	uint32_t words[4];

	rng_words(&rng, s->drawn++, words);
	return words[0];
}

size_t between(struct suite *s, size_t least, size_t most)
{
	return least + draw(s) % (most - least + 1);
}

/* Often one, often odd, now and then a multiple of 64 so that vectors are read. */
size_t size(struct suite *s, size_t most)
{
	switch (draw(s) % 4) {
	case 0:
		return between(s, 1, 3);
	case 1:
		return most >= 64 ? between(s, 1, most / 64) * 64 : most;
	default:
		return between(s, 1, most);
	}
}

size_t pick(const struct suite *s, size_t small, size_t large)
{
	return s->large ? large : small;
}

/* --- tensors on both sides -------------------------------------------------------------------- */

uint16_t narrow(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	if (isnan(x))
		return 0x7fff;
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float widen(uint16_t x)
{
	uint32_t bits = (uint32_t)x << 16;
	float y;

	memcpy(&y, &bits, sizeof(y));
	return y;
}

bool is_narrow(const struct suite *s, const struct tensor *t)
{
	return t->is_activation && s->compute == COMPUTE_BF16;
}

void to_gpu(struct suite *s, const struct tensor *t)
{
	if (!is_narrow(s, t)) {
		s->be->upload(s->gpu, t->gpu, t->cpu, t->count * sizeof(float));
		return;
	}
	uint16_t *half = xmalloc(t->count * sizeof(*half) + 1);
	for (size_t i = 0; i < t->count; i++)
		half[i] = narrow(t->cpu[i]);
	s->be->upload(s->gpu, t->gpu, half, t->count * sizeof(*half));
	free(half);
}

struct tensor *add(struct suite *s, struct tensors *all, size_t count, bool is_activation)
{
	struct tensor *t = &all->t[all->count++];

	*t = (struct tensor){ .count = count, .is_activation = is_activation };
	t->cpu = backend_cpu()->alloc(s->cpu, count * sizeof(float), "a test");
	t->gpu = s->be->alloc(s->gpu, count * sizeof(float), "a test");
	t->got = xmalloc(count * sizeof(float));
	if (!t->cpu || !t->gpu) {
		fprintf(stderr, "no memory for a tensor of %zu\n", count);
		exit(1);
	}
	return t;
}

/* Normal numbers times `scale`, the same on both sides to the bit. */
struct tensor *random_tensor(struct suite *s, struct tensors *all, size_t count, bool is_activation,
			     float scale)
{
	struct tensor *t = add(s, all, count, is_activation);
	const struct normal normal = { .key = s->seed, .tensor = draw(s), .std = (double)scale };

	backend_cpu()->normal(s->cpu, t->cpu, count, &normal);
	for (size_t i = 0; i < count && is_narrow(s, t); i++)
		t->cpu[i] = widen(narrow(t->cpu[i]));
	to_gpu(s, t);
	return t;
}

struct tensor *random_weights(struct suite *s, struct tensors *all, size_t count, size_t matrices)
{
	struct tensor *t = random_tensor(s, all, count, false, 1);

	s->be->free(s->gpu, t->gpu);
	t->gpu = s->be->alloc_weights(s->gpu, count, matrices);
	if (!t->gpu) {
		fprintf(stderr, "no memory for %zu weights\n", count);
		exit(1);
	}
	to_gpu(s, t);
	return t;
}

struct tensor *poisoned(struct suite *s, struct tensors *all, size_t count, bool is_activation)
{
	struct tensor *t = add(s, all, count, is_activation);

	for (size_t i = 0; i < count; i++)
		t->cpu[i] = NAN;
	to_gpu(s, t);
	return t;
}

/* A gradient: accumulated onto numbers, or poison to be replaced. */
struct tensor *gradient(struct suite *s, struct tensors *all, size_t count, bool accumulate)
{
	return accumulate ? random_tensor(s, all, count, false, 1) : poisoned(s, all, count, false);
}

struct tensor *random_ids(struct suite *s, struct tensors *all, size_t count, size_t below)
{
	struct tensor *t = add(s, all, count, false);
	int32_t *ids = xmalloc(count * sizeof(*ids));

	for (size_t i = 0; i < count; i++) /* few tokens are many rows, as in text */
		ids[i] = (int32_t)(draw(s) % (draw(s) % below + 1));
	memcpy(t->cpu, ids, count * sizeof(*ids));
	s->be->upload(s->gpu, t->gpu, ids, count * sizeof(*ids));
	free(ids);
	return t;
}

void release(struct suite *s, struct tensors *all)
{
	for (size_t i = 0; i < all->count; i++) {
		backend_cpu()->free(s->cpu, all->t[i].cpu);
		s->be->free(s->gpu, all->t[i].gpu);
		free(all->t[i].got);
	}
	all->count = 0;
}

/* --- comparing -------------------------------------------------------------------------------- */

struct tolerance {
	double absolute, relative;
};

/* Sums of `terms` products: fp32 differs by the order, bf16 by its rounding of what is stored. */
static struct tolerance tolerance(const struct suite *s, const struct tensor *t, double terms)
{
	if (is_narrow(s, t))
		return (struct tolerance){ 1e-2 + 2e-3 * sqrt(terms), 1.6e-2 };
	if (s->compute == COMPUTE_BF16) /* fp32 sums of what may have been rounded on the way */
		return (struct tolerance){ 2e-3 * sqrt(terms), 5e-3 };
	return (struct tolerance){ 4e-6 * sqrt(terms) + 2e-6, 1e-5 };
}

static void compare_within(struct suite *s, const char *operation, const char *name,
			   struct tensor *t, struct tolerance allowed)
{
	double worst = -1;
	size_t at = 0;

	if (is_narrow(s, t))
		s->be->download_activations(s->gpu, t->got, t->gpu, t->count);
	else
		s->be->download(s->gpu, t->got, t->gpu, t->count * sizeof(float));
	for (size_t i = 0; i < t->count; i++) {
		double want = t->cpu[i], difference = fabs((double)t->got[i] - want);
		double most = allowed.absolute + allowed.relative * fabs(want);
		double part = difference == 0 ? 0 : difference / most;
		if (!(part <= worst)) {
			worst = isnan(part) ? INFINITY : part;
			at = i;
		}
		if (isinf(worst))
			break;
	}
	s->compared++;
	s->failed += !(worst <= 1);
	printf("%-6s %-20s %-9s %-28s worst %.3f of the tolerance, at %zu: %.7g, not %.7g\n",
	       worst <= 1 ? "ok" : "not ok", operation, name, s->shape, worst, at,
	       (double)t->got[at], (double)t->cpu[at]);
}

void compare(struct suite *s, const char *operation, const char *name, struct tensor *t,
	     double terms)
{
	compare_within(s, operation, name, t, tolerance(s, t, terms));
}

void compare_bits(struct suite *s, const char *operation, const char *name, struct tensor *t)
{
	compare_within(s, operation, name, t, (struct tolerance){ 0, 0 });
}

void shape(struct suite *s, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(s->shape, sizeof(s->shape), format, arguments);
	va_end(arguments);
}
