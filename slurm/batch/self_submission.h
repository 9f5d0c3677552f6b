/* SPDX-License-Identifier: MIT */
/* self_submission.h - scripts that bring themselves back: a chain of jobs for work that is longer
 * than the time limit. Whoever starts them again must know. */
#ifndef SLURM_BATCH_SELF_SUBMISSION_H
#define SLURM_BATCH_SELF_SUBMISSION_H

enum self_submission {
	SUBMITS_AGAIN,   /* or requeues its own job */
	SUBMITS_LATER,   /* for a later time (--begin), as jobs do that are to run every night */
	SUBMITS_ANOTHER, /* in a way that lbrun does not take for a relaunch: with variables
			  * (--export) or tasks (--array) of its own, other arguments, by the whole
			  * path of sbatch or by ssh */
};

/* The first line, from 1, on which the script at `path` hands itself to sbatch again, whatever it
 * calls itself: $0, $BASH_SOURCE, its own name, what scontrol says its command is, or a variable
 * that holds one of these; or requeues its own job. What it does where it was called by hand,
 * outside of any job, does not count. 0: it does neither. *how, unless NULL: in which way. */
int submits_itself(const char *path, const char *text, enum self_submission *how);

/* The first line, from 1, that calls scontrol for a requeue, whatever job it names; 0: none. */
int requeue_line(const char *text);

#endif
