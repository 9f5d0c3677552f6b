/* SPDX-License-Identifier: MIT */
/* batch_job.h - what a run's spec and its batch script ask of the scheduler.
 *
 * A batch script stays as it is: its text lies in runs/NAME/slurm_script, its options make the job
 * that sbatch would have made, and lbrun runs it where Slurm would have. */
#ifndef DAEMON_BATCH_JOB_H
#define DAEMON_BATCH_JOB_H

#include <jansson.h>
#include <stdbool.h>

#include "common/err.h"
#include "daemon/config.h"
#include "daemon/job_env.h"
#include "daemon/run.h"

/* runs/NAME/slurm_script; owned by the caller. */
char *batch_script_path(const struct run *run);
/* Its text, owned by the caller; NULL with err, or without err when the run has none. */
char *batch_script_text(const struct run *run, struct err *err);

/* The job's fields (slurm/batch.h); the caller decrefs. What an earlier attempt has waited for
 * already, --begin and --dependency, is left out of later ones. */
json_t *batch_job_fields(const struct config *config, const struct run *run, struct err *err);

/* The same as words of sbatch's command line (slurm/batch.h), for submit_with = "sbatch". `fields` as
 * job_submit hands them over. */
char **batch_job_words(const struct config *config, const struct run *run, const json_t *fields,
		       struct err *err);

/* The batch script that Slurm gets: the comments that a script begins with (Slurm reads #BB and #DW
 * there), then lbrun, then the rest, which no shell reaches: scontrol write batch_script shows it.
 * `is_read`: sbatch will read it, and is not to find options a second time: "#lbd#SBATCH". */
char *batch_job_wrap(const char *launch, const char *text, bool is_read);

/* The environment that sbatch would have given the script, from the submitter's. */
void batch_job_env(const json_t *fields, struct strv *env);

#endif
