/* SPDX-License-Identifier: MIT */
/* slurm_model.h - a Slurm that is as bad as the measured one: it forgets what it accepted a moment
 * ago and reuses ids, answers late or never, carries out requests minutes after it was given up on,
 * loses nodes whose processes live on, starts what runs already and cancels it for that, and purges
 * the records of ended jobs. */
#ifndef TESTS_SIM_SLURM_MODEL_H
#define TESTS_SIM_SLURM_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/strv.h"
#include "slurm/job_result.h"
#include "slurm/scheduler.h"
#include "tests/sim/far_ranks.h"

struct sim;
struct lbrun;

enum {
	NODES = 24,
	SAVE_MS = 5000, /* the controller saves its state this often */
	KILL_WAIT_MS = 30 * 1000,
	MIN_JOB_AGE_MS = 300 * 1000,
	CREDENTIAL_MS = 300 * 1000, /* a request older than this is refused */
	SLURMD_UID = 0,
	OWNER_UID = 1000,
	OPERATOR_UID = 500,
};

struct job {
	struct job *next; /* all of this world; owned by the model */
	int run;
	int task;       /* of an array; -1: of none */
	int64_t number; /* of the attempt */
	struct job_status status;
	uint32_t state, reason;    /* the same in Slurm's words */
	int64_t first_submit_time; /* a requeue makes it a new one */
	uint64_t stamp;            /* counts up whenever planned events are void */
	bool is_known;             /* to the controller */
	bool keeps_record;         /* it was cancelled, and the controller tells of it */
	bool is_nameless;          /* a record of several tasks, which it does not name */
	bool is_counted;           /* in busy of its node */
	bool is_doubled;           /* a controller that forgot its start will start it again */
	int64_t made_ms, released_ms, started_ms;
	int64_t limit_ms, warn_ms;   /* warn_ms before the limit lbrun is told; 0: it is not */
	uint64_t excluded;           /* nodes, one bit each */
	bool needs_all;              /* nodes of its run, some of which others may have */
	int node, others[FAR_RANKS]; /* others: of a run that is spread over several */
	struct lbrun *lbrun;         /* the batch process; NULL: none */
};

struct node {
	int busy;
	int64_t down_until_ms; /* for new jobs */
	int64_t broken_until_ms;
	int64_t cut_until_ms, frozen_until_ms; /* for ranks there */
	/* when it is taken away, and since when that is known; 0: it stays */
	int64_t leaves_ms, announced_ms;
	bool is_reserved; /* for maintenance, so that the time is known; else it is set to drain */
};

struct call_record;

struct slurm_model {
	struct scheduler base;
	struct sim *sim;
	struct job *jobs;
	struct job **known; /* in the order of submission */
	size_t known_count, known_cap;
	struct strv node_lists; /* that jobs had, and answers that are under way borrow */
	uint32_t next_id;
	int64_t down_until_ms, frozen_until_ms;
	struct node nodes[NODES];
	struct call_record *spare, *calls; /* calls: all that were ever made; owned */
	int64_t poll_count, call_count;
};

void slurm_init(struct slurm_model *slurm, struct sim *sim);
void slurm_fini(struct slurm_model *slurm);

/* slurm_jobs.c: the life of a job */
struct job *job_make(struct sim *sim, int run, int64_t number, const char *token,
		     const char *ledger_id, int64_t warn_ms, uint64_t excluded, bool needs_all);
/* Another one. */
void job_add(struct sim *sim, struct job *job);
struct job *job_find(struct sim *sim, const struct job_ref *ref);
void job_release(struct sim *sim, struct job *job);
/* It was on the machine that went down: its processes are gone, and nobody saw how. */
void job_lose(struct sim *sim, struct job *job);
/* By whoever has this uid: lbd, a person, or slurmd (SLURMD_UID). */
void job_cancel(struct sim *sim, struct job *job, uint32_t uid);
/* The controller ends it with this word; processes get SIGTERM, and SIGKILL after KillWait. */
void job_end(struct sim *sim, struct job *job, enum slurm_state state, enum slurm_reason reason);
/* By an administrator: its processes end, and it waits anew, under the same id. */
void job_requeue(struct sim *sim, struct job *job);
/* Its batch process is gone, with this exit status. */
void job_report(struct sim *sim, struct job *job, int exit_status);
/* The controller has it no longer. */
void job_forget(struct sim *sim, struct job *job);
void job_set_word(struct job *job, uint32_t state, uint32_t reason, uint32_t exit_code);
/* As if its start had never been told to the controller; its processes may be none the wiser. */
void job_unstart(struct sim *sim, struct job *job, bool is_released);
/* As if its release had never been told to the controller. */
void job_unrelease(struct sim *sim, struct job *job);
bool job_is_live(const struct job *job);
/* Fewer are free than the run asks for. */
bool nodes_are_missing(const struct sim *sim, int run);

#endif
