/* SPDX-License-Identifier: MIT */
/* launch_args.h - the words that start a run's ranks: options of srun (pyxis' among them),
 * torchrun, nsys.
 *
 * What depends on the job (addresses, ports, numbers of nodes) is added by lbrun. */
#ifndef DAEMON_JOB_LAUNCH_ARGS_H
#define DAEMON_JOB_LAUNCH_ARGS_H

#include "daemon/base/config.h"
#include "daemon/engine/run.h"

/* "srun" or "none": how processes get to the nodes. */
const char *launch_by(const struct run_spec *spec);

/* NULL-terminated lists that the caller frees with strv_free; NULL: nothing to add.
 * `checkpoints` and `folder` (of the attempt) are seen inside a container, too. */
char **launch_srun(const struct config *config, const struct run *run, const char *checkpoints);
/* `fields`: of the job, whose GPUs an option of sbatch may ask for. */
char **launch_torchrun(const struct run_spec *spec, const json_t *fields);
char **launch_profiler(const struct run_spec *spec, const char *folder);

#endif
