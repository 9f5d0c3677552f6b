/* SPDX-License-Identifier: MIT */
/* sim.h - one simulated world: the real engine and ledger of lbd, and models of all around them.
 *
 *   person ──▶ daemon (handlers.c, engine.c, reconcile.c, …, ledger.c: the real ones)
 *                │  struct scheduler          │  struct world
 *                ▼                            ▼
 *            slurm_model ──jobs──▶ lbrun_model ──▶ disk (attempt folders, checkpoints)
 *                                  (decide/: the real one, in a shell of ours; trainer_model)
 *
 * In a world without Slurm (is_local) the same model stands in for lbd's own scheduler: it loses
 * nothing, stands still while lbd is down, finds its jobs again, and a reboot ends all of them.
 * slurm/local/local.c itself is not in it: that is processes and files
 * (tests/system/scheduler-local.t).
 *
 * Everything that happens is an event of the agenda; every choice is a throw of the seed's dice. So
 * a seed is a world, and the same seed is the same world again. Times are true milliseconds since
 * the world began; lbd's own two clocks are made from them (daemon_model.c). */
#ifndef TESTS_SIM_SIM_H
#define TESTS_SIM_SIM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "tests/sim/agenda.h"
#include "tests/sim/daemon_model.h"
#include "tests/sim/disk.h"
#include "tests/sim/history.h"
#include "tests/sim/lbrun_model.h"
#include "tests/sim/run_numbers.h"
#include "tests/sim/slurm_model.h"

enum {
	FAULT_DAYS = 30,
	QUIET_DAYS = 7,           /* within which every run must have come to its end */
	BEGIN_MS = 1000 * SECOND, /* "0" often means "never" */
	EPOCH_S = 1767225600,     /* of the wall clocks, when the world begins */
	/* of every run's spec */
	MAX_WITHOUT_PROGRESS = 3,
	IN_PLACE = 3,
	MAX_EXCLUDED = 4,
	NEVER_EXIT_CODE = 42,
	WARN_MS = 10 * MINUTE, /* slurm.signal_before, where a run has it */
	HANG_MIN_MS = MINUTE,  /* lbrun notices a silent trainer within */
	HANG_MAX_MS = 30 * MINUTE,
	BACKOFF_FIRST_MS = MINUTE,
	BACKOFF_MAX_MS = 30 * MINUTE,
	KILL_GRACE_MS = 30 * SECOND,
	/* lbrun ends what srun has not, KillWait included, within */
	LEFT_OVER_MAX_MS = 2 * MINUTE,
	STOP_GRACE_MS = 5 * MINUTE,
	PREFLIGHT_MS = 3 * MINUTE,
	PREFLIGHT_TRIES = 3,
};

/* Tests of the test: each breaks one part of the world or of lbrun, and the checker must notice. */
enum negative_control {
	CONTROL_NONE,
	CONTROL_NO_CLAIM,     /* lbrun takes no notice of claims */
	CONTROL_PLAIN_SUBMIT, /* jobs are not held when they are submitted */
	/* lbrun, in each, does not see one thing that it is to wait for or to go by: */
	CONTROL_NO_WAIT,     /* that an older attempt may still live */
	CONTROL_NO_CLEAR,    /* what is left of the trainer */
	CONTROL_NO_BLAME,    /* that a launch got nowhere from its checkpoint */
	CONTROL_NO_ROOM,     /* that its last lines wait for a full disk */
	CONTROL_NO_CHECK,    /* that a node was found to be broken */
	CONTROL_NO_GOING_ON, /* that it is to end for another attempt to have all nodes */
	/* lbd: it is told that nodes are free which are not */
	CONTROL_NO_NODES,
	CONTROL_NO_OUTAGES, /* nothing is told of nodes that are going away */
	CONTROL_NO_WORDS,   /* lbrun, again: that srun says it ends a launch */
	CONTROL_NO_LEASE,   /* ranks on other nodes: that nobody answers them */
	CONTROL_NO_RANKS,   /* lbrun: that such ranks of an older attempt may run */
	CONTROL_NO_MARKS,   /* that a task of an array is done, or was cancelled */
	CONTROL_NO_SCANCEL, /* lbd: that somebody cancelled one */
	CONTROL_COUNT
};

