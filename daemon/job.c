/* SPDX-License-Identifier: MIT */
#include "daemon/job.h"

#include <stdlib.h>
#include <string.h>

#include "common/attempt.h"
#include "common/bytes.h"
#include "common/files.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/paths.h"
#include "common/set_aside.h"
#include "daemon/job_env.h"

char *job_folder(const struct run *run)
{
	return path_join("%s/attempts/%lld", run->dir, (long long)run->attempt.number);
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

char *job_script(const char *lbrun, const char *folder)
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

char **job_command(const struct config *config, const struct run *run)
{
	return run->spec.command.count ? command_copy(&run->spec.command) :
					 trainer_command(config, run);
}

/* A relative folder is relative to where the trainer runs; for our own trainer, to the run. */
char *job_checkpoint_dir(const struct run_spec *spec, const char *dir)
{
	const char *folder = spec->checkpoint_folder;

	if (folder == NULL)
		return path_join("%s/checkpoints", dir);
	if (folder[0] == '/')
		return xstrdup(folder);
	return path_join("%s/%s", spec->command.count ? spec->workdir : dir, folder);
}

const char *job_launcher(const struct run_spec *spec)
{
	bool many = spec->nodes * spec->ntasks_per_node > 1;
	bool srun = spec->launcher == SPEC_LAUNCHER_SRUN ||
		    (spec->launcher == SPEC_LAUNCHER_AUTO && many);

	return srun ? "srun" : "none";
}

/* lbrun counts all faults alike: where a rule says that some do not count it is given no bound. */
static int64_t budget(const struct run_spec *spec)
{
	static const enum cause faults[] = { CAUSE_ERROR, CAUSE_CRASH, CAUSE_OOM, CAUSE_HANG };

	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		if (spec->rules[faults[i]] == SPEC_RELAUNCH)
			return -1;
	return spec->max_without_progress;
}

static int write_params(const struct config *config, const struct run *run, const char *folder,
			struct err *err)
{
	const struct run_spec *spec = &run->spec;
	struct attempt_params p = {
		.run = xstrdup(run->name), .number = run->attempt.number,
		.command = job_command(config, run),
		.workdir = xstrdup(spec->workdir), .run_dir = xstrdup(run->dir),
		.checkpoint_dir = job_checkpoint_dir(spec, run->dir),
		.lbd_socket = path_join("%s/lbd.sock", config->home),
		.switches = path_join("%s/switches", config->home),
		.group = xstrdup(spec->group ? spec->group : ""), .owner = xstrdup(run->owner),
		.launcher = xstrdup(job_launcher(spec)),
		.in_place = spec->in_place, .without_progress = run->failures,
		.max_without_progress = budget(spec), .kill_grace_ms = spec->kill_grace_ms, .watch = spec->watch,
		.stop_grace_ms = spec->stop_grace_ms,
		.resume = xstrdup(run->resume_from[0] ? run->resume_from : "latest"),
		.warn_ms = run_spec_warn_ms(spec),
		.kill_wait_ms = run->scheduler ? run->scheduler->kill_wait_ms : 0,
		.never_on_exit_codes = xcalloc(spec->never_on_exit_codes.count + 1, sizeof(int64_t)),
		.never_count = (int64_t)spec->never_on_exit_codes.count,
	};
	int rc;

	for (int cause = 0; cause < CAUSE_COUNT; cause++)
		p.never_on_cause[cause] = spec->rules[cause] == SPEC_STOP;
	if (config->team_group)
		p.team = xstrdup(config->team_group);
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

/* --- going back ------------------------------------------------------------------------------------------ */

/* The step that the run was sent back to: -1 for its beginning, -2 when it goes on from the newest
 * or from something whose name tells no step. */
static int64_t chosen_step(const struct run *run, struct foreign *foreign)
{
	const char *slash = strrchr(run->resume_from, '/');
	int64_t step = slash ? checkpoint_step(foreign, slash + 1) : -1;

	if (strcmp(run->resume_from, "scratch") == 0)
		return -1;
	return step < 0 ? -2 : step;
}

static int leave_those_after(const struct run *run, struct foreign *foreign, int64_t step,
			     struct err *err)
{
	char *parent = job_checkpoint_dir(&run->spec, run->dir);
	char *aside = path_join("%s/set-aside-%lld", parent, (long long)run->attempt.number);
	int64_t moved = checkpoints_set_aside(parent, foreign, step, aside, err);

	if (moved > 0)
		log_info("%s: %lld later checkpoints are in %s now", run->name, (long long)moved,
			 aside);
	free(parent);
	free(aside);
	return moved < 0 ? -1 : 0;
}

/* The trainer of this attempt does not run yet, and no other one does. */
static int leave_later_checkpoints(const struct run *run, struct err *err)
{
	const struct run_spec *spec = &run->spec;
	struct foreign *foreign = NULL;
	int64_t step;
	int rc = 0;

	if (run->resume_from[0] == '\0')
		return 0;
	if (spec->checkpoint_pattern) {
		foreign = foreign_create(spec->checkpoint_pattern, spec->checkpoint_complete_when, err);
		if (foreign == NULL)
			return -1;
	}
	step = chosen_step(run, foreign);
	if (step != -2)
		rc = leave_those_after(run, foreign, step, err);
	foreign_destroy(foreign);
	return rc;
}

/* --- the job --------------------------------------------------------------------------------------------- */

void job_resources(const struct run_spec *spec, struct job_request *job)
{
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
	job->time_seconds = spec->time_ms / 1000;
	job->warn_seconds = run_spec_warn_ms(spec) / 1000;
}

/* What the spec asks for and what node memory adds; NULL = nothing. Owned by the caller. */
static char *all_excluded(const struct run *run)
{
	const char *asked = run->spec.exclude, *learned = run->excluded;

	if (!learned[0])
		return asked ? xstrdup(asked) : NULL;
	return xasprintf("%s%s%s", asked ? asked : "", asked ? "," : "", learned);
}

int job_retell(const struct config *config, const struct run *run, struct err *err)
{
	char *folder = job_folder(run);
	int rc = write_params(config, run, folder, err);

	free(folder);
	return rc;
}

int job_submit(const struct config *config, const struct run *run, const char *ledger_id,
	       scheduler_done done, void *arg, struct err *err)
{
	char *folder = job_folder(run), *script = job_script(config->lbrun, folder);
	char *script_path = path_join("%s/job.sh", folder), *output = path_join("%s/out.log", folder);
	char *exclude = NULL;
	struct job_env env = { 0 }, open_env = { 0 };
	int rc = -1;

	if (run->scheduler == NULL)
		err_set(err, ERR_SCHEDULER, "Slurm is not available to this lbd");
	else if (folder_make(folder, 0750, err) == 0 && leave_later_checkpoints(run, err) == 0 &&
		 job_env_make(&open_env, run, err) == 0 && job_env_make(&env, run, err) == 0 &&
		 job_env_add_secrets(&env, run, err) == 0 &&
		 write_params(config, run, folder, err) == 0 &&
		 file_write_visible(script_path, script, strlen(script), 0750, err) == 0)
		rc = 0;
	if (rc == 0) {
		struct job_request job = {
			.token = run->attempt.job.token, .ledger_id = ledger_id, .run = run->name,
			.script = script, .script_path = script_path, .output = output,
			.env = env.list, .open_env = open_env.list, .env_file = run->spec.env_file,
			.env_uid = (unsigned)run->owner_uid,
		};

		job_resources(&run->spec, &job);
		exclude = all_excluded(run);
		job.exclude = exclude;
		run->scheduler->ops->submit(run->scheduler, &job, done, arg);
	}
	job_env_free(&env);
	job_env_free(&open_env);
	free(exclude);
	free(folder);
	free(script);
	free(script_path);
	free(output);
	return rc;
}
