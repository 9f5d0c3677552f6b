/* SPDX-License-Identifier: MIT */
/* spent.h - the kinds of time of a run: every millisecond of it is of just one
 * (docs/GOODPUT.md). */
#ifndef COMMON_RUN_SPENT_H
#define COMMON_RUN_SPENT_H

#include <stdbool.h>

enum spent {
	SPENT_PRODUCTIVE,
	SPENT_QUEUE,   /* from an attempt's token to its start */
	SPENT_STARTUP, /* to the first step, from scratch; between launches */
	SPENT_RESTORE, /* to the first step, from a checkpoint */
	SPENT_LOST,    /* after the last checkpoint of a launch that did not complete */
	SPENT_HANG,    /* from the last step to the end of one that hung */
	SPENT_PAUSE,   /* between attempts: back-off, or on hold */
	SPENT_OTHER,
	SPENT_COUNT
};

const char *spent_name(enum spent spent);
/* Was there a job that held nodes meanwhile? */
bool spent_holds_nodes(enum spent spent);

#endif
