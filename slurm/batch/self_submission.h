/* SPDX-License-Identifier: MIT */
/* self_submission.h - scripts that bring themselves back: a chain of jobs for work that is longer
 * than the time limit. Whoever starts them again must know. */
#ifndef SLURM_BATCH_SELF_SUBMISSION_H
#define SLURM_BATCH_SELF_SUBMISSION_H

#include <stdbool.h>

/* The first line, from 1, on which the script at `path` hands itself to sbatch again, whatever it
 * calls itself: $0, $BASH_SOURCE, its own name, what scontrol says its command is, or a variable
 * that holds one of these; or requeues its own job. 0: it does neither. *is_later, unless NULL: for
 * a later time (--begin), as jobs do that are to run every night. */
int submits_itself(const char *path, const char *text, bool *is_later);

#endif
