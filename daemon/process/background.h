/* SPDX-License-Identifier: MIT */
/* background.h - leaving the terminal: the parent returns to the shell only when lbd is ready; or
 * the place of init. */
#ifndef DAEMON_PROCESS_BACKGROUND_H
#define DAEMON_PROCESS_BACKGROUND_H

#include <stdbool.h>

#include "common/base/err.h"

/* Forks. The child gets a session of its own and logs to log_path; it goes on and tells its
 * readiness on the returned descriptor (notify_ready_fd). The parent waits for that and exits: 0,
 * or the child's own status when it failed. */
int background_enter(const char *log_path, struct err *err);

/* When somebody has moved the log away. false: we are in the foreground, and have none. */
bool background_reopen_log(void);

/* As the first process of a container, which is the parent of all that lose theirs: the child goes
 * on as lbd; we pass signals on to it, bury what ends, and end with it. */
void background_leave_init(void);

/* Why lbd cannot start: to the terminal it was started from, and to the log. */
void background_say(const char *line);

/* Once ready: the terminal is left alone from now on. */
void background_leave_terminal(void);

#endif
