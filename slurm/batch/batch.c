/* SPDX-License-Identifier: MIT */
/* batch.c - from options to the job that sbatch would have made of them.
 *
 * The sums are sbatch's: what is left open follows from the rest in an order that matters. */
#include "slurm/batch/batch.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/bytes.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/run/hosts.h"
#include "slurm/batch/directives.h"
#include "slurm/batch/sbatch_values.h"

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

/* --- sums ------------------------------------------------------------------------------------- */

struct sums {
	json_t *fields;
	bool nodes_set, tasks_set;
	int64_t min_nodes, max_nodes, tasks;
};

static int64_t number(const struct sums *s, const char *field, int64_t fallback)
{
	return js_int(s->fields, field, fallback);
}

/* Slurm's counts have 32 bits: what no cluster has stops at the largest. */
static int64_t as_count(int64_t n)
{
	return n < 0 ? 0 : n > UINT32_MAX ? UINT32_MAX : n;
}

static int64_t times(int64_t a, int64_t b)
{
	int64_t product;

	return __builtin_mul_overflow(a, b, &product) ? UINT32_MAX : as_count(product);
}

static int count_nodes(struct sums *s, struct err *err)
{
	const char *list = js_str(s->fields, "req_nodes", NULL);
	int64_t named = 0;

	s->nodes_set = json_object_get(s->fields, "min_nodes") != NULL;
	s->min_nodes = number(s, "min_nodes", 1);
	s->max_nodes = number(s, "max_nodes", 0);
	if (list) {
		if (sbatch_node_count(list, &named, err) < 0)
			return -1;
		s->min_nodes = s->nodes_set && s->min_nodes > named ? s->min_nodes : named;
		s->nodes_set = true;
	}
	if (s->max_nodes && s->min_nodes > s->max_nodes)
		return err_set(err, ERR_USAGE,
			       "--nodelist: names %lld nodes, but --nodes allows %lld",
			       (long long)named, (long long)s->max_nodes);
	return 0;
}

/* One task a node, or a socket, core, thread where these were counted. */
static void implied_tasks(struct sums *s)
{
	static const char *const levels[] = { "sockets_per_node", "cores_per_socket",
					      "threads_per_core" };

	s->tasks = s->min_nodes > 1 ? s->min_nodes : 1;
	for (int i = 0; i < 3; i++) {
		if (json_object_get(s->fields, levels[i])) {
			s->tasks = times(s->tasks, number(s, levels[i], 1));
			s->tasks_set = true;
		}
	}
}

static int by_number(const void *a, const void *b)
{
	const json_t *const *x = a, *const *y = b;

	return strverscmp(json_string_value(*x), json_string_value(*y));
}

/* Of the nodes that were named the first `count`, as sbatch sorts them: no more tasks are there to run on
 * them. */
static void keep_first_nodes(struct sums *s, size_t count)
{
	json_t *names = hosts_expand(js_str(s->fields, "req_nodes", "")), *kept = json_array();
	size_t all = json_array_size(names);
	json_t **sorted = xcalloc(all + 1, sizeof(json_t *));
	char *list;

	for (size_t i = 0; i < all; i++)
		sorted[i] = json_array_get(names, i);
	qsort(sorted, all, sizeof(json_t *), by_number);
	for (size_t i = 0; i < all && json_array_size(kept) < count; i++)
		if (i == 0 || by_number(&sorted[i - 1], &sorted[i]) != 0)
			json_array_append(kept, sorted[i]);
	list = hosts_fold(kept, SIZE_MAX);
	if (all > 0)
		js_set_str(s->fields, "req_nodes", list);
	free(list);
	free(sorted);
	json_decref(kept);
	json_decref(names);
}

