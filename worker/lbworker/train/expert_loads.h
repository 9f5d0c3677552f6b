/* SPDX-License-Identifier: MIT */
/* expert_loads.h - how many tokens of a step went to each expert, and what is made of it: the bias
 * that evens them out, and figures for people. All calls do nothing where a model has no
 * experts. */
#ifndef LBWORKER_EXPERT_LOADS_H
#define LBWORKER_EXPERT_LOADS_H

#include <stdbool.h>

#include "worker/lbworker/train/training.h"

/* Behind a pass; one that does not count was made only so that all ranks do the same. */
void expert_loads_pass(struct training *training, bool counts);
/* Behind a step: adds up those of all ranks, balances unless the step was left out, and tells. */
int expert_loads_step(struct training *training, bool is_left_out, struct report_step *step,
		      struct err *err);

#endif
