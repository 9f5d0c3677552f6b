/* SPDX-License-Identifier: MIT */
/* background.h - leaving the terminal: the parent returns to the shell only when lbd is ready. */
#ifndef DAEMON_PROCESS_BACKGROUND_H
#define DAEMON_PROCESS_BACKGROUND_H

#include "common/base/err.h"

/* Forks. The child gets a session of its own and logs to log_path; it goes on and tells its
 * readiness on the returned descriptor (notify_ready_fd). The parent waits for that and exits: 0,
 * or the child's own status when it failed. */
int background_enter(const char *log_path, struct err *err);

/* Why lbd cannot start: to the terminal it was started from, and to the log. */
void background_say(const char *line);

/* Once ready: the terminal is left alone from now on. */
void background_leave_terminal(void);

#endif
