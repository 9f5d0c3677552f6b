/* SPDX-License-Identifier: MIT */
#include "daemon/batch_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "common/attempt.h"
#include "common/bytes.h"
#include "common/files.h"
#include "common/json.h"
#include "common/mem.h"
#include "common/paths.h"
#include "slurm/batch.h"

enum { SCRIPT_MAX_BYTES = 4 * 1024 * 1024, MAX_WORDS = 32 };

char *batch_script_path(const struct run *run)
{
	return path_join("%s/slurm_script", run->dir);
}

char *batch_script_text(const struct run *run, struct err *err)
{
	char *path, *text;
	size_t len;

	if (!run->spec.script)
		return NULL;
	path = batch_script_path(run);
	text = file_read(path, SCRIPT_MAX_BYTES, &len, err);
	free(path);
	return text;
}

/* --- options of the spec ------------------------------------------------------------------------------ */

struct words {
	char *items[MAX_WORDS + 1];
	size_t count;
};

static void add_text(struct words *w, const char *name, const char *value)
{
	if (value)
		w->items[w->count++] = xasprintf("--%s=%s", name, value);
}

static void add_number(struct words *w, const char *name, int64_t value)
{
	if (value > 0)
		w->items[w->count++] = xasprintf("--%s=%lld", name, (long long)value);
}

static void words_of_spec(const struct run_spec *spec, struct words *w)
{
	int64_t warn_s = run_spec_warn_ms(spec) / 1000;

	add_text(w, "partition", spec->partition);
	add_text(w, "account", spec->account);
	add_text(w, "qos", spec->qos);
	add_number(w, "nodes", spec->nodes);
	add_number(w, "ntasks-per-node", spec->ntasks_per_node);
	add_number(w, "cpus-per-task", spec->cpus_per_task);
	add_number(w, "gpus-per-node", spec->gpus_per_node);
	add_text(w, "mem", spec->mem);
	add_number(w, "time", (spec->time_ms + 59999) / 60000);
	add_text(w, "constraint", spec->constraint);
	add_text(w, "exclude", spec->exclude);
	add_text(w, "nodelist", spec->nodelist);
	add_text(w, "reservation", spec->reservation);
	add_text(w, "licenses", spec->licenses);
	add_text(w, "comment", spec->comment);
	if (warn_s > 0)
		w->items[w->count++] = xasprintf("--signal=B:USR1@%lld", (long long)warn_s);
}

struct source {			/* a request and what it borrows */
	struct batch_request request;
	struct words settings;
	struct job_env env;
	char *script;
};

static int source_make(struct source *s, const struct config *config, const struct run *run,
		       struct err *err)
{
	*s = (struct source){0};
	s->script = batch_script_text(run, err);
	if (run->spec.script && (!s->script || job_env_submitter(&s->env, run, err) < 0))
		return -1;
	words_of_spec(&run->spec, &s->settings);
	s->request = (struct batch_request){
		.script = s->script, .script_len = s->script ? strlen(s->script) : 0,
		.file = run->spec.script, .account = config->slurm_account,
		.partition = config->slurm_partition, .env = s->env.list,
		.settings = s->settings.items, .extra = run->spec.extra.items,
		.workdir = run->spec.workdir, .now = time(NULL),
	};
	return 0;
}

static void source_fini(struct source *s)
{
	job_env_free(&s->env);
	free(s->script);
	for (size_t i = 0; i < s->settings.count; i++)
		free(s->settings.items[i]);
}

/* An earlier attempt has waited for these. */
static void drop_what_was_waited_for(const struct run *run, json_t *fields)
{
	const char *dependency = js_str(fields, "dependency", "");

	if (attempt_newest_claim(run->dir) <= 0)
		return;
	json_object_del(fields, "begin_time");
	if (strcasecmp(dependency, "singleton") != 0)
		json_object_del(fields, "dependency");
}

static void add_excluded(const struct run *run, json_t *fields)
{
	const char *asked = js_str(fields, "exc_nodes", "");
	char *all;

	if (!run->excluded || !run->excluded[0])
		return;
	all = xasprintf("%s%s%s", asked, asked[0] ? "," : "", run->excluded);
	js_set_str(fields, "exc_nodes", all);
	free(all);
}

json_t *batch_job_fields(const struct config *config, const struct run *run, struct err *err)
{
	json_t *fields = NULL;
	struct source s;

	if (source_make(&s, config, run, err) == 0)
		fields = batch_resolve(&s.request, err);
	source_fini(&s);
	if (fields) {
		drop_what_was_waited_for(run, fields);
		add_excluded(run, fields);
	}
	return fields;
}

char **batch_job_words(const struct config *config, const struct run *run, struct err *err)
{
	char **words = NULL;
	struct source s;

	if (source_make(&s, config, run, err) == 0)
		words = batch_words(&s.request, err);
	source_fini(&s);
	return words;
}

/* --- the script ------------------------------------------------------------------------------------------ */

