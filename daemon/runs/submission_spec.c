/* SPDX-License-Identifier: MIT */
/* submission_spec.c - what was submitted becomes a spec: the file, what the command line says on
 * top of it, and all that can be wrong with that. */
#include <string.h>
#include <sys/stat.h>

#include "common/base/bytes.h"
#include "common/base/json.h"
#include "common/base/strv.h"
#include "daemon/job/launch_args.h"
#include "daemon/runs/submission.h"
#include "slurm/batch/directives.h"

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
	json_t *path = json_object_get(args, "script_path");
	size_t i;

	if (json_object_get(args, "script")) {
		if (json_is_object(path)) /* its bytes */
			return err_set(err, ERR_USAGE,
				       "run.script: the script's path is not UTF-8; as standard "
				       "input it needs none: lbctl submit - <SCRIPT");
		set_in_run(toml, "script", json_incref(path));
		set_in_run(toml, "arguments", json_incref(json_object_get(args, "arguments")));
	}
	add_names(toml, "after", json_object_get(args, "after"));
	add_names(toml, "after_ok", json_object_get(args, "after_ok"));
	json_array_foreach(sets, i, item) {
		if (!json_is_string(item) || toml_set(toml, json_string_value(item), err) < 0)
			return err_set(err, ERR_USAGE, "--set: must be section.key=value");
	}
	if (name)
		set_in_run(toml, "name", json_string(name));
	if (command)
		set_in_run(toml, "command", json_incref(command));
	if (workdir && json_object_get(json_object_get(toml->root, "run"), "workdir") == NULL)
		set_in_run(toml, "workdir", json_string(workdir));
	add_extra(toml, json_object_get(args, "options"));
	return 0;
}

int spec_check_env(const struct run_spec *spec, unsigned uid, struct err *err)
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

int spec_check_followed(const struct lbd *lbd, const char *key, const struct key_strings *names,
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
		return err_set(err, ERR_USAGE,
			       "run.workdir: in which folder shall it run? The current one is not "
			       "there, or its name is not UTF-8; --set run.workdir=/a/folder");
	if (stat(s->spec.workdir, &st) < 0 || !S_ISDIR(st.st_mode))
		return err_set(err, ERR_USAGE, "run.workdir: %s: there is no such folder",
			       s->spec.workdir);
	return 0;
}

static int check_followed(const struct submission *s, struct err *err)
{
	return spec_check_followed(s->lbd, "run.after", &s->spec.after, err) < 0
		       ? -1
		       : spec_check_followed(s->lbd, "run.after_ok", &s->spec.after_ok, err);
}

static int check_script(const struct submission *s, struct err *err)
{
	char *text = js_bytes_take(json_object_get(s->by.args, "script"));
	int rc = 0;

	if (s->spec.script && !text)
		rc = err_set(err, ERR_USAGE,
			     "run.script: lbctl submit sends the script along: name "
			     "it on the command line");
	else if (s->spec.script)
		rc = directives_check_script(text, strlen(text), s->spec.script, err);
	free(text);
	return rc;
}

struct scheduler *submission_scheduler(const struct submission *s)
{
	return strcmp(s->scheduler, "local") == 0 ? s->lbd->local : s->lbd->slurm;
}

/* There is no srun on this machine; that it is one node is told when it looks at the job. */
static int check_launch(const struct submission *s, struct err *err)
{
	const struct run_spec *spec = &s->spec;
	const struct scheduler *to = submission_scheduler(s);

	if (to == NULL || to->ops->check == NULL)
		return 0;
	if (spec->container_image)
		return err_set(err, ERR_REFUSED,
			       "slurm.container_image: containers are started by srun "
			       "(pyxis), which is not on this machine");
	if (strcmp(launch_by(spec), "srun") == 0 && spec->nodes == 1)
		return err_set(err, ERR_REFUSED,
			       "slurm.ntasks_per_node: there is no srun to start %lld "
			       "tasks on this machine; ask for one task, and let the "
			       "trainer (torchrun, ...) start its ranks",
			       (long long)spec->ntasks_per_node);
	return 0;
}

static const char *choose_scheduler(const struct lbd *lbd, const struct run_spec *spec,
				    struct err *err)
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

int submission_read(struct submission *s, struct err *err)
{
	const json_t *args = s->by.args;
	const char *text = js_str(args, "toml", ""), *file = js_str(args, "file", "command line");

	if (toml_parse(&s->toml, text, strlen(text), file, err) < 0 ||
	    apply_args(&s->toml, args, err) < 0 || run_spec_read(&s->toml, &s->spec, err) < 0)
		return -1;
	if (check_followed(s, err) < 0 || check_workdir(s, err) < 0 || check_script(s, err) < 0 ||
	    spec_check_env(&s->spec, s->by.uid, err) < 0)
		return -1;
	s->scheduler = choose_scheduler(s->lbd, &s->spec, err);
	return s->scheduler ? check_launch(s, err) : -1;
}
