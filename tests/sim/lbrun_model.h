/* SPDX-License-Identifier: MIT */
/* lbrun_model.h - lbrun and its trainer, as far as others can tell: claim, fencing, relaunches in
 * place, spool, checkpoints, signals, exit record. */
#ifndef TESTS_SIM_LBRUN_MODEL_H
#define TESTS_SIM_LBRUN_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim;
struct job;
struct folder;

enum lbrun_phase { LBRUN_BOOT, LBRUN_WAIT, LBRUN_TRAIN, LBRUN_PAUSE, LBRUN_OVER };

enum lbrun_stop { LBRUN_GOES_ON, LBRUN_WARNED, LBRUN_SIGNALLED, LBRUN_ORDERED, LBRUN_FENCED };

struct lbrun {
	struct lbrun *next; /* all of this world */
	struct job *job;
	struct folder *folder;
	int run, node;
	enum lbrun_phase phase;
	enum lbrun_stop stop;
	uint64_t stamp;      /* of the phase's planned event */
	int64_t stop_due_ms; /* 0: not asked to end */
	int64_t frozen_until_ms;
	int64_t launch, failures; /* in this attempt; in a row without progress */
	bool has_progressed;
	int64_t step, checkpoint_at_start;
	bool fails_early, is_hung; /* this launch */
	bool is_warned;            /* SIGTERM from now on is the time limit itself */
};

struct lbruns {
	struct lbrun *all; /* owned */
	struct lbrun *live[256];
	size_t live_count;
};

void lbruns_fini(struct lbruns *lbruns);

/* The batch script of the job has started it. */
void lbrun_start(struct sim *sim, struct job *job);
/* SIGTERM, SIGQUIT: to lbrun alone. SIGKILL: lbrun dies, its guard clears up. */
void lbrun_signal(struct sim *sim, struct lbrun *p, int signo);
/* It and all it started are gone, without a word. */
void lbrun_vanish(struct sim *sim, struct lbrun *p);
void lbrun_freeze(struct sim *sim, struct lbrun *p, int64_t until_ms);
/* SIGUSR1: its time limit is near. */
void lbrun_warn(struct sim *sim, struct lbrun *p);
/* A wish for a checkpoint was put into its folder. */
void lbrun_notice_wish(struct sim *sim, const struct folder *folder);
/* An order was put into its folder. */
void lbrun_notice_order(struct sim *sim, const struct folder *folder);

#endif
