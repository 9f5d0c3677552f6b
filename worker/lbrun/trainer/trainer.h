/* SPDX-License-Identifier: MIT */
/* trainer/ - the trainer as a process, and all that it says: socket and output.
 *
 * trainer.h - starting one process of the trainer. */
#ifndef LBRUN_TRAINER_TRAINER_H
#define LBRUN_TRAINER_TRAINER_H

#include <sys/types.h>

#include "common/base/err.h"

struct trainer_start {
	char *const *argv; /* reaches exec byte for byte; argv[0] is looked up in PATH */
	char *const *env;
	const char *workdir; /* NULL: ours */
	int input;           /* its stdin; -1 = /dev/null */
};

/* In a session of its own, with default signals, dying with us (PR_SET_PDEATHSIG). output[] are
 * the reading ends of its stdout and stderr. The pid once exec succeeded, else -1 with err saying
 * what could not be done. */
pid_t trainer_start(const struct trainer_start *what, int output[2], struct err *err);

/* In a child right after fork: signals as a fresh program has them, and SIGKILL if `parent`, the
 * process that forked, is dead or dies. */
void child_begin(pid_t parent);

#endif
