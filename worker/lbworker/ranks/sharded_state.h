/* SPDX-License-Identifier: MIT */
/* sharded_state.h - what the files of sharded.h share. */
#ifndef LBWORKER_SHARDED_STATE_H
#define LBWORKER_SHARDED_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "worker/lbworker/ranks/reduction.h"
#include "worker/lbworker/ranks/sharded.h"

/* A kind of pass, as a device may record it. */
struct pass {
	uint64_t program, bytes; /* sent to others */
};
enum { PASSES = 16 };

struct sharded {
	struct ranks *ranks, *world, *tensor; /* ranks: those that share the gradients */
	struct ranks *pipe, *plane; /* other stages of the same samples; all but other slices */
	struct ranks *sharers;      /* of sequences */
	struct model *model;
	struct sharded_options options;
	struct reduction *reduction;
	bool *whole;                       /* by unit: its weights are all there, and new */
	size_t *own_at;                    /* by unit: where our part lies in the reduction */
	double *squares;                   /* device, one of each piece; NULL: none is needed */
	float *received;                   /* device: the others' parts of a unit, by rank */
	struct comm_part *send, *receive;  /* [plane->size] */
	int64_t first, leaves;             /* of the present wave */
	bool reduces;                      /* in this wave */
	struct pass passes[PASSES], *pass; /* pass: the present one */
	unsigned next_pass;
	uint64_t sent_before; /* by the world, before the pass */
	struct err failure;   /* of the passes since the last sum */
};

/* sharded_losses.c. One exchange for all that is told at the end of a step: our note and our losses, one a
 * wave. notes[world->size]: what all say; *sum: of all losses, in the order of micro-batches. -1 with err. */
int sharded_tell(struct sharded *s, const double *loss, int64_t leaves,
		 const struct rank_note *mine, struct rank_note *notes, double *sum,
		 struct err *err);

#endif