/* How much of `text` is its first line and the comments and empty lines after it. */
static size_t head_of(const char *text)
{
	const char *at = text;

	while (*at == '#' || *at == '\n')
		at += strcspn(at, "\n") + (at[strcspn(at, "\n")] == '\n');
	return (size_t)(at - text);
}

char *batch_job_wrap(const char *launch, const char *text)
{
	size_t first = strcspn(text, "\n") + (text[strcspn(text, "\n")] == '\n');
	size_t head = head_of(text);

	if (head < first)
		head = first;
	return xasprintf("#!/bin/sh\n%.*s%s%s", (int)(head - first), text + first, launch, text + head);
}

/* --- environment ------------------------------------------------------------------------------------------- */

/* Does the list of --export name this variable alone, "NAME"? */
static bool is_named(const char *list, const char *entry)
{
	size_t len = strcspn(entry, "=");

	while (*list) {
		size_t n = strcspn(list, ",");

		if ((n == len && strncmp(list, entry, n) == 0) || (n == 3 && strncasecmp(list, "ALL", 3) == 0))
			return true;
		list += n + (list[n] == ',');
	}
	return false;
}

static void keep_exported(struct job_env *env, const char *list)
{
	bool none = strcasecmp(list, "NONE") == 0;
	size_t kept = 0;

	for (size_t i = 0; i < env->count; i++) {
		char *entry = env->list[i];

		if (strncmp(entry, "SLURM", 5) == 0 || (!none && is_named(list, entry))) {
			env->list[kept++] = entry;
		} else {
			explicit_bzero(entry, strlen(entry));
			free(entry);
		}
	}
	env->count = kept;
	if (env->list)
		env->list[kept] = NULL;
	for (const char *at = list; !none && *at;) {	/* "NAME=value" */
		size_t n = strcspn(at, ",");

		if (memchr(at, '=', n))
			job_env_take(env, xstrndup(at, n));
		at += n + (at[n] == ',');
	}
	job_env_take(env, xstrdup("SLURM_GET_USER_ENV=1"));
	job_env_take(env, xasprintf("SLURM_EXPORT_ENV=%s", list));
}

/* What sbatch tells the steps of the job by environment, from its options. */
static void add_told(const json_t *fields, struct job_env *env)
{
	static const struct { const char *field, *variable; } told[] = {
		{"name", "SLURM_JOB_NAME"}, {"cpus_per_task", "SLURM_CPUS_PER_TASK"},
		{"num_tasks", "SLURM_NPROCS"}, {"num_tasks", "SLURM_NTASKS"},
		{"ntasks_per_core", "SLURM_NTASKS_PER_CORE"},
		{"ntasks_per_gpu", "SLURM_NTASKS_PER_GPU"},
		{"ntasks_per_tres", "SLURM_NTASKS_PER_TRES"},
		{"ntasks_per_node", "SLURM_NTASKS_PER_NODE"},
		{"ntasks_per_socket", "SLURM_NTASKS_PER_SOCKET"},
		{"plane_size", "SLURM_DIST_PLANESIZE"}, {"threads_per_core", "SLURM_THREADS_PER_CORE"},
		{"distribution", "SLURM_DISTRIBUTION"}, {"dependency", "SLURM_JOB_DEPENDENCY"},
		{"profile", "SLURM_PROFILE"}, {"acctg_freq", "SLURM_ACCTG_FREQ"},
		{"container", "SLURM_CONTAINER"}, {"hint", "SLURM_HINT"},
		{"cpus_per_gpu", "SLURM_CPUS_PER_GPU"}, {"gpus", "SLURM_GPUS"},
		{"gpu_bind", "SLURM_GPU_BIND"}, {"gpu_freq", "SLURM_GPU_FREQ"},
		{"gpus_per_node", "SLURM_GPUS_PER_NODE"}, {"gpus_per_socket", "SLURM_GPUS_PER_SOCKET"},
		{"gpus_per_task", "SLURM_GPUS_PER_TASK"}, {"mem_per_gpu", "SLURM_MEM_PER_GPU"},
	};

	for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
		const json_t *value = json_object_get(fields, told[i].field);
		char *text = json_is_integer(value) ?
				     xasprintf("%lld", (long long)json_integer_value(value)) :
				     js_bytes_take(value);

		if (text)
			job_env_take(env, xasprintf("%s=%s", told[i].variable, text));
		free(text);
	}
}

void batch_job_env(const json_t *fields, struct job_env *env)
{
	const char *export = js_str(fields, "export", NULL);
	const char *mode = js_str(fields, "open_mode", NULL);

	if (export && strcasecmp(export, "ALL") != 0)
		keep_exported(env, export);
	if (js_int(fields, "get_user_env", 0))
		job_env_take(env, xstrdup("SLURM_GET_USER_ENV=1"));
	if (mode)
		job_env_take(env, xasprintf("SLURM_OPEN_MODE=%c", mode[0]));
	add_told(fields, env);
}