static void count_tasks(struct sums *s)
{
	int64_t per_node = number(s, "ntasks_per_node", 0);
	bool is_exact = s->max_nodes == 0 || s->min_nodes == s->max_nodes;

	s->tasks_set = json_object_get(s->fields, "ntasks") != NULL;
	s->tasks = number(s, "ntasks", 1);
	if (per_node > 0 && !s->tasks_set && is_exact) {
		s->tasks = times(s->min_nodes, per_node);
		s->tasks_set = true;
	}
	if ((s->nodes_set || json_object_get(s->fields, "extra_set")) && is_exact &&
	    !s->tasks_set) {
		implied_tasks(s);
	} else if (s->nodes_set && s->tasks_set) {
		if (s->tasks < s->max_nodes)
			s->max_nodes = s->tasks;
		if (s->tasks < s->min_nodes) {
			s->min_nodes = s->max_nodes = s->tasks;
			keep_first_nodes(s, (size_t)s->tasks);
		}
	}
}

/* In planes of so many tasks each node must get one. */
static int check_planes(const struct sums *s, struct err *err)
{
	int64_t plane = number(s, "plane_size", 0);

	if (plane <= 0 || !s->nodes_set || s->tasks / plane >= s->min_nodes ||
	    s->tasks > times(s->min_nodes - 1, plane))
		return 0;
	return err_set(err, ERR_USAGE,
		       "--distribution=plane=%lld: %lld tasks are too few for %lld nodes",
		       (long long)plane, (long long)s->tasks, (long long)s->min_nodes);
}

/* Slurm would count tasks by the fewest nodes then; sbatch refuses. */
static int check_gpu_tasks(const struct sums *s, struct err *err)
{
	if (!js_str(s->fields, "gpus_per_task", NULL) || js_str(s->fields, "gpus", NULL) ||
	    s->tasks_set || number(s, "ntasks_per_node", 0) == 0)
		return 0;
	return err_set(err, ERR_USAGE,
		       "--gpus-per-task: needs --ntasks or --gpus where --nodes is a range");
}

/* "a100:4,2" → 6. */
static int64_t sum_counts(const char *list)
{
	int64_t sum = 0;

	while (list && *list) {
		size_t len = strcspn(list, ",");
		char *item = xstrndup(list, len), *colon = strrchr(item, ':');

		sum = as_count(sum + as_count(strtoll(colon ? colon + 1 : item, NULL, 10)));
		free(item);
		list += len + (list[len] == ',');
	}
	return sum;
}

/* "gpu:a100:4,tmp:1,gpu" → 5; with or without "gres:" or "gres/" in front. */
static int64_t gpus_of_gres(const char *list)
{
	int64_t sum = 0;

	while (list && *list) {
		size_t len = strcspn(list, ",");
		char *item = xstrndup(list, len);
		bool has_prefix = strncmp(item, "gres:", 5) == 0 || strncmp(item, "gres/", 5) == 0;
		const char *name = item + (has_prefix ? 5 : 0), *last = strrchr(name, ':');

		if (strncmp(name, "gpu", 3) == 0 && (name[3] == ':' || name[3] == '\0'))
			sum = as_count(sum + (last && last[1] >= '0' && last[1] <= '9'
						      ? as_count(strtoll(last + 1, NULL, 10))
						      : 1));
		free(item);
		list += len + (list[len] == ',');
	}
	return sum;
}

/* Where GPUs are counted in all and by node the nodes follow; what does not come out even Slurm
 * refuses. */
static void nodes_of_gpus(struct sums *s, int64_t gpus, int64_t per_node)
{
	int64_t nodes = per_node > 0 && gpus % per_node == 0 ? gpus / per_node : 0;

	if (nodes == 0 || (s->nodes_set && nodes < s->min_nodes) ||
	    (s->max_nodes && nodes > s->max_nodes))
		return;
	s->nodes_set = true;
	s->min_nodes = s->max_nodes = nodes;
}

/* Counted in all and by task, they say how many tasks there are, and CPUs of a GPU how many a task
 * has. */
static void each_gpu_its_task(struct sums *s, int64_t gpus)
{
	int64_t per_task = sum_counts(js_str(s->fields, "gpus_per_task", NULL));
	int64_t cpus = times(per_task, number(s, "cpus_per_gpu", 0));

	if (!js_str(s->fields, "gpus", NULL) || per_task == 0 || gpus % per_task != 0)
		return;
	js_set_int(s->fields, "implied_tasks", gpus / per_task);
	if (cpus > 0)
		js_set_int(s->fields, "implied_cpus_per_task", cpus);
}

