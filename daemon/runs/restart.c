/* SPDX-License-Identifier: MIT */
/* restart.c - choose a checkpoint → settings on top of the spec → (lbworker's check, the
 * scheduler's word) → row.
 *
 * Everything that can be wrong is found first. The new spec.toml is in place before the row is
 * committed: a crash in between leaves a finished run whose next restart uses it. */
#include "daemon/runs/restart.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/checkpoint/checkpoints.h"
#include "common/base/clock.h"
#include "common/base/failpoint.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/run/array_tasks.h"
#include "daemon/job/batch_job.h"
#include "daemon/runs/trainer_check.h"
#include "daemon/job/job.h"
#include "daemon/job/job_params.h"
#include "daemon/runs/orders.h"
#include "daemon/runs/probe.h"
#include "daemon/runs/submission.h"
#include "daemon/runs/switchboard.h"
#include "slurm/batch/sbatch_values.h"

enum { SPEC_MAX_BYTES = 1024 * 1024, TOLD_MAX_BYTES = 400, TOLD_STEPS = 8 };

struct restart {
	struct request *request;
	struct lbd *lbd;
	int64_t run_id, attempt; /* the number of its next one */
	enum run_state from;
	char *dir, *checkpoints;
	bool is_of_slurm;
	struct toml toml;
	struct run_spec spec;
	char *old_text;              /* spec.toml as it was; NULL: it stays */
	struct sbatch_indices tasks; /* of an array, which may have other ones from now on */
	char resume[4096];           /* as in the ledger */
	int64_t step;                /* of that; -1 = scratch; -2 = nothing is set aside */
};

static void restart_free(struct restart *s)
{
	toml_clear(&s->toml);
	run_spec_clear(&s->spec);
	free(s->tasks.items);
	free(s->old_text);
	free(s->dir);
	free(s->checkpoints);
	free(s);
}

static void refuse(struct restart *s, const struct err *err)
{
	request_refuse(s->request, err);
	restart_free(s);
}

static const char *run_name(const struct restart *s)
{
	return js_str(s->request->args, "run", "");
}

static const json_t *sets(const struct restart *s)
{
	return json_object_get(s->request->args, "set");
}

/* --- what is asked ---------------------------------------------------------------------------- */

static int find(struct restart *s, struct err *err)
{
	struct ledger_run run = { 0 };
	struct ledger_attempt newest;

	if (request_run(s->request, &run, err) < 0)
		return -1;
	if (run.state == RUN_BACKOFF)
		return err_set(err, ERR_LOCKED,
			       "%s is in backoff: lbd starts it again by itself, and lbctl why "
			       "says when; to have it otherwise: lbctl hold %s, then lbctl "
			       "restart %s",
			       run_name(s), run_name(s), run_name(s));
	if (!run_state_is_final(run.state) && run.state != RUN_HELD)
		return err_set(
			err, ERR_LOCKED, "%s is %s%s", run_name(s), run_state_name(run.state),
			run.state == RUN_STOPPING ? ": restart it when it has ended" : " already");
	s->run_id = run.id;
	s->from = run.state;
	s->is_of_slurm = run.scheduler && strcmp(run.scheduler, "slurm") == 0;
	free(s->dir);
	s->dir = xstrdup(run.dir);
	if (switchboard_allows(s->lbd->switchboard, run_name(s), run.run_group, run.owner,
			       SWITCH_HOLD, err) < 0)
		return -1;
	if (s->is_of_slurm && s->lbd->slurm == NULL)
		return err_set(err, ERR_SCHEDULER,
			       "%s ran under Slurm, which this lbd cannot reach", run_name(s));
	s->attempt = ledger_attempt_newest(s->lbd->ledger, s->run_id, &newest, NULL) == 0
			     ? newest.number + 1
			     : 1;
	return 0;
}

/* A run keeps its name, group and scheduler: they are more than settings. */
static bool is_fixed(const char *set)
{
	return strncmp(set, "run.name=", 9) == 0 || strncmp(set, "run.scheduler=", 14) == 0 ||
	       strncmp(set, "run.group=", 10) == 0;
}

