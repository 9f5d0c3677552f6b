/* SPDX-License-Identifier: MIT */
/* pipelined.h - the passes of a step through the stages of a pipeline (ranks/pipeline.h). */
#ifndef LBWORKER_PIPELINED_H
#define LBWORKER_PIPELINED_H

#include "worker/lbworker/train/queued.h"

/* Forward and backward of our share; loss[waves]: on the last stage the sum of each pass's token
 * losses. What failed between the stages is told by sharded_sum(). */
int pipelined_passes(struct queued *queued, double *loss, struct err *err);
/* One pass forward, without gradients, of samples that training_samples() has read. */
int pipelined_loss(struct training *training, double *loss, struct err *err);

#endif
