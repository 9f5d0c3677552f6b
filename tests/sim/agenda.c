/* SPDX-License-Identifier: MIT */
/* agenda.c - what is due when, as a heap in order of time. */
#include "tests/sim/agenda.h"

#include <math.h>
#include <stdlib.h>

#include "common/base/mem.h"

uint64_t rng_next(struct rng *rng)
{
	uint64_t z = rng->state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

int64_t rng_range(struct rng *rng, int64_t low, int64_t high)
{
	return low + (int64_t)(rng_next(rng) % (uint64_t)(high - low + 1));
}

double rng_real(struct rng *rng)
{
	return (double)(rng_next(rng) >> 11) * 0x1p-53;
}

bool rng_chance(struct rng *rng, double probability)
{
	return rng_real(rng) < probability;
}

int64_t rng_exp(struct rng *rng, double mean)
{
	double x = -log(1.0 - rng_real(rng)) * mean;

	if (x > 20 * mean)
		x = 20 * mean;
	return x < 1 ? 1 : (int64_t)x;
}

static bool is_before(const struct event *a, const struct event *b)
{
	return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->seq < b->seq;
}

void agenda_add(struct agenda *agenda, int64_t at_ms, event_fn fn, void *arg, uint64_t stamp)
{
	struct event e = { at_ms, agenda->seq++, fn, arg, stamp };
	size_t i = agenda->count++;

	if (agenda->count > agenda->cap) {
		agenda->cap = agenda->cap ? 2 * agenda->cap : 256;
		agenda->heap = xrealloc(agenda->heap, agenda->cap * sizeof(*agenda->heap));
	}
	for (; i > 0 && is_before(&e, &agenda->heap[(i - 1) / 2]); i = (i - 1) / 2)
		agenda->heap[i] = agenda->heap[(i - 1) / 2];
	agenda->heap[i] = e;
}

bool agenda_take(struct agenda *agenda, struct event *out)
{
	struct event *heap = agenda->heap, last;
	size_t i = 0, child;

	if (agenda->count == 0)
		return false;
	*out = heap[0];
	last = heap[--agenda->count];
	while ((child = 2 * i + 1) < agenda->count) {
		if (child + 1 < agenda->count && is_before(&heap[child + 1], &heap[child]))
			child++;
		if (!is_before(&heap[child], &last))
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = last;
	return true;
}

void agenda_fini(struct agenda *agenda)
{
	free(agenda->heap);
	*agenda = (struct agenda){ 0 };
}
