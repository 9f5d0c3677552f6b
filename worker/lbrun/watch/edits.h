/* SPDX-License-Identifier: MIT */
/* edits.h - were files of the code changed since the run was submitted?
 *
 * Thousands of files on a slow file system take a while: a child looks, while the trainer
 * starts. */
#ifndef LBRUN_WATCH_EDITS_H
#define LBRUN_WATCH_EDITS_H

#include <stdbool.h>
#include <sys/types.h>

#include "common/base/err.h"

enum { EDITS_TEXT_BYTES = 400 };

struct edits {
	pid_t pid; /* of the child; 0 = none is at work */
	int fd;
	const char *run_dir; /* borrowed */
};

/* Nothing is started where the run's folder has no list of files. */
int edits_start(struct edits *e, const char *run_dir, struct err *err);
/* The child has ended. True: there is something new to be told, for people, which is kept in the
 * run's folder: the same is told once. */
bool edits_end(struct edits *e, char text[EDITS_TEXT_BYTES]);

#endif
