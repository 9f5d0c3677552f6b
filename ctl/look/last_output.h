/* SPDX-License-Identifier: MIT */
/* last_output.h - the newest line of a run's output: a sign of life of one that tells no steps
 * yet. */
#ifndef CTL_LOOK_LAST_OUTPUT_H
#define CTL_LOOK_LAST_OUTPUT_H

#include <stdint.h>

struct ctl;

/* The last line that its trainer printed, cleaned and owned, and how long ago; NULL = none, or it
 * cannot be read. */
char *last_output(struct ctl *ctl, const char *run, int64_t *age_ms);

#endif
