/* SPDX-License-Identifier: MIT */
/* shared_step.h - a step, and validation, of several ranks: each makes its share of the passes, and
 * updates what it holds. */
#ifndef LBWORKER_SHARED_STEP_H
#define LBWORKER_SHARED_STEP_H

#include "worker/lbworker/train/queued.h"

/* control: has what the optimizer asks for; behind it lie the sums of all ranks, too, and what was
 * decided by them. */
int shared_step(struct queued *queued, struct step_control *control, struct err *err);
/* What we tell the others of that decision, in the next step. */
void shared_step_note(struct training *training, const struct step_control *control);
/* Before what has come of it is saved: has every rank decided the same? */
int shared_step_agree(struct training *training, struct err *err);
/* The sum of token losses over so many passes of the validation data. */
int shared_validation(struct training *training, int64_t passes, double *sum, struct err *err);

#endif
