/* SPDX-License-Identifier: MIT */
/* seconds.h - a clock that only goes forward. */
#ifndef KERNELS_MACHINE_SECONDS_H
#define KERNELS_MACHINE_SECONDS_H

#include <time.h>

static inline double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif
