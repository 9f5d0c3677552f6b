/* SPDX-License-Identifier: MIT */
/* submit.c - text → spec → folder → (lbworker's check) → row.
 *
 * Everything that can be wrong is found before the row is committed; what was made until then is
 * taken back. The folder keeps the text as it was submitted (submitted.toml) beside what became of
 * it with every --set (spec.toml). */
#include "daemon/runs/submit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/clock.h"
#include "common/base/failpoint.h"
#include "common/base/bytes.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/names.h"
#include "common/base/paths.h"
#include "common/base/strv.h"
#include "daemon/job/batch_job.h"
#include "daemon/runs/trainer_check.h"
#include "daemon/job/launch_args.h"
#include "daemon/job/network.h"
#include "daemon/job/preview.h"
#include "daemon/runs/probe.h"
#include "daemon/runs/switchboard.h"
#include "slurm/batch/directives.h"

enum { MAX_DRAWS = 100 };

struct submission {
	struct submit by;
	struct lbd *lbd;
	struct toml toml;
	struct run_spec spec;
	char name[NAME_MAX_BYTES + 1];
	char *dir;
	const char *scheduler;
	bool hold; /* --hold: it waits for lbctl release */
};

static void submission_free(struct submission *s)
{
	toml_clear(&s->toml);
	run_spec_clear(&s->spec);
	free(s->dir);
	free(s);
}

static void refuse(struct submission *s, const struct err *err, bool made_folder)
{
	if (made_folder)
		folder_remove(s->dir, NULL);
	s->by.done(s->by.arg, NULL, err);
	submission_free(s);
}

static void answer(struct submission *s, json_t *data)
{
	s->by.done(s->by.arg, data, NULL);
	submission_free(s);
}

/* --- the spec --------------------------------------------------------------------------------- */

static int set_in_run(struct toml *toml, const char *key, json_t *value)
{
	json_t *run = json_object_get(toml->root, "run");

	if (run == NULL) {
		run = json_object();
		json_object_set_new(toml->root, "run", run);
	}
	return json_object_set_new(run, key, value);
}

/* Names of runs to wait for go behind those of the file. */
static void add_names(struct toml *toml, const char *key, const json_t *names)
{
	json_t *list = json_object_get(json_object_get(toml->root, "run"), key), *item;
	size_t i;

	if (json_array_size(names) == 0)
		return;
	if (!json_is_array(list)) {
		list = json_array();
		set_in_run(toml, key, list);
	}
	json_array_foreach(names, i, item) {
		json_array_append(list, item);
	}
}

/* Options of sbatch from the command line go behind those of the file. */
static void add_extra(struct toml *toml, const json_t *options)
{
	json_t *slurm = json_object_get(toml->root, "slurm"), *extra, *item;
	size_t i;

	if (json_array_size(options) == 0)
		return;
	if (slurm == NULL) {
		slurm = json_object();
		json_object_set_new(toml->root, "slurm", slurm);
	}
	extra = json_object_get(slurm, "extra");
	if (!json_is_array(extra)) {
		extra = json_array();
		json_object_set_new(slurm, "extra", extra);
	}
	json_array_foreach(options, i, item) {
		json_array_append(extra, item);
	}
}

/* What the command line says on top of the file. */
static int apply_args(struct toml *toml, const json_t *args, struct err *err)
{
	const json_t *sets = json_object_get(args, "set");
	json_t *command = json_object_get(args, "command"), *item;
	const char *name = js_str(args, "name", NULL), *workdir = js_str(args, "workdir", NULL);
	size_t i;

	if (json_object_get(args, "script")) {
		set_in_run(toml, "script", json_incref(json_object_get(args, "script_path")));
		set_in_run(toml, "arguments", json_incref(json_object_get(args, "arguments")));
	}
	add_names(toml, "after", json_object_get(args, "after"));
	add_names(toml, "after_ok", json_object_get(args, "after_ok"));
	json_array_foreach(sets, i, item)
		if (!json_is_string(item) || toml_set(toml, json_string_value(item), err) < 0)
			return err_set(err, ERR_USAGE, "--set: must be section.key=value");
	if (name)
		set_in_run(toml, "name", json_string(name));
	if (command)
		set_in_run(toml, "command", json_incref(command));
	if (workdir && json_object_get(json_object_get(toml->root, "run"), "workdir") == NULL)
		set_in_run(toml, "workdir", json_string(workdir));
	add_extra(toml, json_object_get(args, "options"));
	return 0;
}

/* The secrets are read again for each job; whether they can be is told now. */
int submit_check_env(const struct run_spec *spec, unsigned uid, struct err *err)
{
	struct err why = { 0 };
	char **list;

	if (spec->env_file == NULL)
		return 0;
	list = env_file_read(spec->env_file, uid, &why);
	if (list == NULL)
		return err_set(err, ERR_USAGE, "run.env_file: %.400s", why.text);
	strv_free(list);
	return 0;
}

int submit_check_followed(const struct lbd *lbd, const char *key, const struct key_strings *names,
			  struct err *err)
{
	for (size_t i = 0; i < names->count; i++) {
		struct ledger_run row;
		struct err why = { 0 };

		if (ledger_run_find(lbd->ledger, names->items[i], &row, &why) == 0)
			continue;
		if (why.code != ERR_NOT_FOUND)
			return err_set(err, why.code, "%s", why.text);
		return err_set(err, ERR_USAGE,
			       "%s: there is no run %s; the runs to wait for are "
			       "submitted first",
			       key, names->items[i]);
	}
	return 0;
}

/* Slurm would run the job in /tmp instead, and say so only in its output. */
static int check_workdir(const struct submission *s, struct err *err)
{
	struct stat st;

	if (s->spec.workdir == NULL)
		return err_set(err, ERR_USAGE, "run.workdir: in which folder shall it run?");
	if (stat(s->spec.workdir, &st) < 0 || !S_ISDIR(st.st_mode))
		return err_set(err, ERR_USAGE, "run.workdir: %s: there is no such folder",
			       s->spec.workdir);
	return 0;
}

static int check_followed(const struct submission *s, struct err *err)
{
	return submit_check_followed(s->lbd, "run.after", &s->spec.after, err) < 0
		       ? -1
		       : submit_check_followed(s->lbd, "run.after_ok", &s->spec.after_ok, err);
}

static int check_script(const struct submission *s, struct err *err)
{
	const char *text = js_str(s->by.args, "script", NULL);

	if (!s->spec.script)
		return 0;
	if (!text)
		return err_set(err, ERR_USAGE,
			       "run.script: lbctl submit sends the script along: name "
			       "it on the command line");
	return directives_check_script(text, strlen(text), s->spec.script, err);
}

static struct scheduler *scheduler_of(const struct lbd *lbd, const char *name)
{
	return strcmp(name, "local") == 0 ? lbd->local : lbd->slurm;
}

/* There is no srun on this machine. */
static int check_launch(const struct submission *s, struct err *err)
{
	const struct run_spec *spec = &s->spec;
	const struct scheduler *to = scheduler_of(s->lbd, s->scheduler);

	if (to == NULL || to->ops->check == NULL)
		return 0;
	if (spec->container_image)
		return err_set(err, ERR_USAGE,
			       "slurm.container_image: containers are started by srun "
			       "(pyxis), which is not on this machine");
	if (strcmp(launch_by(spec), "srun") == 0)
		return err_set(err, ERR_USAGE,
			       "slurm.ntasks_per_node: there is no srun to start %lld "
			       "tasks on this machine; ask for one task, and let the "
			       "trainer (torchrun, ...) start its ranks",
			       (long long)spec->nodes * spec->ntasks_per_node);
	return 0;
}

