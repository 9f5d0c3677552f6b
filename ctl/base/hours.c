/* SPDX-License-Identifier: MIT */
/* hours.c - the parts into which goodput cuts a run's hours, in words. */
#include "ctl/base/hours.h"

#include <stddef.h>

const struct hours_part hours_parts[HOURS_PARTS] = {
	{ "productive", "productive", NULL, 0 },
	{ "queue", "waiting in the queue", "QUEUE", 1 },
	{ "startup", "start-up", "START", 4 },
	{ "restore", "restore from checkpoints", "RESTORE", 5 },
	{ "lost", "lost since a checkpoint", "LOST", 1 },
	{ "hang", "hanging", "HANG", 3 },
	{ "pause", "back-off and hold", "PAUSE", 3 },
	{ "other", "other", "OTHER", 6 },
};
