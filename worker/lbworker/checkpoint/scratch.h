/* SPDX-License-Identifier: MIT */
/* scratch.h - folders that are no checkpoint yet, or no longer: step-NNNNNNNN.KIND-PID-HOST.
 *
 * KIND is tmp (being filled, or on its way out), new (complete, not yet in place) or old
 * (replaced). The name says who works on it, so that what a killed process left can be told from
 * what a live one is busy with, on this host or on another one of a cluster. */
#ifndef LBWORKER_SCRATCH_H
#define LBWORKER_SCRATCH_H

#include <stddef.h>

/* `folder` with ".KIND-PID-HOST" of this process behind it; owned by the caller. */
char *scratch_name(const char *folder, const char *kind);

/* Removes from `parent` what dead processes of this host left; nothing else is touched. A name
 * without a host counts as this host's. Returns how many went. */
size_t scratch_sweep(const char *parent);

#endif
