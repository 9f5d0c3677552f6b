/* SPDX-License-Identifier: MIT */
/* compare.h - in which order qsort puts numbers and names. */
#ifndef COMMON_BASE_COMPARE_H
#define COMMON_BASE_COMPARE_H

#include <stdint.h>
#include <string.h>

/* Of int64_t, the least first. */
static inline int compare_int64(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* The largest first. */
static inline int compare_int64_down(const void *a, const void *b)
{
	return compare_int64(b, a);
}

/* Of double. */
static inline int compare_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Of char *. */
static inline int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

#endif