static int read_spec(struct submission *s, struct err *err)
{
	const json_t *args = s->by.args;
	const char *text = js_str(args, "toml", ""), *file = js_str(args, "file", "command line");

	if (toml_parse(&s->toml, text, strlen(text), file, err) < 0 ||
	    apply_args(&s->toml, args, err) < 0 || run_spec_read(&s->toml, &s->spec, err) < 0)
		return -1;
	if (check_followed(s, err) < 0 || check_workdir(s, err) < 0 || check_script(s, err) < 0 ||
	    submit_check_env(&s->spec, s->by.uid, err) < 0)
		return -1;
	s->scheduler = submit_scheduler(s->lbd, &s->spec, err);
	return s->scheduler ? check_launch(s, err) : -1;
}

const char *submit_scheduler(const struct lbd *lbd, const struct run_spec *spec, struct err *err)
{
	if (spec->scheduler == SPEC_SCHEDULER_LOCAL)
		return "local";
	if (lbd->slurm)
		return "slurm";
	if (spec->scheduler == SPEC_SCHEDULER_AUTO)
		return "local";
	err_set(err, ERR_SCHEDULER,
		"run.scheduler: this lbd found no Slurm configuration or no "
		"helper for it beside it; \"local\" runs on this machine");
	return NULL;
}

/* --- name and folder -------------------------------------------------------------------------- */

static bool is_free(struct lbd *lbd, const char *name)
{
	struct ledger_run row;
	struct err err = { 0 };
	char *dir = path_join("%s/%s", lbd->config.runs_folder, name);
	bool no_row = ledger_run_find(lbd->ledger, name, &row, &err) < 0 &&
		      err.code == ERR_NOT_FOUND;
	bool no_folder = !file_exists(dir);

	free(dir);
	return no_row && no_folder;
}

static int choose_name(struct submission *s, struct err *err)
{
	if (s->spec.name) {
		snprintf(s->name, sizeof(s->name), "%s", s->spec.name);
		if (is_free(s->lbd, s->name))
			return 0;
		return err_set(err, ERR_LOCKED,
			       "%s: there is such a run already (or its folder below "
			       "%s); choose another name, or lbctl restart %s",
			       s->name, s->lbd->config.runs_folder, s->name);
	}
	for (int i = 0; i < MAX_DRAWS; i++) {
		name_draw(random_u64(), s->name);
		if (is_free(s->lbd, s->name))
			return 0;
	}
	return err_set(err, ERR_INTERNAL, "no free name found in %d draws", MAX_DRAWS);
}

static int write_env(const struct submission *s, struct err *err)
{
	json_t *env = json_object_get(s->by.args, "env");
	char *path = path_join("%s/env.json", s->dir),
	     *text = json_is_object(env) ? js_line(env) : xstrdup("{}");
	int rc;

	/* it may hold secrets, with a script above all: then it is the whole environment */
	rc = file_write_visible(path, text, strlen(text), 0600, err);
	explicit_bzero(text, strlen(text));
	free(text);
	free(path);
	return rc;
}

static int write_script(const struct submission *s, struct err *err)
{
	const char *text = js_str(s->by.args, "script", "");
	char *path = path_join("%s/slurm_script", s->dir);
	int rc = s->spec.script ? file_write_visible(path, text, strlen(text), 0750, err) : 0;

	free(path);
	return rc;
}

static int check_network(const struct submission *s, struct err *err)
{
	const char *name = network_of(&s->lbd->config, &s->spec);
	struct strv env = { 0 };
	int rc = name ? network_add(&env, &s->lbd->config, name, err) : 0;

	strv_free(env.items);
	return rc;
}

/* The run that it will be; borrows from the submission. */
static struct run as_run(const struct submission *s)
{
	struct run run = {
		.dir = s->dir,
		.owner_uid = s->by.uid,
		.spec = s->spec,
		.scheduler = scheduler_of(s->lbd, s->scheduler),
		.attempt = { .number = 1 },
	};

	snprintf(run.name, sizeof(run.name), "%s", s->name);
	return run;
}

/* What is known without asking anybody. */
static int check_fields(const struct run *run, const json_t *fields, struct err *err)
{
	const struct scheduler *to = run->scheduler;
	const struct job_request job = { .fields = fields };

	if (to == NULL || to->ops->check == NULL)
		return 0;
	if (json_object_get(fields, "array_inx") && !run->spec.script)
		return err_set(err, ERR_USAGE,
			       "--array: only a script can be an array; for runs of a "
			       "command: lbctl submit --sweep");
	return to->ops->check(to, &job, err);
}

