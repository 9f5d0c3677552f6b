/* SPDX-License-Identifier: MIT */
/* batch.c - from options to the job that sbatch would have made of them. */
#include "slurm/batch/batch.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/bytes.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "slurm/batch/batch_sums.h"
#include "slurm/batch/directives.h"

static int gather(const struct batch_request *r, struct directives *d, struct err *err)
{
	if (r->script && directives_read_script(d, r->script, r->script_len, r->file, err) < 0)
		return -1;
	if (directives_read_env(d, r->env, err) < 0)
		return -1;
	if (r->settings && directives_read_words(d, r->settings, "[slurm]", err) < 0)
		return -1;
	if (r->extra && directives_read_words(d, r->extra, "slurm.extra", err) < 0)
		return -1;
	return 0;
}

static const char *shown_name(const struct directive *at)
{
	return at->option->name ? at->option->name : at->option->variable;
}

static int apply(const struct directives *d, struct sbatch_choice *choice, struct err *err)
{
	for (size_t i = 0; i < d->count; i++) {
		const struct directive *at = &d->items[i];
		struct err why = { 0 };

		if (at->option->set(choice, at->option, at->value, &why) < 0)
			return err_set(err, ERR_USAGE, "%s: --%s: %s", at->place, shown_name(at),
				       why.text);
	}
	return 0;
}

/* --- which of several ways to ask for memory counts ------------------------------------------- */

/* The origin of the last directive that set `field`, -1 = none. */
static int origin_of(const struct directives *d, const char *field)
{
	int origin = -1;

	for (size_t i = 0; i < d->count; i++) {
		const char *sets = d->items[i].option->field;

		if (sets && strcmp(sets, field) == 0)
			origin = (int)d->items[i].origin;
	}
	return origin;
}

/* By an option, not by a variable of the environment. */
static bool is_chosen(const struct directives *d, const char *field)
{
	int origin = origin_of(d, field);

	return origin >= 0 && origin != DIRECTIVE_ENVIRONMENT;
}

static int choose_memory(const struct directives *d, json_t *fields, struct err *err)
{
	static const char *const ways[] = { "mem_per_node", "mem_per_cpu", "mem_per_gpu" };
	const char *chosen = NULL;
	int by_option = 0, by_variable = 0;

	for (int i = 0; i < 3; i++) {
		int origin = origin_of(d, ways[i]);

		by_variable += origin == DIRECTIVE_ENVIRONMENT;
		if (origin < 0 || origin == DIRECTIVE_ENVIRONMENT)
			continue;
		by_option++;
		chosen = ways[i];
	}
	if (by_option > 1 || (by_option == 0 && by_variable > 1))
		return err_set(err, ERR_USAGE,
			       "--mem, --mem-per-cpu and --mem-per-gpu exclude each "
			       "other: give one of them");
	for (int i = 0; chosen && i < 3; i++) {
		if (ways[i] != chosen)
			json_object_del(fields, ways[i]);
	}
	return 0;
}

static int check_pairs(const struct directives *d, struct err *err)
{
	static const char *const with_gpu_tasks[] = { "gpus_per_task", "gpus_per_socket",
						      "ntasks_per_node" };

	if (is_chosen(d, "cpus_per_gpu") && is_chosen(d, "cpus_per_task"))
		return err_set(err, ERR_USAGE, "--cpus-per-gpu excludes --cpus-per-task");
	if (origin_of(d, "ntasks_per_gpu") < 0 && origin_of(d, "ntasks_per_tres") < 0)
		return 0;
	for (int i = 0; i < 3; i++) {
		if (origin_of(d, with_gpu_tasks[i]) >= 0)
			return err_set(err, ERR_USAGE,
				       "--ntasks-per-gpu excludes --gpus-per-task, "
				       "--gpus-per-socket and --ntasks-per-node");
	}
	return 0;
}

static void full_path(json_t *fields, const char *field, const char *folder)
{
	char *path = js_bytes_take(json_object_get(fields, field)), *full;

	if (path && path[0] && path[0] != '/') {
		full = path_join("%s/%s", folder, path);
		json_object_set_new(fields, field, js_bytes(full));
		free(full);
	}
	free(path);
}

static void name_paths(const struct batch_request *r, json_t *fields)
{
	static const char *const files[] = { "std_in", "std_out", "std_err" };
	char *folder;

	if (!json_object_get(fields, "work_dir"))
		json_object_set_new(fields, "work_dir", js_bytes(r->workdir));
	folder = js_bytes_take(json_object_get(fields, "work_dir"));
	for (int i = 0; i < 3; i++)
		full_path(fields, files[i], folder);
	free(folder);
	if (r->file && !json_object_get(fields, "name"))
		json_object_set_new(fields, "name", js_bytes(path_base(r->file)));
}

