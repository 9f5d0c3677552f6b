/* SPDX-License-Identifier: MIT */
/* end/ - how a trainer is ended, with all that it started, and why it ended.
 *
 * ending.h - why a launch ended, and whether the trainer is started again in place. Pure. */
#ifndef LBRUN_END_ENDING_H
#define LBRUN_END_ENDING_H

#include <stdbool.h>
#include <stdint.h>

#include "common/run/attempt_params.h"
#include "worker/lbrun/end/stopping.h"

struct complaint;
struct rank_end;

enum { ENDING_TEXT_BYTES = 480 };

struct launch_facts {
	int wait_status;       /* of the trainer, as waitpid tells it */
	bool said_stopped;     /* its bye was "stopped" */
	bool oom;              /* the kernel killed something of ours for memory meanwhile */
	bool requeue_asked;    /* it asked Slurm to requeue its job */
	bool submitted_itself; /* or handed itself to sbatch again */
	int64_t lasted_ms;
	bool warned;    /* the limit was near */
	bool preempted; /* Slurm asked its steps to end, for another job */
	int64_t peak_mb,
		limit_mb; /* its largest process, and what the job may take; 0 = not known */
	enum stop_why stop;
	bool goes_on;          /* STOP_ORDERED: for this attempt alone */
	const char *stop_text; /* "by ada: too slow", "ended by SIGTERM without an order", … */
	const struct rank_end
		*rank_end; /* of the rank whose end ended the launcher; NULL = nobody */
	const struct complaint *complaint; /* what it said of its end; NULL = nothing */
	bool end_is_last;                  /* no step came behind the end of that rank */
	bool is_doubtful; /* it may have been another's than the trainer's, which is done perhaps */
	bool has_raised;  /* the last that was heard is an exception */
	bool has_come_further; /* than where it began */
	bool has_steps_left;   /* more than lie between two that it tells */
	bool has_broken_off;   /* what a script had started failed before its last step */
	bool has_lost_node;    /* its launcher did, and ended all ranks */
};

struct ending {
	enum cause cause;
	int exit_code; /* -1 = none */
	int signal;    /* 0 = none */
	bool is_final; /* a relaunch would meet the same */
	bool is_node;  /* a node is to blame, not the run */
	/* no checkpoint is to blame: some rank never began, or any would have met the same */
	bool is_early;
	char text[ENDING_TEXT_BYTES]; /* one line for people */
};

/* "TERM"; "?" for one that has no business here. */
const char *signal_word(int signo);

void ending_decide(const struct launch_facts *facts, struct ending *out);
/* The end of an attempt whose trainer does not run, for this reason to stop. */
void ending_without_trainer(enum stop_why stop, bool goes_on, const char *stop_text,
			    struct ending *out);

/* `failures`: launches in a row that made no progress, the one that just ended included.
 * `made_progress`: some launch of this attempt did, so what the run had failed before is
 * forgiven. */
bool ending_may_relaunch(const struct ending *ending, const struct attempt_params *params,
			 int64_t failures, bool made_progress);

/* Exit status for lbrun: 0 only when the run is completed, so that a scheduler's word alone
 * never makes a run look finished. */
int ending_exit_status(const struct ending *ending);

#endif
