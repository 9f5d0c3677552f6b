/* SPDX-License-Identifier: MIT */
/* world.c - struct world by the system's own calls. */
#include "daemon/runs/world.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/run/array_end.h"
#include "common/run/array_tasks.h"
#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/run/order.h"
#include "common/run/request.h"
#include "common/base/paths.h"
#include "daemon/job/batch_job.h"
#include "daemon/job/job.h"
#include "daemon/base/lbd.h"
#include "daemon/base/rate.h"
#include "daemon/runs/switchboard.h"

enum { HOUR_MS = 3600 * 1000 };

static int64_t real_wall_ms(void *self)
{
	(void)self;
	return clock_wall_ms();
}

static int64_t real_mono_ms(void *self)
{
	(void)self;
	return clock_mono_ms();
}

static void real_token(void *self, char out[TOKEN_HEX + 1])
{
	(void)self;
	token_draw(out);
}

static int real_spec(void *self, const char *run_dir, struct run_spec *out, struct err *err)
{
	char *path = path_join("%s/spec.toml", run_dir);
	struct toml toml = { 0 };
	int rc = -1;

	(void)self;
	if (toml_load(&toml, path, err) == 0)
		rc = run_spec_read(&toml, out, err);
	toml_clear(&toml);
	free(path);
	return rc;
}

static int real_submit(void *self, const struct run *run, const char *ledger_id,
		       scheduler_done done, void *arg, struct err *err)
{
	struct lbd *lbd = self;

	return job_submit(&lbd->config, run, trouble_mtbf_s(rate_of_troubles(lbd, HOUR_MS), 1),
			  ledger_id, done, arg, err);
}

static int real_prepare(void *self, const struct run *run, struct err *err)
{
	struct lbd *lbd = self;

	return job_write(&lbd->config, run, trouble_mtbf_s(rate_of_troubles(lbd, HOUR_MS), 1), err);
}

static int real_retell(void *self, const struct run *run, struct err *err)
{
	struct lbd *lbd = self;

	return job_retell(&lbd->config, run, trouble_mtbf_s(rate_of_troubles(lbd, HOUR_MS), 1),
			  err);
}

static int real_room(void *self, const struct run *run, scheduler_done done, void *arg,
		     struct err *err)
{
	return job_room(&((struct lbd *)self)->config, run, done, arg, err);
}

static int real_save(void *self, const struct run *run, struct err *err)
{
	char *folder = job_folder(run);
	int rc = trainer_request_write(folder, TRAINER_REQUEST_SAVE, "lbd", err);

	(void)self;
	free(folder);
	return rc;
}

static int real_order(void *self, const struct run *run, struct err *err)
{
	char *folder = job_folder(run);
	/* To a trainer a hold is the order to checkpoint and end, even when it was taken back. */
	struct attempt_order order = {
		.order = run->wanted < ORDER_STOP ? ORDER_STOP : run->wanted,
	};
	int rc;

	(void)self;
	order.goes_on = run->attempt.goes_on && run->wanted == ORDER_RUN;
	snprintf(order.by, sizeof(order.by), "%s", order.goes_on ? "lbd" : run->wanted_by);
	snprintf(order.text, sizeof(order.text), "%s",
		 !order.goes_on ? run->wanted_reason
		 : run->attempt.leaving.text[0]
			 ? run->attempt.leaving.text
			 : "the missing nodes are free: the next attempt has all of them");
	rc = attempt_order_write(folder, &order, err);
	free(folder);
	return rc;
}

/* So many attempts back, as lbrun looks for older ones. */
enum { SURVIVORS = 8 };

static int real_end_all(void *self, const struct run *run, struct err *err)
{
	static const struct attempt_order order = {
		.order = ORDER_KILL_NOW,
		.by = "lbd",
		.text = "the run is over",
	};
	int64_t newest = run->attempt.number;
	int rc = 0;

	(void)self;
	for (int64_t n = newest; n >= 1 && n > newest - SURVIVORS; n--) {
		char *folder = path_join("%s/attempts/%lld", run->dir, (long long)n);
		struct attempt_exit ended;

		if (file_exists(folder) && attempt_exit_read(folder, &ended, NULL) < 0 &&
		    attempt_order_write(folder, &order, err) < 0)
			rc = -1;
		free(folder);
	}
	return rc;
}

static void real_switched(void *self, const struct run *run, struct switched *out)
{
	struct switchboard *board = ((struct lbd *)self)->switchboard;
	const struct switch_file *s;

	*out = (struct switched){ .is_known = switchboard_is_known(board) };
	s = switchboard_find(board, run->name, run->spec.group, run->owner);
	if (s == NULL) {
		/* a hold ends when its file goes, not when its owner leaves the team, or the
		 * directory of users does not answer */
		out->is_known &= !run->by_switch || !switchboard_has(board, run->by_switch);
		return;
	}
	out->order = switch_order(s->level);
	out->file = s->file;
	out->by = s->by;
	out->text = s->text;
}

static bool real_claimed(void *self, const struct run *run)
{
	char *folder = job_folder(run);
	struct attempt_claim claim;
	bool is_claimed = attempt_claim_read(folder, &claim, NULL) == 0 &&
			  strcmp(claim.token, run->attempt.job.token) == 0;

	(void)self;
	free(folder);
	return is_claimed;
}

