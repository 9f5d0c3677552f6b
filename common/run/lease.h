/* SPDX-License-Identifier: MIT */
/* lease.h - $LB_HOME/lbd.lease: which lbd works here, and until when others must believe so.
 *
 * File locks tell that on one machine, and on file systems whose locks work everywhere. The lease
 * needs neither: its holder renews it, and a holder that has not for `lease_ms`, measured by
 * whoever waits, is gone. `generation` grows by one with each holder; a lower one has been
 * replaced. Text of LEASE_BYTES, one JSON object, written over in place when it is renewed. */
#ifndef COMMON_RUN_LEASE_H
#define COMMON_RUN_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/base/names.h"

enum { LEASE_BYTES = 2048 };

struct lease {
	int64_t generation;        /* from 1 */
	char nonce[TOKEN_HEX + 1]; /* drawn by each holder */
	char host[65];
	char boot_id[37];
	int64_t pid, start_ticks;     /* of the process, and field 22 of its /proc/PID/stat */
	int64_t job_id;               /* the job of Slurm that lbd runs in; 0 = none */
	int64_t since_ms, renewed_ms; /* the holder's wall clock */
	int64_t ended_ms;             /* it went in peace; 0 = it holds */
	int64_t lease_ms;
	char version[24];
	char log[512]; /* path of its log; "" = not a file */
	char why[160]; /* why it ended; "" */
};

/* "HOME/lbd.lease", owned; `generation` > 0: the claim for that generation, beside it. */
char *lease_path(const char *home, int64_t generation);
/* ERR_NOT_FOUND when there is none. */
int lease_read(const char *path, struct lease *out, struct err *err);
/* Exactly LEASE_BYTES. */
void lease_print(const struct lease *lease, char out[LEASE_BYTES]);

/* Host and boot of this machine. */
void lease_set_here(struct lease *lease);
/* Whether its holder is, or was, on this machine since it was last booted. */
bool lease_is_here(const struct lease *lease);
/* Of a lease_is_here: whether its process still is. */
bool lease_is_alive_here(const struct lease *lease);
/* Of another machine's: it has not been renewed for so long that this machine may be dead. */
bool lease_is_silent(const struct lease *lease);
/* "pid 12 on login1 since 2026-11-20 14:03:22 (job 17)"; owned. */
char *lease_holder(const struct lease *lease);

#endif
