/* SPDX-License-Identifier: MIT */
/* requeue.h - a batch script that brings its own job back: "scontrol requeue $SLURM_JOB_ID; exit 0",
 * mostly when a signal says that the time limit is near, or "sbatch $0", also as its first deed.
 *
 * Slurm refuses the one, for bringing runs back is lbd's; the other would be a second training in
 * the same folder, of which lbd knows nothing; and the script ends with status 0 in the middle of
 * its work. So the script finds another scontrol and sbatch first in its PATH: ours, which note
 * what the script asked for of its own job, and do nothing else of their own; and an scancel, for
 * those that submit their next job first and cancel it when there is nothing left to do. Bash,
 * which may make its PATH anew, gets functions beside them. Only a script that has the word gets
 * them. A command that is no script has the sbatch alone: jobs that it submits are to inherit
 * nothing that was meant for this one. */
#ifndef LBRUN_TRAINER_REQUEUE_H
#define LBRUN_TRAINER_REQUEUE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/strv.h"

/* Does the batch script of this run say "requeue" or "sbatch", or ask for a signal, at which
 * its program may do so? */
bool requeue_is_meant(const char *run_dir);

/* Before a launch: puts our programs into `folder`, the attempt's, and that in front of PATH in
 * `env`: all of them for a script, else the sbatch, where there is one. What an earlier launch
 * asked for is forgotten. */
void requeue_prepare(const char *folder, bool is_script, struct strv *env);

/* Is this line of its output Slurm's no to one that called another scontrol: a trainer that is no
 * script, or by its whole path? */
bool requeue_is_refusal(const char *line, size_t len);

/* Has the launch asked for a requeue; has it submitted itself again? */
bool requeue_was_asked(const char *folder);
bool requeue_was_submitted(const char *folder);

/* The program, called by the name of scontrol, sbatch or scancel. */
bool requeue_is_called(const char *name);
int requeue_main(char **argv);

#endif
