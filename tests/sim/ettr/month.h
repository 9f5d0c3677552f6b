/* SPDX-License-Identifier: MIT */
/* month.h - one month of one job on 64 nodes: what befalls it, the same for everybody, and where
 * its time went. Pure.
 *
 * A month is drawn from a seed: faults with their times and nodes, the wait in the queue of the
 * n-th job, and which jobs fail to start. Whoever lives through it (peers.h, lbd_month.h) is told
 * the same.
 *
 * ETTR (effective training time ratio) is the time of steps that were kept, over the time that
 * passed. Kept are steps that a checkpoint holds, and those at the very end that nothing has
 * undone. */
#ifndef TESTS_SIM_ETTR_MONTH_H
#define TESTS_SIM_ETTR_MONTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/sim/agenda.h"

enum {
	NODE_COUNT = 72,
	JOB_NODES = 64,
	LEMONS = 3,
	GPUS_OF_NODE = 8,
	SLURMD_TIMEOUT_MS = 300 * SECOND,
	LAUNCH_FAILS_MS = 30 * SECOND, /* until a job that cannot start is over */
};
#define MONTH_MS (30 * (int64_t)DAY)

enum trouble {
	TROUBLE_NONE,   /* the first start */
	TROUBLE_GPU,    /* a GPU fails: its rank ends, and says so */
	TROUBLE_HANG,   /* the network, NCCL: nobody goes on, nobody ends */
	TROUBLE_NODE,   /* a node is gone for some hours */
	TROUBLE_OWN,    /* the trainer's own crash, which no node is to blame for */
	TROUBLE_LAUNCH, /* the job cannot be started */
	TROUBLE_TORN,   /* the newest checkpoint was cut off, and loading it fails */
	TROUBLE_COUNT
};

struct trouble_at {
	int64_t at_ms;
	int node; /* 0 … NODE_COUNT - 1 */
	enum trouble kind;
};

/* the same for all months of a table */
struct circumstances {
	double per_node_day;   /* mean number of troubles */
	double launch_failure; /* chance, of each job */
	int64_t queue_ms;      /* mean wait of a job (exponential) */
	int64_t start_ms;      /* from the trainer's start to its first new step */
	int64_t interval_ms;   /* of work between two checkpoints */
	int64_t save_ms;       /* that all ranks wait for one */
	/* from a node's own folder to where a job on other nodes finds it; 0: it is saved there */
	int64_t drain_ms;
	int64_t repair_ms; /* of a node that is gone */
	int64_t person_ms; /* until somebody has looked after what a program cannot */
};

struct month {
	struct circumstances c;
	uint64_t seed;
	struct trouble_at *troubles; /* in order of time; owned */
	size_t count;
	int order[NODE_COUNT]; /* in which the scheduler prefers the nodes */
};

/* The interval that loses least: sqrt(2 · save · mean time between failures) (Young 1974). */
int64_t young_interval_ms(int64_t save_ms, double mtbf_ms);

void month_draw(struct month *m, const struct circumstances *c, uint64_t seed);
void month_fini(struct month *m);
/* Of the month's n-th job, from 0. */
int64_t month_queue_ms(const struct month *m, int64_t n);
bool month_launch_fails(const struct month *m, int64_t n);
/* So many nodes of a job that starts now: the first that are up and not avoided (NULL: none is).
 * false: there are too few. */
bool month_place(const struct month *m, int64_t now_ms, int nodes, const bool avoided[NODE_COUNT],
		 bool held[NODE_COUNT]);
bool trouble_hits(const struct trouble_at *t, const bool held[NODE_COUNT]);
const char *trouble_name(enum trouble kind);

/* --- where the time went ---------------------------------------------------------------------- */

enum where {
	WHERE_KEPT,
	WHERE_SAVING, /* waiting for checkpoints */
	WHERE_REDONE, /* steps that no checkpoint held */
	WHERE_NOTICE, /* until somebody noticed */
	WHERE_WAIT,   /* in the queue; pauses before it */
	WHERE_START,  /* of the trainer, to its first new step */
	WHERE_COUNT
};

struct account {
	int64_t ms[WHERE_COUNT];        /* their sum is the month, when it is over */
	int64_t lost_ms[TROUBLE_COUNT]; /* REDONE to START, by what brought it about */
	int64_t count[TROUBLE_COUNT];   /* that hit the job */
};

/* What lies behind the month's end is not counted, here and below. */
void account_span(struct account *a, enum where where, enum trouble why, int64_t from_ms,
		  int64_t to_ms);
/* Steps from from_ms on, which ended at to_ms because of `why` (at the month's end: they go on).
 * Work and checkpoints take turns. A trouble that takes nodes away leaves of them what was drained,
 * once it was; one that the job outlives, all. true: a checkpoint was just being written, and is
 * torn now. */
bool account_train(struct account *a, const struct circumstances *c, enum trouble why,
		   int64_t from_ms, int64_t to_ms);
double account_ettr(const struct account *a);

#endif
