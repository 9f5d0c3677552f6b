/* SPDX-License-Identifier: MIT */
/* stage.h - the folder of this node that the trainer saves to, and what brings its checkpoints from
 * there to where they are shared: one child at a time (drain.h), as stage_plan.h decides.
 *
 * The folder is STAGE/lowbits-UID/RUN-HASH, for us alone. Who drains holds a lock in it. In a job
 * of several nodes each has one (parts.h); what lies here is then the part of this node, which a
 * launch is never started from. */
#ifndef LBRUN_CHECKPOINT_STAGE_H
#define LBRUN_CHECKPOINT_STAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/err.h"
#include "common/checkpoint/checkpoints.h"
#include "common/run/attempt_params.h"
#include "worker/lbrun/checkpoint/drain.h"
#include "worker/lbrun/checkpoint/stage_plan.h"

struct staged_file {
	char *path; /* below the stage */
	uint64_t stamp;
};

struct stage {
	char *folder; /* NULL: there is none, and nothing below is to be called but stage_is_on */
	char *stage;  /* the same, with %n for the node's name where its path has that */
	const char *shared;
	const struct checkpoint_rules *rules;
	const struct attempt_params *params;
	const char *node;
	int64_t nodes;       /* of the job */
	int64_t sealed_step; /* the newest since the launch began; -1 = none */
	char *word;          /* of that launch, where there are several nodes; NULL = none yet */
	const char *run_dir;
	int64_t number; /* of the attempt */
	int64_t rate;   /* allowed; 0 = no limit */
	char host[65];
	int lock_fd; /* -1 = not held */

	struct staged *items; /* newest first */
	struct staged_file *files;
	size_t count;

	pid_t pid; /* of the child; 0 = there is none */
	int fd;    /* what it has to say */
	char *draining;
	bool is_limited;
	bool is_broken_off;
	int64_t begun_ms;
	int64_t measured_rate; /* bytes/s; 0 = not known */
	int64_t again_ms;      /* none is begun before */
	int failures;          /* in a row */
};

/* `generation`: a run that a person sent back to another checkpoint does not find here what it had.
 * Makes the folder. 0, or -1 with err: checkpoints are then saved where they are shared. */
struct stage_where {
	const char *task; /* of an array; NULL = none */
	int64_t generation;
	const char *node; /* that we are on, by the name that Slurm has for it */
	int64_t nodes;    /* of the job */
};
int stage_open(struct stage *stage, const struct attempt_params *params,
	       const struct stage_where *where, const struct checkpoint_rules *rules,
	       struct err *err);
/* Removes the folder, on all nodes, when nothing in it is at risk. */
void stage_close(struct stage *stage);
bool stage_is_on(const struct stage *stage);

/* While nobody writes there: removes what is not whole; where there are several nodes, everything,
 * as a launch starts from what is shared. 0, or -1 with err: that cannot be done. */
int stage_begin_launch(struct stage *stage, struct err *err);
/* Ends a copy that runs: stage_reaped tells of no failure then, and the copy is begun again. */
void stage_break_off(struct stage *stage);
/* For the environment of ranks (PART_VARIABLE); owned by the caller, NULL = there are no parts. */
char *stage_for_ranks(const struct stage *stage);

/* Begins what is due. left_ms: until the job ends; INT64_MAX = that is not near. A child that
 * cannot be started is tried again. */
void stage_turn(struct stage *stage, int64_t left_ms, int64_t now_ms);
/* When stage_turn wants to be called again, whatever happens; INT64_MAX = never. */
int64_t stage_next_ms(const struct stage *stage);
/* The child was reaped. True: it has something to say, *path (owned by the caller) is below the
 * shared folder when out->is_done, else below the stage. */
bool stage_reaped(struct stage *stage, struct drained *out, char **path, int64_t now_ms);

/* Is anything there that no copy of counts, or a child at work? Not once draining has failed again
 * and again. */
bool stage_is_draining(const struct stage *stage);
/* "step 40, 3.2 GB: …" what would be lost, and what a relaunch elsewhere goes back to; "" =
 * nothing. needs_ms (may be NULL): that its copy still takes; -1 = not known. */
void stage_risk_text(const struct stage *stage, char *text, size_t size, int64_t *needs_ms);

/* --- stage_items.c --------------------------------------------------------------------------- */
/* of the folder: held by the one lbrun that drains from it */
#define STAGE_LOCK ".lb-lock"

bool stage_holds(const struct stage *stage, const char *path);
/* Are there several nodes, each with a part? */
bool stage_has_parts(const struct stage *stage);
/* What is whole there, as of now. `needed`: a path that the trainer may be loading; NULL = none. */
void stage_look(struct stage *stage, const char *needed);
void stage_forget(struct stage *stage);
/* While nobody writes there: removes what is not whole. */
void stage_tidy(struct stage *stage);

#endif