static int apply_sets(struct restart *s, struct err *err)
{
	const json_t *list = sets(s), *item;
	size_t i;

	json_array_foreach(list, i, item) {
		const char *set = json_string_value(item);

		if (set == NULL)
			return err_set(err, ERR_USAGE, "--set: must be section.key=value");
		if (is_fixed(set))
			return err_set(err, ERR_USAGE,
				       "--set %.100s: a run keeps its name, its "
				       "group and its scheduler; submit a new one",
				       set);
		if (toml_set(&s->toml, set, err) < 0)
			return -1;
	}
	return 0;
}

/* The run as it will be; borrows from the restart. */
static struct run as_run(const struct restart *s)
{
	struct run run = {
		.dir = s->dir,
		.owner_uid = s->request->peer.uid,
		.spec = s->spec,
		.scheduler = s->is_of_slurm ? s->lbd->slurm : s->lbd->local,
		.attempt = { .number = s->attempt },
	};

	snprintf(run.name, sizeof(run.name), "%s", run_name(s));
	return run;
}

/* What is asked of the scheduler is judged now, not when the job is due. */
static int check_options(struct restart *s, struct err *err)
{
	struct run run = as_run(s);
	struct batch_job job;
	const char *array;
	int rc;

	if (json_array_size(sets(s)) == 0)
		return 0;
	rc = batch_job_read(&job, &s->lbd->config, &run, err);
	if (rc == 0)
		rc = spec_check_job(&run, job.fields, err);
	array = rc == 0 ? js_str(job.fields, "array_inx", NULL) : NULL;
	if (array)
		rc = sbatch_array(array, SBATCH_ARRAY_MAX, &s->tasks, err);
	batch_job_clear(&job);
	return rc;
}

static int read_spec(struct restart *s, struct err *err)
{
	char *path = path_join("%s/spec.toml", s->dir), *text = NULL;
	size_t len;
	int rc = -1;

	text = file_read(path, SPEC_MAX_BYTES, &len, err);
	if (text && toml_parse(&s->toml, text, len, "spec.toml", err) == 0 &&
	    apply_sets(s, err) == 0 && run_spec_read(&s->toml, &s->spec, err) == 0 &&
	    check_options(s, err) == 0)
		rc = spec_check_env(&s->spec, s->request->peer.uid, err);
	if (json_array_size(sets(s)) > 0)
		s->old_text = text;
	else
		free(text);
	free(path);
	if (rc == 0 && json_array_size(sets(s)) > 0)
		rc = spec_check_followed(s->lbd, "run.after", &s->spec.after, err);
	if (rc == 0 && json_array_size(sets(s)) > 0)
		rc = spec_check_followed(s->lbd, "run.after_ok", &s->spec.after_ok, err);
	if (rc == 0)
		s->checkpoints = job_checkpoint_dir(&s->spec, s->dir);
	return rc;
}

/* --- from where ------------------------------------------------------------------------------- */

/* Where the ledger saw a whole one; "" where it did not, or that is gone. */
static void ask_ledger(struct restart *s, int64_t step, char *out, size_t size)
{
	struct ledger_checkpoint c;

	out[0] = '\0';
	if (ledger_checkpoint_of_step(s->lbd->ledger, s->run_id, step, &c, NULL) == 0 && c.valid &&
	    strlen(c.path) < size && file_exists(c.path))
		snprintf(out, size, "%s", c.path);
}

/* "10, 20, 40": the newest of those that there are. */
static void tell_steps(const struct checkpoint_list *list, struct buf *out)
{
	size_t from = list->count < TOLD_STEPS ? list->count : TOLD_STEPS;

	if (list->count > TOLD_STEPS)
		buf_addf(out, "..., ");
	for (size_t i = from; i-- > 0;)
		buf_addf(out, "%lld%s", (long long)list->items[i].step, i > 0 ? ", " : "");
}

