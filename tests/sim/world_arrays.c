/* SPDX-License-Identifier: MIT */
/* world_arrays.c - lbd's world of arrays: its own code (daemon/runs/world.c) on the folders of this
 * machine; and a full disk takes no mark. */
#include <stdlib.h>
#include <string.h>

#include "common/base/files.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/run/array_end.h"
#include "daemon/runs/world.h"
#include "tests/sim/arrays.h"
#include "tests/sim/sim.h"

/* They hand over no world of ours: one simulated world at a time. */
static struct {
	struct sim *sim;
	struct world real;
} here;

/* lbd marks what it has heard of, and may die of it. */
static size_t tasks_cancelled(void *self, const struct run *run, int64_t *tasks, size_t count)
{
	size_t news = 0;

	if (!daemon_dies_here(self))
		news = here.real.tasks_cancelled(self, run, tasks, count);
	daemon_dies_here(self);
	return news;
}

/* A script would say which there are. */
static int64_t *tasks_unbegun(void *self, const struct run *run, size_t *count)
{
	char *folder = array_folder(self, run_index(run->name), run->attempt.number);
	int64_t *tasks = xcalloc(TASKS, sizeof(tasks[0]));

	for (int task = 0; task < TASKS; task++)
		tasks[task] = task;
	*count = array_unbegun(folder, tasks, TASKS);
	free(folder);
	return tasks;
}

void world_add_arrays(struct sim *sim)
{
	struct world *world = &sim->daemon.world;

	here.sim = sim;
	world_init(&here.real, &sim->daemon.lbd);
	world->tasks = here.real.tasks;
	world->any_task_done = here.real.any_task_done;
	world->failed_tasks = here.real.failed_tasks;
	world->task_ended = here.real.task_ended;
	world->tasks_cancelled = tasks_cancelled;
	world->tasks_unbegun = tasks_unbegun;
}

char *array_folder(const struct sim *sim, int run, int64_t number)
{
	char *attempts = path_join("%s/r%02d/attempts", sim->daemon.folder, run);
	char *folder = path_join("%s/%lld", attempts, (long long)number);

	folder_make(attempts, 0750, NULL);
	folder_make(folder, 0750, NULL);
	free(attempts);
	return folder;
}

bool array_exited(const struct sim *sim, int run, int64_t number, struct attempt_exit *out)
{
	char *folder = array_folder(sim, run, number);
	bool has = attempt_exit_read(folder, out, NULL) == 0;

	free(folder);
	return has;
}

/* --- a full disk ------------------------------------------------------------------------------ */

int __real_file_write_atomic(const char *path, const void *data, size_t len, mode_t mode,
			     struct err *err);
int __wrap_file_write_atomic(const char *path, const void *data, size_t len, mode_t mode,
			     struct err *err);

static bool is_full_for(const char *path)
{
	return here.sim && disk_is_full(&here.sim->disk, here.sim->now_ms) &&
	       (strstr(path, "/tasks/") || strstr(path, "/attempts/"));
}

int __wrap_file_write_atomic(const char *path, const void *data, size_t len, mode_t mode,
			     struct err *err)
{
	if (is_full_for(path))
		return err_set(err, ERR_IO, "the disk is full");
	return __real_file_write_atomic(path, data, len, mode, err);
}

int __real_file_write_visible(const char *path, const void *data, size_t len, mode_t mode,
			      struct err *err);
int __wrap_file_write_visible(const char *path, const void *data, size_t len, mode_t mode,
			      struct err *err);

int __wrap_file_write_visible(const char *path, const void *data, size_t len, mode_t mode,
			      struct err *err)
{
	if (is_full_for(path))
		return err_set(err, ERR_IO, "the disk is full");
	return __real_file_write_visible(path, data, len, mode, err);
}
