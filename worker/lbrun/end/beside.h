/* SPDX-License-Identifier: MIT */
/* beside.h - a process beside this one, that is nobody's descendant: what ends a trainer does not
 * end it, and nothing that holds this process up holds it up. */
#ifndef LBRUN_END_BESIDE_H
#define LBRUN_END_BESIDE_H

#include <stdbool.h>
#include <stddef.h>

/* True in the new process: it is called `name` (15 bytes at most), holds nothing of this one open
 * but `keep`, and only SIGKILL ends it; it must end by _exit. False in this one, also where no
 * process can be had. To be called before this one becomes a subreaper. */
bool beside_begin(const char *name, const int *keep, size_t keep_count);

#endif
