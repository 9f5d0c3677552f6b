/* SPDX-License-Identifier: MIT */
/* hours.c - the parts into which goodput cuts a run's hours, in words. */
#include "ctl/base/hours.h"

const struct hours_part hours_parts[HOURS_PARTS] = {
	{ "productive", "productive" },
	{ "queue", "waiting in the queue" },
	{ "startup", "start-up" },
	{ "restore", "restore from checkpoints" },
	{ "lost", "lost since a checkpoint" },
	{ "hang", "hanging" },
	{ "pause", "back-off and hold" },
	{ "other", "other" },
};
