/* SPDX-License-Identifier: MIT */
/* systemd.h - tells whoever started lbd how it is: systemd (sd_notify(3)'s datagrams) and
 * --ready-fd. */
#ifndef DAEMON_PROCESS_SYSTEMD_H
#define DAEMON_PROCESS_SYSTEMD_H

#include <stdint.h>

/* "READY=1\nSTATUS=…", "WATCHDOG=1\nSTATUS=…", "STOPPING=1"; without $NOTIFY_SOCKET nothing
 * happens. */
void notify_systemd(const char *state);

/* How often systemd wants to hear WATCHDOG=1: half of $WATCHDOG_USEC; 0 = never. */
int64_t notify_watchdog_ms(void);

/* Readiness is one newline on the descriptor, which is then closed. fd < 0: nothing. */
void notify_ready_fd(int fd);

#endif
