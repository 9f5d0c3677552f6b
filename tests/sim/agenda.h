/* SPDX-License-Identifier: MIT */
/* agenda.h - what is to happen when, and the dice: the only sources of order and chance in a
 * simulated world. Two things due at the same moment happen in the order they were entered. */
#ifndef TESTS_SIM_AGENDA_H
#define TESTS_SIM_AGENDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SECOND = 1000,
	MINUTE = 60 * SECOND,
	HOUR = 60 * MINUTE,
	DAY = 24 * HOUR,
};

/* splitmix64 */
struct rng {
	uint64_t state;
};

uint64_t rng_next(struct rng *rng);
/* Uniform in low..high, both included. */
int64_t rng_range(struct rng *rng, int64_t low, int64_t high);
/* Uniform in 0..1. */
double rng_real(struct rng *rng);
bool rng_chance(struct rng *rng, double probability);
/* Exponential with this mean, at least 1 and at most 20 means. */
int64_t rng_exp(struct rng *rng, double mean);

struct sim;
/* `stamp` is what was given to agenda_add: who wants to forget an entry counts its own up. */
typedef void (*event_fn)(struct sim *sim, void *arg, uint64_t stamp);

struct event {
	int64_t at_ms;
	uint64_t seq;
	event_fn fn;
	void *arg;
	uint64_t stamp;
};

struct agenda {
	struct event *heap;
	size_t count, cap;
	uint64_t seq;
};

void agenda_add(struct agenda *agenda, int64_t at_ms, event_fn fn, void *arg, uint64_t stamp);
/* false when nothing is left. */
bool agenda_take(struct agenda *agenda, struct event *out);
void agenda_fini(struct agenda *agenda);

#endif
