/* SPDX-License-Identifier: MIT */
/* lbrun_tasks.c - what lbrun does for a task of an array, by its own code, in folders of this
 * machine. */
#include <stdio.h>
#include <stdlib.h>

#include "common/base/files.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/run/array_tasks.h"
#include "tests/sim/arrays.h"
#include "tests/sim/lbrun_process.h"
#include "tests/sim/sim.h"
#include "worker/lbrun/end/task_end.h"
#include "worker/lbrun/shepherd/shepherd.h"

static char *run_dir_of(const struct sim *sim, const struct lbrun *p)
{
	return path_join("%s/r%02d", sim->daemon.folder, run_of(p->run));
}

static char *attempt_of(const struct sim *sim, const struct lbrun *p)
{
	return array_folder(sim, run_of(p->run), p->folder->number);
}

/* From its environment lbrun knows which task it is. */
static const char *be_task(const struct lbrun *p)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", TASKS);
	setenv("SLURM_ARRAY_TASK_COUNT", text, 1);
	snprintf(text, sizeof(text), "%d", task_of(p->run));
	setenv("SLURM_ARRAY_TASK_ID", text, 1);
	return getenv("SLURM_ARRAY_TASK_ID");
}

/* The claim for all tasks fences those of older attempts. */
static void claim_for_all(struct sim *sim, const struct lbrun *p)
{
	struct run_files *files = &sim->disk.runs[run_of(p->run)];
	struct folder *whole = disk_folder(&sim->disk, run_of(p->run), p->folder->number);

	if (whole->claimed_ms)
		return;
	whole->claimed_ms = sim->now_ms;
	if (whole->number > files->newest_claim)
		files->newest_claim = whole->number;
	sim_fact(sim, FACT_CLAIMED, whole->run, whole->number, p->job->status.ref.job_id, 0);
	for (size_t i = 0; i < sim->lbruns.live_count; i++)
		if (run_of(sim->lbruns.live[i]->run) == whole->run)
			lbrun_notice(sim, sim->lbruns.live[i]->folder);
}

bool task_enter(struct sim *sim, struct lbrun *p)
{
	static struct shepherd s; /* large */
	char *attempt, *run_dir;
	bool is_over;

	if (task_of(p->run) < 0)
		return false;
	be_task(p);
	attempt = attempt_of(sim, p);
	run_dir = run_dir_of(sim, p);
	s.orders_folder = attempt;
	s.params.run_dir = run_dir;
	s.params.checkpoint_dir = xstrdup("");
	snprintf(s.params.token, sizeof(s.params.token), "%s", p->folder->token);
	is_over = script_task_enter(&s) && sim->control != CONTROL_NO_MARKS;
	claim_for_all(sim, p);
	free(s.params.checkpoint_dir);
	free(run_dir);
	free(attempt);
	return is_over;
}

bool task_mark(struct sim *sim, const struct lbrun *p, const struct ending *end)
{
	char *run_dir;
	int rc;

	if (task_of(p->run) < 0 || end->cause != CAUSE_COMPLETED)
		return true;
	run_dir = run_dir_of(sim, p);
	rc = array_task_done(run_dir, be_task(p), NULL);
	free(run_dir);
	if (rc == 0)
		lbrun_fact(sim, p, FACT_TASK_DONE, 0, 0);
	return rc == 0;
}

void task_write_exit(struct sim *sim, const struct lbrun *p)
{
	char *attempt, *folder;

	if (task_of(p->run) < 0)
		return;
	attempt = attempt_of(sim, p);
	folder = path_join("%s/task-%s", attempt, be_task(p));
	folder_make(folder, 0750, NULL);
	attempt_exit_write(folder, &p->folder->exit, NULL);
	free(folder);
	free(attempt);
}

void task_leave(struct sim *sim, const struct lbrun *p)
{
	char *attempt;

	if (task_of(p->run) < 0)
		return;
	be_task(p);
	attempt = attempt_of(sim, p);
	task_end_sum_up(attempt, p->folder->token);
	free(attempt);
}
