/* SPDX-License-Identifier: MIT */
/* batch_counts.c - counts as options write them, and products that stop where Slurm's counts do. */
#include "slurm/batch/batch_counts.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"

int64_t batch_count(int64_t n)
{
	return n < 0 ? 0 : n > UINT32_MAX ? UINT32_MAX : n;
}

int64_t batch_times(int64_t a, int64_t b)
{
	int64_t product;

	return __builtin_mul_overflow(a, b, &product) ? UINT32_MAX : batch_count(product);
}

int64_t batch_sum_counts(const char *list)
{
	int64_t sum = 0;

	while (list && *list) {
		size_t len = strcspn(list, ",");
		char *item = xstrndup(list, len), *colon = strrchr(item, ':');

		sum = batch_count(sum + batch_count(strtoll(colon ? colon + 1 : item, NULL, 10)));
		free(item);
		list += len + (list[len] == ',');
	}
	return sum;
}

int64_t batch_gpus_of_gres(const char *list)
{
	int64_t sum = 0;

	while (list && *list) {
		size_t len = strcspn(list, ",");
		char *item = xstrndup(list, len);
		bool has_prefix = strncmp(item, "gres:", 5) == 0 || strncmp(item, "gres/", 5) == 0;
		const char *name = item + (has_prefix ? 5 : 0), *last = strrchr(name, ':');

		if (strncmp(name, "gpu", 3) == 0 && (name[3] == ':' || name[3] == '\0'))
			sum = batch_count(sum + (last && last[1] >= '0' && last[1] <= '9'
							 ? batch_count(strtoll(last + 1, NULL, 10))
							 : 1));
		free(item);
		list += len + (list[len] == ',');
	}
	return sum;
}
