/* SPDX-License-Identifier: MIT */
/* run.h - a live run in lbd's memory: the ledger's row, the spec's policy, the newest attempt, and
 * what this process has asked of the scheduler. Finished runs live in the ledger only. */
#ifndef DAEMON_ENGINE_RUN_H
#define DAEMON_ENGINE_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "common/config/run_spec.h"
#include "daemon/engine/decide/reconcile.h"
#include "daemon/engine/decide/suspects.h"
#include "sql/ledger.h"

struct run {
	/* What every turn looks at in every run comes first: one line of the processor's cache. */
	struct run *next;
	struct scheduler *scheduler; /* borrowed from the engine */
	int64_t wake_ms;             /* monotonic: reconcile then in any case */
	int64_t next_look_ms;        /* monotonic: look at the attempt's files then */
	enum run_state state;
	bool dirty; /* something is new: reconcile in the next turn */
	bool has_attempt;
	bool has_survivors; /* an attempt given up may live: the order to end could not be left */

	int64_t id;
	char name[NAME_MAX_BYTES + 1];
	char *owner, *dir;
	int64_t owner_uid;
	enum run_order wanted;
	char *wanted_by, *wanted_reason;
	char *by_switch;           /* the switch file that `wanted` came from; NULL: a command */
	char *let_go_by;           /* who wants what is held in the scheduler released */
	char *excluded;            /* nodes that the newest attempt was told to avoid */
	bool has_no_eligible_node; /* since it last ran an attempt had no node left for that */
	bool is_short;             /* the newest attempt waited too long for all its nodes */
	char *resume_from;         /* as in the ledger; for the next launch of a new attempt */
	/* why its spec cannot be read any more: it is not submitted again; NULL: it can */
	char *spec_problem;
	/* wall clock, as in the ledger: for people, and for the next lbd */
	int64_t backoff_until_ms;
	int64_t pause_until_ms; /* the same on the monotonic clock, which nobody sets */
	int64_t failures, in_vain;
	bool was_taken, ever_trained; /* as in struct facts */
	int64_t target_step;          /* -1 = not told */
	int64_t tasks_changed_ns; /* of an array: when its marks changed last; 0 = not looked at */
	int64_t tasks_done;       /* of an array, when they were counted last */
	int64_t *failed_tasks; /* of the newest attempt, sorted, that people were told of; owned */
	size_t failed_count;
	int64_t failed_attempt;    /* its number; 0 = not looked at */
	int64_t failed_changed_ns; /* as tasks_changed_ns */
	int64_t checkpoint_step;   /* of the last valid one heard of; -1 = none */
	int64_t dense_steps;       /* stored since its metrics were last thinned by this process */
	/* percent of each GPU in the last minute, by rank; -1 = not told. Of this launch; owned */
	int8_t *gpu_use;
	size_t gpu_count;
	int64_t gpu_use_ms; /* wall clock; 0 = nothing was told */

	/* Of one that is being submitted: what it is made of (`env` and `script` of the request),
	 * for its files are not written yet; borrowed. NULL: they are. */
	const json_t *given;
	struct run_spec spec;
	struct policy policy; /* points into spec */
	int64_t gpus;         /* of its job; -1 = nobody has asked yet */

	struct attempt attempt;    /* the newest */
	struct suspects suspects;  /* of this process only */
	struct attempt *prequeued; /* prequeue.h; its job waits, held; owned, NULL: none */
	char *prequeued_excluded;
	int64_t prequeued_not_before_ms; /* monotonic */
	int64_t longest_wait_ms; /* of its attempts, from the release of a job to its start */

	/* wall: when people asked for it to run; 0 = now. Its "now+1hour" counts from here. */
	int64_t asked_ms;
	int64_t absent_since_ms; /* wall: should run, and does not; 0 = all is well */
	bool is_absence_reported;

	enum dependencies dependencies; /* as of its last look; dependencies_text is for people */
	char dependencies_text[200];
};

/* Of an array, as soon as its marks were looked at first. */
static inline bool run_is_array(const struct run *run)
{
	return run->tasks_changed_ns != 0;
}

#endif
