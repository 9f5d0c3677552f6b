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
#include "common/base/strv.h"
#include "daemon/base/config.h"
#include "daemon/engine/run.h"

/* runs/NAME/slurm_script; owned by the caller. */
char *batch_script_path(const struct run *run);

/* What a run asks for: its spec, its script and its submitter's environment, each read once. */
struct batch_job {
	char *text;            /* of the script; NULL: there is none */
	struct strv submitter; /* environment, as lbctl sent it */
	json_t *fields;        /* slurm/batch/batch.h */
	char **words;          /* the same for sbatch; NULL-terminated */
};

/* What an earlier attempt has waited for already, --begin and --dependency, is left out of later
 * ones. -1 with err; batch_job_clear is due in any case. */
int batch_job_read(struct batch_job *job, const struct config *config, const struct run *run,
		   struct err *err);
void batch_job_clear(struct batch_job *job);

/* GPUs of its job in all, however they were asked for; 0 where spec or script cannot be read. */
int64_t batch_job_gpus(const struct config *config, const struct run *run);

/* Adds to the fields, and to the words, what is lbd's own to say: a command's output goes to
 * `output`, a script's where it says. Once nothing reads them as the person wrote them any more.
 * -1: Slurm can write to no such file. */
int batch_job_set_output(struct batch_job *job, const struct run *run, const char *output,
			 struct err *err);

/* Does the job wait for how others end, so that it may never be allowed to begin? */
bool batch_job_may_be_doomed(const struct config *config, const struct run *run);

/* The tasks of its job, ascending; owned by the caller, NULL and *count 0: it is no array, or spec
 * or script cannot be read. */
int64_t *batch_job_tasks(const struct config *config, const struct run *run, size_t *count);

/* The reservations that its job may use, comma-separated, NULL: none, owned by the caller; and its
 * time limit, 0: none was named. Nothing where spec or script cannot be read. */
void batch_job_bounds(const struct config *config, const struct run *run, char **reservations,
		      int64_t *limit_ms);

/* The batch script that Slurm gets: its first lines, the comments that a script begins with (Slurm
 * reads #BB and #DW there), then the rest, which no shell reaches: scontrol write batch_script
 * shows it. `is_read`: sbatch will read it, and is not to find options a second time:
 * "#lbd#SBATCH". */
char *batch_job_wrap(const char *first_lines, const char *text, bool is_read);

/* The environment that sbatch would have given the script, from the submitter's. */
void batch_job_env(const json_t *fields, struct strv *env);

#endif