static int complete(const struct batch_request *r, const struct directives *d, json_t *fields,
		    struct err *err)
{
	int64_t begin = js_int(fields, "begin_time", 0), deadline = js_int(fields, "deadline", 0);

	if (choose_memory(d, fields, err) < 0 || check_pairs(d, err) < 0 ||
	    batch_sums(fields, err) < 0)
		return -1;
	name_paths(r, fields);
	if (begin && deadline && deadline < begin)
		return err_set(err, ERR_USAGE, "--deadline: is before --begin");
	return 0;
}

/* --- as words --------------------------------------------------------------------------------- */

static bool is_among(const char *word, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(list[i], word) == 0)
			return true;
	}
	return false;
}

/* The last ones are about sbatch's own behaviour: it is not to wait, or to talk. */
static bool is_left_out(const struct sbatch_option *option, const json_t *fields)
{
	static const char *const ours[] = { "job-name", "comment",    "hold",
					    "requeue",  "no-requeue", "wait",
					    "parsable", "quiet",      "verbose" };
	static const char *const may_be_gone[] = { "begin_time", "dependency", "mem_per_node",
						   "mem_per_cpu", "mem_per_gpu" };

	if (!option->name) /* by its variable alone, which sbatch reads itself */
		return true;
	if (is_among(option->name, ours, sizeof(ours) / sizeof(ours[0])))
		return true;
	return option->field && !json_object_get(fields, option->field) &&
	       is_among(option->field, may_be_gone, sizeof(may_be_gone) / sizeof(may_be_gone[0]));
}

/* A moment is one: "now+1hour" is another when sbatch reads it. */
static char *word_of(const struct directive *at, const json_t *fields)
{
	static const char *const moments[] = { "begin_time", "deadline" };
	const char *name = at->option->name, *field = at->option->field;

	if (field && is_among(field, moments, sizeof(moments) / sizeof(moments[0])))
		return xasprintf("--%s=uts%" PRId64, name, js_int(fields, field, 0));
	return at->value ? xasprintf("--%s=%s", name, at->value) : xasprintf("--%s", name);
}

static char **words_of(const struct batch_request *r, const struct directives *d,
		       const json_t *fields)
{
	char **words = xcalloc(d->count + d->passed.count + 3, sizeof(char *));
	size_t n = 0;

	if (r->account)
		words[n++] = xasprintf("--account=%s", r->account);
	if (r->partition)
		words[n++] = xasprintf("--partition=%s", r->partition);
	for (size_t i = 0; i < d->count; i++) {
		const struct directive *at = &d->items[i];

		if (is_left_out(at->option, fields))
			continue;
		words[n++] = word_of(at, fields);
	}
	for (size_t i = 0; i < d->passed.count; i++)
		words[n++] = xstrdup(d->passed.items[i]);
	return words;
}

/* --- all of it -------------------------------------------------------------------------------- */

static void drop_what_was_waited_for(json_t *fields)
{
	json_object_del(fields, "begin_time");
	if (strcasecmp(js_str(fields, "dependency", ""), "singleton") != 0)
		json_object_del(fields, "dependency");
}

json_t *batch_resolve(const struct batch_request *r, char ***words, struct err *err)
{
	struct sbatch_choice choice = { .fields = json_object(),
					.workdir = r->workdir,
					.now = r->now };
	struct directives d = { .plugin_options = r->plugin_options, .no_plugins = r->no_plugins };
	int rc;

	if (r->account)
		json_object_set_new(choice.fields, "account", js_bytes(r->account));
	if (r->partition)
		json_object_set_new(choice.fields, "partition", js_bytes(r->partition));
	rc = gather(r, &d, err);
	if (rc == 0)
		rc = apply(&d, &choice, err);
	if (rc == 0)
		rc = complete(r, &d, choice.fields, err);
	if (rc == 0 && r->has_waited)
		drop_what_was_waited_for(choice.fields);
	if (rc == 0 && d.passed.count > 0)
		json_object_set_new(choice.fields, "plugin_options", js_words(d.passed.items));
	if (rc == 0 && words)
		*words = words_of(r, &d, choice.fields);
	directives_clear(&d);
	if (rc == 0)
		return choice.fields;
	json_decref(choice.fields);
	return NULL;
}
