/* SPDX-License-Identifier: GPL-2.0-or-later */
/* draft.c - from a request of lbd to libslurm's description of a job. */
#include "slurm/helper/draft.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/bytes.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "slurm/batch/mpi_launchers.h"
#include "slurm/helper/calls.h"

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

static void draft_env(struct draft *d, const json_t *request)
{
	const json_t *list = json_object_get(request, "env");
	size_t count = json_array_size(list);

	for (size_t i = 0; i < count; i++) {
		char *entry = js_bytes_take(json_array_get(list, i));

		if (entry)
			strv_add(&d->env, entry);
	}
	if (SBATCH_TELLS_LAUNCHERS)
		mpi_launchers_add(&d->env, slurm_rules()->boots_hydra);
	if (d->env.count == 0) /* Slurm takes none for an error, after using up a job id */
		strv_add(&d->env, xstrdup("LB=1"));
	d->desc.environment = d->env.items;
	d->desc.env_size = (uint32_t)d->env.count;
}

static void drop(struct strv *env, const char *name)
{
	size_t kept = 0, len = strlen(name);

	for (size_t i = 0; i < env->count; i++) {
		if (strncmp(env->items[i], name, len) == 0 && env->items[i][len] == '=')
			free(env->items[i]);
		else
			env->items[kept++] = env->items[i];
	}
	env->count = kept;
	env->items[kept] = NULL;
}

/* Where sbatch says all that is for each task in one place, it tells the steps in one, too. */
static void tell_steps(struct draft *d)
{
	job_desc_msg_t *desc = &d->desc;

	drop(&d->env, "SLURM_GPUS_PER_TASK");
	drop(&d->env, "SLURM_GPU_BIND");
	if (desc->tres_per_task)
		strv_set(&d->env, xasprintf("SLURM_TRES_PER_TASK=%s", desc->tres_per_task));
	if (desc->tres_bind)
		strv_set(&d->env, xasprintf("SLURM_TRES_BIND=%s", desc->tres_bind));
	desc->environment = d->env.items;
	desc->env_size = (uint32_t)d->env.count;
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
	if (slurm_rules()->only[0])
		desc->clusters = keep(&d->kept, xstrdup(slurm_rules()->only));
	desc->std_in = keep(&d->kept, xstrdup("/dev/null"));
}

int draft_init(struct draft *d, const json_t *request, struct err *err)
{
	memset(d, 0, sizeof(*d));
	libslurm_init_desc(&d->desc);
	d->desc.priority = 0;
	d->desc.alloc_sid = ALLOC_SID_USER_HOLD; /* so that its owner may release it */
	d->desc.requeue = 0;
	draft_texts(d, request);
	draft_argv(d, request);
	draft_env(d, request);
	if (fields_apply(json_object_get(request, "fields"), &d->desc, &d->kept, err) < 0)
		return -1;
	if (TASKS_HAVE_TRES)
		tell_steps(d);
	return 0;
}

void draft_release(struct draft *d)
{
	d->desc.priority = NO_VAL;
	d->desc.alloc_sid = NO_VAL;
}

void draft_fini(struct draft *d)
{
	strv_free(d->env.items);
	free(d->argv);
	kept_fini(&d->kept);
}