static int refuse_step(const struct restart *s, const struct checkpoint_list *list, int64_t step,
		       struct err *err)
{
	struct buf steps;
	int rc;

	buf_init(&steps, TOLD_MAX_BYTES);
	tell_steps(list, &steps);
	rc = list->count == 0
		     ? err_set(err, ERR_NOT_FOUND, "%s: there is no checkpoint of step %lld in %s",
			       run_name(s), (long long)step, s->checkpoints)
		     : err_set(err, ERR_NOT_FOUND,
			       "%s: there is no checkpoint of step %lld in %s, but of: %s; "
			       "see: lbctl checkpoints %s",
			       run_name(s), (long long)step, s->checkpoints, steps.data,
			       run_name(s));
	buf_fini(&steps);
	return rc;
}

/* By its name alone: lbrun looks at every byte of it before it is used. */
static int choose_step(struct restart *s, int64_t step, struct err *err)
{
	struct checkpoint_rules *rules = job_checkpoint_rules(&s->spec, err);
	struct checkpoint_list list = { 0 };
	int rc = rules ? checkpoints_find(rules, s->checkpoints, &list, err) : -1;

	if (rc == 0)
		ask_ledger(s, step, s->resume, sizeof(s->resume));
	for (size_t i = 0; rc == 0 && i < list.count && s->resume[0] == '\0'; i++)
		if (list.items[i].step == step && strlen(list.items[i].path) < sizeof(s->resume))
			snprintf(s->resume, sizeof(s->resume), "%s", list.items[i].path);
	if (rc == 0 && s->resume[0] == '\0')
		rc = refuse_step(s, &list, step, err);
	checkpoint_list_clear(&list);
	checkpoint_rules_destroy(rules);
	s->step = step;
	return rc;
}

static int choose(struct restart *s, struct err *err)
{
	const char *from = js_str(s->request->args, "from", "latest");
	char *end;
	long long step;

	s->step = -2;
	if (strcmp(from, "latest") == 0)
		return 0;
	if (strcmp(from, "scratch") == 0) {
		snprintf(s->resume, sizeof(s->resume), "scratch");
		s->step = -1;
		return 0;
	}
	step = from[0] >= '0' && from[0] <= '9' ? strtoll(from, &end, 10) : -1;
	if (step < 0 || *end != '\0')
		return err_set(err, ERR_USAGE,
			       "--from: must be the step of a checkpoint, \"latest\" or "
			       "\"scratch\"");
	return choose_step(s, step, err);
}

/* Each would start, and end at once. */
static int check_tasks(const struct restart *s, struct err *err)
{
	int64_t changed_ns = 0, done = 0, all = 0;

	if (s->from != RUN_COMPLETED || s->step != -2 || s->tasks.count > 0 ||
	    !array_tasks_count(s->dir, &changed_ns, &done, &all) || all <= 0 || done < all)
		return 0;
	return err_set(err, ERR_LOCKED,
		       "all %lld tasks of %s have completed; to run them again: lbctl restart %s "
		       "--from scratch",
		       (long long)all, run_name(s), run_name(s));
}

/* --- the row ---------------------------------------------------------------------------------- */

static int write_spec(const struct restart *s, const char *text, struct err *err)
{
	char *path = path_join("%s/spec.toml", s->dir);
	int rc = file_write_atomic(path, text, strlen(text), 0640, err);

	free(path);
	return rc;
}

/* "from step 120; training.steps=500" */
static void tell(const struct restart *s, struct buf *out)
{
	const json_t *list = sets(s), *item;
	size_t i;

	buf_addf(out,
		 s->step >= 0    ? "from step %lld"
		 : s->step == -1 ? "from the beginning"
				 : "from the newest checkpoint",
		 (long long)s->step);
	json_array_foreach(list, i, item) {
		buf_addf(out, "; %s", json_string_value(item));
	}
}

