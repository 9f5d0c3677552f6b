/* SPDX-License-Identifier: MIT */
/* slurm/ - where jobs go: a contract, and the two schedulers that keep it.
 *
 * scheduler.h - what lbd needs of a scheduler, and nothing else.
 *
 * Three implementations: slurm.c (through the helper process lbd-slurm), local.c (this machine),
 * and the simulator's. Calls never block and never fail directly: each ends in exactly one call of
 * `done`, later, on the loop (never from inside the call). Inputs are borrowed for the call only;
 * the reply is borrowed for the callback only.
 *
 * A job is always named by (token, job id, submit time): Slurm reuses bare ids. Every
 * implementation checks all three before it touches a job. The tasks of an array are one job to who
 * asked for it: one reference, one status, one end. */
#ifndef SLURM_SCHEDULER_H
#define SLURM_SCHEDULER_H

#include <jansson.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/base/names.h"
#include "common/run/run_state.h"

enum { LEDGER_ID_HEX = 16 };

struct job_ref {
	char token[TOKEN_HEX + 1];
	uint32_t job_id;     /* 0: not known */
	int64_t submit_time; /* seconds since the epoch, as the scheduler tells it */
};

enum job_phase {
	JOB_HELD, /* accepted, will not start before release */
	JOB_PENDING,
	JOB_RUNNING,
	JOB_ENDING, /* over, but some process or node is not free yet */
	JOB_ENDED,
	JOB_PHASE_COUNT
};

struct job_status {
	struct job_ref ref;
	char ledger_id[LEDGER_ID_HEX + 1]; /* whose job this is, from its comment */
	enum job_phase phase;
	enum cause cause; /* once JOB_ENDING/JOB_ENDED: what the scheduler's word amounts to */
	int exit_code;    /* -1: none */
	int signal;       /* 0: none */
	int64_t start_time, end_time; /* seconds; 0: not yet */
	/* of one that runs: when its time limit ends it; 0: never, or not known */
	int64_t limit_time;
	int64_t restart_count;
	char state[24];  /* the scheduler's own word: "PENDING", "NODE_FAIL", … */
	char reason[48]; /* "Resources", "JobHeldUser", … */
	/* Names of nodes, borrowed like the status itself; NULL or "": none, or not told. A large
	 * job's are many, and few jobs are large. */
	const char *nodes; /* as the scheduler prints it: "n[1-2]" */
	/* of one that a failed node ended: nodes that are down now, others than its own among
	 * them */
	const char *failed_nodes;
	/* of one that waits: idle nodes that it was told to keep away from */
	int64_t idle_excluded;
	/* of one that is held, or was cancelled without having nodes: when the controller was
	 * started, or now, where a backup is in charge of one that is held; seconds, 0: not told */
	int64_t controller_start;
	bool has_canceller; /* of a cancelled job, as accounting tells: */
	uint32_t canceller; /* the uid of who cancelled it */
};

static inline const char *job_nodes(const struct job_status *job)
{
	return job->nodes ? job->nodes : "";
}

struct job_request {
	const char *token;
	const char *ledger_id;
	const char *run; /* for the job's name: "lb-<run>" */
	/* What is asked for, the one description of it: an object of slurm/batch/batch.h. */
	const json_t *fields;
	const char *script;      /* text of the batch script */
	const char *script_path; /* the same, as a file: where it is run or read from there */
	const char *output;      /* absolute path of out.log; a task's is task-INDEX/ beside it */
	char *const *env;        /* NULL-terminated "KEY=VALUE"; the job's whole environment */
	/* The same for schedulers that keep it on disk: what is no secret, and the private file (of
	 * env_uid, mode 0600) from which the rest is read when the job starts. */
	char *const *open_env;
	const char *env_file; /* NULL: none */
	unsigned env_uid;
	char *const *argv; /* NULL-terminated: script and arguments, for scontrol to show */
	/* The fields as options for sbatch, which then submits script_path from submit_dir. NULL
	 * unless the scheduler is by_sbatch. */
	char *const *words;
	const char *submit_dir;
};

enum scheduler_result {
	SCHEDULER_OK,
	SCHEDULER_REFUSED, /* the scheduler said no: nothing was done, asking again is pointless */
	SCHEDULER_GONE,    /* no such job (any more), or another one under that id */
	SCHEDULER_DOWN,    /* could not be reached: nothing was done */
	SCHEDULER_UNCLEAR, /* no answer: it may have been done, or may be done later */
	SCHEDULER_RESULT_COUNT
};