/* So many tasks for each GPU, whatever else was said of tasks. The CPUs have been counted
 * before. */
static void tasks_of_gpus(struct sums *s)
{
	int64_t each = number(s, "ntasks_per_gpu", number(s, "ntasks_per_tres", 0));
	int64_t gpus = sum_counts(js_str(s->fields, "gpus", NULL));
	int64_t per_node = gpus_of_gres(js_str(s->fields, "gres", NULL));

	if (per_node == 0)
		per_node = sum_counts(js_str(s->fields, "gpus_per_node", NULL));
	if (per_node == 0 && s->nodes_set && !s->tasks_set)
		per_node = gpus == 0 && s->min_nodes == s->max_nodes; /* one GPU a node is meant */
	if (gpus > 0)
		nodes_of_gpus(s, gpus, per_node);
	else
		gpus = times(s->min_nodes, per_node);
	if (each == 0 && !s->tasks_set)
		each_gpu_its_task(s, gpus);
	if (each == 0 || gpus == 0)
		return;
	s->tasks = times(each, gpus);
	if (!s->tasks_set)
		js_set_int(s->fields, "implied_tasks", s->tasks);
}

static void count_cpus(struct sums *s)
{
	int64_t per_task = number(s, "cpus_per_task", 0);

	if (per_task > number(s, "pn_min_cpus", -1))
		js_set_int(s->fields, "pn_min_cpus", per_task);
	if (number(s, "overcommit", 0))
		js_set_int(s->fields, "min_cpus", s->min_nodes > 1 ? s->min_nodes : 1);
	else if (per_task)
		js_set_int(s->fields, "min_cpus", times(s->tasks, per_task));
	else if (s->nodes_set && s->min_nodes == 0)
		js_set_int(s->fields, "min_cpus", 0);
	else
		js_set_int(s->fields, "min_cpus", s->tasks);
}

static void write_sums(struct sums *s)
{
	json_object_del(s->fields, "min_nodes");
	json_object_del(s->fields, "max_nodes");
	json_object_del(s->fields, "ntasks");
	json_object_del(s->fields, "extra_set");
	if (s->nodes_set) {
		js_set_int(s->fields, "min_nodes", s->min_nodes);
		if (s->max_nodes)
			js_set_int(s->fields, "max_nodes", s->max_nodes);
	}
	if (s->tasks_set)
		js_set_int(s->fields, "num_tasks", s->tasks);
}

/* A hint stands for counts of its own, unless those of threads are given. */
static void apply_hint(json_t *fields)
{
	const char *hint = js_str(fields, "hint", NULL);

	if (!hint || json_object_get(fields, "ntasks_per_core") ||
	    json_object_get(fields, "extra_set") || json_object_get(fields, "threads_per_core"))
		return;
	json_object_del(fields, "sockets_per_node");
	json_object_del(fields, "cores_per_socket");
	if (strcmp(hint, "multithread") == 0)
		js_set_int(fields, "ntasks_per_core_infinite", 1);
	else
		js_set_int(fields, "threads_per_core", 1);
	if (strcmp(hint, "memory_bound") == 0)
		js_set_int(fields, "cores_per_socket", 1);
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
	if (r->file && !json_object_get(fields, "name")) {

		json_object_set_new(fields, "name", js_bytes(path_base(r->file)));
	}
}

static int sum_up(const struct batch_request *r, const struct directives *d, json_t *fields,
		  struct err *err)
{
	struct sums s = { .fields = fields };
	int64_t begin = js_int(fields, "begin_time", 0), deadline = js_int(fields, "deadline", 0);

	if (choose_memory(d, fields, err) < 0 || check_pairs(d, err) < 0)
		return -1;
	apply_hint(fields);
	if (count_nodes(&s, err) < 0)
		return -1;
	count_tasks(&s);
	if (check_planes(&s, err) < 0 || check_gpu_tasks(&s, err) < 0)
		return -1;
	count_cpus(&s);
	tasks_of_gpus(&s);
	write_sums(&s);
	name_paths(r, fields);
	if (begin && deadline && deadline < begin)
		return err_set(err, ERR_USAGE, "--deadline: is before --begin");
	return 0;
}

