/* SPDX-License-Identifier: MIT */
/* attempt.h - an attempt in lbd's memory: its row of the ledger, what this lbd has asked of the
 * scheduler for it, and what polls and its files have shown. */
#ifndef DAEMON_ENGINE_DECIDE_ATTEMPT_H
#define DAEMON_ENGINE_DECIDE_ATTEMPT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "common/run/attempt.h"
#include "common/run/run_state.h"
#include "daemon/engine/decide/warnings.h"
#include "slurm/scheduler.h"

/* One call of this lbd to the scheduler. */
enum call_state {
	CALL_NONE, /* not made by this process */
	CALL_OPEN,
	CALL_OK,
	CALL_REFUSED,
	CALL_GONE,
	CALL_DOWN,
	CALL_UNCLEAR,
};

struct call {
	enum call_state state;
	int64_t made_ms, reply_ms; /* monotonic */
};

/* What the scheduler's accounting remembers of a job that it knows no longer. */
struct recalled {
	enum cause cause;      /* CAUSE_NONE: nothing */
	int exit_code, signal; /* -1 and 0: none */
	char state[40];
	bool had_nodes;
	int64_t start_time, end_time; /* seconds; 0: not known */
	bool has_canceller;           /* it was cancelled by who has this uid: */
	uint32_t canceller;
	bool is_more; /* of an array: of other tasks it has not heard yet that they are over */
};

/* Some of its nodes are going away. */
struct leaving {
	int64_t draining;  /* so many are set to drain */
	int64_t drains_ms; /* monotonic: since when that is known */
	/* monotonic: when a maintenance reservation begins on some; 0: none does */
	int64_t begins_ms;
	char text[200]; /* which, and why: for people; "" = none are */
};

/* Most other nodes of its newest launch say that nobody answers their heartbeats. */
struct host_unheard {
	int64_t since_ms; /* monotonic: since when that is known; 0 = they do not */
	int64_t limit_ms; /* watch.node_timeout: so long lbrun must have been silent, too */
	char text[200];
};

/* All zero: none. attempt_clear is due. */
struct attempt {
	int64_t id, number;
	enum attempt_state state;
	struct job_ref job;  /* job_id 0 while not known */
	int64_t released_ms; /* wall clock; 0 = not, or not known */
	int64_t started_ms;  /* wall clock, as lbd saw it; valid once it runs */
	enum cause cause;    /* once ended */
	int exit_code;
	bool blame_run; /* ended by lbrun's own word, not the scheduler's */
	bool is_final;  /* and that word is that only a user can help */
	char end_text[512];
	/* comma-separated, or as the scheduler prints them; owned; NULL or "" = not known */
	char *nodes;
	bool is_settled;  /* its newest launch was counted, or made progress */
	bool asks_fewer;  /* nodes than the spec names: the one before it had waited too long */
	bool was_waiting; /* some poll well after the release showed it not held */
	int64_t spool_offset, spool_seq;
	/* the newest that was told of, or the one behind it once that has ended; 0 = none yet */
	int64_t launch;

	/* of this process only: gone after a restart, and reconcile knows how to live without */
	/* this process made the intent: no submission before ours */
	bool fresh;
	struct call submit, release, signal, cancel, recall;
	struct call room;     /* OK: the missing nodes would be given at once */
	bool room_is_avoided; /* with some that are avoided */
	char room_text[160];  /* why not */
	int64_t saved_ms;     /* monotonic: when its newest checkpoint was heard of; 0 = none */
	struct leaving leaving;
	struct call save; /* OK: it was asked for a checkpoint, for nodes that are going away */
	bool goes_on;     /* it was told to end so that the next one has other nodes */
	bool was_moved;   /* the one before was: its nodes need a while to be free */
	struct recalled recalled; /* the answer to `recall` */
	struct job_ref submitted; /* the answer to `submit` */
	/* the scheduler's own words to the newest submit or release */
	char call_text[160];
	int signalled;          /* the last signal sent; 0 = none */
	enum run_order ordered; /* what it was sent for */
	/* when this process began to watch it in its state */
	int64_t watching_since_ms;

	/* valid while seen_poll_ms is that of the newest poll */
	struct job_status last_seen;
	char *seen_nodes, *seen_failed_nodes; /* which it borrows; owned */
	/* begin of the last poll that showed the job; 0 = never */
	int64_t seen_poll_ms;
	/* a person wants it released, whoever holds it or tasks of it, and the scheduler has not
	 * answered yet */
	bool is_let_go;
	/* when its present phase was first seen, once it is over; else 0 */
	int64_t ended_ms;

	bool is_unfit;            /* its files can never be written: call_text says why */
	bool claimed;             /* lbrun runs, or ran */
	int64_t claim_seen_ms;    /* valid if claimed */
	bool has_exit;            /* lbrun's exit record was read */
	struct attempt_exit exit; /* valid if has_exit */
	int64_t exit_seen_ms;
	/* the spool was read to its end, as far as it shows here */
	bool drained;
	bool has_more;      /* it holds more than one turn may take */
	bool is_unreadable; /* the newest look at it failed, and the log told so */
	int64_t heard_ms;   /* last growth of the spool */
	struct host_unheard unheard;
	int64_t bad_lines;
	struct pace pace;
	/* that were blamed for lines of its output; comma-separated */
	char error_nodes[256];
	/* lbrun knew which node its newest launch ended at */
	bool is_node_named;
	bool is_limit_reported;
};

static inline void attempt_clear(struct attempt *a)
{
	free(a->nodes);
	free(a->seen_nodes);
	free(a->seen_failed_nodes);
	*a = (struct attempt){ 0 };
}

static inline const char *attempt_nodes(const struct attempt *a)
{
	return a->nodes ? a->nodes : "";
}

/* lbrun has written how that launch ended: what its ranks said of lbrun's node is no news any more,
 * however long the next one takes to begin. */
static inline void attempt_outlived(struct attempt *a, int64_t launch)
{
	if (a->launch <= launch)
		a->launch = launch + 1;
}

#endif
