/* SPDX-License-Identifier: MIT */
/* job_result.h - what Slurm's numbers for a job amount to, as one table.
 *
 * The numbers are Slurm's wire values, the same in every release since 22.05; lbd-slurm, which sees
 * <slurm/slurm.h>, asserts that they still are. Pure: a unit test goes through it row by row. */
#ifndef SLURM_JOB_RESULT_H
#define SLURM_JOB_RESULT_H

#include <stdbool.h>
#include <stdint.h>

#include "slurm/scheduler.h"

/* clang-format off */
enum slurm_state {
	SJ_PENDING, SJ_RUNNING, SJ_SUSPENDED,
	SJ_COMPLETE, SJ_CANCELLED, SJ_FAILED, SJ_TIMEOUT, SJ_NODE_FAIL, SJ_PREEMPTED, SJ_BOOT_FAIL,
	SJ_DEADLINE, SJ_OOM,
	SJ_COUNT,
	SJ_MASK = 0xff,			/* the rest are flags: */
	SJ_CONFIGURING = 1 << 14,	/* its nodes are still booting */
	SJ_COMPLETING = 1 << 15		/* over, but some node is not free yet */
};
/* clang-format on */

/* those that we judge; reasons.h has all names */
/* clang-format off */
enum slurm_reason {
	SR_NONE = 0, SR_PRIORITY = 1, SR_DEPENDENCY = 2, SR_RESOURCES = 3, SR_PART_NODE_LIMIT = 4,
	SR_PART_TIME_LIMIT = 5, SR_PART_DOWN = 6, SR_PART_INACTIVE = 7, SR_HELD_ADMIN = 8,
	SR_BEGIN_TIME = 9, SR_LICENSES = 10, SR_RESERVATION = 14, SR_NODE_NOT_AVAIL = 15,
	SR_HELD_USER = 16, SR_DOWN_PARTITION = 19, SR_NODE_DOWN = 20, SR_BAD_CONSTRAINTS = 21,
	SR_SYSTEM_FAILURE = 22, SR_LAUNCH_FAILURE = 23, SR_EXIT_CODE = 24, SR_TIME_LIMIT = 25,
	SR_INACTIVE_LIMIT = 26, SR_BAD_ACCOUNT = 27, SR_BAD_QOS = 28, SR_CLEANING = 35,
	SR_PROLOG = 36, SR_DEPENDENCY_NEVER = 39
};
/* clang-format on */

/* What Slurm tells of a job: job_state with its flags, state_reason, the wait(2)-like exit_code,
 * and whether its priority is 0 (held). */
struct slurm_word {
	uint32_t state, reason, exit_code;
	bool is_held;
};

/* Sets phase, cause, exit_code, signal, state and reason of *out; the rest stays as it is. What the
 * table does not know has cause lost: nobody guesses. */
void slurm_word_judge(const struct slurm_word *word, struct job_status *out);

/* When the last of an array's tasks ended, and the last that was not cancelled, in seconds; 0: none
 * has. */
struct array_ends {
	int64_t last, otherwise;
};
/* One more of its records. */
void array_ends_add(struct array_ends *ends, uint32_t state, uint32_t reason, int64_t end_time);

/* The tasks of an array are one job to lbd, and the record with the most weight stands for all:
 * what any of them still does, or waits for, counts first: one that leaves its node is over, and
 * others may take long to follow it there. Then that they were cancelled, if the last to end were,
 * and rather of one that waited; then what failed. One that never starts waits for nothing. Pending
 * tasks may share a record, so that an array has from one to as many as it has tasks. */
int array_record_weight(uint32_t state, uint32_t reason, bool has_nodes, int64_t end_time,
			const struct array_ends *ends);

/* The name of a state as sacct prints it ("CANCELLED by 1000" too). False for what is not in the
 * table. */
bool slurm_state_from_word(const char *word, uint32_t *state);

/* The same for a process of ours: what a wait(2) status amounts to. */
enum cause wait_status_judge(int status, int *exit_code, int *signal);

#endif
