/* SPDX-License-Identifier: MIT */
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
#include "daemon/job/job_env.h"
#include "daemon/job/launch_words.h"
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
		       const char *checkpoints, const char *folder)
{
	add_words(o, "srun", launch_srun(config, run, checkpoints));
	add_words(o, "profiler", launch_profiler(&run->spec, folder));
	add_words(o, "torchrun", launch_torchrun(&run->spec));
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

static json_t *env_view(const struct config *config, const struct run *run, const json_t *fields,
			struct err *err)
{
	struct strv open = { 0 }, secret = { 0 };
	json_t *view = NULL;

	if (job_env_make(&open, config, run, fields, err) == 0 &&
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

/* A script asks in its own words, which have more to say than ours. */
static json_t *resources_view(const struct run_spec *spec, const json_t *fields)
{
	struct job_request job = { 0 };
	json_t *o = spec->script ? json_deep_copy(fields) : json_object();

	if (spec->script)
		return o;
	job_resources(spec, &job);
	js_set_int(o, "nodes", job.nodes);
	js_set_int(o, "ntasks_per_node", job.ntasks_per_node);
	js_set_int(o, "cpus_per_task", job.cpus_per_task ? job.cpus_per_task : JS_NONE);
	js_set_int(o, "gpus_per_node", job.gpus_per_node);
	js_set_int(o, "mem_mb", job.mem_mb ? job.mem_mb : JS_NONE);
	js_set_int(o, "time_minutes", job.time_minutes ? job.time_minutes : JS_NONE);
	js_set_str(o, "partition", job.partition);
	js_set_str(o, "account", job.account);
	js_set_str(o, "qos", job.qos);
	js_set_str(o, "constraint", job.constraint);
	js_set_str(o, "exclude", job.exclude);
	js_set_str(o, "nodelist", job.nodelist);
	js_set_str(o, "reservation", job.reservation);
	js_set_str(o, "licenses", job.licenses);
	js_set_str(o, "comment", job.comment);
	return o;
}

json_t *preview_job(const struct config *config, const struct run *run, const char *scheduler,
		    struct err *err)
{
	json_t *fields = batch_job_fields(config, run, err);
	char *text = fields ? batch_script_text(run, err) : NULL;
	char *folder = job_folder(run), *script = job_script(config, folder, text);
	char *output = path_join("%s/out.log", folder);
	char *checkpoints = job_checkpoint_dir(&run->spec, run->dir);
	json_t *env = fields ? env_view(config, run, fields, err) : NULL, *o = NULL;

	if (env) {
		o = json_object();
		js_set_str(o, "run", run->name);
		js_set_str(o, "scheduler", scheduler);
		js_set_str(o, "script", script);
		js_set_str(o, "workdir", js_str(fields, "work_dir", run->spec.workdir));
		js_set_str(o, "output",
			   run->spec.script ? js_str(fields, "std_out", "slurm-%j.out") : output);
		js_set_str(o, "launcher", launcher_name(&run->spec));
		json_object_set_new(o, "command", command_view(config, run));
		add_launch(o, config, run, checkpoints, folder);
		js_set_str(o, "checkpoints", checkpoints);
		json_object_set_new(o, "totals", batch_totals(fields));
		json_object_set_new(o, "resources", resources_view(&run->spec, fields));
		json_object_set_new(o, "environment", env);
	}
	json_decref(fields);
	free(text);
	free(folder);
	free(script);
	free(output);
	free(checkpoints);
	return o;
}
