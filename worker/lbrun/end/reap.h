/* SPDX-License-Identifier: MIT */
/* reap.h - every process that descends from this one, whatever it did to get away.
 *
 * lbrun is a child subreaper: who double-forks or calls setsid becomes our child when its parent
 * ends, so the tree below us in /proc is complete. */
#ifndef LBRUN_END_REAP_H
#define LBRUN_END_REAP_H

#include <stddef.h>
#include <sys/types.h>

/* Sends signo (0: none) to every living descendant; SIGTERM is followed by SIGCONT, because a
 * stopped process would not act on it. Returns how many there were; zombies do not count. */
int descendants_signal(int signo);

/* The living descendants of `root`, sorted; the caller frees *pids. */
size_t descendants_list(pid_t root, pid_t **pids);

/* 0: there is no such process any more. */
pid_t process_parent(pid_t pid);

#endif
