/* SPDX-License-Identifier: MIT */
/* lbd_month.h - how a run of lbd lives through a month: its real engine, ledger and policy, lbrun's
 * real rules for relaunches in place and for hangs, and models of Slurm and of the trainer that do
 * exactly what the month says. Everything about lbd is as by default, but for how often it looks at
 * Slurm and at the spool, which is less often (so that a month takes a moment). */
#ifndef TESTS_SIM_ETTR_LBD_MONTH_H
#define TESTS_SIM_ETTR_LBD_MONTH_H

#include "tests/sim/ettr/month.h"

/* what else there is to tell */
struct lbd_notes {
	int64_t jobs, launches;
	int64_t on_lemons_ms; /* node-time of jobs that ran, on the bad nodes */
	int64_t failures;     /* times that the run failed, and waited for a person */
};

enum { HALF_LIFE_MS = DAY, MAX_EXCLUDED = 4 }; /* of [nodes] by default */

#define REPEAT_HALF_LIFE_MS (30 * (int64_t)DAY)

/* What may be set otherwise than by default. */
struct lbd_abilities {
	int64_t half_life_ms;        /* nodes.half_life of lbd.toml */
	int64_t repeat_half_life_ms; /* nodes.repeat_half_life; 0: no records are kept */
	/* checkpoint.stage: that all ranks wait for a copy into a folder of their node, which then
	 * takes save_ms of the month to count; 0: there is none */
	int64_t copy_ms;
	int64_t interval_ms; /* between two checkpoints then */
	int64_t heard_ms; /* watch.node_timeout: so a lost node is known; 0: when Slurm says so */
	int spares;       /* restart.spare_nodes */
	/* held jobs gain age here, so that restart.prequeue = "auto" has the next one wait in
	 * line */
	bool ages_held;
};
extern const struct lbd_abilities lbd_by_default;

/* *notes may be NULL. */
void lbd_live(const struct month *m, const struct lbd_abilities *can, struct account *a,
	      struct lbd_notes *notes);

#endif