static int write_rows(struct restart *s, struct err *err)
{
	struct ledger *ledger = s->lbd->ledger;
	const char *user = s->request->peer.user;
	int64_t now_ms = clock_wall_ms();
	struct buf told;
	int rc = -1;

	buf_init(&told, TOLD_MAX_BYTES);
	tell(s, &told);
	if (ledger_run_set_wanted(ledger, s->run_id, ORDER_RUN, user, "", now_ms, err) == 0 &&
	    ledger_run_set_failures(ledger, s->run_id, 0, 0, err) == 0 &&
	    ledger_run_set_resume(ledger, s->run_id, s->resume, err) == 0 &&
	    (s->step == -2 || ledger_checkpoint_set_aside(ledger, s->run_id, s->step, err) == 0) &&
	    ledger_run_move(ledger, s->run_id, s->from, RUN_CREATED, CAUSE_NONE, "restarted",
			    now_ms, err) == 0 &&
	    order_event(s->lbd, s->run_id, "restarted", user, told.data, err) == 0) {
		rc = failpoint(FP_RESTART_WRITTEN, err);
		if (rc == 0)
			rc = ledger_commit(ledger, err);
	}
	if (rc < 0)
		ledger_rollback(ledger);
	buf_fini(&told);
	return rc;
}

static int commit(struct restart *s, struct err *err)
{
	char *text = s->old_text ? toml_print(&s->toml) : NULL;
	int rc = text ? write_spec(s, text, err) : 0;

	free(text);
	if (rc < 0)
		return -1;
	array_tasks_forget_cancelled(s->dir);
	if (s->tasks.count > 0)
		array_tasks_become(s->dir, s->tasks.items, s->tasks.count);
	if (failpoint(FP_RESTART_SPEC, err) == 0 && write_rows(s, err) == 0)
		return 0;
	/* after a failed sync the rows may be there all the same, and go by the new settings */
	if (s->old_text && !ledger_is_broken(s->lbd->ledger) &&
	    write_spec(s, s->old_text, NULL) < 0)
		log_warn("%s: spec.toml keeps the settings of a restart that failed", run_name(s));
	return -1;
}

static void finish(struct restart *s)
{
	struct err err = { 0 };

	/* lbworker took its time: the run may have been restarted by somebody else meanwhile */
	if (find(s, &err) < 0 || commit(s, &err) < 0) {
		refuse(s, &err);
		return;
	}
	failpoint(FP_RESTART_COMMITTED, NULL);
	/* The row is committed: the run cannot be lost any more. */
	if (engine_adopt_anew(s->lbd->engine, run_name(s), &err) < 0)
		log_error("%s: %s", run_name(s), err.text);
	request_answer(s->request, json_pack("{s:s, s:s}", "run", run_name(s), "state",
					     run_state_name(RUN_CREATED)));
	restart_free(s);
}

static void on_probed(void *arg, const struct err *problem)
{
	if (problem)
		refuse(arg, problem);
	else
		finish(arg);
}

/* Other settings make another job, of which Slurm may have to say what it said of none before. */
static void ask_scheduler(struct restart *s)
{
	struct run run = as_run(s);

	probe_ask(s->lbd, &run, on_probed, s);
}

static void on_checked(void *arg, const struct err *problem)
{
	if (problem)
		refuse(arg, problem);
	else
		ask_scheduler(arg);
}

static void check_training_config(struct restart *s)
{
	char *config = path_join("%s/spec.toml", s->dir);
	struct check check = {
		.lbd = s->lbd,
		.config = config,
		.shown = "spec.toml",
		.workdir = s->spec.workdir,
		.sets = sets(s),
	};

	check_config(&check, on_checked, s);
	free(config);
}

void restart_run(struct request *request)
{
	struct restart *s = xcalloc(1, sizeof(*s));
	struct err err = { 0 };

	s->request = request;
	s->lbd = request->lbd;
	if (find(s, &err) < 0 || read_spec(s, &err) < 0 || choose(s, &err) < 0 ||
	    check_tasks(s, &err) < 0)
		refuse(s, &err);
	else if (!run_spec_is_command(&s->spec) && s->old_text)
		check_training_config(s);
	else if (s->old_text)
		ask_scheduler(s);
	else
		finish(s);
}
