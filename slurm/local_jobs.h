/* SPDX-License-Identifier: MIT */
/* local_jobs.h - the local scheduler's jobs, and their files in $LB_HOME/local:
 *
 *   next_id       the next job's id; it only grows
 *   ID.json       what a restarted lbd must know of a job; never its environment, which may hold
 *                 secrets: a held job is therefore gone when lbd is
 *   ID.lock       flock(2)ed by the job's first process for as long as it lives */
#ifndef SLURM_LOCAL_JOBS_H
#define SLURM_LOCAL_JOBS_H

#include <stdbool.h>

#include "slurm/procs.h"
#include "slurm/scheduler.h"

enum { LOCAL_LOCK_FD = 3 };	/* the lock's descriptor in the job; its LB_LOCK_FD says so, too */

struct local_job {		/* owned by its struct local_jobs */
	struct local_job *next;
	struct job_status status;
	char *script_path, *workdir, *output;
	char **env;		/* held jobs only; wiped after the start */
	struct proc_name proc;	/* pid 0: not known */
	bool is_child;		/* of this lbd: its wait status will come */
	bool is_cancelled;	/* somebody asked for its end */
};

struct local_jobs {		/* embedded; local_jobs_init … local_jobs_fini */
	char *folder;
	struct local_job *first;
	uint32_t next_id;
};

/* Reads the folder (made if need be). Jobs that were held are forgotten, those that ran meanwhile
 * are ended (lost), unless they still run. Records that cannot be read are logged and left alone. */
int local_jobs_init(struct local_jobs *jobs, const char *folder, struct err *err);
void local_jobs_fini(struct local_jobs *jobs);

struct local_job *local_jobs_add(struct local_jobs *jobs, const struct job_request *request,
				 struct err *err);
/* By token, id and submit time; NULL when there is none. */
struct local_job *local_jobs_find(struct local_jobs *jobs, const struct job_ref *ref);
struct local_job *local_jobs_find_id(struct local_jobs *jobs, uint32_t job_id);
int local_job_save(const struct local_jobs *jobs, const struct local_job *job, struct err *err);

/* Its lock, taken, close-on-exec; the caller passes it to the job and closes it. -1 with err. */
int local_job_lock(const struct local_jobs *jobs, const struct local_job *job, struct err *err);
/* Notes the end; the caller saves. */
void local_job_end(struct local_job *job, enum cause cause, int exit_code, int signal);
/* Looks at every job that is not our child, and forgets those that ended long ago. */
void local_jobs_refresh(struct local_jobs *jobs);

void local_job_drop_env(struct local_job *job);

#endif
