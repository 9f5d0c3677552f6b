/* SPDX-License-Identifier: MIT */
/* job_go_back.c - checkpoints that are later than a run's new beginning. */
#include "daemon/job/job_go_back.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/checkpoint/set_aside.h"
#include "common/run/array_tasks.h"
#include "daemon/job/job_params.h"

/* The step that the run was sent back to: -1 for its beginning, -2 when it goes on from the newest
 * or from something that tells no step. */
static int64_t chosen_step(const struct run *run, const struct checkpoint_rules *rules,
			   const char *parent)
{
	int64_t step = -2;
	struct checkpoint_list list;

	if (strcmp(run->resume_from, "scratch") == 0)
		return -1;
	if (checkpoints_find(rules, parent, &list, NULL) < 0)
		return -2;
	for (size_t i = 0; i < list.count; i++) {
		if (strcmp(list.items[i].path, run->resume_from) == 0 && list.items[i].step >= 0)
			step = list.items[i].step;
	}
	checkpoint_list_clear(&list);
	return step;
}

static int set_aside(const struct run *run, const struct checkpoint_rules *rules,
		     const char *folder, int64_t step, struct err *err)
{
	char *aside = path_join("%s/set-aside-%lld", folder, (long long)run->attempt.number);
	int64_t moved = checkpoints_set_aside(folder, rules, step, NULL, NULL, aside, err);

	if (moved > 0)
		log_info("%s: %lld later checkpoints are in %s now", run->name, (long long)moved,
			 aside);
	free(aside);
	return moved < 0 ? -1 : 0;
}

/* Those of each task of an array, and that it was done. */
static int leave_tasks(const struct run *run, const struct checkpoint_rules *rules,
		       const char *parent, struct err *err)
{
	size_t count;
	int64_t *tasks = array_task_folders(parent, &count);
	int rc = array_tasks_forget(run->dir, err);

	for (size_t i = 0; rc == 0 && i < count; i++) {
		char *folder = path_join("%s/task-%lld", parent, (long long)tasks[i]);

		rc = set_aside(run, rules, folder, -1, err);
		free(folder);
	}
	free(tasks);
	return rc;
}

int job_go_back(const struct run *run, struct err *err)
{
	struct checkpoint_rules *rules;
	char *parent;
	int64_t step;
	int rc = 0;

	if (run->resume_from[0] == '\0')
		return 0;
	rules = job_checkpoint_rules(&run->spec, err);
	if (rules == NULL)
		return -1;
	parent = job_checkpoint_dir(&run->spec, run->dir);
	step = chosen_step(run, rules, parent);
	if (step == -1)
		rc = leave_tasks(run, rules, parent, err);
	if (rc == 0 && step != -2)
		rc = set_aside(run, rules, parent, step, err);
	checkpoint_rules_destroy(rules);
	free(parent);
	return rc;
}
