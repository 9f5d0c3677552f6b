/* SPDX-License-Identifier: MIT */
/* batch_sums.c - what is left open follows from the rest, in sbatch's own order. */
#include "slurm/batch/batch_sums.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/run/hosts.h"
#include "slurm/batch/batch_counts.h"
#include "slurm/batch/sbatch_values.h"

struct sums {
	json_t *fields;
	bool nodes_set, tasks_set;
	int64_t min_nodes, max_nodes, tasks;
};

static int64_t number(const struct sums *s, const char *field, int64_t fallback)
{
	return js_int(s->fields, field, fallback);
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
			s->tasks = batch_times(s->tasks, number(s, levels[i], 1));
			s->tasks_set = true;
		}
	}
}

static int by_number(const void *a, const void *b)
{
	const json_t *const *x = a, *const *y = b;

	return strverscmp(json_string_value(*x), json_string_value(*y));
}

/* Of the nodes that were named the first `count`, as sbatch sorts them: no more tasks are there to
 * run on them. */
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
		s->tasks = batch_times(s->min_nodes, per_node);
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
	    s->tasks > batch_times(s->min_nodes - 1, plane))
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
	int64_t per_task = batch_sum_counts(js_str(s->fields, "gpus_per_task", NULL));
	int64_t cpus = batch_times(per_task, number(s, "cpus_per_gpu", 0));

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
	int64_t gpus = batch_sum_counts(js_str(s->fields, "gpus", NULL));
	int64_t per_node = batch_gpus_of_gres(js_str(s->fields, "gres", NULL));

	if (per_node == 0)
		per_node = batch_sum_counts(js_str(s->fields, "gpus_per_node", NULL));
	if (per_node == 0 && s->nodes_set && !s->tasks_set)
		per_node = gpus == 0 && s->min_nodes == s->max_nodes; /* one GPU a node is meant */
	if (gpus > 0)
		nodes_of_gpus(s, gpus, per_node);
	else
		gpus = batch_times(s->min_nodes, per_node);
	if (each == 0 && !s->tasks_set)
		each_gpu_its_task(s, gpus);
	if (each == 0 || gpus == 0)
		return;
	s->tasks = batch_times(each, gpus);
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
		js_set_int(s->fields, "min_cpus", batch_times(s->tasks, per_task));
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

int batch_sums(json_t *fields, struct err *err)
{
	struct sums s = { .fields = fields };

	apply_hint(fields);
	if (count_nodes(&s, err) < 0)
		return -1;
	count_tasks(&s);
	if (check_planes(&s, err) < 0 || check_gpu_tasks(&s, err) < 0)
		return -1;
	count_cpus(&s);
	tasks_of_gpus(&s);
	write_sums(&s);
	return 0;
}
