/* SPDX-License-Identifier: GPL-2.0-or-later */
/* draft.c - from a request of lbd to libslurm's description of a job. */
#include "slurm/helper/draft.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/bytes.h"
#include "common/base/json.h"
#include "common/base/mem.h"

#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 11, 0)
#define GPU_FORMAT "gres/gpu:%u"
#else
#define GPU_FORMAT "gres:gpu:%u"
#endif

enum { LARGEST = INT32_MAX }; /* below Slurm's marks for "none" and "infinite" */

/* libslurm takes char *, and changes none of them. NULL when the request has no such text. */
static char *text_of(struct draft *d, const json_t *request, const char *key)
{
	char *text = js_bytes_take(json_object_get(request, key));

	if (text && !text[0]) {
		free(text);
		return NULL;
	}
	return keep(&d->kept, text);
}

/* Zero stands for "not given"; what does not fit is as much as fits, and Slurm will refuse it. */
static uint32_t number_of(const json_t *request, const char *key, uint32_t fallback, uint32_t max)
{
	int64_t n = js_int(request, key, 0);

	return n <= 0 ? fallback : n > (int64_t)max ? max : (uint32_t)n;
}

static void draft_env(struct draft *d, const json_t *request)
{
	const json_t *list = json_object_get(request, "env");
	size_t count = json_array_size(list);

	d->env = xcalloc(count + 2, sizeof(*d->env));
	d->desc.environment = d->env;
	for (size_t i = 0; i < count; i++) {
		char *entry = js_bytes_take(json_array_get(list, i));

		if (entry)
			d->env[d->desc.env_size++] = entry;
	}
	if (d->desc.env_size == 0) /* Slurm takes none for an error, after using up a job id */
		d->env[d->desc.env_size++] = xstrdup("LB=1");
}

/* What scontrol shows as the job's command, and what its script gets as arguments. */
static void draft_argv(struct draft *d, const json_t *request)
{
	const json_t *list = json_object_get(request, "argv");
	size_t count = json_array_size(list);

	d->argv = xcalloc(count + 1, sizeof(*d->argv));
	for (size_t i = 0; i < count; i++) {
		char *word = js_bytes_take(json_array_get(list, i));

		if (word)
			d->argv[d->desc.argc++] = keep(&d->kept, word);
	}
	if (d->desc.argc)
		d->desc.argv = d->argv;
}

static void draft_texts(struct draft *d, const json_t *request)
{
	job_desc_msg_t *desc = &d->desc;

	desc->name = text_of(d, request, "name");
	desc->comment = text_of(d, request, "comment");
	desc->script = text_of(d, request, "script");
	desc->work_dir = text_of(d, request, "workdir");
	desc->std_in = keep(&d->kept, xstrdup("/dev/null"));
}

static void draft_places(struct draft *d, const json_t *request)
{
	job_desc_msg_t *desc = &d->desc;

	desc->std_out = text_of(d, request, "output");
	desc->partition = text_of(d, request, "partition");
	desc->account = text_of(d, request, "account");
	desc->qos = text_of(d, request, "qos");
	desc->features = text_of(d, request, "constraint");
	desc->exc_nodes = text_of(d, request, "exclude");
	desc->req_nodes = text_of(d, request, "nodelist");
	desc->reservation = text_of(d, request, "reservation");
	desc->licenses = text_of(d, request, "licenses");
}

/* num_tasks alone reserves no CPU: min_cpus has to say it, as sbatch does. */
static void draft_sizes(struct draft *d, const json_t *request)
{
	job_desc_msg_t *desc = &d->desc;
	uint32_t nodes = number_of(request, "nodes", 1, 1000000);
	uint32_t per_node = number_of(request, "ntasks_per_node", 1, 65000);
	uint32_t cpus = number_of(request, "cpus_per_task", 1, 65000);
	uint32_t gpus = number_of(request, "gpus_per_node", 0, 65000);
	uint64_t all_cpus = (uint64_t)nodes * per_node * cpus;

	desc->min_nodes = desc->max_nodes = nodes;
	desc->ntasks_per_node = (uint16_t)per_node;
	desc->num_tasks = nodes * per_node;
	desc->cpus_per_task = (uint16_t)cpus;
	desc->min_cpus = (uint32_t)(all_cpus < LARGEST ? all_cpus : LARGEST);
	desc->time_limit = number_of(request, "time_minutes", NO_VAL, LARGEST);
	if (gpus)
		desc->tres_per_node = keep(&d->kept, xasprintf(GPU_FORMAT, gpus));
	if (js_int(request, "mem_mb", 0) > 0)
		desc->pn_min_memory = (uint64_t)js_int(request, "mem_mb", 0);
}

/* As sbatch --signal=B:USR1@N: to the batch process alone, which is lbrun. */
static void draft_warning(struct draft *d, const json_t *request)
{
	uint32_t seconds = number_of(request, "warn_seconds", 0, UINT16_MAX - 1);

	if (seconds == 0)
		return;
	d->desc.warn_signal = SIGUSR1;
	d->desc.warn_time = (uint16_t)seconds;
	d->desc.warn_flags = KILL_JOB_BATCH;
}

/* A request that was resolved as sbatch would have done holds "fields"; they say it all. */
int draft_init(struct draft *d, const json_t *request, struct err *err)
{
	const json_t *fields = json_object_get(request, "fields");

	memset(d, 0, sizeof(*d));
	slurm_init_job_desc_msg(&d->desc);
	d->desc.env_size = 0;
	d->desc.priority = 0;
	d->desc.alloc_sid = ALLOC_SID_USER_HOLD; /* so that its owner may release it */
	d->desc.requeue = 0;
	draft_texts(d, request);
	draft_argv(d, request);
	draft_env(d, request);
	if (fields)
		return fields_apply(fields, &d->desc, &d->kept, err);
	d->desc.open_mode = OPEN_MODE_APPEND;
	draft_places(d, request);
	draft_sizes(d, request);
	draft_warning(d, request);
	return 0;
}

void draft_release(struct draft *d)
{
	d->desc.priority = NO_VAL;
	d->desc.alloc_sid = NO_VAL;
}

void draft_fini(struct draft *d)
{
	for (uint32_t i = 0; i < d->desc.env_size; i++) {
		explicit_bzero(d->env[i], strlen(d->env[i]));
		free(d->env[i]);
	}
	free(d->env);
	free(d->argv);
	kept_fini(&d->kept);
}
