/* SPDX-License-Identifier: MIT */
/* daemon_model.h - the process lbd: the real engine, its loop, and its sudden ends.
 *
 * lbd can die before and after each commit of something new, before and after each call to the
 * scheduler, and at each answer. From that moment on nothing of this life gets out: calls are
 * swallowed, commits are rolled back; when the engine returns it is destroyed. */
#ifndef TESTS_SIM_DAEMON_MODEL_H
#define TESTS_SIM_DAEMON_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/lbd.h"
#include "daemon/engine/engine.h"
#include "tests/sim/history.h"

struct sim;

struct daemon_model {
	struct ledger *ledger;
	struct engine *engine; /* NULL: lbd is not there */
	struct lbd lbd;        /* as the handlers know it */
	struct world world;
	struct poll_times times;
	struct run_spec *specs;
	uint64_t life;           /* which lbd this is, counted up at each end */
	bool is_dead;            /* it died in this turn */
	int64_t frozen_until_ms; /* it stands still; what came for it waits */
	int64_t mono_offset_ms, wall_offset_ms;
	int64_t planned_ms;     /* the next turn */
	uint64_t plan;          /* stamp of that event */
	struct history pending; /* written to the ledger, not committed yet */
	bool has_written;
	int64_t turn_count, turns_now; /* at all; at this very moment */
	int64_t down_ms, down_since_ms;
	char folder[64]; /* runs/, with the spec of each; SQLite thinks that its file is here */
};

void daemon_init(struct sim *sim);
void daemon_fini(struct sim *sim);
/* Starts it unless it is there. */
void daemon_start(struct sim *sim);
/* It ends now, or, called from inside a turn, when the turn returns. */
void daemon_crash(struct sim *sim);
/* It stands still, for seconds or hours. */
void daemon_freeze(struct sim *sim);
/* It is there, and takes what comes. */
bool daemon_is_awake(const struct sim *sim);
/* What must follow everything that entered the engine. */
void daemon_settle(struct sim *sim);
/* A point at which lbd may die. true: it is dead, and nothing may get out any more. */
bool daemon_dies_here(struct sim *sim);
int64_t daemon_wall_ms(const struct sim *sim);
/* The run's number, from its name ("r07") or folder. */
int run_index(const char *path);
/* "n3,n17" as bits 3 and 17. */
uint64_t node_bits(const char *names);

#endif
