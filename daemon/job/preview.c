/* SPDX-License-Identifier: MIT */
/* preview.c - the job of a run as lbctl submit --dry-run shows it. */
#include "daemon/job/preview.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/bytes.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/strv.h"
#include "daemon/job/batch_job.h"
#include "daemon/job/job.h"
#include "daemon/job/job_params.h"
#include "daemon/job/job_env.h"
#include "daemon/job/launch_args.h"
#include "slurm/batch/batch.h"

static json_t *command_view(const struct config *config, const struct run *run)
{
	char **argv = job_command(config, run);
	json_t *list = json_array();

	for (char **arg = argv; *arg; arg++) {
		json_array_append_new(list, js_bytes(*arg));
		free(*arg);
	}
	free(argv);
	return list;
}

static const char *launcher_name(const struct run_spec *spec)
{
	return spec->launcher == SPEC_LAUNCHER_TORCHRUN ? "torchrun" : launch_by(spec);
}

/* Takes `words`; nothing where there are none. */
static void add_words(json_t *o, const char *key, char **words)
{
	json_t *list = words ? json_array() : NULL;

	for (char **word = words; word && *word; word++)
		json_array_append_new(list, js_bytes(*word));
	if (list)
		json_object_set_new(o, key, list);
	strv_free(words);
}

/* What is put in front of the command. */
static void add_launch(json_t *o, const struct config *config, const struct run *run,
		       const json_t *fields, const char *checkpoints, const char *folder)
{
	add_words(o, "srun", launch_srun(config, run, checkpoints));
	add_words(o, "profiler", launch_profiler(&run->spec, folder));
	add_words(o, "torchrun", launch_torchrun(&run->spec, fields));
}

/* Names and values; the values only where they are no secrets. */
static void add_names(json_t *view, char *const *list, bool with_values)
{
	for (; list && *list; list++) {
		size_t len = strcspn(*list, "=");
		char *name = xstrndup(*list, len), *key = js_bytes_key(name);

		json_object_set_new(view, key,
				    with_values ? js_bytes(*list + len + 1) : json_null());
		free(key);
		free(name);
	}
}

static json_t *env_view(const struct config *config, const struct run *run,
			const struct batch_job *job, struct err *err)
{
	struct strv open = { 0 }, secret = { 0 };
	json_t *view = NULL;

	if (job_env_make(&open, config, run, job, err) == 0 &&
	    job_env_add_secrets(&secret, run, err) == 0) {
		view = json_object();
		/* a script's is the submitter's whole environment: who knows what is in there */
		add_names(view, open.items, run->spec.script == NULL);
		add_names(view, secret.items, false);
	}
	strv_free(open.items);
	strv_free(secret.items);
	return view;
}

/* What an option of sbatch asks for, "--gpus-per-node=2", in the place of what the spec's key of
 * that name says. */
static void show_word(json_t *o, const char *word)
{
	char *key = xstrndup(word + 2, strcspn(word + 2, "="));
	const char *value = strchr(word, '=');
	const json_t *own;

	for (char *c = key; *c; c++)
		*c = *c == '-' ? '_' : *c;
	own = json_object_get(o, key);
	if (value && own) {
		if (json_is_integer(own) && strspn(value + 1, "0123456789") == strlen(value + 1))
			js_set_int(o, key, strtoll(value + 1, NULL, 10));
		else
			json_object_set_new(o, key, js_bytes(value + 1));
	}
	free(key);
}

/* A script asks in its own words, which have more to say than ours. */
static json_t *resources_view(const struct run_spec *spec, const struct batch_job *job)
{
	const json_t *fields = job->fields;
	json_t *o;

	if (spec->script)
		return json_deep_copy(fields);
	o = run_spec_options(spec);
	for (char **word = job->words; word && *word; word++)
		show_word(o, *word);
	if (js_int(o, "cpus_per_task", 1) == 0)
		js_set_int(o, "cpus_per_task", JS_NONE);
	json_object_del(o, "mem");
	json_object_del(o, "time");
	js_set_int(o, "mem_mb", js_int(fields, "mem_per_node", JS_NONE));
	js_set_int(o, "time_minutes", js_int(fields, "time_limit", JS_NONE));
	return o;
}

/* To where its script says; else it is kept with the run. */
static bool is_written_by_slurm(const struct run *run)
{
	return run->spec.script && !(run->scheduler && run->scheduler->ops->unused);
}

json_t *preview_job(const struct config *config, const struct run *run, const char *scheduler,
		    struct err *err)
{
	char *folder = job_folder(run), *output = path_join("%s/out.log", folder), *script = NULL;
	char *checkpoints = job_checkpoint_dir(&run->spec, run->dir);
	struct batch_job job;
	json_t *env = NULL, *o = NULL;

	if (batch_job_read(&job, config, run, err) == 0)
		env = env_view(config, run, &job, err);
	if (env) {
		o = json_object();
		script = job_script(config, run->scheduler, folder, job.text);
		js_set_str(o, "run", run->name);
		js_set_str(o, "scheduler", scheduler);
		json_object_set_new(o, "script", js_bytes(script));
		js_set_str(o, "workdir", js_str(job.fields, "work_dir", run->spec.workdir));
		js_set_str(o, "output",
			   is_written_by_slurm(run) ? js_str(job.fields, "std_out", "slurm-%j.out")
						    : output);
		js_set_str(o, "launcher", launcher_name(&run->spec));
		json_object_set_new(o, "command", command_view(config, run));
		add_launch(o, config, run, job.fields, checkpoints, folder);
		js_set_str(o, "checkpoints", checkpoints);
		json_object_set_new(o, "totals", batch_totals(job.fields));
		json_object_set_new(o, "resources", resources_view(&run->spec, &job));
		json_object_set_new(o, "environment", env);
	}
	batch_job_clear(&job);
	free(folder);
	free(script);
	free(output);
	free(checkpoints);
	return o;
}
