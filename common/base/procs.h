/* SPDX-License-Identifier: MIT */
/* procs.h - naming a process of this machine so that a reused pid is never taken for it. */
#ifndef COMMON_BASE_PROCS_H
#define COMMON_BASE_PROCS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BOOT_ID_BYTES = 37 };

struct proc_name {
	int64_t pid;         /* 0: none */
	int64_t start_ticks; /* field 22 of /proc/PID/stat */
	char boot_id[BOOT_ID_BYTES];
};

/* The name of a living process; -1 when there is none with this pid. */
int proc_name_of(int64_t pid, struct proc_name *out);
/* Zombies are dead. */
bool proc_is_alive(const struct proc_name *name);
/* No process here has that number, or one that has ended, and that nobody has reaped: in a
 * container whose first process does not ask how others end, that is for good. */
bool pid_is_gone(int64_t pid);
/* 0, or -1 when it is not there any more (or cannot be signalled). */
int proc_signal(const struct proc_name *name, int signo);
/* SIGKILL to the process, its session, and all their descendants that can still be told. */
void proc_kill_family(const struct proc_name *name);
/* How many living processes have `setting` ("NAME=value") in the environment that they were started
 * with: it marks all descendants of a job, whatever session or parent they have chosen. Each gets
 * `signo`, unless that is 0. Processes that we may not look at do not count, nor do we. */
size_t procs_marked(const char *setting, int signo);
/* A process that has `path` open as descriptor `fd`; 0 when there is none that we may look at. */
int64_t proc_find_by_fd(int fd, const char *path);

/* What Slurm calls this node, or its host name; valid for good. */
const char *node_name(void);

/* Whoever started us may have blocked signals, or wants no word of children that end: neither is to
 * hold for us. */
void proc_take_signals(void);

#endif
