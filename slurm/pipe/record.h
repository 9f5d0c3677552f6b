/* SPDX-License-Identifier: MIT */
/* record.h - a line that "scontrol -o show" prints of one thing: "NodeName=n1 Arch=x86_64 …"; and
 * those of "scontrol show config". */
#ifndef SLURM_PIPE_RECORD_H
#define SLURM_PIPE_RECORD_H

#include <stddef.h>
#include <stdint.h>

/* The value behind " NAME=" in the line, up to a blank; borrowed. NULL, *len 0: it is not there, or
 * "(null)", "N/A" or empty. */
const char *record_value(const char *line, const char *name, size_t *len);

/* The reason of a node, of any words, but not who gave it, and when: "bad fan" of "Reason=bad fan
 * [root@1795415234]"; borrowed, NULL as above. */
const char *record_reason(const char *line, size_t *len);

/* The value of "Name   = value", a line of its own in the text, up to its end; borrowed, NULL: there
 * is none. */
const char *record_setting(const char *text, const char *name);

/* The number that the value begins with; `none`: there is no number. */
int64_t record_number(const char *line, const char *name, int64_t none);

/* "5:00", "1:00:00", "2-12:00:00" in minutes, begun ones counted whole; -1 for what has no end
 * ("UNLIMITED"), and for what is none. */
int64_t record_minutes(const char *text);

#endif