/* How rough this world is; drawn from the seed. Means of 0: never. */
struct climate {
	double controller_crash, controller_freeze, cold_start; /* mean ms between two */
	double node_fault, preemption, admin_cancel, admin_requeue, lbrun_kill;
	double daemon_crash, daemon_freeze, clock_jump, reboot, disk_full, broken_node, outage, cut,
		task_cancel;
	double crash_point; /* chance that lbd dies at one */
	double forgetting;  /* chance that a change kills the controller before it is saved */
	double start_crash; /* the same of a job's start */
	double lost_answer, late_effect, no_effect, refusal; /* chance per call */
	double early_failure, failure, hang, no_record;      /* of trainers and of lbrun */
	double lost_signal;    /* chance that a trainer whose rank fails is not ended by srun */
	double lost_search;    /* chance that one for a checkpoint dies */
	double bad_checkpoint; /* chance that one is whole, and no trainer gets anywhere from it */
	bool has_accounting;
	int64_t tick_ms, queue_ms; /* between two words of a trainer; mean wait in the queue */
};

enum run_of_person { PERSON_BEFORE, PERSON_LIVE };

enum dependency { DEPENDENCY_NONE, DEPENDENCY_WAITS, DEPENDENCY_KILLS };

struct person { /* one for each run, and for each task of an array */
	enum run_of_person state;
	int64_t target_step;
	bool never_again;  /* its trainer may end with NEVER_EXIT_CODE */
	bool is_broken;    /* its trainer hardly ever gets anywhere */
	int prequeue;      /* restart.prequeue */
	bool may_shrink;   /* restart.min_nodes */
	bool checks_nodes; /* preflight.enabled */
	bool is_spread;    /* srun starts ranks on other nodes, too */
	bool loses_nodes;  /* and has to: not all of them are free, until */
	int64_t nodes_back_ms;
	bool is_warned;             /* its jobs are signalled before their time limit */
	enum run_order switched;    /* a switch file of this order lies there */
	bool is_unwatched;          /* its spec has no hang timeouts */
	enum dependency dependency; /* on a job that failed */
	int64_t failed_until_ms;    /* Slurm remembers that it did until then */
	bool is_array;
	int at_once; /* so many of its tasks */
};

struct sim {
	uint64_t seed;
	enum negative_control control;
	struct rng rng;
	struct agenda agenda;
	int64_t now_ms;
	bool is_quiet;
	bool is_local; /* no Slurm: lbd's own scheduler, on one machine */
	struct climate climate;
	struct history history;
	struct disk disk;
	struct slurm_model slurm;
	struct lbruns lbruns;
	struct daemon_model daemon;
	struct person people[ALL_RUNS];
};

/* Runs the world of this seed to its end. 0, or the number of broken promises (told to `out`). */
int sim_run(uint64_t seed, enum negative_control control, FILE *out);

static inline void sim_fact(struct sim *sim, enum fact_kind kind, int run, int64_t attempt,
			    int64_t a, int64_t b)
{
	history_add(&sim->history, sim->now_ms, kind, run, attempt, a, b);
}

static inline void sim_after(struct sim *sim, int64_t ms, event_fn fn, void *arg, uint64_t stamp)
{
	agenda_add(&sim->agenda, sim->now_ms + ms, fn, arg, stamp);
}

/* climate.c */
void climate_draw(struct climate *climate, struct rng *rng);
/* Of a world without Slurm. */
void climate_local(struct climate *climate, struct rng *rng);
void climate_calm(struct climate *climate);

/* faults.c, person.c: what happens to the world, and who works with lbd */
void faults_begin(struct sim *sim);
/* Before the controller has saved what it does now. */
void controller_crash_soon(struct sim *sim);
void people_begin(struct sim *sim);
void people_rest(struct sim *sim); /* all that is left is to wait for the ends */

#endif
