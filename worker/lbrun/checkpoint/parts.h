/* SPDX-License-Identifier: MIT */
/* parts.h - checkpoints of a training on several nodes: what lies in the stage of each is a part.
 *
 * Before a launch the folder of each node is emptied, and marked with the launch's word: what lies
 * in several folders of one word belongs together. To drain a checkpoint (drain.h) a step of srun
 * runs on all nodes, once; each copies its own part, syncs it and writes digests of it. Only when
 * all nodes of the word have done so is the whole sealed, by one manifest. */
#ifndef LBRUN_CHECKPOINT_PARTS_H
#define LBRUN_CHECKPOINT_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/manifest/manifest.h"

/* What the process on each node gets to know. */
struct parts_request {
	const char *layout, *pattern, *complete_when; /* as checkpoint_rules_create takes them */
	const char *stage, *word;                     /* as part.h has them */
	const char *head;     /* the node that asks: its own part is its own affair */
	const char *relative; /* the checkpoint, below the stage and below `part` */
	const char *part;     /* folder that they are copied to */
	int64_t step, nodes;
	bool is_file;
	bool is_marked;      /* something shows that all have finished it */
	int64_t rate;        /* bytes/s of all nodes together; 0 = no limit */
	int64_t sealed_step; /* these and older ones may go; -1 = none */
};

/* *m lists the files of the node that asks. Adds those of all others, with sizes and digests; they
 * are synced. -1 with err: what is missing, and of which node. */
int parts_gather(const struct parts_request *request, struct manifest *m, struct err *err);
/* Removes the stage on all nodes. Takes seconds at most. */
void parts_clear(const char *stage, int64_t nodes);

#endif
