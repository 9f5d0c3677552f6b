/* SPDX-License-Identifier: MIT */
/* watchdog.h - lbrun is two processes, so that kill -9 of either ends the trainer and all it
 * started.
 *
 * The shepherd does the work; the watchdog above it does nothing but wait and hand signals on. When
 * the shepherd dies of a signal the watchdog kills what is left; when the watchdog dies the
 * shepherd gets SIGQUIT and ends everything itself. */
#ifndef LBRUN_END_WATCHDOG_H
#define LBRUN_END_WATCHDOG_H

/* Runs work(folder) in a guarded child and returns its exit status. */
int watchdog_run(int (*work)(const char *folder), const char *folder);

#endif