static bool real_exited(void *self, const struct run *run, struct attempt_exit *out)
{
	char *folder = job_folder(run);
	bool has_exited = attempt_exit_read(folder, out, NULL) == 0;

	(void)self;
	free(folder);
	return has_exited;
}

/* Notes of one launch: of the newest that there are, unless lbrun has told of a newer one. One that
 * does not tell of how many nodes it is one says nothing. */
static void count_note(const struct attempt_unheard *note, int64_t *launch, struct unheard *out)
{
	if (note->launch < *launch || note->nodes < 2)
		return;
	if (note->launch > *launch)
		*out = (struct unheard){ 0 };
	*launch = note->launch;
	out->nodes++;
	if (note->nodes - 1 > out->of)
		out->of = note->nodes - 1;
	if (note->silent_ms > out->silent_ms)
		out->silent_ms = note->silent_ms;
}

static void real_unheard(void *self, const struct run *run, const char *host, struct unheard *out)
{
	char *folder = job_folder(run), *notes = path_join("%s/unheard", folder);
	DIR *dir = opendir(notes);
	const struct dirent *entry;
	int64_t launch = run->attempt.launch;
	struct attempt_unheard note;

	(void)self;
	*out = (struct unheard){ 0 };
	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.' && strcmp(entry->d_name, host) != 0 &&
		    attempt_unheard_read(folder, entry->d_name, &note, NULL) == 0 &&
		    strcmp(note.token, run->attempt.job.token) == 0)
			count_note(&note, &launch, out);
	if (dir)
		closedir(dir);
	free(notes);
	free(folder);
}

static bool real_depends(void *self, const struct run *run)
{
	const struct lbd *lbd = self;

	return run->scheduler == lbd->slurm && batch_job_may_be_doomed(&lbd->config, run);
}

static void real_bounds(void *self, const struct run *run, char **reservations, int64_t *limit_ms)
{
	batch_job_bounds(&((struct lbd *)self)->config, run, reservations, limit_ms);
}

static bool real_tasks(void *self, const struct run *run, int64_t *changed_ns, int64_t *done,
		       int64_t *all)
{
	(void)self;
	return array_tasks_count(run->dir, changed_ns, done, all);
}

static bool real_any_task_done(void *self, const struct run *run)
{
	(void)self;
	return array_tasks_any_done(run->dir, run->attempt.number);
}

static int64_t *real_failed_tasks(void *self, const struct run *run, int64_t *changed_ns,
				  size_t *count)
{
	char *folder = job_folder(run);
	int64_t *tasks = array_tasks_failed(folder, changed_ns, count);

	(void)self;
	free(folder);
	return tasks;
}

static bool real_task_ended(void *self, const struct run *run, int64_t task,
			    struct attempt_exit *out)
{
	char *folder = job_folder(run);
	char *of_task = path_join("%s/task-%lld", folder, (long long)task);
	bool has_ended = attempt_exit_read(of_task, out, NULL) == 0;

	(void)self;
	free(of_task);
	free(folder);
	return has_ended;
}

static size_t real_tasks_cancelled(void *self, const struct run *run, int64_t *tasks, size_t count)
{
	int64_t changed_ns = 0, done, all = 0;
	char *folder = job_folder(run);
	size_t news = 0;

	(void)self;
	for (size_t i = 0; i < count; i++)
		if (array_task_cancelled(run->dir, tasks[i]))
			tasks[news++] = tasks[i];
	array_tasks_count(run->dir, &changed_ns, &done, &all);
	array_end_write(folder, all, run->attempt.job.token);
	free(folder);
	return news;
}

static int64_t *real_tasks_unbegun(void *self, const struct run *run, size_t *count)
{
	const struct lbd *lbd = self;
	int64_t *tasks = batch_job_tasks(&lbd->config, run, count);
	char *folder = job_folder(run);

	*count = array_unbegun(folder, tasks, *count);
	free(folder);
	return tasks;
}

static int64_t real_spool(void *self, const struct run *run, int64_t *offset, int64_t max_bytes,
			  int (*on_line)(const struct spool_line *line, void *arg),
			  void (*on_bad)(int64_t at, const struct err *why, void *arg), void *arg,
			  struct err *err)
{
	char *folder = job_folder(run), *path = path_join("%s/spool.jsonl", folder);
	int64_t bytes = spool_read_plain(path, offset, max_bytes, on_line, on_bad, arg, err);

	(void)self;
	free(path);
	free(folder);
	return bytes;
}

void world_init(struct world *world, struct lbd *lbd)
{
	*world = (struct world){
		.self = lbd,
		.wall_ms = real_wall_ms,
		.mono_ms = real_mono_ms,
		.token = real_token,
		.spec = real_spec,
		.submit = real_submit,
		.prepare = real_prepare,
		.retell = real_retell,
		.room = real_room,
		.bounds = real_bounds,
		.save = real_save,
		.order = real_order,
		.end_all = real_end_all,
		.switched = real_switched,
		.claimed = real_claimed,
		.exited = real_exited,
		.unheard = real_unheard,
		.depends = real_depends,
		.tasks = real_tasks,
		.any_task_done = real_any_task_done,
		.failed_tasks = real_failed_tasks,
		.task_ended = real_task_ended,
		.tasks_cancelled = real_tasks_cancelled,
		.tasks_unbegun = real_tasks_unbegun,
		.spool = real_spool,
	};
}
