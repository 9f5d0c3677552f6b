/* SPDX-License-Identifier: MIT */
/* slots.h - who may start on one machine: jobs × slots → verdicts. Pure.
 *
 * First come, first served, and nobody is held up for nothing: a job that must wait keeps back what
 * is free of what it needs, and later jobs may start with the rest. So no later job delays an
 * earlier one, whatever its length, and no time limits need to be guessed.
 *
 * A slot is a GPU, a CPU, or a megabyte of memory. What a job does not ask for it is not counted
 * for: it shares the CPUs and the memory with whoever else does so. */
#ifndef SLURM_LOCAL_SLOTS_H
#define SLURM_LOCAL_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

/* what a machine has, or a job wants */
struct slots {
	int64_t gpus, cpus, mem_mb;
	int64_t jobs; /* of a machine: at most so many at once, 0 = any number */
};

enum slot_verdict {
	SLOT_TAKEN, /* it holds its slots already */
	SLOT_STARTS,
	SLOT_NO_GPUS, /* not enough of them are free */
	SLOT_NO_CPUS,
	SLOT_NO_MEM,
	SLOT_NO_JOBS,     /* as many jobs run as may */
	SLOT_BEHIND,      /* an earlier job keeps back what it needs */
	SLOT_ARRAY_LIMIT, /* as many tasks of its array run as may */
	SLOT_NEVER,       /* the machine does not have so much */
	SLOT_VERDICT_COUNT
};

struct slot_job {
	struct slots wants;
	uint32_t array_id;   /* 0: no task of an array */
	int64_t array_limit; /* tasks of the array that may run at once; 0 = all */
	bool holds;          /* it has its slots: it runs, or its processes are not gone yet */
	/* set by slots_plan: */
	enum slot_verdict verdict;
	int64_t free; /* SLOT_NO_*: how much of that is free */
};

/* Gives each job its verdict. `jobs` are in the order in which they came. */
void slots_plan(const struct slots *machine, struct slot_job *jobs, size_t count);

/* Would the job at `at` start now if it wanted this instead? */
bool slots_would_start(const struct slots *machine, const struct slot_job *jobs, size_t count,
		       size_t at, const struct slots *wants);

/* Could the job run if it were alone? Else -1 with ERR_USAGE: what it wants and what there is. */
int slots_check(const struct slots *machine, const struct slots *wants, struct err *err);

enum { SLOT_REASON_BYTES = 48 };

/* In Slurm's words, with numbers: "Resources: 1 of 4 GPUs free". "" for jobs that need not wait. */
void slots_reason(const struct slots *machine, const struct slot_job *job,
		  char out[SLOT_REASON_BYTES]);

#endif
