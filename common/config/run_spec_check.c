/* SPDX-License-Identifier: MIT */
/* run_spec_check.c - what must hold of a run spec's values.
 *
 * Everything that can be wrong with a spec is said before anything is done with it: a run that was
 * accepted must not fail an hour later over a typo. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/names.h"
#include "common/base/regexp.h"
#include "common/checkpoint/checkpoints.h"
#include "common/config/amounts.h"
#include "common/config/run_spec.h"
#include "common/run/attempt_params.h"

#define WEEK_MS (7 * 86400e3)

/* `problem` holds what is wrong with the value of `path`. */
static int refuse(const struct toml *toml, const char *path, const struct err *problem,
		  struct err *err)
{
	return keys_refuse(toml, path, problem->text, err);
}

static int check_names(const struct toml *toml, const char *path, const struct key_strings *names,
		       const char *own, struct err *err)
{
	for (size_t i = 0; i < names->count; i++) {
		struct err problem = { 0 };

		if (strchr(names->items[i], '/'))
			return keys_refuse(toml, path,
					   "only runs of your own can be waited for, not those of "
					   "colleagues: name them without \"/\"",
					   err);
		if (name_check(names->items[i], &problem) < 0)
			return refuse(toml, path, &problem, err);
		if (own && strcmp(names->items[i], own) == 0)
			return keys_refuse(toml, path, "a run cannot wait for itself", err);
	}
	return 0;
}

int run_spec_check_run(const struct toml *toml, const struct run_spec *spec, bool is_command,
		       struct err *err)
{
	struct err problem = { 0 };

	if (spec->name && name_check(spec->name, &problem) < 0)
		return refuse(toml, "run.name", &problem, err);
	if (spec->group && name_check(spec->group, &problem) < 0)
		return refuse(toml, "run.group", &problem, err);
	if (check_names(toml, "run.after", &spec->after, spec->name, err) < 0 ||
	    check_names(toml, "run.after_ok", &spec->after_ok, spec->name, err) < 0)
		return -1;
	if (is_command && !spec->script &&
	    (spec->command.count == 0 || spec->command.items[0][0] == '\0'))
		return keys_refuse(toml, "run.command", "must name a program", err);
	if (spec->script && spec->command.count > 0)
		return keys_refuse(toml, "run.script", "excludes run.command", err);
	if (spec->script && spec->script[0] != '/')
		return keys_refuse(toml, "run.script", "must be an absolute path", err);
	if (spec->arguments.count > 0 && !spec->script)
		return keys_refuse(toml, "run.arguments", "needs run.script", err);
	if (spec->workdir && spec->workdir[0] != '/')
		return keys_refuse(toml, "run.workdir", "must be an absolute path", err);
	if (spec->env_file && spec->env_file[0] != '/')
		return keys_refuse(toml, "run.env_file", "must be an absolute path", err);
	return 0;
}

static int check_slurm(const struct toml *toml, struct run_spec *spec, struct err *err)
{
	struct err problem = { 0 };

	if (spec->mem && mem_parse_mb(spec->mem, &problem) < 0)
		return refuse(toml, "slurm.mem", &problem, err);
	if (spec->time_text && time_limit_parse(spec->time_text, &spec->time_ms, &problem) < 0)
		return refuse(toml, "slurm.time", &problem, err);
	return 0;
}

static int check_watch(const struct toml *toml, struct run_spec *spec, struct err *err)
{
	static const char what[] = "must be \"auto\" or a duration up to 7 days, like \"90s\"";
	const char *text = spec->step_timeout_text;
	int64_t *ms = &spec->watch.step_ms;

	*ms = WATCH_AUTO;
	if (!text || strcmp(text, "auto") == 0)
		return 0;
	if (duration_parse(text, ms, NULL) < 0 || (double)*ms > WEEK_MS)
		return keys_refuse(toml, "watch.step_timeout", what, err);
	return 0;
}

static int check_regexp(const char *text, const char *group, struct err *problem)
{
	struct regexp *r = regexp_create(text, false, problem);
	int rc = r ? 0 : -1;

	if (r && group && !regexp_has_group(r, group))
		rc = err_set(problem, ERR_USAGE, "must have a group (?<%s>\\d+)", group);
	regexp_destroy(r);
	return rc;
}

static bool is_progress_word(const char *text)
{
	return !text || strcmp(text, PROGRESS_AUTO) == 0 || strcmp(text, PROGRESS_NONE) == 0;
}

static int check_output(const struct toml *toml, const struct run_spec *spec, struct err *err)
{
	struct err problem = { 0 };

	if (!is_progress_word(spec->progress_regex) &&
	    check_regexp(spec->progress_regex, "step", &problem) < 0)
		return refuse(toml, "watch.progress_regex", &problem, err);
	for (size_t i = 0; i < spec->node_errors.count; i++) {
		if (check_regexp(spec->node_errors.items[i], NULL, &problem) < 0)
			return refuse(toml, "watch.node_error_regex", &problem, err);
	}
	return 0;
}

static int check_retention(const struct toml *toml, struct run_spec *spec, struct err *err)
{
	struct err problem = { 0 };

	if (spec->max_bytes_text &&
	    (spec->retention.max_bytes = bytes_parse(spec->max_bytes_text, &problem)) < 0)
		return refuse(toml, "checkpoint.max_bytes", &problem, err);
	if (spec->note_bytes_text &&
	    (spec->note_bytes = bytes_parse(spec->note_bytes_text, &problem)) < 0)
		return refuse(toml, "checkpoint.note_bytes", &problem, err);
	if (spec->stage_rate_text &&
	    (spec->stage_rate = bytes_parse(spec->stage_rate_text, &problem)) < 0)
		return refuse(toml, "checkpoint.stage_rate", &problem, err);
	return 0;
}

