/* SPDX-License-Identifier: MIT */
/* local/ - this machine as a scheduler, for workstations without Slurm.
 *
 * local_jobs.h - the local scheduler's jobs, and their files in $LB_HOME/local:
 *
 *   next_id       the next job's id; it only grows
 *   ID.json       what a restarted lbd must know of a job; until it starts, also that part of its
 *                 environment which holds no secrets
 *   ID.lock       flock(2)ed by the job's first process for as long as it lives */
#ifndef SLURM_LOCAL_LOCAL_JOBS_H
#define SLURM_LOCAL_LOCAL_JOBS_H

#include <stdbool.h>

#include "slurm/local/machine.h"
#include "common/base/procs.h"
#include "slurm/scheduler.h"

enum { LOCAL_ARRAY_MAX = 1000 }; /* tasks; each has a record, and they are written in one go */

struct sbatch_indices;

/* of an array: jobs with one token, numbered one after the other */
struct local_task {
	uint32_t array_id; /* the first one's number: by it the array is known */
	int64_t index;
	int64_t count, lowest, highest, step; /* of the array's indices */
	int64_t limit;                        /* tasks that may run at once; 0: all */
};

enum { LOCAL_LOCK_FD = 3 }; /* the lock's descriptor in the job; its LB_LOCK_FD says so, too */

/* owned by its struct local_jobs */
struct local_job {
	struct local_job *next;
	struct job_status status;
	char *script_path, *workdir, *output;
	char **env;                         /* without secrets; until the start only */
	char *env_file;                     /* where the secrets are; NULL: none */
	unsigned env_uid;                   /* whose file that must be */
	struct slots wants;                 /* CPUs: 0 when it shares them */
	uint64_t gpus;                      /* what it was given */
	cpu_set_t cpus;                     /* empty: it shares them */
	int64_t time_seconds, warn_seconds; /* limit, and how long before it to warn; 0: none */
	struct local_task task;             /* all 0: no task of an array */
	struct proc_name proc;              /* pid 0: not known */
	bool is_child;                      /* of this lbd: its wait status will come */
	bool is_cancelled;                  /* somebody asked for its end */
	bool is_warned;                     /* by this lbd, of its time limit */
	bool is_timed_out;
	/* monotonic, this lbd's: */
	int64_t began_ms;        /* its start, whatever the wall clock was set to since */
	int64_t kill_ms;         /* when its time is over for good; 0: it is not told so far */
	int64_t ending_since_ms; /* while JOB_ENDING */
	int64_t look_ms;         /* while JOB_ENDING: no sooner, for what is left of it */
};

/* local_job.c: held, without anything but its names. */
struct local_job *local_job_create(const char *token, const char *ledger_id, uint32_t job_id);
void local_job_free(struct local_job *job);

/* local_record.c: one line of JSON that the caller owns; NULL: that is no record. */
char *local_record_text(const struct local_job *job);
struct local_job *local_record_parse(const json_t *o);

/* embedded; local_jobs_init … local_jobs_fini */
struct local_jobs {
	char *folder;
	struct local_job *first;
	uint32_t next_id;
};

/* Reads the folder (made if need be). Records that cannot be read are logged and left alone. An
 * array of which a part was written is none: nobody was told of it, and nothing of it has run. */
int local_jobs_init(struct local_jobs *jobs, const char *folder, struct err *err);
void local_jobs_fini(struct local_jobs *jobs);

/* All tasks of an array, or none; the first one is returned. */
struct local_job *local_jobs_add(struct local_jobs *jobs, const struct job_request *request,
				 struct err *err);
/* Does `ref` name it, or its array? By token, id and submit time. */
bool local_job_is(const struct local_job *job, const struct job_ref *ref);
struct local_job *local_jobs_find_id(struct local_jobs *jobs, uint32_t job_id);
int local_job_save(const struct local_jobs *jobs, const struct local_job *job, struct err *err);
/* All that `ref` names, in one go. */
int local_jobs_save(const struct local_jobs *jobs, const struct job_ref *ref, struct err *err);

/* Its lock, taken, close-on-exec; the caller passes it to the job and closes it. -1 with err. */
int local_job_lock(const struct local_jobs *jobs, const struct local_job *job, struct err *err);
/* It is held, waits for its turn, or runs; the caller saves. */
void local_job_hold(struct local_job *job);
void local_job_wait(struct local_job *job);
void local_job_run(struct local_job *job);
/* Its first process is gone, for this reason; others of it may still be there. The caller saves. */
void local_job_ending(struct local_job *job, enum cause cause, int exit_code, int signal);
/* Nothing of it is left, and what it had is free again; the caller saves. */
void local_job_ended(struct local_job *job);
/* Does its first process live, as far as can be told of one that is not our child? */
bool local_job_is_alive(const struct local_jobs *jobs, const struct local_job *job);
/* Those that ended long ago; an array when all its tasks have. */
void local_jobs_forget(struct local_jobs *jobs);

/* All jobs by their numbers, a list that the caller owns. The tasks of an array stand together. */
struct local_job **local_jobs_sorted(const struct local_jobs *jobs, size_t *count);
/* local_array.c. Makes the job the task `at` of an array, with an output of its own. */
void local_job_make_task(struct local_job *job, const struct sbatch_indices *tasks,
			 uint32_t array_id, size_t at);
/* How many of them, from the first, are that one's array; 1 when it is none. */
size_t local_jobs_together(struct local_job *const *sorted, size_t count);
/* What they are together: what any of them still does counts first, then what failed. */
void local_jobs_fold(struct local_job *const *tasks, size_t count, struct job_status *out);

/* It holds GPUs, CPUs and memory. */
bool local_job_holds(const struct local_job *job);

#endif
