/* SPDX-License-Identifier: MIT */
/* asking.h - when a trainer that reads orders is asked for its next checkpoint
 * (checkpoint.save_every). */
#ifndef LBRUN_CHECKPOINT_ASKING_H
#define LBRUN_CHECKPOINT_ASKING_H

#include <stdbool.h>
#include <stdint.h>

#include "common/run/attempt_params.h"

struct asking {
	int64_t every_ms; /* 0 = never; SAVE_EVERY_AUTO = as loses least */
	int64_t mtbf_ms;  /* between troubles of the job */

	int64_t step;               /* of the newest; -1 = none, or it has none */
	int64_t since_ms;           /* when that was there, or when the launch began */
	int64_t asked_ms, phase_ms; /* of the one under way; -1 = none is */
	int64_t spent_ms,
		write_ms;   /* training stood still for all; from order to end of the last */
	int64_t saves;      /* that spent_ms is of */
	int64_t unanswered; /* in a row */
};

/* Of a launch. What saves cost is remembered from those before. */
void asking_begin(struct asking *asking, int64_t now_ms);
/* The trainer said that it begins with a checkpoint, or that it goes on. */
void asking_phase(struct asking *asking, bool is_checkpoint, int64_t now_ms);
/* A whole checkpoint is there; one of a step that is known already (brought from the stage) is no
 * other. */
void asking_saved(struct asking *asking, int64_t step, int64_t now_ms);
/* INT64_MAX: never. */
int64_t asking_due_ms(const struct asking *asking);
/* It was asked. False: of the last three times nothing came; it is not asked again. */
bool asking_asked(struct asking *asking, int64_t now_ms);

#endif
