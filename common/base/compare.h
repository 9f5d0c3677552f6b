/* SPDX-License-Identifier: MIT */
/* compare.h - in which order qsort puts numbers and names, and bsearch finds them. */
#ifndef COMMON_BASE_COMPARE_H
#define COMMON_BASE_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Of int64_t, the least first. */
static inline int compare_int64(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* Is `number` among those, which are sorted? */
static inline bool is_among_int64(const int64_t *sorted, size_t count, int64_t number)
{
	return count > 0 && bsearch(&number, sorted, count, sizeof(number), compare_int64) != NULL;
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
