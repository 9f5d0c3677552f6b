/* SPDX-License-Identifier: MIT */
/* meter/ - what the machines do for a run: GPUs, CPU, memory, waits for file systems.
 *
 * meter.h - a process beside the shepherd, or beside the lbrun of a rank, that measures until that
 * one ends. It is nobody's descendant: what ends a trainer does not end it, and a driver that hangs
 * holds up nobody. Each writes FOLDER/usage/RANK.json, which usage.h reads:
 *
 *   {"seq":N,"node","rank","usage":{minute.h},"xids":[{"gpu","xid","time_ms"}…],"xid_count":N} */
#ifndef LBRUN_METER_METER_H
#define LBRUN_METER_METER_H

#include <stdint.h>

/* In the environment of ranks: "MILLISECONDS:FOLDER", where each is to have one of its own. */
#define METER_VARIABLE "LB_METER"

enum { METER_ALL_GPUS = -1, METER_NO_GPU = -2 };

struct meter_job {
	const char *folder; /* of the attempt */
	const char *node;
	int64_t rank;
	int64_t every_ms; /* 0 = not at all */
	int gpu;          /* the n-th of those that are visible, or one of the above */
};

/* Measures this process and its descendants. To be called before it becomes a subreaper. Without
 * processes to spare nothing is measured. */
void meter_start(const struct meter_job *job);
/* For the lbrun of a rank: by its environment. */
void meter_start_of_rank(const char *node, int64_t rank);

#endif
