/* SPDX-License-Identifier: MIT */
/* array_end.h - which task of an array this process sees to, and how an attempt of an array
 * ended. */
#ifndef LBRUN_END_ARRAY_END_H
#define LBRUN_END_ARRAY_END_H

/* Its number, as text; NULL: of none. Only a batch script can be an array. */
const char *array_end_task(void);

/* This task has ended: that it failed is marked. Where all have, the attempt has, and its
 * exit record is written in `attempt`, the folder that has theirs. What ends a run weighs most,
 * then what is the run's own fault; of equals the first. Two that do so at once write the same. */
void array_end_sum_up(const char *attempt, const char *token);

#endif
