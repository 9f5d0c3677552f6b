/* SPDX-License-Identifier: MIT */
/* scratch.h - what is not whole yet, or no longer wanted: NAME.KIND-PID-HOST.
 *
 * KIND is tmp (being filled, or on its way out), new (complete, not yet in place) or old
 * (replaced). The name says who works on it, so that what a killed process left can be told from
 * what a live one is busy with, on this host or on another one of a cluster. */
#ifndef LBWORKER_SCRATCH_H
#define LBWORKER_SCRATCH_H

#include <stddef.h>

/* `path` with ".KIND-PID-HOST" of this process behind it; owned by the caller. */
char *scratch_name(const char *path, const char *kind);

/* Removes from `parent` what dead processes of this host left of checkpoints; nothing else is
 * touched. A name without a host counts as this host's. Returns how many went. */
size_t scratch_sweep(const char *parent);
/* Likewise what they left of `path`, by names with a host, before it is begun anew. */
void scratch_sweep_of(const char *path);

#endif
