/* SPDX-License-Identifier: MIT */
/* timed_pool.h - the CPU time of each task of an operation, in the order in which they run. */
#ifndef BENCH_TIMED_POOL_H
#define BENCH_TIMED_POOL_H

/* CPU seconds of this thread. */
double thread_s(void);

/* Of the program that measures: called after each task with its CPU seconds. */
void task_took(double seconds);

#endif