/* --- what the job has then -------------------------------------------------------------------- */

static int64_t most(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t total_gpus(const json_t *fields, int64_t nodes, int64_t tasks)
{
	int64_t gpus = sum_counts(js_str(fields, "gpus", NULL));
	int64_t per_node = sum_counts(js_str(fields, "gpus_per_node", NULL));
	int64_t per_task = sum_counts(js_str(fields, "gpus_per_task", NULL));
	int64_t per_socket = sum_counts(js_str(fields, "gpus_per_socket", NULL));

	if (gpus > 0)
		return gpus;
	if (per_node + per_task + per_socket == 0)
		per_node = gpus_of_gres(js_str(fields, "gres", NULL));
	return most(most(times(per_node, nodes), times(per_task, tasks)),
		    times(times(per_socket, js_int(fields, "sockets_per_node", 1)), nodes));
}

static int64_t total_mb(const json_t *fields, int64_t nodes, int64_t cpus, int64_t gpus)
{
	int64_t per_node = js_int(fields, "mem_per_node", -1),
		per_cpu = js_int(fields, "mem_per_cpu", -1);
	int64_t per_gpu = js_int(fields, "mem_per_gpu", -1);

	if (per_node >= 0)
		return times(per_node, nodes);
	return per_cpu >= 0 ? times(per_cpu, cpus) : per_gpu >= 0 ? times(per_gpu, gpus) : -1;
}

json_t *batch_totals(const json_t *fields)
{
	int64_t nodes = most(js_int(fields, "min_nodes", 1), 1);
	int64_t tasks = js_int(fields, "num_tasks", js_int(fields, "implied_tasks", nodes));
	int64_t per_task = most(js_int(fields, "cpus_per_task", 1), 1);
	bool shares = js_int(fields, "overcommit", 0) != 0;
	int64_t cpus = most(js_int(fields, "min_cpus", 1), shares ? nodes : times(tasks, per_task));
	int64_t gpus = total_gpus(fields, nodes, tasks), mb;
	json_t *o = json_object();

	cpus = most(cpus, times(most(js_int(fields, "pn_min_cpus", 0), 0), nodes));
	cpus = most(cpus, times(js_int(fields, "cpus_per_gpu", 0), gpus));
	mb = total_mb(fields, nodes, cpus, gpus);
	js_set_int(o, "nodes", nodes);
	js_set_int(o, "tasks", tasks);
	js_set_int(o, "cpus", cpus);
	js_set_int(o, "mem_mb", mb > 0 ? mb : JS_NONE);
	js_set_int(o, "gpus", gpus);
	return o;
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

static char **words_of(const struct batch_request *r, const struct directives *d,
		       const json_t *fields)
{
	char **words = xcalloc(d->count + 3, sizeof(char *));
	size_t n = 0;

	if (r->account)
		words[n++] = xasprintf("--account=%s", r->account);
	if (r->partition)
		words[n++] = xasprintf("--partition=%s", r->partition);
	for (size_t i = 0; i < d->count; i++) {
		const struct directive *at = &d->items[i];

		if (is_left_out(at->option, fields))
			continue;
		words[n++] = at->value ? xasprintf("--%s=%s", at->option->name, at->value)
				       : xasprintf("--%s", at->option->name);
	}
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
	struct directives d = { 0 };
	int rc;

	if (r->account)
		json_object_set_new(choice.fields, "account", js_bytes(r->account));
	if (r->partition)
		json_object_set_new(choice.fields, "partition", js_bytes(r->partition));
	rc = gather(r, &d, err);
	if (rc == 0)
		rc = apply(&d, &choice, err);
	if (rc == 0)
		rc = sum_up(r, &d, choice.fields, err);
	if (rc == 0 && r->has_waited)
		drop_what_was_waited_for(choice.fields);
	if (rc == 0 && words)
		*words = words_of(r, &d, choice.fields);
	directives_clear(&d);
	if (rc == 0)
		return choice.fields;
	json_decref(choice.fields);
	return NULL;
}
