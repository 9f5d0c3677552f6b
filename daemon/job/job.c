/* SPDX-License-Identifier: MIT */
/* job.c - an attempt's folder on disk, and the request that a scheduler gets for it. */
#include "daemon/job/job.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/run/array_tasks.h"
#include "common/run/attempt.h"
#include "common/base/bytes.h"
#include "common/base/failpoint.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/checkpoint/set_aside.h"
#include "common/base/strv.h"
#include "daemon/job/batch_job.h"
#include "daemon/job/job_env.h"
#include "daemon/job/launch_args.h"

char *job_folder(const struct run *run)
{
	return path_join("%s/attempts/%lld", run->dir, (long long)run->attempt.number);
}

/* --- files of the attempt --------------------------------------------------------------------- */

/* lbrun is the script's interpreter, and its second line tells lbrun the attempt. */
char *job_script(const struct config *config, const struct scheduler *scheduler, const char *folder,
		 const char *text)
{
	bool is_read = scheduler && scheduler->by_sbatch;
	char *first = xasprintf("#!%s --job\n%s%s\n", config->interpreter, ATTEMPT_JOB_MARK,
				folder);
	char *script = text ? batch_job_wrap(first, text, is_read) : xstrdup(first);

	free(first);
	return script;
}

/* The command of a spec without one: our own trainer on the spec itself. */
static char **trainer_command(const struct config *config, const struct run *run)
{
	const char *slash = strrchr(config->lbrun, '/');
	char **argv = xcalloc(4, sizeof(char *));

	argv[0] = path_join("%.*s/lbworker", (int)(slash - config->lbrun), config->lbrun);
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

static char **script_command(const struct run *run)
{
	const struct key_strings *arguments = &run->spec.arguments;
	char **argv = xcalloc(arguments->count + 2, sizeof(char *));

	argv[0] = batch_script_path(run);
	for (size_t i = 0; i < arguments->count; i++)
		argv[i + 1] = xstrdup(arguments->items[i]);
	return argv;
}

char **job_command(const struct config *config, const struct run *run)
{
	if (run->spec.script)
		return script_command(run);
	return run->spec.command.count ? command_copy(&run->spec.command)
				       : trainer_command(config, run);
}

/* A relative folder is relative to where the trainer runs; for our own trainer, to the run. */
char *job_checkpoint_dir(const struct run_spec *spec, const char *dir)
{
	const char *folder = spec->checkpoint_folder;

	if (folder == NULL)
		return path_join("%s/checkpoints", dir);
	if (folder[0] == '/')
		return xstrdup(folder);
	return path_join("%s/%s", run_spec_is_command(spec) ? spec->workdir : dir, folder);
}

/* Our own trainer's are known. */
static const char *layout_of(const struct run_spec *spec)
{
	return run_spec_is_command(spec) ? spec->checkpoint_layout : "lbworker";
}

struct checkpoint_rules *job_checkpoint_rules(const struct run_spec *spec, struct err *err)
{
	return checkpoint_rules_create(layout_of(spec), spec->checkpoint_pattern,
				       spec->checkpoint_complete_when, err);
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

/* Owned by the caller; NULL: none. A script has the environment that sbatch makes, unless it is
 * asked for. */
static char *cache_of(const struct config *config, const struct run_spec *spec)
{
	const char *folder = spec->cache_folder;

	if (!folder && !spec->script)
		folder = config->cache_folder;
	return folder && strcmp(folder, "none") != 0 ? xstrdup(folder) : NULL;
}

static int write_params(const struct config *config, const struct run *run, const json_t *fields,
			const char *folder, double node_mtbf_s, struct err *err)
{
	const struct run_spec *spec = &run->spec;
	char *checkpoints = job_checkpoint_dir(spec, run->dir);
	struct attempt_params p = {
		.run = xstrdup(run->name),
		.number = run->attempt.number,
		.command = job_command(config, run),
		.workdir = js_bytes_take(json_object_get(fields, "work_dir")),
		.run_dir = xstrdup(run->dir),
		.checkpoint_dir = checkpoints,
		.lbd_socket = path_join("%s/lbd.sock", config->home),
		.switches = path_join("%s/switches", config->home),
		.group = xstrdup(spec->group ? spec->group : ""),
		.owner = xstrdup(run->owner),
		.launcher = xstrdup(launch_by(spec)),
		.srun = launch_srun(config, run, checkpoints),
		.torchrun = launch_torchrun(spec),
		.profiler = launch_profiler(spec, folder),
		.rollback = spec->rollback,
		.in_place = spec->in_place,
		.spare_nodes = spec->spare_nodes,
		.without_progress = run->failures,
		.max_without_progress = budget(spec),
		.kill_grace_ms = spec->kill_grace_ms,
		.watch = spec->watch,
		.stop_grace_ms = spec->stop_grace_ms,
		.resume = xstrdup(run->resume_from[0] ? run->resume_from : "latest"),
		.warn_ms = spec->script ? 1000 * js_int(fields, "warn_time", 0)
					: run_spec_warn_ms(spec),
		.is_script = spec->script != NULL,
		.script = spec->script ? xstrdup(spec->script) : NULL,
		.kill_wait_ms = run->scheduler ? run->scheduler->kill_wait_ms : 0,
		.never_on_exit_codes = xcalloc(spec->never_on_exit_codes.count + 1,
					       sizeof(int64_t)),
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
	p.layout = xstrdup(layout_of(spec));
	p.node_mtbf_ms = (int64_t)(node_mtbf_s * 1000);
	if (spec->preflight) {
		p.preflight_ms = spec->preflight_ms;
		p.preflight_tries = spec->preflight_tries;
		p.preflight = command_copy(&spec->preflight_options);
	}
	p.check_ms = spec->checkpoint_check_ms;
	p.save_every_ms = spec->save_every_ms;
	p.retention = spec->retention;
	if (spec->checkpoint_stage) {
		p.stage = xstrdup(spec->checkpoint_stage);
		p.stage_rate = spec->stage_rate;
	}
	if ((p.cache = cache_of(config, spec)) != NULL) {
		p.cache_bytes = spec->cache_bytes;
		p.cache_variables = command_copy(&spec->cache_variables);
	}
	/* lbworker keeps to these itself, where it saves to */
	if (!run_spec_is_command(spec) && !spec->checkpoint_stage)
		p.retention.keep_latest_k = p.retention.keep_every = 0;
	p.note_bytes = run_spec_is_command(spec) ? spec->note_bytes : 0;
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

/* --- going back ------------------------------------------------------------------------------- */

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

/* The trainer of this attempt does not run yet, and no other one does. */
static int leave_later_checkpoints(const struct run *run, struct err *err)
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

/* --- the job ---------------------------------------------------------------------------------- */

/* What scontrol shows as the command: the script where it was submitted, with its arguments. */
static char **shown_argv(const struct run *run)
{
	char **argv = run->spec.script ? script_command(run) : NULL;

	if (argv) {
		free(argv[0]);
		argv[0] = xstrdup(run->spec.script);
	}
	return argv;
}

static void argv_free(char **argv)
{
	for (char **word = argv; word && *word; word++)
		free(*word);
	free(argv);
}

int job_retell(const struct config *config, const struct run *run, double node_mtbf_s,
	       struct err *err)
{
	char *folder = job_folder(run);
	struct batch_job job;
	int rc = batch_job_read(&job, config, run, err);

	if (rc == 0)
		rc = write_params(config, run, job.fields, folder, node_mtbf_s, err);
	batch_job_clear(&job);
	free(folder);
	return rc;
}

/* What a request to a scheduler borrows. */
struct parts {
	struct batch_job asked;
	char *folder, *script, *script_path, *output;
	char **argv;
	struct strv open_env;
};

static void parts_free(struct parts *p)
{
	strv_free(p->open_env.items);
	argv_free(p->argv);
	batch_job_clear(&p->asked);
	free(p->folder);
	free(p->script);
	free(p->script_path);
	free(p->output);
}

/* parts_free is due in any case. */
static int parts_make(struct parts *p, const struct config *config, const struct run *run,
		      struct err *err)
{
	if (batch_job_read(&p->asked, config, run, err) < 0)
		return -1;
	p->folder = job_folder(run);
	p->script = job_script(config, run->scheduler, p->folder, p->asked.text);
	p->argv = shown_argv(run);
	p->script_path = path_join("%s/job.sh", p->folder);
	p->output = path_join("%s/out.log", p->folder);
	return job_env_make(&p->open_env, config, run, &p->asked, err);
}

/* The environment is all that there is, or what is no secret of it. */
static struct job_request request_of(const struct parts *p, const struct run *run,
				     const char *ledger_id, char *const *env)
{
	return (struct job_request){
		.token = run->attempt.job.token,
		.ledger_id = ledger_id,
		.run = run->name,
		.fields = p->asked.fields,
		.script = p->script,
		.script_path = p->script_path,
		.output = p->output,
		.argv = p->argv,
		.env = env,
		.open_env = p->open_env.items,
		.env_file = run->spec.env_file,
		.env_uid = (unsigned)run->owner_uid,
		.words = run->scheduler->by_sbatch ? p->asked.words : NULL,
		.submit_dir = run->spec.workdir,
	};
}

/* Everything that the job needs on disk; job.sh, which says that the rest is there, comes last. */
static int write_files(const struct config *config, const struct run *run, const struct parts *p,
		       double node_mtbf_s, struct err *err)
{
	if (folder_make(p->folder, 0750, err) < 0)
		return -1;
	unlink(p->script_path); /* of a prequeued attempt of this number that was dropped */
	if (leave_later_checkpoints(run, err) < 0 ||
	    write_params(config, run, p->asked.fields, p->folder, node_mtbf_s, err) < 0 ||
	    failpoint(FP_ATTEMPT_FILES, err) < 0)
		return -1;
	return file_write_visible(p->script_path, p->script, strlen(p->script), 0750, err);
}

/* Numbers are given again, tokens are not. */
static bool is_written(const struct run *run)
{
	char *folder = job_folder(run), *path = path_join("%s/job.sh", folder);
	struct attempt_params params = { 0 };
	bool is = file_exists(path) && attempt_params_read(folder, &params, NULL) == 0 &&
		  strcmp(params.token, run->attempt.job.token) == 0;

	attempt_params_clear(&params);
	free(folder);
	free(path);
	return is;
}

int job_write(const struct config *config, const struct run *run, double node_mtbf_s,
	      struct err *err)
{
	struct parts parts = { 0 };
	int rc;

	if (is_written(run))
		return 0;
	if (run->spec_problem)
		return err_set(err, ERR_USAGE, "%s", run->spec_problem);
	if ((rc = parts_make(&parts, config, run, err)) == 0)
		rc = write_files(config, run, &parts, node_mtbf_s, err);
	parts_free(&parts);
	return rc;
}

/* sbatch reads them, and the local scheduler does not ask for them later. */
static bool are_files_due(const struct scheduler *scheduler)
{
	return scheduler->by_sbatch || scheduler->ops->probe == NULL;
}

int job_submit(const struct config *config, const struct run *run, double node_mtbf_s,
	       const char *ledger_id, scheduler_done done, void *arg, struct err *err)
{
	struct parts parts = { 0 };
	struct strv env = { 0 };
	int rc = -1;

	if (run->scheduler == NULL)
		err_set(err, ERR_SCHEDULER, "Slurm is not available to this lbd");
	else if (parts_make(&parts, config, run, err) == 0 &&
		 job_env_make(&env, config, run, &parts.asked, err) == 0 &&
		 job_env_add_secrets(&env, run, err) == 0)
		rc = are_files_due(run->scheduler)
			     ? write_files(config, run, &parts, node_mtbf_s, err)
			     : 0;
	if (rc == 0) {
		struct job_request job;

		batch_job_set_output(&parts.asked, run, parts.output);
		job = request_of(&parts, run, ledger_id, env.items);
		failpoint(FP_SUBMIT_CALL, NULL);
		run->scheduler->ops->submit(run->scheduler, &job, done, arg);
	}
	strv_free(env.items);
	parts_free(&parts);
	return rc;
}

/* Nothing is written for a mere question, and no secret goes along. */
static int ask(struct parts *parts, struct job_request *job, const struct config *config,
	       const struct run *run, struct err *err)
{
	if (parts_make(parts, config, run, err) < 0)
		return -1;
	batch_job_set_output(&parts->asked, run, parts->output);
	*job = request_of(parts, run, "", parts->open_env.items);
	return 0;
}

int job_probe(const struct config *config, const struct run *run, scheduler_done done, void *arg,
	      struct err *err)
{
	struct parts parts = { 0 };
	struct job_request job;
	int rc = ask(&parts, &job, config, run, err);

	if (rc == 0)
		run->scheduler->ops->probe(run->scheduler, &job, done, arg);
	parts_free(&parts);
	return rc;
}

int job_room(const struct config *config, const struct run *run, scheduler_done done, void *arg,
	     struct err *err)
{
	struct parts parts = { 0 };
	struct job_request job;
	int rc = ask(&parts, &job, config, run, err);

	if (rc == 0)
		run->scheduler->ops->room(run->scheduler, &job, done, arg);
	parts_free(&parts);
	return rc;
}

int job_why(const struct config *config, const struct run *run, scheduler_done done, void *arg,
	    struct err *err)
{
	struct parts parts = { 0 };
	struct job_request job;
	int rc = ask(&parts, &job, config, run, err);

	if (rc == 0)
		run->scheduler->ops->why(run->scheduler, &run->attempt.job, &job,
					 run->excluded ? run->excluded : "", done, arg);
	parts_free(&parts);
	return rc;
}
