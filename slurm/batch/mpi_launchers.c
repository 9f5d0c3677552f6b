/* SPDX-License-Identifier: MIT */
/* mpi_launchers.c - tells MPI's launchers which options their srun is to have. */
#include "slurm/batch/mpi_launchers.h"

#include <string.h>

#include "common/base/mem.h"

/* Unless it is there. */
static void add(struct strv *env, const char *name, const char *value)
{
	if (!strv_get(env->items, name))
		strv_add(env, xasprintf("%s=%s", name, value));
}

static void add_hydra(struct strv *env, bool boots, const char *bootstrap, const char *arguments)
{
	const char *given = strv_get(env->items, bootstrap);

	/* others, ssh say, would get srun's option, too */
	if (given ? strcmp(given, "slurm") != 0 : !boots)
		return;
	add(env, bootstrap, "slurm");
	add(env, arguments, "--external-launcher");
}

void mpi_launchers_add(struct strv *env, bool boots_hydra)
{
	add(env, "OMPI_MCA_plm_slurm_args", "--external-launcher");
	add(env, "PRTE_MCA_plm_slurm_args", "--external-launcher");
	add_hydra(env, boots_hydra, "HYDRA_BOOTSTRAP", "HYDRA_LAUNCHER_EXTRA_ARGS");
	add_hydra(env, boots_hydra, "I_MPI_HYDRA_BOOTSTRAP",
		  "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS");
}
