/* SPDX-License-Identifier: MIT */
/* history.h - what happened in a simulated world: an append-only list of facts. The models write
 * it, the checker reads it, and a person reads it when a promise was broken. */
#ifndef TESTS_SIM_HISTORY_H
#define TESTS_SIM_HISTORY_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum fact_kind {
	/* people, acknowledged by lbd; a: order */
	FACT_SUBMITTED,
	FACT_ARRAY, /* that is one */
	FACT_ORDERED,
	FACT_RESTARTED,
	FACT_SAVE_ASKED,
	/* the ledger, committed */
	FACT_WANTED, /* a: order */
	FACT_INTENT,
	FACT_EXCLUDED, /* a: the nodes, one bit each */
	FACT_ADOPTED,  /* a: job id, b: submit time */
	FACT_RELEASED,
	FACT_STARTED, /* a: node, as far as lbd knows; -1: it does not */
	FACT_ENDED,   /* a: cause */
	FACT_MOVED,   /* a: run state, b: cause */
	/* the scheduler; a: job id, b: submit time unless said otherwise */
	FACT_JOB_MADE,
	FACT_JOB_STARTED,
	FACT_JOB_PLACED, /* a: the first node, b: there are more */
	FACT_JOB_OVER,
	FACT_JOB_FORGOTTEN,
	FACT_JOB_UNRELEASED,
	FACT_JOB_DEPENDS,       /* it is to wait for another */
	FACT_DEPENDENCY_FAILED, /* the job will never start, or is cancelled for it */
	FACT_REFUSED,           /* a submission */
	FACT_JOB_CANCELLED,     /* by an administrator */
	FACT_TASK_CANCELLED,    /* of an array; a: it ran, b: for so many ms */
	FACT_OVERTAKEN, /* its node was taken for maintenance; a: known since, b: it was well */
	FACT_ROOM,      /* a: as many nodes are free as the run lacks */
	/* lbd put it into the folder; a: order, b: the run goes on, 2: as its node is reserved */
	FACT_ORDER_LEFT,
	/* lbrun and its trainer; a: launch */
	FACT_CLAIMED,      /* a: job id */
	FACT_TURNED_AWAY,  /* a: job id */
	FACT_NODE_REFUSED, /* a: the node that the check before a launch found broken */
	FACT_NODE_BLAMED,  /* a: the node that lbrun says broke a launch; -1: it knows of none */
	FACT_TRAINER_STARTED,
	FACT_TRAINER_FROM, /* b: stamp of its checkpoint; 0: none */
	FACT_TRAINER_GONE, /* the last of its processes */
	/* lbrun's verdict; b: cause, + 100 with progress, + 1000 for ever, + 10000 the disk was to
	 * blame, + 100000 says lbrun, it does not count */
	FACT_TRAINER_ENDED,
	FACT_TRAINER_FROZEN,
	FACT_TRAINER_THAWED,
	FACT_RANKS_ALONE, /* those on other nodes run, and nothing does beside lbrun */
	FACT_RANKS_QUIET,
	FACT_UNHEARD, /* one of them ends, for nobody answers it, and leaves a note */
	FACT_TRAINER_HUNG,
	FACT_TRAINER_LEFT_OVER,
	FACT_WARNED,        /* SIGUSR1: the time limit is near */
	FACT_STEP,          /* a: seq, b: step; acknowledged */
	FACT_CHECKPOINT,    /* b: step; acknowledged, and progress */
	FACT_GOT_BEYOND,    /* b: stamp of the checkpoint that it came from */
	FACT_FROM_FAILED,   /* b: that stamp: it failed by itself, and got to nothing new */
	FACT_FROM_DOUBTFUL, /* the same, but the next lbrun may not know */
	FACT_LINES_LOST,    /* a: so many that the disk never took; b: since when lbrun waited */
	FACT_EXITED,        /* a: cause, b: last seq */
	FACT_TASK_DONE,     /* of an array: marked as that */
	/* checkpoints on the disk; a: stamp, b: step */
	FACT_SAVED,
	FACT_DROPPED, /* there were too many */
	/* no run's own */
	FACT_DAEMON_UP,
	FACT_DAEMON_DOWN,
	FACT_FAULT, /* a: enum fault */
	FACT_QUIET, /* no more faults from here on */
	FACT_COUNT
};

enum fault {
	FAULT_CONTROLLER_CRASH, /* and what it had not saved is forgotten */
	FAULT_CONTROLLER_BACK,
	FAULT_CONTROLLER_FROZEN,
	FAULT_CONTROLLER_THAWED,
	FAULT_COLD_START, /* every job forgotten, ids from 1 */
	FAULT_NODE_DIED,
	FAULT_NODE_LOST, /* it works on, unseen by the controller */
	FAULT_NODE_FROZEN,
	FAULT_NODE_CUT, /* for a moment, from all others */
	FAULT_NODE_BACK,
	FAULT_NODE_LEAVES, /* it will be taken away */
	FAULT_NODE_TAKEN,
	FAULT_NODE_BROKEN, /* what runs there fails; a check finds it */
	FAULT_PREEMPTED,
	FAULT_CANCELLED,
	FAULT_REQUEUED, /* by an administrator */
	FAULT_LBRUN_KILLED,
	FAULT_REBOOT, /* of the one machine: lbd and all trainers are gone */
	FAULT_CLOCK_JUMP,
	FAULT_DAEMON_FROZEN, /* lbd, or its host, stands still */
	FAULT_DAEMON_THAWED,
	FAULT_DISK_FULL,
	FAULT_DISK_FREE,
	FAULT_COUNT
};

struct fact {
	int64_t at_ms;
	int64_t a, b;
	int32_t attempt; /* number; 0: none */
	int16_t run;     /* -1: none */
	uint8_t kind;
};

struct history {
	struct fact *facts;
	size_t count, cap;
};

void history_add(struct history *h, int64_t at_ms, enum fact_kind kind, int run, int64_t attempt,
		 int64_t a, int64_t b);
/* The run's newest `limit` facts up to `until_ms`, with what else happened close to them. */
void history_print(const struct history *h, int run, int64_t until_ms, size_t limit, FILE *out);
void history_fini(struct history *h);

#endif
