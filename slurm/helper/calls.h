/* SPDX-License-Identifier: GPL-2.0-or-later */
/* helper/ - lbd-slurm, the one program that links libslurm; a process of its own, so that it may
 * hang or die.
 *
 * calls.h - what the operations of lbd-slurm share: libslurm, with its errors judged.
 *
 * One operation at a time, in one thread but for check.c. Every call may block for as long as
 * libslurm likes: lbd holds the deadline and the SIGKILL. */
#ifndef SLURM_HELPER_CALLS_H
#define SLURM_HELPER_CALLS_H

#include <jansson.h>
#include <stdbool.h>

#include "slurm/pipe/answer.h"
#include "slurm/pipe/operations.h"
#include "slurm/helper/libslurm.h"

/* Makes libslurm usable and sees that a controller answers: a ping fails at once where the other
 * calls would retry for many seconds. One that has answered within the last moments is not asked:
 * a submission is several operations in a row. 0, or -1 with SCHEDULER_DOWN. */
int slurm_ready(struct answer *a);
/* When that was last called, was the first of several controllers away? */
bool slurm_backup_serves(void);

/* What the site's configuration rules, as of some minutes ago: it takes a new one of the controller
 * to change. */
struct slurm_rules {
	bool qos_counts;  /* a QOS may lift the limits of a partition: only Slurm knows them */
	bool boots_hydra; /* mpi_launchers_add */
	char only[128];   /* in a federation this cluster, which jobs are to stay in; "": none */
};
const struct slurm_rules *slurm_rules(void);

/* What a call returned, but 0 where a site keeps that to itself (PrivateData): then it is not
 * there. */
int slurm_or_nothing(int rc);

/* Is it what a job_submit plug-in of a site refuses with: SLURM_ERROR mostly, or a number of its
 * own, 1, say, which is one of the system's that no connection fails with? */
bool slurm_is_plugins_word(int code);

/* Judges a failed call. `has_acted`: it was one that changes something. Always -1. */
int slurm_failed(struct answer *a, int rc, bool has_acted, const char *what);

/* The records of the job that the request names by token, job id and submit time. 0: it is there,
 * and ours, and the caller releases *list; -1: *a says why not. */
int slurm_find(struct answer *a, const json_t *request, job_info_msg_t **list);

/* The record of one job id; NULL with *a set. The caller releases *list, not the record. */
const slurm_job_info_t *slurm_record(struct answer *a, uint32_t job_id, job_info_msg_t **list);

/* Does it wait, and is not to be begun? */
bool slurm_is_held(const slurm_job_info_t *job);

/* Changes the job's comment; that it could not is no news. */
void slurm_set_comment(const slurm_job_info_t *job, char *comment);

/* When the job could start if none were ahead of it (seconds since the epoch), or 0 with Slurm's
 * error in *code. Nothing is submitted. */
int64_t slurm_will_run(job_desc_msg_t *desc, int *code);

/* An array is known by its own id; one of its tasks has the same. */
static inline uint32_t slurm_id_of(const slurm_job_info_t *job)
{
	return job->array_job_id ? job->array_job_id : job->job_id;
}

#endif
