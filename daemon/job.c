/* SPDX-License-Identifier: MIT */
#include "daemon/job.h"

#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/attempt.h"
#include "common/bytes.h"
#include "common/files.h"
#include "common/json.h"
#include "common/mem.h"
#include "common/paths.h"

enum { ENV_JSON_MAX = 256 * 1024 };

char *job_folder(const struct run *run)
{
	return path_join("%s/attempts/%lld", run->dir, (long long)run->attempt.number);
}

/* --- environment ------------------------------------------------------------------------------------ */

struct env {
	char **list;			/* NULL-terminated */
	size_t count;
};

/* Takes `entry` ("NAME=value"); a later one replaces an earlier one of the same name. */
static void env_take(struct env *env, char *entry)
{
	size_t name = strcspn(entry, "=") + 1;

	for (size_t i = 0; i < env->count; i++) {
		if (strncmp(env->list[i], entry, name) == 0) {
			free(env->list[i]);
			env->list[i] = entry;
			return;
		}
	}
	env->list = xrealloc(env->list, (env->count + 2) * sizeof(char *));
	env->list[env->count++] = entry;
	env->list[env->count] = NULL;
}

/* The values may be secrets: nothing of them stays in freed memory. */
static void env_free(struct env *env)
{
	for (size_t i = 0; i < env->count; i++) {
		explicit_bzero(env->list[i], strlen(env->list[i]));
		free(env->list[i]);
	}
	free(env->list);
}

/* What a login gives; Slurm itself adds nothing but SLURM_*. */
static void env_login(struct env *env, const struct run *run)
{
	const struct passwd *pw = getpwuid(getuid());
	const char *path = getenv("PATH"), *lang = getenv("LANG");

	env_take(env, xasprintf("PATH=%s", path ? path : "/usr/local/bin:/usr/bin:/bin"));
	if (lang)
		env_take(env, xasprintf("LANG=%s", lang));
	env_take(env, xasprintf("SLURM_SUBMIT_DIR=%s", run->spec.workdir));
	if (pw == NULL)
		return;
	env_take(env, xasprintf("HOME=%s", pw->pw_dir));
	env_take(env, xasprintf("USER=%s", pw->pw_name));
	env_take(env, xasprintf("LOGNAME=%s", pw->pw_name));
	env_take(env, xasprintf("SHELL=%s", pw->pw_shell));
}

/* What lbctl saw in the submitter's shell (PATH, VIRTUAL_ENV, …): a list without secrets. */
static int env_submitter(struct env *env, const struct run *run, struct err *err)
{
	char *path = path_join("%s/env.json", run->dir);
	json_t *saved = file_exists(path) ? js_load(path, ENV_JSON_MAX, err) : json_object();
	const char *name;
	json_t *value;

	free(path);
	if (saved == NULL)
		return -1;
	json_object_foreach(saved, name, value) {
		char *text = js_bytes_take(value);

		if (text)
			env_take(env, xasprintf("%s=%s", name, text));
		free(text);
	}
	json_decref(saved);
	return 0;
}

static int env_secrets(struct env *env, const struct run *run, struct err *err)
{
	char **list;

	if (run->spec.env_file == NULL)
		return 0;
	list = env_file_read(run->spec.env_file, (unsigned)run->owner_uid, err);
	if (list == NULL)
		return -1;
	for (char **entry = list; *entry; entry++)
		env_take(env, xstrdup(*entry));
	env_file_free(list);
	return 0;
}

/* --- files of the attempt ------------------------------------------------------------------------------ */

/* 'it'\''s': safe in any POSIX shell. Owned by the caller. */
static char *shell_quote(const char *text)
{
	struct buf out;

	buf_init(&out, 4 * strlen(text) + 3);
	buf_add(&out, "'", 1);
	for (; *text; text++)
		buf_addf(&out, *text == '\'' ? "'\\''" : "%c", *text);
	buf_add(&out, "'", 1);
	return buf_take(&out);
}

static char *job_script(const char *lbrun, const char *folder)
{
	char *program = shell_quote(lbrun), *where = shell_quote(folder);
	char *script = xasprintf("#!/bin/sh\nexec %s --attempt %s\n", program, where);

	free(program);
	free(where);
	return script;
}

/* The command of a spec without one: our own trainer on the spec itself. */
static char **trainer_command(const struct config *config, const struct run *run)
{
	const char *slash = strrchr(config->lbrun, '/');
	char **argv = xcalloc(4, sizeof(char *));

	argv[0] = xasprintf("%.*s/lbworker", (int)(slash - config->lbrun), config->lbrun);
	argv[1] = xstrdup("train");
	argv[2] = path_join("%s/spec.toml", run->dir);
	return argv;
}

static char **command_copy(const struct key_strings *command)
{
	char **argv = xcalloc(command->count + 1, sizeof(char *));

	for (size_t i = 0; i < command->count; i++)
		argv[i] = xstrdup(command->items[i]);
	return argv;
}