struct scheduler_reply {
	enum scheduler_result result;
	const char *text;   /* one line for people; "" when fine */
	struct job_ref job; /* submit */
	const struct job_status *
		/* recall: the one; poll: all jobs of ours, ended ones as long as they are known */
		jobs;
	size_t job_count;
	/* why, outages: what is known, by the names in wire.h; NULL: nothing. recall: "cancelled",
	 * of an array as in a poll, each task that ran with the uid of who did it behind; "known":
	 * the tasks of which it knows anything; "more": some are not over. */
	const json_t *body;
};

typedef void (*scheduler_done)(void *arg, const struct scheduler_reply *reply);

struct scheduler {
	const struct scheduler_ops *ops;
	int64_t kill_wait_ms; /* from its SIGTERM to its SIGKILL; 0: not known (yet) */
	uint32_t node_uid; /* of its own daemons on the nodes, who cancel what they cannot launch */
	bool ages_held;    /* a job that is held gains priority by its age */
	bool by_sbatch;    /* jobs are submitted by the sbatch command */
	char ledger_id[LEDGER_ID_HEX + 1]; /* polls may leave out jobs of others; "": none */
	/* What has become of a submission, as soon as that is known: before `done` is called, and
	 * before the job was read back. Its token, and its number; 0: there is none, or nobody
	 * knows. May be called twice; NULL: nobody asks. */
	void (*on_job)(void *arg, const struct job_ref *job);
	void *on_job_arg;
	/* The jobs that are waited for, as an array of [token, number, submit time], owned by the
	 * caller: who is to find those whose token somebody has taken off meanwhile asks. NULL:
	 * none is known. */
	json_t *(*known)(void *arg);
	void *known_arg;
};

struct scheduler_ops {
	const char *name; /* "slurm", "local" */
	/* Could such a job ever start? -1 with err when not; NULL where only the scheduler
	 * knows. */
	int (*check)(const struct scheduler *s, const struct job_request *job, struct err *err);
	/* Options of these fields that mean nothing to it, as words for people; owned by the
	 * caller, NULL where there are none. NULL: it understands all. */
	char *(*unused)(const json_t *fields);
	/* Submits held: the job cannot start before `release`. */
	void (*submit)(struct scheduler *s, const struct job_request *job, scheduler_done done,
		       void *arg);
	void (*release)(struct scheduler *s, const struct job_ref *job, scheduler_done done,
			void *arg);
	/* To lbrun alone (the batch process): SIGTERM asks it to end its trainer with grace,
	 * SIGQUIT to end everything at once. Tasks of its array that wait are cancelled. */
	void (*signal)(struct scheduler *s, const struct job_ref *job, int signo,
		       scheduler_done done, void *arg);
	/* Ends the job in every phase, with all its processes that the scheduler knows of. */
	void (*cancel)(struct scheduler *s, const struct job_ref *job, scheduler_done done,
		       void *arg);
	void (*poll)(struct scheduler *s, scheduler_done done, void *arg);
	/* What a poll does not tell of any more: SCHEDULER_OK with the one job, which is over;
	 * SCHEDULER_GONE when nothing remembers it, or not that it ended. NULL: nothing ever
	 * does. */
	void (*recall)(struct scheduler *s, const struct job_ref *job, scheduler_done done,
		       void *arg);
	/* Would the scheduler take such a job? SCHEDULER_REFUSED with why not; anything else: it
	 * may. Nothing is submitted. NULL: `check` says it all. */
	void (*probe)(struct scheduler *s, const struct job_request *job, scheduler_done done,
		      void *arg);
	/* Would such a job begin at once, with nobody in line where it asks to run? SCHEDULER_OK:
	 * yes; SCHEDULER_REFUSED with why not. Nothing is submitted. NULL: that cannot be told. */
	void (*room)(struct scheduler *s, const struct job_request *job, scheduler_done done,
		     void *arg);
	/* Which nodes are going away: the reply's body is as wire.h says of "outages". NULL: nobody
	 * tells. */
	void (*outages)(struct scheduler *s, scheduler_done done, void *arg);
	/* Why this job, asked for so, does not run. `avoided`: nodes that lbd keeps it away from,
	 * "" = none. */
	void (*why)(struct scheduler *s, const struct job_ref *ref, const struct job_request *job,
		    const char *avoided, scheduler_done done, void *arg);
	/* Pending calls are dropped without their callbacks; jobs live on. `closed` is called once,
	 * when the loop holds nothing of this scheduler any more and its memory is released. */
	void (*close)(struct scheduler *s, void (*closed)(void *arg), void *arg);
};

#endif
