/* SPDX-License-Identifier: MIT */
/* again.h - lbd in the background starts again by itself, where only a new process may look at its
 * ledger: nobody else would start it. */
#ifndef DAEMON_PROCESS_AGAIN_H
#define DAEMON_PROCESS_AGAIN_H

/* Forks, and returns at once. The child starts lbd with these words until it serves, or says that
 * another start would not help. `ledger`: it waits for this file, too. */
void begin_again(char **argv, const char *ledger);

#endif
