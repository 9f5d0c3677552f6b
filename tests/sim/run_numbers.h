/* SPDX-License-Identifier: MIT */
/* run_numbers.h - the runs of a world, and behind them the tasks of those that are arrays
 * (arrays.h). */
#ifndef TESTS_SIM_RUN_NUMBERS_H
#define TESTS_SIM_RUN_NUMBERS_H

enum {
	RUNS = 20,
	ARRAYS = 2, /* of them may be arrays: the first */
	TASKS = 5,  /* of each */
	ALL_RUNS = RUNS + ARRAYS * TASKS,
};

/* task -1: the run itself */
static inline int task_number(int run, int task)
{
	return task < 0 ? run : RUNS + run * TASKS + task;
}

static inline int run_of(int number)
{
	return number < RUNS ? number : (number - RUNS) / TASKS;
}

static inline int task_of(int number)
{
	return number < RUNS ? -1 : (number - RUNS) % TASKS;
}

#endif
