/* SPDX-License-Identifier: MIT */
/* retention.c - a folder is renamed before it is removed, so a half-removed checkpoint is never
 * taken for a candidate. */
#include "worker/lbworker/checkpoint/retention.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/compare.h"
#include "common/base/failpoint.h"
#include "common/base/files.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/text.h"
#include "common/manifest/manifest.h"
#include "worker/lbworker/base/scratch.h"

enum { STEP_DIGITS_MIN = 8, STEP_DIGITS_MAX = 18 };
static const char PREFIX[] = "step-";

bool retention_keeps(int64_t step, size_t newer, int64_t latest_k, int64_t every)
{
	int64_t latest = latest_k < RETENTION_NEWEST_MIN ? RETENTION_NEWEST_MIN : latest_k;

	if (latest_k == 0 || (int64_t)newer < latest)
		return true;
	return every > 0 && step % every == 0;
}

/* The step of a folder named step-NNNNNNNN, or -1. */
static int64_t step_of(const char *name)
{
	const char *digits = name + sizeof(PREFIX) - 1;
	size_t count;

	if (strncmp(name, PREFIX, sizeof(PREFIX) - 1) != 0)
		return -1;
	count = text_digits(digits);
	if (count < STEP_DIGITS_MIN || count > STEP_DIGITS_MAX || digits[count] != '\0')
		return -1;
	return (int64_t)strtoll(digits, NULL, 10);
}

int64_t *retention_steps(const char *parent, size_t *out_count)
{
	DIR *dir = opendir(parent);
	const struct dirent *entry;
	int64_t *steps = NULL;
	size_t count = 0;

	while (dir && (entry = readdir(dir)) != NULL) {
		int64_t step = step_of(entry->d_name);
		if (step < 0)
			continue;
		steps = xrealloc(steps, (count + 1) * sizeof(*steps));
		steps[count++] = step;
	}
	if (dir)
		closedir(dir);
	if (count > 0)
		qsort(steps, count, sizeof(*steps), compare_int64_down);
	*out_count = count;
	return steps;
}

/* A damaged one is evidence, and does not count as newer. */
static bool is_sound(const char *path)
{
	return manifest_verify(path, MANIFEST_SIZES, NULL, NULL) == 0;
}

static void remove_one(const char *path)
{
	char *doomed = scratch_name(path, "tmp");
	struct err err = { 0 };

	failpoint(FP_RETENTION_BEFORE, NULL);
	if (rename(path, doomed) != 0)
		log_warn("old checkpoint %s: %s", path, strerror(errno));
	else if (failpoint(FP_RETENTION_RENAMED, NULL) == 0 && folder_remove(doomed, &err))
		log_warn("old checkpoint: %s", err.text);
	free(doomed);
}

void retention_apply(const char *parent, int64_t step, int64_t latest_k, int64_t every)
{
	size_t count, newer = 0;
	int64_t *steps = retention_steps(parent, &count);

	for (size_t i = 0; i < count; i++) {
		char *path = path_join("%s/step-%08" PRId64, parent, steps[i]);
		if (steps[i] <= step && is_sound(path)) {
			if (!retention_keeps(steps[i], newer, latest_k, every))
				remove_one(path);
			newer++;
		}
		free(path);
	}
	free(steps);
}
