/* SPDX-License-Identifier: MIT */
/* queued.h - a step as the device is told of it. */
#ifndef LBWORKER_QUEUED_H
#define LBWORKER_QUEUED_H

#include "worker/lbworker/train/training.h"

struct queued {
	struct training *t;
	int64_t batches, tokens;
};

#endif
