/* SPDX-License-Identifier: MIT */
/* script.c - a batch script under lbrun meets what it would meet under slurmd alone: its output
 * goes to the job's files byte for byte, and a signal that Slurm sends to the batch script reaches
 * it. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/run/array_tasks.h"
#include "common/base/files.h"
#include "common/base/paths.h"
#include "worker/lbrun/end/script_words.h"
#include "worker/lbrun/end/task_end.h"
#include "worker/lbrun/shepherd/predecessor.h"
#include "worker/lbrun/shepherd/shepherd.h"

enum { SCRIPT_MAX_BYTES = 4 * 1024 * 1024 };

/* attempts/N/out.log is where lbctl logs looks; the job's own file stays where its owner wants
 * it. */
static void link_output(const char *folder, const char *name, int fd)
{
	char link[32], target[4096], *path = path_join("%s/%s", folder, name);
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, target, sizeof(target) - 1);
	if (n > 0 && target[0] == '/') {
		target[n] = '\0';
		/* where out.log is there, the job writes to it itself */
		(void)!symlink(target, path);
	}
	free(path);
}

void script_output_open(struct shepherd *s, int rank)
{
	struct stat out, err;

	link_output(s->folder, "out.log", STDOUT_FILENO);
	if (!s->params.is_script)
		return;
	s->output.plain = true;
	if (fstat(STDOUT_FILENO, &out) < 0 || fstat(STDERR_FILENO, &err) < 0 ||
	    (out.st_dev == err.st_dev && out.st_ino == err.st_ino))
		return;
	s->has_errors = true;
	output_init(&s->errors, STDERR_FILENO, s->node, rank);
	s->errors.plain = true;
	link_output(s->folder, "err.log", STDERR_FILENO);
}

/* --- arrays ----------------------------------------------------------------------------------- */

/* It fences older attempts, and without it lbd takes no word of this one. */
static void claim_for_all(const struct shepherd *s)
{
	struct attempt_claim claim;

	claim_of_this_process(&claim, s->params.token);
	attempt_claim_take(s->orders_folder, &claim, NULL);
}

static void touch(const char *path)
{
	file_write_visible(path, "", 0, 0640, NULL);
}

/* What another task saves is no place to go on from. */
static void own_checkpoints(struct shepherd *s, const char *task)
{
	char *folder = path_join("%s/task-%s", s->params.checkpoint_dir, task);

	free(s->params.checkpoint_dir);
	s->params.checkpoint_dir = folder;
}

/* All tasks had ended, or were cancelled before they began: one of those begins all the same. Its
 * mark may be gone, for a restart of the run, whose next attempt is to run it. */
static bool is_attempt_over(const struct shepherd *s)
{
	struct attempt_exit e;

	return attempt_exit_read(s->orders_folder, &e, NULL) == 0 &&
	       strcmp(e.token, s->params.token) == 0;
}

bool script_task_enter(struct shepherd *s)
{
	const char *task = task_end_number(), *count = getenv("SLURM_ARRAY_TASK_COUNT");
	bool is_done = task && (array_task_is_done(s->params.run_dir, task) ||
				array_task_is_cancelled(s->params.run_dir, task));
	char *mark;

	if (task && is_attempt_over(s))
		return true;
	if (task && count)
		array_tasks_are(s->params.run_dir, count);
	if (is_done) {
		mark = path_join("%s/done-%s", s->orders_folder, task);
		touch(mark);
		free(mark);
		claim_for_all(s);
		task_end_sum_up(s->orders_folder, s->params.token);
	}
	if (!task || is_done)
		return is_done;
	s->folder = path_join("%s/task-%s", s->orders_folder, task);
	folder_make(s->folder, 0750, NULL);
	own_checkpoints(s, task);
	claim_for_all(s);
	return false;
}

int script_task_end(const struct shepherd *s, struct err *err)
{
	const char *task = task_end_number();

	if (!s->params.is_script || !task || s->facts.ending.cause != CAUSE_COMPLETED)
		return 0;
	return array_task_done(s->params.run_dir, task, err);
}

void script_task_leave(const struct shepherd *s)
{
	if (task_end_number())
		task_end_sum_up(s->orders_folder, s->params.token);
}

void script_judge(struct shepherd *s)
{
	char *path = path_join("%s/slurm_script", s->params.run_dir);
	char *text = file_read(path, SCRIPT_MAX_BYTES, NULL, NULL);

	s->facts.launch.is_caught = text && failures_are_caught(text);
	s->facts.launch.has_background = text && has_background(text);
	s->facts.launch.hands_on = text && hands_status_on(text);
	free(text);
	free(path);
}

void script_signal(struct shepherd *s, int signo)
{
	if (s->facts.launch.is_open && !s->facts.launch.has_ended)
		kill(s->facts.launch.pid, signo);
}