/* Every option is understood now, not when the job is due. */
static int check_options(struct submission *s, struct err *err)
{
	struct run run = as_run(s);
	struct batch_job job;
	int rc = batch_job_read(&job, &s->lbd->config, &run, err);

	if (rc == 0)
		rc = check_fields(&run, job.fields, err);
	s->hold = js_int(job.fields, "hold", 0) != 0;
	batch_job_clear(&job);
	return rc == 0 ? check_network(s, err) : -1;
}

static int write_submitted(const struct submission *s, struct err *err)
{
	const char *text = js_str(s->by.args, "toml", "");
	char *path = path_join("%s/submitted.toml", s->dir);
	int rc = file_write_visible(path, text, strlen(text), 0640, err);

	free(path);
	return rc;
}

static int write_spec(const struct submission *s, struct err *err)
{
	char *text = toml_print(&s->toml), *path = path_join("%s/spec.toml", s->dir);
	int rc = file_write_visible(path, text, strlen(text), 0640, err);

	free(text);
	free(path);
	return rc;
}

/* The code that the client found in its folder; its patch may hold what is for nobody else. What is
 * lost of it by a power cut is no run. */
static int write_code(const struct submission *s, struct err *err)
{
	json_t *code = json_copy(json_object_get(s->by.args, "code"));
	char *patch = js_bytes_take(json_object_get(code, "patch")), *text;
	char *path = path_join("%s/code.json", s->dir);
	char *patch_path = path_join("%s/code.patch", s->dir);
	int rc = 0;

	if (json_is_object(code)) {
		json_object_del(code, "patch");
		text = js_line(code);
		rc = file_write_visible(path, text, strlen(text), 0640, err);
		free(text);
		if (rc == 0 && patch)
			rc = file_write_visible(patch_path, patch, strlen(patch), 0600, err);
	}
	json_decref(code);
	free(patch);
	free(path);
	free(patch_path);
	return rc;
}

/* spec.toml and env.json must be there as surely as the row that will be committed. Synced when all
 * is written: the first sync then carries most of what the others would. */
static int sync_all(const struct submission *s, struct err *err)
{
	char *spec = path_join("%s/spec.toml", s->dir), *env = path_join("%s/env.json", s->dir);
	char *script = path_join("%s/slurm_script", s->dir);
	int rc = -1;

	if ((!s->spec.script || file_sync(script, err) == 0) && file_sync(spec, err) == 0 &&
	    file_sync(env, err) == 0 && folder_sync(s->dir, err) == 0)
		rc = folder_sync(s->lbd->config.runs_folder, err);
	free(spec);
	free(env);
	free(script);
	return rc;
}

static int make_folder(struct submission *s, struct err *err)
{
	s->dir = path_join("%s/%s", s->lbd->config.runs_folder, s->name);
	if (folder_make(s->dir, 0750, err) < 0 || write_submitted(s, err) < 0 ||
	    write_env(s, err) < 0 || write_spec(s, err) < 0 || write_script(s, err) < 0 ||
	    write_code(s, err) < 0 || check_options(s, err) < 0)
		return -1;
	return sync_all(s, err) < 0 ? -1 : failpoint(FP_RUN_FOLDER, err);
}

/* --- the row ---------------------------------------------------------------------------------- */

static int insert_row(struct submission *s, struct err *err)
{
	struct ledger *ledger = s->lbd->ledger;
	struct ledger_run row = {
		.name = s->name,
		.owner = s->by.user,
		.owner_uid = s->by.uid,
		.state = RUN_CREATED,
		.text = "",
		.scheduler = s->scheduler,
		.dir = s->dir,
		.run_group = s->spec.group,
		.wanted = s->hold ? ORDER_HOLD : ORDER_RUN,
		.wanted_by = s->hold ? s->by.user : "",
		.wanted_reason = s->hold ? "submitted with --hold" : "",
		.created_ms = clock_wall_ms(),
		.step = -1,
		.target_step = -1,
		.loss = NAN,
		.tokens_per_s = NAN,
		.mfu = NAN,
	};
	struct ledger_event event = {
		.time_ms = row.created_ms,
		.kind = "created",
		.actor = row.owner,
		.text = "",
	};

	if (ledger_run_insert(ledger, &row, &event.run_id, err) < 0)
		return -1;
	if (s->by.also && s->by.also(s->by.arg, event.run_id, err) < 0)
		return -1;
	return ledger_event_put(ledger, &event, err);
}

