/* SPDX-License-Identifier: MIT */
/* stacks.h - where the trainer's processes are just now, written to a file.
 *
 * A file of /proc or a debugger may block for ever on a process that hangs, so a child does it and
 * has a deadline. What was written until then stays. */
#ifndef LBRUN_WATCH_STACKS_H
#define LBRUN_WATCH_STACKS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/err.h"

enum {
	STACKS_DEBUGGER_MS = 15 * 1000, /* one debugger, one process */
	STACKS_WORK_MS = 40 * 1000,     /* after this no further debugger is started */
	STACKS_LIMIT_MS = 60 * 1000,    /* all of it */
};

struct stacks {
	pid_t pid;    /* of the child; 0 = none is at work */
	bool is_done; /* and not told yet */
	int64_t deadline_ms;
	char name[96]; /* of the file, in the attempt's folder; "" = there is none */
};

/* Begins to write `folder`/stacks-LAUNCH-TIME.txt about all descendants of this process; with
 * is_srun, a file for each node of the job besides. */
int stacks_start(struct stacks *s, const char *folder, int64_t launch, bool is_srun, int64_t now_ms,
		 struct err *err);
/* Some child ended. */
void stacks_reaped(struct stacks *s, pid_t pid, int wait_status);
/* True once for each file that is finished, or as finished as the deadline allows. */
bool stacks_turn(struct stacks *s, int64_t now_ms);
int64_t stacks_next_ms(const struct stacks *s);

/* lbrun --stacks PATH, on a node of the job: writes PATH.NODE.txt about the ranks that run here. */
int stacks_node_main(const char *path);

#endif
