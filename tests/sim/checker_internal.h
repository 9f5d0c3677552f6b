/* SPDX-License-Identifier: MIT */
/* checker_internal.h - what the two halves of the checker share: checker.c goes through the
 * history, checker_ledger.c holds the ledger's last word against it. */
#ifndef TESTS_SIM_CHECKER_INTERNAL_H
#define TESTS_SIM_CHECKER_INTERNAL_H

#include <stdbool.h>

#include "tests/sim/checker.h"

enum { SLACK_MS = 60 * 1000 };

struct attempt_view {
	int64_t job_id, submit_time; /* as the ledger has it */
	int64_t ended_ms, trainer_gone_ms;
	bool is_training;
	bool is_over;    /* in Slurm, as a task of an array */
	enum cause said; /* in lbrun's exit record; CAUSE_NONE: there is none */
	int64_t said_ms;
	int64_t requeued_ms;  /* 0: not */
	int64_t started_ms;   /* its job, last; 0: not */
	int64_t doomed_ms;    /* what its job depends on failed; 0: not */
	int64_t cancelled_ms; /* by an administrator, when it had run for long; 0: not */
	int64_t hung_ms;      /* since when its watched trainer is silent; 0: it is not */
	int64_t hung_most_ms; /* and for how long it may be */
	bool depends;         /* its job is to wait for another */
	bool is_claimed;      /* an lbrun began */
	bool is_refused;      /* the check before the launch found its node broken */
	bool was_refused;     /* a job of it: one node less is kept away from */
	bool is_ordered;      /* an order to end lies in its folder */
	bool is_warned;       /* of its time limit */
	bool has_node;        /* lbd knew where it ran */
	bool has_blamed, is_spread;
	int blamed;               /* by lbrun; -1 = it knew of none */
	int node;                 /* where its job was put last */
	uint64_t excluded;        /* nodes it was to keep away from */
	int64_t row_id, last_seq; /* of the ledger: id of the row, newest step line */
	int64_t told, stored;     /* step lines up to that one, as a sum that shows their order */
};

struct seen_checkpoint {
	int64_t stamp, step;
	enum standing {
		STANDING_SOUND,
		/* a launch from it failed, and who starts the next may not know */
		STANDING_DOUBTFUL,
		STANDING_FAILED,
	} standing;
};

struct view { /* of one run */
	struct attempt_view *attempts;
	int64_t count;
	bool is_acked;
	enum run_state state;
	enum run_order wanted;
	int64_t final_ms;                  /* 0: it is not over */
	int64_t backoff_ms;                /* when a pause began */
	int64_t backoff_up_ms;             /* lbd's uptime when a pause began; -1: none */
	int64_t backoff_max_ms;            /* how long it may be */
	int64_t failed_attempt, failed_ms; /* the newest that a node's failure ended; 0: none */
	int failed_node;
	int64_t checkpoint;   /* step of the newest that lbd must have; -1: none */
	int64_t thawed_ms;    /* when some trainer last woke up from a freeze */
	int64_t newest_claim; /* number of the newest attempt that was claimed */
	int64_t room_ms; /* when Slurm last said that the missing nodes are free; 0: it said no */
	int trainers;
	int64_t both_ms; /* since when there are two; 0: there are not */
	/* since the run was created or restarted */
	bool completed, may_be_killed, may_fail;
	bool must_not_run;       /* lbd saw that what it depends on failed */
	int refused;             /* attempts in a row that ended by such a check */
	int64_t bad, surely_bad; /* launches without progress since the last progress */
	bool is_array;
	int64_t attempt;      /* its newest */
	bool may_be_ended;    /* somebody cancelled all of it, or ordered that */
	bool is_done;         /* a task that is marked as that */
	bool is_cancelled;    /* one of which lbd has heard that somebody cancelled it */
	int64_t cancelled_ms; /* when that was, in this attempt; 0: it was not */
	int64_t cancelled_attempt;
	struct seen_checkpoint *saved; /* those on the disk; owned */
	size_t saved_count, saved_cap;
};

struct check {
	const struct history *history;
	const struct world_end *end;
	FILE *out;
	struct view *views;
	int64_t up_ms, up_since_ms; /* of lbd */
	bool is_up;
	int64_t jumped_ms;      /* when lbd's wall clock was last set; 0: never */
	int64_t trouble_ms;     /* when the controller last had any */
	int64_t full_ms;        /* since when the disk is full; 0: it is not */
	int64_t full_change_ms; /* when that was last told */
	int broken;
};

/* Counts it, and tells it with the run's history up to at_ms. */
void broken(struct check *c, int run, int64_t at_ms, const char *promise);
struct attempt_view *attempt_of(struct view *v, int64_t number);

/* checker_checkpoints.c: one that failed is not tried for ever, and no more is lost than must be */
void check_checkpoint(struct check *c, struct view *v, const struct fact *f);

/* checker_arrays.c: of the array that a task is of; else the run itself */
struct view *owner_of(struct check *c, int run);
void check_array(struct check *c, struct view *v, const struct fact *f);

/* checker_ledger.c: every acknowledged run is there and over, with all its acknowledged progress */
void check_ledger(struct check *c);

#endif