static bool is_variable(const char *text)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

	return text[0] && strspn(text, letters) == strlen(text) &&
	       !(text[0] >= '0' && text[0] <= '9');
}

static int check_cache(const struct toml *toml, struct run_spec *spec, struct err *err)
{
	const char *folder = spec->cache_folder;
	struct err problem = { 0 };

	if (folder && folder[0] != '/' && strcmp(folder, "none") != 0)
		return keys_refuse(toml, "cache.folder", "must be an absolute path, or \"none\"",
				   err);
	if (spec->cache_bytes_text &&
	    (spec->cache_bytes = bytes_parse(spec->cache_bytes_text, &problem)) < 0)
		return refuse(toml, "cache.max_bytes", &problem, err);
	for (size_t i = 0; i < spec->cache_variables.count; i++)
		if (!is_variable(spec->cache_variables.items[i]))
			return keys_refuse(toml, "cache.variables",
					   "must be names of variables, of A-Z, 0-9 and _", err);
	return 0;
}

static int check_save_every(const struct toml *toml, struct run_spec *spec, struct err *err)
{
	const char *text = spec->save_every_text;
	struct err problem = { 0 };

	spec->save_every_ms = text && strcmp(text, "auto") == 0 ? SAVE_EVERY_AUTO : 0;
	if (!text || spec->save_every_ms == SAVE_EVERY_AUTO)
		return 0;
	if (duration_parse(text, &spec->save_every_ms, &problem) < 0 || spec->save_every_ms < 1000)
		return keys_refuse(
			toml, "checkpoint.save_every",
			"must be \"auto\", or a duration of a second or more, like \"15m\"", err);
	return 0;
}

static int check_checkpoint(const struct toml *toml, const struct run_spec *spec, struct err *err)
{
	struct err problem = { 0 };
	struct checkpoint_rules *rules;

	if (spec->checkpoint_stage && spec->checkpoint_stage[0] != '/')
		return keys_refuse(toml, "checkpoint.stage", "must be an absolute path", err);
	if (spec->stage_rate_text && !spec->checkpoint_stage)
		return keys_refuse(toml, "checkpoint.stage_rate", "needs checkpoint.stage", err);
	if (spec->checkpoint_complete_when && !spec->checkpoint_pattern)
		return keys_refuse(toml, "checkpoint.complete_when", "needs checkpoint.pattern",
				   err);
	rules = checkpoint_rules_create(spec->checkpoint_layout, NULL, NULL, &problem);
	if (!rules)
		return refuse(toml, "checkpoint.layout", &problem, err);
	checkpoint_rules_destroy(rules);
	if (!spec->checkpoint_pattern)
		return 0;
	rules = checkpoint_rules_create(NULL, spec->checkpoint_pattern,
					spec->checkpoint_complete_when, &problem);
	if (!rules)
		return refuse(toml, "checkpoint.pattern", &problem, err);
	checkpoint_rules_destroy(rules);
	return 0;
}

static int check_min_nodes(const struct toml *toml, const struct run_spec *spec, struct err *err)
{
	char text[96];

	if (spec->min_nodes > 0 && spec->script)
		return keys_refuse(toml, "restart.min_nodes",
				   "a script asks for a range by itself: --nodes=2-4", err);
	if (spec->min_nodes <= spec->nodes)
		return 0;
	snprintf(text, sizeof(text), "must not be more than slurm.nodes, which is %lld",
		 (long long)spec->nodes);
	return keys_refuse(toml, "restart.min_nodes", text, err);
}

/* What takes a node's place must be able to: ranks that srun starts, counted by node. */
static int check_spare_nodes(const struct toml *toml, const struct run_spec *spec, struct err *err)
{
	const char *why = NULL;

	if (spec->script)
		why = "is not for batch scripts: they choose their nodes themselves";
	else if (spec->nodes < 2)
		why = "needs slurm.nodes of at least 2: the only node has lbrun itself";
	else if (spec->launcher == SPEC_LAUNCHER_NONE)
		why = "needs run.launcher srun or torchrun";
	else if (spec->min_nodes > 0)
		why = "does not go with restart.min_nodes: of fewer nodes none is spare";
	else if (spec->nodelist)
		why = "does not go with slurm.nodelist: the job takes more nodes than are named";
	return spec->spare_nodes > 0 && why ? keys_refuse(toml, "restart.spare_nodes", why, err)
					    : 0;
}

static int check_restart(const struct toml *toml, const struct run_spec *spec, struct err *err)
{
	const char *path = "restart.backoff_max";

	if (spec->backoff_first_ms <= spec->backoff_max_ms)
		return check_spare_nodes(toml, spec, err) < 0 ? -1
							      : check_min_nodes(toml, spec, err);
	if (toml_line(toml, path) == 0)
		path = "restart.backoff_first";
	return keys_refuse(toml, path, "backoff_first must not be longer than backoff_max", err);
}

int run_spec_check(const struct toml *toml, struct run_spec *spec, struct err *err)
{
	if (check_slurm(toml, spec, err) < 0 || check_watch(toml, spec, err) < 0 ||
	    check_output(toml, spec, err) < 0 || check_save_every(toml, spec, err) < 0 ||
	    check_cache(toml, spec, err) < 0 || check_checkpoint(toml, spec, err) < 0 ||
	    check_retention(toml, spec, err) < 0)
		return -1;
	return check_restart(toml, spec, err);
}
