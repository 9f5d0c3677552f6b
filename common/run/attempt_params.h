/* SPDX-License-Identifier: MIT */
/* attempt_params.h - attempt.json: all that lbrun must know of its attempt. */
#ifndef COMMON_RUN_ATTEMPT_PARAMS_H
#define COMMON_RUN_ATTEMPT_PARAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/base/names.h"
#include "common/run/attempt_watch.h"
#include "common/run/retention_rule.h"
#include "common/run/run_state.h"

enum { SAVE_EVERY_AUTO = -1 };

struct attempt_params {
	char *run; /* name */
	char token[TOKEN_HEX + 1];
	int64_t number;
	char **command; /* argv, NULL-terminated, byte for byte */
	char *workdir;
	char *run_dir; /* runs/NAME */
	char *checkpoint_dir;
	char *layout;        /* of its checkpoints (checkpoints.h); NULL = auto */
	char *pattern;       /* how they are called; NULL = by the layout */
	char *complete_when; /* NULL = not given */
	char *stage; /* folder of the node that checkpoints are first written to; NULL = none */
	int64_t stage_rate;     /* bytes/s at most from there to checkpoint_dir; 0 = no limit */
	char *cache;            /* folder of the node for compiled code; NULL = none */
	int64_t cache_bytes;    /* that it may take; 0 = no limit */
	char **cache_variables; /* more that point there; NULL = none */
	/* how often the trainer is asked to save; 0 = never, or SAVE_EVERY_AUTO */
	int64_t save_every_ms;
	char *switches;      /* folder of switch files (switches.h); NULL = none */
	char *team;          /* Unix group whose members may leave them; NULL = none */
	char *group, *owner; /* of the run: group "" = none; owner is who submitted it */
	char *lbd_socket;    /* poked after new lines where it can be reached; NULL = none */
	char *launcher;      /* "none" or "srun" */
	char **srun;         /* its options */
	char **torchrun;     /* starts the ranks of a node, with options; NULL = nothing does */
	char **profiler;     /* words in front of the command, or of torchrun; NULL = none */
	/* a batch script: its output goes where the job's does, as it is; it gets the job's
	 * stdin, and the signals that Slurm sends to a batch script */
	bool is_script;
	char *script; /* where it lay when it was submitted; NULL = it is none, or nobody knows */
	/* checkpoints to go back, once in the run, when training diverged; 0: none */
	int64_t rollback;
	int64_t spare_nodes; /* of the job; a launch is on the others */
	int64_t in_place;    /* relaunches in the same allocation without progress in between */
	int64_t without_progress;     /* launches of the run in a row before this attempt … */
	int64_t max_without_progress; /* … of so many, after which the run fails; -1 = no bound */
	int64_t node_mtbf_ms;  /* between troubles of one node, as seen lately; 0 = not known */
	int64_t check_ms;      /* so long every byte of a checkpoint is read before a launch */
	int64_t kill_grace_ms; /* from SIGTERM to SIGKILL */
	int64_t kill_wait_ms;  /* from the scheduler's own SIGTERM to its SIGKILL; 0 = not known */
	int64_t stop_grace_ms; /* the same when asked to checkpoint and end (order "stop") */
	char *resume; /* of the first launch: "latest", "scratch", or a checkpoint's path */
	struct retention retention; /* of its checkpoints */
	/* the nodes are checked before the first launch, for so long at most; 0 = they are not */
	int64_t preflight_ms;
	int64_t preflight_tries; /* attempts in a row that may end by that */
	char **preflight;        /* words for lbworker check; NULL = none */
	int64_t note_bytes;      /* checkpoints that take so much are worth a word; 0 = never */
	int64_t warn_ms;         /* from the signal to the time limit; 0 = there is none */
	int64_t *never_on_exit_codes;
	int64_t never_count;
	bool never_on_cause[CAUSE_COUNT]; /* not started again after these, in place neither */
	struct attempt_watch watch;
};

int attempt_params_write(const char *folder, const struct attempt_params *p, struct err *err);
int attempt_params_read(const char *folder, struct attempt_params *out, struct err *err);
void attempt_params_clear(struct attempt_params *p);

#endif
