/* SPDX-License-Identifier: MIT */
/* batch_job.h - what a run's spec and its batch script ask of the scheduler.
 *
 * A batch script stays as it is: its text lies in runs/NAME/slurm_script, its options make the job
 * that sbatch would have made, and lbrun runs it where Slurm would have. */
#ifndef DAEMON_JOB_BATCH_JOB_H
#define DAEMON_JOB_BATCH_JOB_H

#include <jansson.h>
#include <stdbool.h>

#include "common/base/err.h"
#include "daemon/base/config.h"
#include "daemon/job/job_env.h"
#include "daemon/engine/run.h"

/* runs/NAME/slurm_script; owned by the caller. */
char *batch_script_path(const struct run *run);
/* Its text, owned by the caller; NULL with err, or without err when the run has none. */
char *batch_script_text(const struct run *run, struct err *err);

/* The job's fields (slurm/batch/batch.h); the caller decrefs. What an earlier attempt has waited
 * for already, --begin and --dependency, is left out of later ones. */
json_t *batch_job_fields(const struct config *config, const struct run *run, struct err *err);

/* Does the job wait for how others end, so that it may never be allowed to begin? */
bool batch_job_may_be_doomed(const struct config *config, const struct run *run);

/* The fields as words of sbatch's command line (slurm/batch/batch.h), for submit_with = "sbatch".
 * `fields` as job_submit hands them over. */
char **batch_job_words(const struct config *config, const struct run *run, const json_t *fields,
		       struct err *err);

/* The batch script that Slurm gets: its first lines, the comments that a script begins with (Slurm
 * reads #BB and #DW there), what starts lbrun where its first line does not, then the rest, which
 * no shell reaches: scontrol write batch_script shows it. `is_read`: sbatch will read it, and is
 * not to find options a second time: "#lbd#SBATCH". */
char *batch_job_wrap(const char *first_lines, const char *launch, const char *text, bool is_read);

/* The environment that sbatch would have given the script, from the submitter's. */
void batch_job_env(const json_t *fields, struct strv *env);

#endif
