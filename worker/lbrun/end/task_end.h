/* SPDX-License-Identifier: MIT */
/* task_end.h - which task of an array this process sees to, and that it has ended. */
#ifndef LBRUN_END_TASK_END_H
#define LBRUN_END_TASK_END_H

/* Its number, as text; NULL: of none. Only a batch script can be an array. */
const char *task_end_number(void);

/* This task has ended, or is not to run in this attempt: that it failed is marked, and where it was
 * the last, how the attempt ended (common/run/array_tasks.h). */
void task_end_sum_up(const char *attempt, const char *token);

#endif
