/* SPDX-License-Identifier: MIT */
/* job_params.c - from a run's spec to attempt.json. */
#include "daemon/job/job_params.h"

#include <string.h>

#include "common/base/bytes.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/checkpoint/checkpoints.h"
#include "common/run/attempt_params.h"
#include "daemon/job/batch_job.h"
#include "daemon/job/launch_args.h"

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

char **job_script_command(const struct run *run)
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
		return job_script_command(run);
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

/* Each of these fills a part of the parameters from the spec. */

static void tell_restarts(struct attempt_params *p, const struct run *run)
{
	const struct run_spec *spec = &run->spec;

	p->rollback = spec->rollback;
	p->in_place = spec->in_place;
	p->spare_nodes = spec->spare_nodes;
	p->without_progress = run->failures;
	p->max_without_progress = budget(spec);
	p->never_count = (int64_t)spec->never_on_exit_codes.count;
	p->never_on_exit_codes = xcalloc(spec->never_on_exit_codes.count + 1, sizeof(int64_t));
	for (size_t i = 0; i < spec->never_on_exit_codes.count; i++)
		p->never_on_exit_codes[i] = spec->never_on_exit_codes.items[i];
	for (int cause = 0; cause < CAUSE_COUNT; cause++)
		p->never_on_cause[cause] = spec->rules[cause] == SPEC_STOP;
}

static void tell_stops(struct attempt_params *p, const struct run *run, const json_t *fields)
{
	const struct run_spec *spec = &run->spec;

	p->kill_grace_ms = spec->kill_grace_ms;
	p->stop_grace_ms = spec->stop_grace_ms;
	p->warn_ms = 1000 * js_int(fields, "warn_time", 0);
	p->kill_wait_ms = run->scheduler ? run->scheduler->kill_wait_ms : 0;
}

static void tell_watch(struct attempt_params *p, const struct run_spec *spec)
{
	p->watch = spec->watch;
	if (spec->progress_regex)
		p->watch.progress_regex = xstrdup(spec->progress_regex);
	p->watch.node_errors = command_copy(&spec->node_errors);
	p->note_bytes = run_spec_is_command(spec) ? spec->note_bytes : 0;
	if (spec->preflight) {
		p->preflight_ms = spec->preflight_ms;
		p->preflight_tries = spec->preflight_tries;
		p->preflight = command_copy(&spec->preflight_options);
	}
}

static void tell_checkpoints(struct attempt_params *p, const struct run *run)
{
	const struct run_spec *spec = &run->spec;

	p->resume = xstrdup(run->resume_from[0] ? run->resume_from : "latest");
	p->layout = xstrdup(layout_of(spec));
	if (spec->checkpoint_pattern)
		p->pattern = xstrdup(spec->checkpoint_pattern);
	if (spec->checkpoint_complete_when)
		p->complete_when = xstrdup(spec->checkpoint_complete_when);
	p->check_ms = spec->checkpoint_check_ms;
	p->save_every_ms = spec->save_every_ms;
	p->retention = spec->retention;
	/* lbworker keeps to these itself, where it saves to */
	if (!run_spec_is_command(spec) && !spec->checkpoint_stage)
		p->retention.keep_latest_k = p->retention.keep_every = 0;
	if (spec->checkpoint_stage) {
		p->stage = xstrdup(spec->checkpoint_stage);
		p->stage_rate = spec->stage_rate;
	}
}

static void tell_cache(struct attempt_params *p, const struct config *config,
		       const struct run_spec *spec)
{
	p->cache = cache_of(config, spec);
	if (!p->cache)
		return;
	p->cache_bytes = spec->cache_bytes;
	p->cache_variables = command_copy(&spec->cache_variables);
}

/* What is run, and how its ranks begin. */
static void tell_launch(struct attempt_params *p, const struct config *config,
			const struct run *run, const json_t *fields, const char *folder)
{
	const struct run_spec *spec = &run->spec;

	p->command = job_command(config, run);
	p->workdir = js_bytes_take(json_object_get(fields, "work_dir"));
	p->launcher = xstrdup(launch_by(spec));
	p->srun = launch_srun(config, run, p->checkpoint_dir);
	p->torchrun = launch_torchrun(spec, fields);
	p->profiler = launch_profiler(spec, folder);
	p->is_script = spec->script != NULL;
	p->script = spec->script ? xstrdup(spec->script) : NULL;
}

int job_params_write(const struct config *config, const struct run *run, const json_t *fields,
		     const char *folder, double node_mtbf_s, struct err *err)
{
	struct attempt_params p = {
		.run = xstrdup(run->name),
		.number = run->attempt.number,
		.owner = xstrdup(run->owner),
		.group = xstrdup(run->spec.group ? run->spec.group : ""),
		.team = config->team_group ? xstrdup(config->team_group) : NULL,
		.run_dir = xstrdup(run->dir),
		.checkpoint_dir = job_checkpoint_dir(&run->spec, run->dir),
		.lbd_socket = path_join("%s/lbd.sock", config->home),
		.switches = path_join("%s/switches", config->home),
		.node_mtbf_ms = (int64_t)(node_mtbf_s * 1000),
	};
	int rc;

	memcpy(p.token, run->attempt.job.token, sizeof(p.token));
	tell_launch(&p, config, run, fields, folder);
	tell_restarts(&p, run);
	tell_stops(&p, run, fields);
	tell_watch(&p, &run->spec);
	tell_checkpoints(&p, run);
	tell_cache(&p, config, &run->spec);
	rc = attempt_params_write(folder, &p, err);
	attempt_params_clear(&p);
	return rc;
}
