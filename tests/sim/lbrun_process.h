/* SPDX-License-Identifier: MIT */
/* lbrun_process.h - for the files of the simulated lbrun alone. */
#ifndef TESTS_SIM_LBRUN_PROCESS_H
#define TESTS_SIM_LBRUN_PROCESS_H

#include "tests/sim/history.h"
#include "tests/sim/lbrun_model.h"
#include "worker/lbrun/end/ending.h"

void lbrun_fact(struct sim *sim, const struct lbrun *p, enum fact_kind kind, int64_t a, int64_t b);
struct run_files *lbrun_files(struct sim *sim, const struct lbrun *p);
/* Attempts in a row before this one that a check of its node ended, as the disk tells. */
int64_t lbrun_checks_failed(const struct sim *sim, const struct lbrun *p);
/* Writes all lines that waited, in their order; false: the disk is full. */
bool lbrun_write_kept(struct sim *sim, struct lbrun *p);
/* Looks into the folder: newer claims, orders. */
void lbrun_look(struct sim *sim, struct lbrun *p);
void lbrun_write_exit(struct sim *sim, struct lbrun *p, const struct ending *end);
/* The process is over. */
void lbrun_leave(struct sim *sim, struct lbrun *p);

/* lbrun_steps.c: does what was decided. */
void lbrun_act(struct sim *sim, struct lbrun *p, const struct next *next);

#endif
