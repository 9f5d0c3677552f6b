/* SPDX-License-Identifier: MIT */
/* mpi_launchers.h - what sbatch puts into the environment of each job since Slurm 23.11. */
#ifndef SLURM_BATCH_MPI_LAUNCHERS_H
#define SLURM_BATCH_MPI_LAUNCHERS_H

#include <stdbool.h>

#include "common/base/strv.h"

/* mpirun and mpiexec start a daemon on each node by srun. With --external-launcher that daemon has
 * all that the job has of its node, without it the CPUs of one task, and no GPUs. What `env` says
 * of it stays. `boots_hydra`: Hydra (MPICH, Intel MPI) uses srun where nobody has said what it is
 * to use; a site may forbid that (MpiParams=disable_slurm_hydra_bootstrap). */
void mpi_launchers_add(struct strv *env, bool boots_hydra);

#endif
