/* SPDX-License-Identifier: MIT */
/* launch_args.c - options from the spec's keys, in the order in which srun, torchrun and nsys take
 * them. */
#include "daemon/job/launch_args.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/strv.h"
#include "common/base/text.h"
#include "slurm/batch/batch.h"

static void add_option(struct strv *w, const char *name, const char *value)
{
	if (value)
		strv_add(w, xasprintf("--%s=%s", name, value));
}

static void add_all(struct strv *w, const struct key_strings *more)
{
	for (size_t i = 0; i < more->count; i++)
		strv_add(w, xstrdup(more->items[i]));
}

const char *launch_by(const struct run_spec *spec)
{
	bool is_auto = spec->launcher == SPEC_LAUNCHER_AUTO;
	bool torchrun = spec->launcher == SPEC_LAUNCHER_TORCHRUN;
	bool many = !spec->script && spec->nodes * spec->ntasks_per_node > 1;
	bool srun = spec->launcher == SPEC_LAUNCHER_SRUN ||
		    ((is_auto || torchrun) && (many || spec->container_image));

	return srun ? "srun" : "none";
}

/* --- containers ------------------------------------------------------------------------------- */

/* Is the place where `path` lies mounted under its own name? "/a" or "/a:/a:ro" hold /a/b. */
static bool is_mounted(const struct strv *mounts, const char *path)
{
	for (size_t i = 0; i < mounts->count; i++) {
		const char *mount = mounts->items[i], *to = strchr(mount, ':');
		size_t len = strcspn(mount, ":");

		if (strncmp(mount, path, len) != 0 || (path[len] != '\0' && path[len] != '/'))
			continue;
		if (!to || (strncmp(to + 1, mount, len) == 0 && strchr(":", to[1 + len])))
			return true;
	}
	return false;
}

/* Where lbrun, the run and its checkpoints are is seen inside as outside. */
static void add_container(struct strv *w, const struct config *config, const struct run *run,
			  const char *checkpoints)
{
	const struct run_spec *spec = &run->spec;
	const char *workdir = spec->container_workdir;
	size_t folder_len = (size_t)(strrchr(config->lbrun, '/') - config->lbrun);
	char *programs = xstrndup(config->lbrun, folder_len);
	const char *ours[] = { run->dir, checkpoints, workdir ? run->dir : spec->workdir, programs,
			       spec->checkpoint_stage ? spec->checkpoint_stage : run->dir };
	struct strv mounts = { 0 };
	struct buf list;

	add_all(&mounts, &spec->container_mounts);
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
		if (!is_mounted(&mounts, ours[i]))
			strv_add(&mounts, xasprintf("%s:%s", ours[i], ours[i]));
	}
	buf_init(&list, 1 << 20);
	for (size_t i = 0; i < mounts.count; i++)
		buf_addf(&list, "%s%s", i ? "," : "", mounts.items[i]);
	add_option(w, "container-image", spec->container_image);
	add_option(w, "container-mounts", list.data);
	add_option(w, "container-workdir", workdir ? workdir : spec->workdir);
	add_option(w, "container-name", spec->container_name);
	buf_fini(&list);
	strv_free(mounts.items);
	free(programs);
}

char **launch_srun(const struct config *config, const struct run *run, const char *checkpoints)
{
	struct strv w = { 0 };

	if (strcmp(launch_by(&run->spec), "srun") != 0)
		return NULL;
	/* Since Slurm 22.05 srun does not take this from the job: a rank would be bound to one. */
	if (run->spec.cpus_per_task > 0)
		strv_add(&w, xasprintf("--cpus-per-task=%lld", (long long)run->spec.cpus_per_task));
	add_option(&w, "mpi", run->spec.mpi);
	if (run->spec.container_image)
		add_container(&w, config, run, checkpoints);
	add_all(&w, &run->spec.srun);
	return w.items;
}

/* --- what starts and what watches the ranks --------------------------------------------------- */

static int64_t gpus_of_node(const json_t *fields)
{
	json_t *totals = batch_totals(fields);
	int64_t nodes = js_int(totals, "nodes", 1);
	int64_t gpus = js_int(totals, "gpus", 0) / (nodes > 0 ? nodes : 1);

	json_decref(totals);
	return gpus;
}

char **launch_torchrun(const struct run_spec *spec, const json_t *fields)
{
	struct strv w = { 0 };
	int64_t ranks = spec->nproc_per_node ? spec->nproc_per_node : gpus_of_node(fields);

	if (spec->launcher != SPEC_LAUNCHER_TORCHRUN)
		return NULL;
	add_all(&w, &spec->torchrun);
	/* underscores: the only spelling that every release knows */
	strv_add(&w, xasprintf("--nproc_per_node=%lld", (long long)(ranks ? ranks : 1)));
	return w.items;
}

static int64_t seconds(int64_t ms)
{
	return (ms + 999) / 1000;
}

/* --kill=none: the trainer goes on when the recording ends. */
char **launch_profiler(const struct run_spec *spec, const char *folder)
{
	struct strv w = { 0 };
	char *plain;

	if (!spec->nsys)
		return NULL;
	plain = text_percents(folder);
	strv_add(&w, xstrdup("nsys"));
	strv_add(&w, xstrdup("profile"));
	strv_add(&w, xstrdup("--kill=none"));
	if (spec->nsys_delay_ms)
		strv_add(&w, xasprintf("--delay=%lld", (long long)seconds(spec->nsys_delay_ms)));
	if (spec->nsys_duration_ms)
		strv_add(&w,
			 xasprintf("--duration=%lld", (long long)seconds(spec->nsys_duration_ms)));
	if (spec->nsys_output)
		strv_add(&w, xasprintf("--output=%s", spec->nsys_output));
	else
		strv_add(&w, xasprintf("--output=%s/nsys-%%q{LB_LAUNCH}-%%q{LB_RANK}", plain));
	free(plain);
	add_all(&w, &spec->nsys_options);
	return w.items;
}