/* Everything was made and checked as for a real submission; nothing of it stays. */
static void finish_dry(struct submission *s)
{
	struct err err = { 0 };
	struct run run = as_run(s);
	json_t *job;

	job = preview_job(&s->lbd->config, &run, s->scheduler, &err);
	if (job == NULL) {
		refuse(s, &err, true);
		return;
	}
	folder_remove(s->dir, NULL);
	answer(s, job);
}

/* After a failed sync only the next lbd can tell whether the row is there: if it is, the run goes
 * on, and needs its folder. */
static void refuse_uncommitted(struct submission *s, struct err *err)
{
	bool is_unsure = ledger_is_broken(s->lbd->ledger);

	if (is_unsure)
		err_wrap(err,
			 "%s may have been submitted all the same, lbctl status %s tells once lbd "
			 "is back",
			 s->name, s->name);
	refuse(s, err, !is_unsure);
}

/* Row and first attempt are committed together; from then on the run cannot be lost. */
static void finish(struct submission *s)
{
	struct ledger *ledger = s->lbd->ledger;
	struct err err = { 0 };

	if (js_bool(s->by.args, "dry_run", false)) {
		finish_dry(s);
		return;
	}
	/* a hold is obeyed by the new run itself */
	if (switchboard_allows(s->lbd->switchboard, s->name, s->spec.group, s->by.user, SWITCH_STOP,
			       &err) < 0) {
		refuse(s, &err, true);
		return;
	}
	if (insert_row(s, &err) < 0 || failpoint(FP_RUN_WRITTEN, &err) < 0 ||
	    engine_adopt(s->lbd->engine, s->name, &err) < 0) {
		ledger_rollback(ledger);
		refuse(s, &err, true);
	} else if (engine_settle(s->lbd->engine, &err) < 0) {
		refuse_uncommitted(s, &err);
	} else {
		failpoint(FP_RUN_COMMITTED, NULL);
		answer(s, json_pack("{s:s}", "run", s->name));
	}
}

/* --- before it is one ------------------------------------------------------------------------- */

static void on_probed(void *arg, const struct err *problem)
{
	struct submission *s = arg;

	if (problem)
		refuse(s, problem, true);
	else
		finish(s);
}

static void ask_scheduler(struct submission *s)
{
	struct run run = as_run(s);

	probe_ask(s->lbd, &run, on_probed, s);
}

static void on_checked(void *arg, const struct err *problem)
{
	struct submission *s = arg;

	if (problem)
		refuse(s, problem, true);
	else
		ask_scheduler(s);
}

static void check_training_config(struct submission *s)
{
	char *config = path_join("%s/submitted.toml", s->dir);
	struct check check = {
		.loop = s->lbd->loop,
		.lbrun = s->lbd->config.lbrun,
		.config = config,
		.shown = js_str(s->by.args, "file", "spec"),
		.workdir = s->spec.workdir,
		.sets = json_object_get(s->by.args, "set"),
	};

	check_config(&check, on_checked, s);
	free(config);
}

void submit_run(const struct submit *submit)
{
	struct submission *s = xcalloc(1, sizeof(*s));
	struct err err = { 0 };

	s->by = *submit;
	s->lbd = submit->lbd;
	if (read_spec(s, &err) < 0 || choose_name(s, &err) < 0)
		refuse(s, &err, false);
	else if (make_folder(s, &err) < 0)
		refuse(s, &err, true);
	else if (!run_spec_is_command(&s->spec))
		check_training_config(s);
	else
		ask_scheduler(s);
}
