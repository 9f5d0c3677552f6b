/* SPDX-License-Identifier: MIT */
/* lbd_month_internal.h - one world for one run, and what the parts of it tell each other: the month
 * (lbd_month.c), Slurm (lbd_month_slurm.c), lbrun with its trainer (lbd_month_lbrun.c), and the
 * world as lbd sees it (lbd_month_world.c). The agenda's `struct sim` is this one. */
#ifndef TESTS_SIM_ETTR_LBD_MONTH_INTERNAL_H
#define TESTS_SIM_ETTR_LBD_MONTH_INTERNAL_H

#include <jansson.h>

#include "daemon/engine/engine.h"
#include "tests/sim/ettr/lbd_month.h"

enum {
	EPOCH_S = 1767225600,
	JOBS_MAX = 4096,
	MONO_MS = 1000 * SECOND, /* of lbd's clock, when the month begins: 0 often means "never" */
};

enum phase { PHASE_NONE, PHASE_START, PHASE_TRAIN, PHASE_STUCK };

/* a line of the spool */
struct said {
	char *text; /* owned */
	int64_t at_ms, launch;
};

/* and its attempt's folder */
struct job {
	struct job_status status;
	char *nodes; /* which it borrows; owned */
	int64_t number,
		made_ms; /* of the attempt; when it got its place in line, where held jobs age */
	bool avoided[NODE_COUNT], held[NODE_COUNT];
	bool spare[NODE_COUNT]; /* idle, to take the place of one that is held */
	int head;               /* the node that lbrun is on */
	int64_t over_ms;
	bool is_claimed, has_exit;
	struct attempt_exit exit;
	struct said *lines;
	size_t line_count, line_cap;
};

struct sim {
	const struct month *m;
	struct account *a;
	struct lbd_notes notes;
	struct agenda agenda;
	int64_t now_ms;
	struct rng rng;
	struct ledger *ledger;
	char folder[32]; /* of the empty file that stands for it */
	struct engine *engine;
	struct scheduler slurm;
	struct world world;
	int64_t planned_ms;
	uint64_t plan;
	struct run_spec spec;
	struct job *jobs[JOBS_MAX]; /* in the order of submission; owned */
	size_t job_count;
	int64_t heard_ms;          /* as struct lbd_abilities has it */
	int spares, lost;          /* of a job; the node that the trainer waits for */
	int64_t hang_ms, setup_ms; /* silence that lbrun allows: learned; before any step */
	/* the trainer */
	struct job *job; /* whose it is; NULL: none runs */
	enum phase phase;
	uint64_t stamp;  /* of what is planned for this phase */
	int64_t mark_ms; /* until then all is in the account */
	enum trouble why;
	int64_t launch, failures, without_before;
	bool has_progressed, is_new_saved;
	int64_t saved_step; /* -1: none */
	bool is_waiting_for_person;
};

/* Now, as clocks on the wall tell it. */
int64_t live_wall_ms(const struct sim *sim);
void live_after(struct sim *sim, int64_t ms, event_fn fn, void *arg, uint64_t stamp);
/* All from sim->mark_ms until now was this. */
void live_spent(struct sim *sim, enum where where);

/* --- Slurm --- */
extern const struct scheduler_ops live_slurm_ops;
/* The newest of the attempt with this number; NULL: there is none. */
struct job *live_job_of(const struct sim *sim, int64_t number);
/* Nodes of the job; a new reference. */
json_t *live_names_of(const struct job *job);
/* The job ends now, and its trainer with it. */
void live_job_over(struct sim *sim, struct job *job, uint32_t state, uint32_t reason,
		   uint32_t exit_code);
/* Calls that nobody answers any more, when the month is over. */
void live_drop_calls(struct sim *sim);

/* --- lbrun and the trainer --- */
/* Events: a job's lbrun claims it; number `stamp` of the month's troubles strikes. */
void live_lbrun_begin(struct sim *sim, void *arg, uint64_t stamp);
void live_on_trouble(struct sim *sim, void *arg, uint64_t stamp);
void live_learn_limits(struct sim *sim);

/* --- lbd's world --- */
extern const struct world live_world; /* without its self */

#endif
