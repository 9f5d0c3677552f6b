/* SPDX-License-Identifier: MIT */
/* requeue.h - a batch script that asks Slurm to requeue its own job: "scontrol requeue
 * $SLURM_JOB_ID; exit 0", mostly when a signal says that the time limit is near.
 *
 * Slurm refuses, for bringing runs back is lbd's; and the script ends with status 0 in the middle
 * of its work. So the script finds another scontrol first in its PATH: ours, which notes that the
 * script asked for that of its own job, and does nothing else of its own. Only a script that has
 * the word gets it. */
#ifndef LBRUN_SHEPHERD_REQUEUE_H
#define LBRUN_SHEPHERD_REQUEUE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/strv.h"

/* Does the batch script of this run say "requeue"? */
bool requeue_is_meant(const char *run_dir);

/* Before a launch: puts our scontrol into `folder` and that in front of PATH in `env`. What an
 * earlier launch asked for is forgotten. */
void requeue_prepare(const char *folder, struct strv *env);

/* Is this line of its output Slurm's no to a script that called scontrol by another way, its whole
 * path perhaps? */
bool requeue_is_refusal(const char *line, size_t len);

/* Has the launch asked for it? */
bool requeue_was_asked(const char *folder);

/* The program, called by the name of scontrol. */
bool requeue_is_called(const char *name);
int requeue_main(char **argv);

#endif
