/* SPDX-License-Identifier: MIT */
/* job_params.h - what lbrun is told of its attempt: what to run, where checkpoints are, and the
 * rules that it goes by. */
#ifndef DAEMON_JOB_JOB_PARAMS_H
#define DAEMON_JOB_JOB_PARAMS_H

#include <jansson.h>

#include "common/base/err.h"
#include "daemon/base/config.h"
#include "daemon/engine/run.h"

/* The command of the run, and the script with its arguments where it is one. Owned by the caller;
 * NULL-terminated. */
char **job_command(const struct config *config, const struct run *run);
char **job_script_command(const struct run *run);

/* Where the run's checkpoints are; owned by the caller. `dir` is runs/NAME. */
char *job_checkpoint_dir(const struct run_spec *spec, const char *dir);
/* How they are called. NULL with err, where the spec has become unreadable. */
struct checkpoint_rules *job_checkpoint_rules(const struct run_spec *spec, struct err *err);

/* Writes attempt.json into the attempt's folder. `fields`: the job's, as its scheduler gets them.
 * node_mtbf_s: between troubles of one node, for those who choose how often to save. */
int job_params_write(const struct config *config, const struct run *run, const json_t *fields,
		     const char *folder, double node_mtbf_s, struct err *err);

#endif
