/* SPDX-License-Identifier: MIT */
/* left_steps.h - steps of our job that outlive their srun: kill -9 of it, or of all that a launch
 * left behind, reaches no rank; they would train on beside the next launch. */
#ifndef LBRUN_END_LEFT_STEPS_H
#define LBRUN_END_LEFT_STEPS_H

#include <stdbool.h>
#include <stddef.h>

enum left_steps { STEPS_GONE, STEPS_ENDED, STEPS_STAY };

/* Ends what there is; no srun of ours may live any more. Takes seconds: `names` ("20.0 20.1") are those
 * that it had to end, or that stay. Where Slurm does not tell nothing is taken to be left; steps of
 * an srun elsewhere (--jobid, by a person) are none of ours. */
enum left_steps left_steps_end(const char *folder, char *names, size_t size);

#endif
