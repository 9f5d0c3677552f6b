/* SPDX-License-Identifier: MIT */
/* own_call.h - do the words of an scontrol, sbatch or scancel mean the job in which they are
 * called? */
#ifndef LBRUN_TRAINER_OWN_CALL_H
#define LBRUN_TRAINER_OWN_CALL_H

#include <stdbool.h>

/* NULL: there is none. Borrowed. */
struct own_job {
	const char *id, *array_id, *array_task;
	bool is_unnumbered; /* without Slurm: its script finds no SLURM_JOB_ID to name it by */
	const char *script; /* a file: the batch script as it runs */
	const char *lay_at; /* where it lay when it was submitted */
	const char *input;  /* a file that is standard input: sbatch's script if it names none */
	char *const *arguments; /* its words behind its name; NULL-terminated */
};

enum own_requeue {
	REQUEUE_OTHER, /* of another job, or something else */
	REQUEUE_OWN,
	REQUEUE_OWN_HELD, /* requeuehold */
};

/* "scontrol requeue 12", in any case and cut short as scontrol allows, options before it. */
enum own_requeue own_requeue(char *const *argv, const struct own_job *job);

enum own_submission {
	SUBMISSION_OTHER,     /* of another job, or of this script with other variables or tasks
			       * or for a later time, or none at all */
	SUBMISSION_BESIDE,    /* of this script with other arguments */
	SUBMISSION_NEXT,      /* of this one again */
	SUBMISSION_IF_FAILED, /* of this one again, if this job fails (afternotok) */
};

/* "sbatch --dependency=afterany:12 train.slurm": is that the script that runs, by its place or by
 * its text? Reads the files among the words, and a file that is its input. */
enum own_submission own_submission(char *const *argv, const struct own_job *job);

/* What a script that submitted itself is told of its next job: this job's own number, so that who
 * waits for the one waits for the other, behind a zero, by which both can be told apart. Owned. */
char *own_next_number(const struct own_job *job);

enum own_cancel {
	CANCEL_OTHER, /* other jobs, perhaps among them one of these, or a signal for some */
	CANCEL_OWN,   /* this one alone */
	CANCEL_NEXT,  /* what it was told of as its next one, alone */
};

/* "scancel -Q 012" */
enum own_cancel own_cancel(char *const *argv, const struct own_job *job);

#endif
