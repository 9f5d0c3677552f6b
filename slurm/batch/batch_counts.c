/* SPDX-License-Identifier: MIT */
/* batch_counts.c - counts as options write them, and products that stop where Slurm's counts do. */
#include "slurm/batch/batch_counts.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"

static int64_t capped(int64_t n)
{
	return n < 0 ? 0 : n > UINT32_MAX ? UINT32_MAX : n;
}

int64_t batch_times(int64_t a, int64_t b)
{
	int64_t product;

	return __builtin_mul_overflow(a, b, &product) ? UINT32_MAX : capped(product);
}

int64_t batch_count_of(const char *word)
{
	static const char factors[] = "kmgtp";
	const char *factor;
	char *end;
	int64_t n;

	if (!isdigit((unsigned char)word[0]))
		return word[0] != '\0';
	n = capped(strtoll(word, &end, 10));
	factor = *end ? strchr(factors, tolower((unsigned char)*end)) : NULL;
	for (const char *f = factors; factor && f <= factor; f++)
		n = batch_times(n, 1024);
	return n;
}

int64_t batch_sum_counts(const char *list)
{
	int64_t sum = 0;

	while (list && *list) {
		size_t len = strcspn(list, ",");
		char *item = xstrndup(list, len), *colon = strrchr(item, ':');

		sum = capped(sum + batch_count_of(colon ? colon + 1 : item));
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
			sum = capped(sum + (last ? batch_count_of(last + 1) : 1));
		free(item);
		list += len + (list[len] == ',');
	}
	return sum;
}
