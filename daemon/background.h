/* SPDX-License-Identifier: MIT */
/* background.h - leaving the terminal: the parent returns to the shell only when lbd is ready. */
#ifndef DAEMON_BACKGROUND_H
#define DAEMON_BACKGROUND_H

#include "common/err.h"

/* Forks. The child gets a session of its own, no terminal, and stderr in log_path; it goes on and
 * tells its readiness on the returned descriptor (notify_ready_fd). The parent waits for that and
 * exits: 0, or the child's own status when it failed (it has then said why on the terminal). */
int background_enter(const char *log_path, struct err *err);

/* In the child, once ready: from now on stderr is the log. */
void background_detach_stderr(void);

#endif
