/* SPDX-License-Identifier: MIT */
/* task_end.c - the last task of an array to end says how the attempt ended, also where all were
 * done before it. */
#include "worker/lbrun/end/task_end.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/paths.h"
#include "common/base/text.h"
#include "common/run/array_end.h"
#include "common/run/array_tasks.h"
#include "common/run/attempt.h"

const char *task_end_number(void)
{
	const char *task = getenv("SLURM_ARRAY_TASK_ID");

	return task && text_is_digits(task) ? task : NULL;
}

/* For lbd, which tells of it while others still run. One that was ended by an order has not
 * failed. */
static void mark_own(const char *attempt)
{
	const char *task = task_end_number();
	char *folder = path_join("%s/task-%s", attempt, task ? task : "");
	struct attempt_exit e;

	if (task && attempt_exit_read(folder, &e, NULL) == 0 && e.cause != CAUSE_COMPLETED &&
	    e.cause != CAUSE_KILLED)
		array_task_failed(attempt, task);
	free(folder);
}

void task_end_sum_up(const char *attempt, const char *token)
{
	const char *all = getenv("SLURM_ARRAY_TASK_COUNT");

	mark_own(attempt);
	array_end_write(attempt, all ? strtoll(all, NULL, 10) : 0, token);
}
