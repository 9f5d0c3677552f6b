/* SPDX-License-Identifier: MIT */
/* batch_totals.c - what a job has in all: nodes, tasks, CPUs, memory, GPUs. */
#include <stdbool.h>

#include "common/base/json.h"
#include "slurm/batch/batch.h"
#include "slurm/batch/batch_counts.h"

static int64_t most(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t total_gpus(const json_t *fields, int64_t nodes, int64_t tasks)
{
	int64_t gpus = batch_sum_counts(js_str(fields, "gpus", NULL));
	int64_t per_node = batch_sum_counts(js_str(fields, "gpus_per_node", NULL));
	int64_t per_task = batch_sum_counts(js_str(fields, "gpus_per_task", NULL));
	int64_t per_socket = batch_sum_counts(js_str(fields, "gpus_per_socket", NULL));

	if (gpus > 0)
		return gpus;
	if (per_node + per_task + per_socket == 0)
		per_node = batch_gpus_of_gres(js_str(fields, "gres", NULL));
	return most(most(batch_times(per_node, nodes), batch_times(per_task, tasks)),
		    batch_times(batch_times(per_socket, js_int(fields, "sockets_per_node", 1)),
				nodes));
}

static int64_t total_mb(const json_t *fields, int64_t nodes, int64_t cpus, int64_t gpus)
{
	int64_t per_node = js_int(fields, "mem_per_node", -1),
		per_cpu = js_int(fields, "mem_per_cpu", -1);
	int64_t per_gpu = js_int(fields, "mem_per_gpu", -1);

	if (per_node >= 0)
		return batch_times(per_node, nodes);
	return per_cpu >= 0   ? batch_times(per_cpu, cpus)
	       : per_gpu >= 0 ? batch_times(per_gpu, gpus)
			      : -1;
}

json_t *batch_totals(const json_t *fields)
{
	int64_t nodes = most(js_int(fields, "min_nodes", 1), 1);
	int64_t tasks = js_int(fields, "num_tasks", js_int(fields, "implied_tasks", nodes));
	int64_t per_task = most(js_int(fields, "cpus_per_task", 1), 1);
	bool shares = js_int(fields, "overcommit", 0) != 0;
	int64_t cpus = most(js_int(fields, "min_cpus", 1),
			    shares ? nodes : batch_times(tasks, per_task));
	int64_t gpus = total_gpus(fields, nodes, tasks), mb;
	json_t *o = json_object();

	cpus = most(cpus, batch_times(most(js_int(fields, "pn_min_cpus", 0), 0), nodes));
	cpus = most(cpus, batch_times(js_int(fields, "cpus_per_gpu", 0), gpus));
	mb = total_mb(fields, nodes, cpus, gpus);
	js_set_int(o, "nodes", nodes);
	js_set_int(o, "tasks", tasks);
	js_set_int(o, "cpus", cpus);
	js_set_int(o, "mem_mb", mb > 0 ? mb : JS_NONE);
	js_set_int(o, "gpus", gpus);
	return o;
}
