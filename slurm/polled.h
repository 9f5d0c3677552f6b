/* SPDX-License-Identifier: MIT */
/* polled.h - the jobs of the last poll, kept for as long as Slurm says that none has changed. */
#ifndef SLURM_POLLED_H
#define SLURM_POLLED_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "slurm/scheduler.h"

/* All zero: there was none. */
struct polled {
	struct job_status *jobs; /* owned */
	/* of each of `cap`, which its job borrows; owned. From poll to poll they are the same. */
	struct polled_names {
		char *nodes, *failed_nodes;
	} * names;
	size_t count, cap;
	/* rows of the poll that is under way: they take the place of the last one's */
	size_t coming;
	int64_t last;    /* Slurm's time stamp of them; 0 = there are none */
	int64_t told_ms; /* monotonic */
};

/* A poll is asked for. The stamp of what it need not tell again; 0: all is to be told. */
int64_t polled_have(struct polled *p);

/* A line before its answer; false: it is no row (wire.h). */
bool polled_row(struct polled *p, char *line);

/* Its answer: 0, or -1 when that is not what the rows before it amount to. */
int polled_answer(struct polled *p, const json_t *body);

void polled_clear(struct polled *p);

#endif
