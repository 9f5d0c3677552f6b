/* SPDX-License-Identifier: MIT */
/* schedule.h - the learning rate of a step: warm-up, a plateau, and a decay.
 *
 * WSD (warm-up, stable, decay) is a plateau with a decay_ratio: of 0.1 to 0.2, by sqrt, in
 * Haegele et al. 2024. As in torchtitan the decay is over one step after the last, which is why the
 * step where it begins is still at the peak. */
#ifndef LBWORKER_SCHEDULE_H
#define LBWORKER_SCHEDULE_H

#include <stdint.h>

enum schedule_decay { SCHEDULE_LINEAR, SCHEDULE_COSINE, SCHEDULE_SQRT, SCHEDULE_DECAY_COUNT };

struct schedule {
	double peak; /* the configured learning rate */
	int64_t warmup_steps, steps;
	double decay_ratio; /* share of all steps that decay; < 0: all after warm-up */
	enum schedule_decay decay;
	double min_factor; /* of the peak, reached after the last step */
};

/* Steps count from 1; a pure function of the step, so a resumed run needs no state. */
double schedule_lr(const struct schedule *s, int64_t step);

#endif
