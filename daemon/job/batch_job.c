/* SPDX-License-Identifier: MIT */
/* batch_job.c - from a run's spec and its batch script to the description of its job. */
#include "daemon/job/batch_job.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/run/attempt.h"
#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/strv.h"
#include "common/base/text.h"
#include "daemon/job/job_env.h"
#include "slurm/batch/batch.h"
#include "slurm/batch/directives.h"
#include "slurm/batch/sbatch_values.h"

enum { SCRIPT_MAX_BYTES = 4 * 1024 * 1024 };

char *batch_script_path(const struct run *run)
{
	return path_join("%s/slurm_script", run->dir);
}

static char *script_text(const struct run *run, struct err *err)
{
	char *path, *text;
	size_t len;

	if (run->given)
		return js_bytes_take(json_object_get(run->given, "script"));
	path = batch_script_path(run);
	text = file_read(path, SCRIPT_MAX_BYTES, &len, err);
	free(path);
	return text;
}

/* --- what is asked for ------------------------------------------------------------------------ */

/* "ntasks_per_node" is --ntasks-per-node. */
static char *option_of(const char *key, const json_t *value)
{
	char *option = NULL;

	if (json_integer_value(value) > 0)
		option = xasprintf("--%s=%lld", key, (long long)json_integer_value(value));
	else if (json_is_string(value))
		option = xasprintf("--%s=%s", key, json_string_value(value));
	for (char *at = option; at && *at && *at != '='; at++)
		*at = *at == '_' ? '-' : *at;
	return option;
}

/* Do options of sbatch say how many there are? */
static bool says_tasks(const struct run_spec *spec)
{
	struct directives d = { 0 };
	bool says = false;

	if (spec->extra.count > 0 &&
	    directives_read_words(&d, spec->extra.items, "slurm.extra", NULL) == 0) {
		for (size_t i = 0; i < d.count; i++)
			says |= d.items[i].option->name &&
				strcmp(d.items[i].option->name, "ntasks") == 0;
	}
	directives_clear(&d);
	return says;
}

/* The spec's own settings, as words of sbatch. One task a node is what holds where nothing is said:
 * beside --ntasks=2 on one node it would be a job that can never begin. Of a range of nodes Slurm
 * gives as many as are free. */
static void words_of_spec(const struct run *run, struct strv *words)
{
	const struct run_spec *spec = &run->spec;
	json_t *options = run_spec_options(spec);
	int64_t warn_s = run_spec_warn_ms(spec) / 1000;
	const char *key;
	json_t *value;

	if (run->attempt.asks_fewer && spec->min_nodes > 0)
		json_object_set_new(options, "nodes",
				    json_sprintf("%lld-%lld", (long long)spec->min_nodes,
						 (long long)spec->nodes));
	if (spec->ntasks_per_node == 1 && says_tasks(spec))
		json_object_del(options, "ntasks_per_node");
	if (spec->spare_nodes > 0) {
		js_set_int(options, "nodes", spec->nodes + spec->spare_nodes);
		strv_add(words, xstrdup("--no-kill"));
	}
	json_object_foreach(options, key, value) {
		char *option = option_of(key, value);

		if (option)
			strv_add(words, option);
	}
	json_decref(options);
	if (warn_s > 0) /* the last one: see resolve() */
		strv_add(words, xasprintf("--signal=B:USR1@%lld", (long long)warn_s));
}

static void add_word(struct batch_job *job, const char *option, const char *value)
{
	size_t n = 0;

	while (job->words[n])
		n++;
	job->words = xrealloc(job->words, (n + 2) * sizeof(char *));
	job->words[n] = xasprintf("--%s=%s", option, value);
	job->words[n + 1] = NULL;
}

/* lbd keeps jobs away from nodes that have failed. */
static void exclude_nodes(struct batch_job *job, const char *excluded)
{
	const char *asked = js_str(job->fields, "exc_nodes", "");
	char *all;

	if (!excluded || !excluded[0])
		return;
	all = xasprintf("%s%s%s", asked, asked[0] ? "," : "", excluded);
	js_set_str(job->fields, "exc_nodes", all);
	add_word(job, "exclude", all);
	free(all);
}

/* The site's plugins are sbatch's: a job that libslurm submits has none of what they do. Without
 * Slurm their options are told as those of other clusters are. */
