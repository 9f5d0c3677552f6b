/* SPDX-License-Identifier: MIT */
/* step_counts.h - what lines count, made steps of the whole training: batches of epochs, bars that
 * begin anew, epochs told by a line of their own. Pure. */
#ifndef LBRUN_STEPS_STEP_COUNTS_H
#define LBRUN_STEPS_STEP_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "worker/lbrun/steps/step_reader.h"

/* Batches of one epoch after the other. */
struct count {
	int64_t batches, batch; /* of the epoch, and seen last; 0 = none yet */
	int64_t stride;         /* from the one seen before */
	int64_t first;          /* that an epoch began with */
	int64_t epoch;          /* as it was told; -1 = it was not */
	int64_t before;         /* of the epochs that are over */
	int64_t end;            /* of the last of these */
	int64_t late;           /* lines that a slow rank told of it since the last that counted */
	bool are_all;           /* of the training: they went on though the epochs began anew */
};

struct step_counts {
	struct count bar, lines;
	int64_t epoch, epochs; /* told by a line of their own; -1 = not told */
	int64_t last_step;     /* that was told of the training; -1 = none */
	bool counts_from_0;    /* an epoch 0 was seen where 1 was expected; so do later launches */
};

void step_counts_reset(struct step_counts *c); /* a new launch */
/* Sets m->step and m->target_step to steps of the training. `has_loss`: the line, or one before it,
 * tells a loss. False: it counts something else. */
bool step_counts_take(struct step_counts *c, const struct step_row *row, struct step_match *m,
		      bool has_loss);

#endif