/* A relative folder is relative to where the trainer runs; for our own trainer, to the run. */
static char *checkpoint_dir(const struct run *run)
{
	const char *folder = run->spec.checkpoint_folder;

	if (folder == NULL)
		return path_join("%s/checkpoints", run->dir);
	if (folder[0] == '/')
		return xstrdup(folder);
	return path_join("%s/%s", run->spec.command.count ? run->spec.workdir : run->dir, folder);
}

static const char *launcher_name(const struct run_spec *spec)
{
	bool many = spec->nodes * spec->ntasks_per_node > 1;
	bool srun = spec->launcher == SPEC_LAUNCHER_SRUN ||
		    (spec->launcher == SPEC_LAUNCHER_AUTO && many);

	return srun ? "srun" : "none";
}

static int write_params(const struct config *config, const struct run *run, const char *folder,
			struct err *err)
{
	const struct run_spec *spec = &run->spec;
	struct attempt_params p = {
		.run = xstrdup(run->name), .number = run->attempt.number,
		.command = spec->command.count ? command_copy(&spec->command) :
						 trainer_command(config, run),
		.workdir = xstrdup(spec->workdir), .run_dir = xstrdup(run->dir),
		.checkpoint_dir = checkpoint_dir(run),
		.lbd_socket = path_join("%s/lbd.sock", config->home),
		.launcher = xstrdup(launcher_name(spec)),
		.in_place = spec->in_place, .kill_grace_ms = spec->kill_grace_ms, .watch = spec->watch,
		.never_on_exit_codes = xcalloc(spec->never_on_exit_codes.count + 1, sizeof(int64_t)),
		.never_count = (int64_t)spec->never_on_exit_codes.count,
	};
	int rc;

	if (spec->progress_regex)
		p.watch.progress_regex = xstrdup(spec->progress_regex);
	p.watch.node_errors = command_copy(&spec->node_errors);
	if (spec->checkpoint_pattern)
		p.pattern = xstrdup(spec->checkpoint_pattern);
	if (spec->checkpoint_complete_when)
		p.complete_when = xstrdup(spec->checkpoint_complete_when);
	memcpy(p.token, run->attempt.job.token, sizeof(p.token));
	if (p.never_count > 0)
		memcpy(p.never_on_exit_codes, spec->never_on_exit_codes.items,
		       (size_t)p.never_count * sizeof(int64_t));
	rc = attempt_params_write(folder, &p, err);
	attempt_params_clear(&p);
	return rc;
}

/* --- the job --------------------------------------------------------------------------------------------- */

static void hand_over(const struct run *run, struct job_request *job, scheduler_done done, void *arg)
{
	const struct run_spec *spec = &run->spec;

	job->workdir = spec->workdir;
	job->partition = spec->partition;
	job->account = spec->account;
	job->qos = spec->qos;
	job->constraint = spec->constraint;
	job->exclude = spec->exclude;
	job->nodelist = spec->nodelist;
	job->reservation = spec->reservation;
	job->licenses = spec->licenses;
	job->comment = spec->comment;
	job->nodes = spec->nodes;
	job->ntasks_per_node = spec->ntasks_per_node;
	job->cpus_per_task = spec->cpus_per_task;
	job->gpus_per_node = spec->gpus_per_node;
	job->mem_mb = spec->mem ? mem_parse_mb(spec->mem, NULL) : 0;
	job->time_minutes = (spec->time_ms + 59999) / 60000;
	run->scheduler->ops->submit(run->scheduler, job, done, arg);
}

int job_submit(const struct config *config, const struct run *run, const char *ledger_id,
	       scheduler_done done, void *arg, struct err *err)
{
	char *folder = job_folder(run), *script = job_script(config->lbrun, folder);
	char *script_path = path_join("%s/job.sh", folder), *output = path_join("%s/out.log", folder);
	struct env env = { 0 };
	int rc = -1;

	env_login(&env, run);
	if (run->scheduler == NULL)
		err_set(err, ERR_SCHEDULER, "Slurm is not available to this lbd");
	else if (folder_make(folder, 0750, err) == 0 &&
		 env_submitter(&env, run, err) == 0 && env_secrets(&env, run, err) == 0 &&
		 write_params(config, run, folder, err) == 0 &&
		 file_write_visible(script_path, script, strlen(script), 0750, err) == 0)
		rc = 0;
	if (rc == 0) {
		struct job_request job = {
			.token = run->attempt.job.token, .ledger_id = ledger_id, .run = run->name,
			.script = script, .script_path = script_path, .output = output,
			.env = env.list,
		};

		hand_over(run, &job, done, arg);
	}
	env_free(&env);
	free(folder);
	free(script);
	free(script_path);
	free(output);
	return rc;
}