static const char *no_plugins(const struct config *config, bool has_cluster)
{
	if (!has_cluster || config->submit_with == SUBMIT_WITH_SBATCH)
		return NULL;
	return "a plugin's option, which needs submit_with = \"sbatch\" in [slurm] of lbd.toml";
}

static bool is_same(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

/* A limit may be said by an option of sbatch, too, not only by slurm.time. */
static bool is_warned_early(const struct run_spec *spec, const json_t *fields)
{
	int64_t limit_min = js_int(fields, "time_limit", 0);

	return limit_min > 0 && run_spec_warn_ms(spec) > limit_min * 60 * 1000 / 2;
}

static json_t *resolve(struct batch_job *job, const struct config *config, const struct run *run,
		       struct err *err)
{
	bool has_cluster = !run->scheduler || !run->scheduler->ops->unused;
	struct strv settings = { 0 };
	struct batch_request request = {
		.script = job->text,
		.script_len = job->text ? strlen(job->text) : 0,
		.file = run->spec.script,
		.account = has_cluster ? config->slurm_account : NULL,
		.partition = has_cluster ? config->slurm_partition : NULL,
		.env = job->text ? job->submitter.items : NULL,
		.extra = run->spec.extra.items,
		.plugin_options = config->plugin_options.items,
		.no_plugins = no_plugins(config, has_cluster),
		.workdir = run->spec.workdir,
		.now = run->asked_ms ? run->asked_ms / 1000 : time(NULL),
		.has_waited = attempt_newest_claim(run->dir) > 0,
	};
	const char *theirs = strv_get(job->submitter.items, "TZ");
	char *own = getenv("TZ") ? xstrdup(getenv("TZ")) : NULL;
	/* --begin=18:00 is meant where they are */
	bool is_elsewhere = job->submitter.count > 0 && !is_same(own, theirs);
	json_t *fields;

	words_of_spec(run, &settings);
	request.settings = settings.items;
	if (is_elsewhere)
		clock_set_zone(theirs);
	fields = batch_resolve(&request, &job->words, err);
	if (fields && is_warned_early(&run->spec, fields)) {
		json_decref(fields);
		strv_free(job->words);
		free(settings.items[--settings.count]);
		settings.items[settings.count] = NULL;
		fields = batch_resolve(&request, &job->words, err);
	}
	if (is_elsewhere)
		clock_set_zone(own);
	free(own);
	strv_free(settings.items);
	return fields;
}

int batch_job_read(struct batch_job *job, const struct config *config, const struct run *run,
		   struct err *err)
{
	*job = (struct batch_job){ 0 };
	if (run->spec.script && !(job->text = script_text(run, err)))
		return -1;
	if (job_env_submitter(&job->submitter, run, err) < 0)
		return -1;
	job->fields = resolve(job, config, run, err);
	if (job->fields == NULL)
		return -1;
	exclude_nodes(job, run->excluded);
	return 0;
}

int64_t batch_job_gpus(const struct config *config, const struct run *run)
{
	struct batch_job job;
	struct err quiet = { 0 };
	int64_t gpus = 0;

	if (batch_job_read(&job, config, run, &quiet) == 0) {
		json_t *totals = batch_totals(job.fields);

		gpus = js_int(totals, "gpus", 0);
		json_decref(totals);
	}
	batch_job_clear(&job);
	return gpus;
}

void batch_job_clear(struct batch_job *job)
{
	free(job->text);
	strv_free(job->submitter.items);
	strv_free(job->words);
	json_decref(job->fields);
	*job = (struct batch_job){ 0 };
}

/* Scripts that nobody submitted by hand (cron) have no folder of a person to write slurm-N.out
 * to. */
static bool has_submitter(const struct batch_job *job)
{
	return job->submitter.count > 0 && !job_env_is_cron(job->submitter.items);
}

/* out.log → out-%a.log: the tasks of an array must not write into one file. */
static char *for_slurm(const char *output, bool of_each_task)
{
	char *plain = text_percents(output), *dot = strrchr(plain, '.'), *path;

	if (!of_each_task)
		return plain;
	path = xasprintf("%.*s-%%a%s", (int)(dot - plain), plain, dot);
	free(plain);
	return path;
}

/* It takes them out, and the newest releases know no way to say that one is meant. */
static int refuse_backslash(const struct run *run, const char *output, struct err *err)
{
	if (run->scheduler->ops->unused || !strchr(output, '\\'))
		return 0;
	return err_set(err, ERR_USAGE,
		       "%s: Slurm can write no output below a name with a backslash", run->dir);
}

int batch_job_set_output(struct batch_job *job, const struct run *run, const char *output,
			 struct err *err)
{
	bool is_theirs = run->spec.script && has_submitter(job);
	char *path;

	/* what an attempt before wrote to the same file says why there is another */
	if (is_theirs &&
	    (attempt_newest_claim(run->dir) <= 0 || json_object_get(job->fields, "open_mode")))
		return 0;
	js_set_str(job->fields, "open_mode", "append");
	add_word(job, "open-mode", "append");
	if (is_theirs || json_object_get(job->fields, "std_out"))
		return 0;
	if (refuse_backslash(run, output, err) < 0)
		return -1;
	path = for_slurm(output, json_object_get(job->fields, "array_inx") != NULL);
	json_object_set_new(job->fields, "std_out", js_bytes(path));
	add_word(job, "output", path);
	free(path);
	return 0;
}

bool batch_job_may_be_doomed(const struct config *config, const struct run *run)
{
	static const char *const kinds[] = { "afterok", "afternotok", "aftercorr" };
	struct err err = { 0 };
	struct batch_job job;
	const char *dependency = "";
	bool may_be = false;

	if (batch_job_read(&job, config, run, &err) == 0)
		dependency = js_str(job.fields, "dependency", "");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		may_be |= strcasestr(dependency, kinds[i]) != NULL;
	batch_job_clear(&job);
	return may_be;
}

void batch_job_bounds(const struct config *config, const struct run *run, char **reservations,
		      int64_t *limit_ms)
{
	struct err quiet = { 0 };
	struct batch_job job;

	*reservations = NULL;
	*limit_ms = 0;
	if (batch_job_read(&job, config, run, &quiet) == 0) {
		*reservations = js_bytes_take(json_object_get(job.fields, "reservation"));
		*limit_ms = js_int(job.fields, "time_limit", 0) * 60 * 1000;
	}
	batch_job_clear(&job);
}

int64_t *batch_job_tasks(const struct config *config, const struct run *run, size_t *count)
{
	struct sbatch_indices tasks = { 0 };
	struct err quiet = { 0 };
	struct batch_job job;
	const char *array = NULL;

	if (batch_job_read(&job, config, run, &quiet) == 0)
		array = js_str(job.fields, "array_inx", NULL);
	if (array)
		sbatch_array(array, SBATCH_ARRAY_MAX, &tasks, NULL);
	batch_job_clear(&job);
	*count = tasks.count;
	return tasks.items;
}

/* --- the script ------------------------------------------------------------------------------- */

/* How much of `text` is its first line and the comments and empty lines after it. */
static size_t head_of(const char *text)
{
	const char *at = text;

	while (*at == '#' || *at == '\n')
		at += strcspn(at, "\n") + (at[strcspn(at, "\n")] == '\n');
	return (size_t)(at - text);
}

/* Lines of text[0..len) as they are, but that those of options get a mark in front. */
static char *hide_options(const char *text, size_t len)
{
	struct buf out;

	buf_init(&out, 2 * SCRIPT_MAX_BYTES);
	while (len > 0) {
		const char *newline = memchr(text, '\n', len);
		size_t n = newline ? (size_t)(newline - text) + 1 : len;

		if (strncmp(text, "#SBATCH", 7) == 0 || strncmp(text, "#SLURM", 6) == 0)
			buf_addf(&out, "%s", "#lbd");
		buf_add(&out, text, n);
		text += n;
		len -= n;
	}
	buf_add(&out, "", 0);
	return buf_take(&out);
}

char *batch_job_wrap(const char *first_lines, const char *text, bool is_read)
{
	size_t first = strcspn(text, "\n") + (text[strcspn(text, "\n")] == '\n');
	size_t head = head_of(text);
	char *comments, *script;

	if (head < first)
		head = first;
	comments = is_read ? hide_options(text + first, head - first)
			   : xstrndup(text + first, head - first);
	script = xasprintf("%s%s%s", first_lines, comments, text + head);
	free(comments);
	return script;
}
