/* SPDX-License-Identifier: MIT */
/* command.h - one of Slurm's commands, run to its end, and what it said. */
#ifndef SLURM_PIPE_COMMAND_H
#define SLURM_PIPE_COMMAND_H

#include <stddef.h>

#include "common/base/strv.h"

enum {
	COMMAND_SLEEPS = -3,      /* it was ended as it slept, before it tried again */
	COMMAND_NOT_STARTED = -2, /* there is no such program, or no folder, or no process */
	COMMAND_KILLED = -1,      /* it ended by a signal: it may have done what it was to do */
	COMMAND_SAID_BYTES = 8192,
};

struct said {
	int status; /* exit status, or one of the above */
	char *out;  /* what it printed, NUL-terminated; owned, said_clear */
	size_t len;
	/* The end of its errors as one line, without the names of programs in front; the last that
	 * it says of its own failure is the end. */
	char errors[COMMAND_SAID_BYTES];
};

/* Runs words[0], found by PATH, without a shell: aliases do not count. `env` is its whole
 * environment; with SLURM_RLIMIT_* and SLURM_UMASK in it, as sbatch has them, these are the
 * command's own limits. It dies with us. `folder`: where it runs; NULL: here. `env` and `words` are
 * borrowed. */
void command_run(char *const *words, char *const *env, const char *folder, struct said *said);
/* The same, but it does not try again: once its errors contain `says`, behind which it sleeps for a
 * second or longer, it is ended; COMMAND_SLEEPS where that was in time for sure, else
 * COMMAND_KILLED. */
void command_run_once(char *const *words, char *const *env, const char *folder, const char *says,
		      struct said *said);
/* As command_run, here, in the environment of command_env. */
void command_ask(const char *const *words, struct said *said);
/* As much of the end of its errors as an answer holds: in front of what it fails of a command may
 * say anything, a site's greeting too. Borrowed. */
const char *said_last(const struct said *said);
void said_clear(struct said *said);

/* Our environment, less all that would change what a command of Slurm prints or does
 * (SQUEUE_FORMAT, SLURM_TIME_FORMAT, the language …): times are seconds since the epoch, and jobs
 * and nodes those of this cluster alone. The caller frees the items. */
void command_env(struct strv *env);

#endif
