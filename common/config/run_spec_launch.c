/* SPDX-License-Identifier: MIT */
/* run_spec_launch.c - what starts the ranks: combinations that cannot work are refused before
 * anything is submitted. */
#include <stddef.h>

#include "common/config/run_spec.h"

struct rule {
	const char *path;
	bool is_given;
	const char *why; /* NULL: it may be given */
};

/* A batch script calls srun itself, with options of its own. */
static const char *against_script(const struct run_spec *spec)
{
	return spec->script ? "is not for batch scripts: they start their ranks themselves" : NULL;
}

static const char *against_torchrun(const struct run_spec *spec)
{
	if (spec->script)
		return against_script(spec);
	if (spec->command.count == 0)
		return "torchrun needs run.command: lbworker has a rank for each task of srun";
	return NULL;
}

static const char *against_image(const struct run_spec *spec)
{
	if (spec->launcher == SPEC_LAUNCHER_NONE)
		return "needs a launcher that uses srun: pyxis is a part of that";
	return against_script(spec);
}

static const char *against_container(const struct run_spec *spec)
{
	return spec->container_image ? NULL : "needs slurm.container_image";
}

int run_spec_check_launch(const struct toml *toml, const struct run_spec *spec, struct err *err)
{
	bool torchrun = spec->launcher == SPEC_LAUNCHER_TORCHRUN;
	const char *workdir = spec->container_workdir;
	const struct rule rules[] = {
		{ "run.launcher", torchrun, against_torchrun(spec) },
		{ "slurm.ntasks_per_node", torchrun && spec->ntasks_per_node > 1,
		  "torchrun is started once on each node: torchrun.nproc_per_node says how many "
		  "ranks it starts there" },
		{ "torchrun.command",
		  spec->torchrun.count == 0 || spec->torchrun.items[0][0] == '\0',
		  "must name a program" },
		{ "slurm.mpi", spec->mpi != NULL, against_script(spec) },
		{ "slurm.srun", spec->srun.count > 0, against_script(spec) },
		{ "preflight.enabled", spec->preflight, against_script(spec) },
		{ "nsys.enabled", spec->nsys, against_script(spec) },
		{ "slurm.container_image", spec->container_image != NULL, against_image(spec) },
		{ "slurm.container_mounts", spec->container_mounts.count > 0,
		  against_container(spec) },
		{ "slurm.container_name", spec->container_name != NULL, against_container(spec) },
		{ "slurm.container_workdir", workdir != NULL, against_container(spec) },
		{ "slurm.container_workdir", workdir && workdir[0] != '/',
		  "must be an absolute path" },
		{ "nsys.output", spec->nsys_output && spec->nsys_output[0] != '/',
		  "must be an absolute path" },
	};

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		if (rules[i].is_given && rules[i].why)
			return keys_refuse(toml, rules[i].path, rules[i].why, err);
	}
	return 0;
}
