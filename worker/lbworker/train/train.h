/* SPDX-License-Identifier: MIT */
/* train/ - the loop, and all that it works on.
 *
 * train.h - one training from its config to its last checkpoint. */
#ifndef LBWORKER_TRAIN_H
#define LBWORKER_TRAIN_H

#include "common/base/err.h"
#include "worker/lbworker/config/config.h"

enum train_end {
	TRAIN_DONE,     /* all steps */
	TRAIN_STOPPED,  /* asked to: a signal, or lbrun; a checkpoint was written */
	TRAIN_DIVERGED, /* the loss or the gradient is NaN or infinite; err says where */
};

struct ranks;

/* 0 with *end, or -1 with err, which all other ranks know then. On TRAIN_DIVERGED nothing was saved
 * after the last good step. */
int train_run(const struct config *config, struct ranks *ranks, enum train_end *end,
	      struct err *err);

#endif
