/* SPDX-License-Identifier: MIT */
/* lbrun_model.h - lbrun in a simulated world: its real heart (worker/lbrun/decide) in a shell whose
 * processes, files and clocks are invented. */
#ifndef TESTS_SIM_LBRUN_MODEL_H
#define TESTS_SIM_LBRUN_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/sim/disk.h"
#include "tests/sim/far_ranks.h"
#include "worker/lbrun/decide/decide.h"

struct sim;
struct job;

/* The trainer of one lbrun: the processes below it. */
struct trainer {
	bool lives;     /* its first process */
	int left;       /* others, which may outlive that */
	bool is_there;  /* one of them lives, and the history knows */
	uint64_t stamp; /* of its planned event */
	int64_t step;
	uint64_t from;   /* stamp of the checkpoint that it was started from; 0 = none */
	bool got_beyond; /* that one */
	bool from_bad, fails_early, is_hung;
	bool is_paused;       /* its node is frozen, or its lease is over */
	bool is_stalled;      /* it waits for a rank that it cannot reach */
	bool takes_no_notice; /* of a warning */
	bool ended_for_disk;  /* it died of a full disk */
	bool may_not_again;   /* it ended with NEVER_EXIT_CODE */
	int64_t hung_at_ms;   /* when lbrun will have noticed; INT64_MAX = never */
};

struct lbrun {
	struct lbrun *next; /* all of this world */
	struct job *job;
	struct folder *folder;
	int run, node;
	bool has_begun, is_over;
	/* of its planned turn, and of the search and the check under way */
	uint64_t stamp, search_stamp, check_stamp;
	int64_t frozen_from_ms, frozen_until_ms;
	struct attempt_params params;
	struct shepherd_policy policy;
	struct shepherd_facts facts;
	struct handed *handed; /* as it knows them; owned, NULL once it is over */
	struct trainer trainer;
	struct far *far;           /* on other nodes, of the newest launch; owned */
	struct beats beats;        /* the listener */
	struct spool_record *kept; /* lines that wait for the disk; owned */
	size_t kept_count, kept_cap;
	int64_t full_ms; /* when the disk took nothing last; INT64_MIN = never */
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
/* An order, or a wish for a checkpoint, was put into its folder. */
void lbrun_notice(struct sim *sim, const struct folder *folder);
/* Something that it hears at once: takes all steps that are due now. */
void lbrun_turn(struct sim *sim, struct lbrun *p);
bool lbrun_is_frozen(const struct sim *sim, const struct lbrun *p);

/* A line for the spool: written, or kept while the disk is full. */
void lbrun_say(struct sim *sim, struct lbrun *p, const struct spool_record *record);

/* trainer_model.c */
void trainer_start(struct sim *sim, struct lbrun *p);
/* Asked by the socket, SIGTERMed: it may end within so many ms. */
void trainer_ask(struct sim *sim, struct lbrun *p, int64_t within_ms);
void trainer_kill(struct sim *sim, struct lbrun *p);
/* The signal to all that is left of it; how many there were. */
int trainer_clear(struct sim *sim, struct lbrun *p, int signo);
/* All its processes are gone at once. */
void trainer_vanish(struct sim *sim, struct lbrun *p);
/* It was asked for a checkpoint. */
void trainer_save(struct sim *sim, struct lbrun *p);
void trainer_freeze(struct sim *sim, struct lbrun *p);
void trainer_thaw(struct sim *sim, struct lbrun *p);
/* A rank on another node is not there, or is again. */
void trainer_stall(struct sim *sim, struct lbrun *p);
void trainer_resume(struct sim *sim, struct lbrun *p);

#endif
