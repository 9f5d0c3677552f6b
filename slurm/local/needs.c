/* SPDX-License-Identifier: MIT */
/* needs.c - the fields of a job, as far as one machine can give what they ask for. */
#include "slurm/local/needs.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"

/* "2", "h100:2" */
static int64_t count_of(const char *text)
{
	const char *colon = strrchr(text, ':');

	return strtoll(colon ? colon + 1 : text, NULL, 10);
}

int needs_read(const json_t *fields, struct needs *out, struct err *err)
{
	int64_t tasks = js_int(fields, "num_tasks", js_int(fields, "ntasks_per_node", 1));
	int64_t minutes = js_int(fields, "time_limit", 0);

	if (js_int(fields, "warn_time", 0) > 0 && js_int(fields, "warn_signal", SIGUSR1) != SIGUSR1)
		return err_set(err, ERR_USAGE,
			       "--signal: without Slurm only USR1 announces the end");
	*out = (struct needs){
		.nodes = js_int(fields, "min_nodes", 0),
		.slots.gpus = count_of(
			js_str(fields, "gpus_per_node", js_str(fields, "gpus", "0"))),
		.slots.cpus = (tasks > 1 ? tasks : 1) * js_int(fields, "cpus_per_task", 0),
		.slots.mem_mb = js_int(fields, "mem_per_node", 0),
		.time_seconds = js_int(fields, "time_seconds", minutes > 0 ? minutes * 60 : 0),
		.warn_seconds = js_int(fields, "warn_time", 0),
		.array = js_str(fields, "array_inx", NULL),
	};
	return 0;
}
