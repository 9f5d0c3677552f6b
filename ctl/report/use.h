/* SPDX-License-Identifier: MIT */
/* use.h - what the machines did for a run, from the minutes that its meters left in the spools. */
#ifndef CTL_REPORT_USE_H
#define CTL_REPORT_USE_H

#include "ctl/report/series.h"

enum { USE_MACHINE = -1, USE_POWER = 1, USE_THERMAL = 2, USE_HARDWARE = 4 };

/* One GPU, or the processes of a rank, over all attempts. -1 = not known. */
struct use_row {
	char *node;
	int64_t rank, gpu; /* as nvidia-smi has it; USE_MACHINE */
	int64_t seconds;   /* that were measured; sums below are of value × seconds */
	double use, watts, cpus, io_stall;
	int64_t memory_mb, memory_total_mb, celsius; /* the highest */
	int64_t ecc_uncorrected, nvlink_errors;      /* as they were last told */
	unsigned throttled;                          /* USE_POWER, … */
};

struct use {
	struct use_row *rows; /* owned, like what they hold */
	size_t count;
	struct series gpus; /* by minute: `step` seconds since the epoch, `use` percent, the mean of
			     * all GPUs; a stretch is an attempt */
	double sum;         /* of the minute at hand */
	int64_t sum_of, minute, attempt;
};

/* A line {"type":"usage"} of the spool (docs/PROTOCOL.md), in order; use_end after the last. */
void use_add(struct use *use, int64_t attempt, int64_t time_ms, const json_t *line);
void use_end(struct use *use);
void use_clear(struct use *use);

/* Of all attempts below the run's folder. What cannot be read is left out. */
void use_read(struct use *use, const char *run_dir);

#endif
