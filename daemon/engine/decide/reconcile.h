/* SPDX-License-Identifier: MIT */
/* decide/ - what is to happen next to a run, to its attempts, and with nodes. Pure: facts in, a
 * decision out.
 *
 * reconcile.h - the heart of lbd: what is the next step for this run?
 *
 *   reconcile(facts, now) → one decision
 *
 * Pure: no I/O, no clock, no allocation. The facts are what the ledger wants, what this lbd has
 * asked of the scheduler, and what the world shows. The caller writes the decision to the ledger,
 * commits, acts, and asks again until the answer is DECISION_WAIT. After a crash it reads the
 * ledger, looks at the world anew and asks the same question: nothing depends on how it got here.
 *
 * Steps of an attempt (docs/ARCHITECTURE.md tells why):
 *
 *   NEW_ATTEMPT ─▶ SUBMIT (held) ─▶ ADOPT job id ─▶ RELEASE ─▶ RELEASED ─▶ START ─▶ END
 *     intent          act             held             act        queued    running   ended */
#ifndef DAEMON_ENGINE_DECIDE_RECONCILE_H
#define DAEMON_ENGINE_DECIDE_RECONCILE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/run/run_state.h"
#include "daemon/engine/decide/attempt.h"
#include "slurm/scheduler.h"

/* clang-format off */
enum {
	RECHECK_MS = 5 * 1000,		/* a call that failed is asked again after this */
	RECHECK_LONG_MS = 60 * 1000,	/* a submission that is not taken for long, after this */
	SETTLE_MS = 3 * 1000,		/* an unclear submission shows within this once the scheduler answers */
	CONFIRM_MS = 10 * 1000,		/* a released job must have been seen this long after (Slurm saves its
					   state every 5 s and forgets what it accepted in between) */
	EXIT_GRACE_MS = 5 * 1000,	/* for lbrun's exit record to become visible after the job's end */
	ENDING_MS = 45 * 1000,		/* for lbrun to end its trainer after Slurm's SIGTERM (KillWait: 30 s) */
	WHO_MS = 90 * 1000,		/* so long accounting may take to know who cancelled a job */
	RECALL_MS = 60 * 1000,		/* what nobody remembered is asked again after this: accounting is late */
	LOST_MS = 180 * 1000,		/* a claimed job that nobody knows and that is silent is lost */
	QUIT_GRACE_MS = 2 * 1000,	/* from SIGQUIT to the scheduler's own cancel */
};
/* clang-format on */

/* How it stands with the runs that must be over before this one begins (run.after,
 * run.after_ok). */
enum dependencies {
	DEPENDENCIES_MET, /* there are none, or they are done */
	DEPENDENCIES_PENDING,
	DEPENDENCIES_BROKEN, /* one that was to complete did not */
};

/* How relaunching is governed; from the run spec. */
struct policy {
	int64_t max_without_progress;
	int64_t backoff_first_ms, backoff_max_ms;
	bool rolls_back; /* lbrun goes back once when training diverged; the second end is final */
	int64_t kill_grace_ms, stop_grace_ms;
	const int *rules; /* enum spec_rule by cause; NULL = the usual ones */
	const int64_t *never_on_exit_codes;
	size_t never_count;
	bool prequeue;          /* the next attempt's job waits behind the running one */
	bool may_do_with_fewer; /* nodes, when it has waited so long for all of them: */
	int64_t fewer_after_ms;
	/* an attempt may end for the next one to have other nodes: moving.h */
	bool grows_back; /* to have all of them, when they are free again */
	bool leaves;     /* those that are going away */
};

/* What is known of a run. Most of it is the attempt's own; what stands beside is the run's, or was
 * worked out from more than the attempt. */
struct facts {
	/* wanted: the ledger */
	enum run_state state;
	enum run_order wanted;
	int64_t backoff_left_ms; /* until the next attempt is due */
	int64_t failures;        /* launches in a row without progress */
	bool by_switch;          /* what is wanted came from a switch file */
	bool was_taken;          /* the scheduler has had a job of it */
	bool ever_trained;       /* some launch of this run got past its start */
	int64_t in_vain;         /* newest attempts in a row that never did, or were over at once */

	enum dependencies dependencies;
	const char *dependencies_text; /* whom it waits for, or who did not complete */

	bool has_attempt;
	const struct attempt *a; /* the newest; borrowed; never NULL: without one all zero */
	bool excludes;           /* it was told to keep away from some nodes */
	int64_t patience_ms;     /* and waits so long while such nodes are idle */
	bool asks_fewer;         /* nodes than the run's spec names, if there are no more */
	bool is_small;           /* and has fewer */
	bool goes_back;          /* a user chose what its next launch starts from */
	/* asked while the scheduler does not know the job: it was to wait for how others end */
	bool depends;

	/* under which the scheduler's own daemons cancel what they cannot launch */
	uint32_t node_uid;
	bool may_recall; /* the scheduler has a memory beyond its polls */

	/* observed */
	enum run_order switched; /* the strongest order among the switch files; ORDER_RUN = none */
	bool switches_known;     /* they could be looked at */
	int64_t poll_ms;         /* when the newest complete poll was begun; 0 = none yet */
	int64_t heard_since_ms;  /* the controller, without a gap; 0 = not yet */
	const struct job_status *seen; /* in that poll; NULL = the scheduler does not know it */
	bool is_array;                 /* some task of it has begun */
	bool exited;                   /* lbrun's exit record is there, its spool read to the end */
	bool lost_host;                /* the node that lbrun runs on is none of the job any more */
};

enum decision_kind {
	DECISION_WAIT, /* nothing to do before `at_ms` or the next news */
	DECISION_OBEY, /* record `order`, a switch's (ORDER_RUN: that of a hold is gone) */
	DECISION_NEW_ATTEMPT,
	DECISION_SUBMIT,
	DECISION_ADOPT, /* record `job` */
	DECISION_RELEASE,
	DECISION_RELEASED, /* record it */
	DECISION_START,
	DECISION_SIGNAL, /* `signo` to lbrun */
	DECISION_CANCEL,
	DECISION_RECALL,   /* ask accounting how the job ended */
	DECISION_ASK_ROOM, /* would the missing nodes be given at once? */
	DECISION_GROW,     /* end it behind its checkpoint, for the next one to have them all */
	DECISION_SAVE,     /* ask its trainer for a checkpoint: nodes are going away */
	DECISION_LEAVE,    /* end it, for the next one to have other nodes */
	DECISION_END,      /* the attempt, with cause, exit_code, signal, text */
	DECISION_MOVE,     /* the run, to state `to`, with cause and text */
	DECISION_COUNT
};

struct decision {
	enum decision_kind kind;
	int64_t at_ms;
	struct job_ref job;
	int signo;
	enum run_order order;
	enum run_state to;
	enum cause cause;
	int exit_code, signal;    /* -1 and 0: none */
	bool blame_run, is_final; /* END: by lbrun's own word; only a person can help */
	/* END: the nodes it keeps away from may be why it cannot start */
	bool has_no_eligible_node;
	bool is_short;      /* END: too few nodes were free; the next one asks for fewer */
	bool is_host;       /* END: lbrun's node is lost; the job is cancelled */
	int64_t backoff_ms; /* MOVE to backoff */
	const char *text;   /* points into facts, or is a constant */
};

struct decision reconcile(const struct facts *f, const struct policy *policy, int64_t now_ms);

const char *decision_name(enum decision_kind kind);

#endif
