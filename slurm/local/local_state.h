/* SPDX-License-Identifier: MIT */
/* local_state.h - what the local scheduler holds, for its own files. */
#ifndef SLURM_LOCAL_LOCAL_STATE_H
#define SLURM_LOCAL_LOCAL_STATE_H

#include <jansson.h>
#include <stdbool.h>
#include <uv.h>

#include "common/base/err.h"
#include "slurm/local/local_jobs.h"
#include "slurm/local/local_start.h"
#include "slurm/local/machine.h"
#include "slurm/local/slots.h"
#include "slurm/scheduler.h"

/* an answer that is due; calls never call back from inside */
struct later {
	struct later *next;
	scheduler_done done;
	void *arg;
	bool is_poll;
	enum scheduler_result result;
	struct job_ref job;
	json_t *body; /* owned; NULL: none */
	char text[sizeof(((struct err *)0)->text)];
};

struct local {
	struct scheduler base;
	struct local_jobs jobs;
	struct err broken; /* why the folder cannot be used, if so */
	struct later *due, **due_end;
	uv_timer_t timer;
	struct machine machine;
	uv_timer_t clock; /* the next moment at which something is to be done by itself */
	struct local_children children;
	int open_handles; /* the timers and all children whose close callback is still due */
	void (*closed)(void *arg);
	void *closed_arg;
};

/* --- local_state.c: jobs and their processes -------------------------------------------------- */
/* Records that could not be written are said in the log: they are written again. */
void local_save(struct local *l, const struct local_job *job);
void local_save_all_of(struct local *l, const struct job_ref *ref);
/* The next one after `job` (NULL: the first) that `ref` names and that has not ended: more than one
 * where it is an array. */
struct local_job *local_next_live(struct local *l, const struct job_ref *ref,
				  const struct local_job *job);
/* Slots are given. One that cannot start has ended. */
void local_start_job(struct local *l, struct local_job *job);
/* lbrun, its session, and every descendant that can still be found. */
void local_kill(const struct local_job *job);
/* Signals all processes that carry the job's mark (0: none); how many there are. */
size_t local_signal_marked(const struct local_job *job, int signo);
/* One handle less; the last one frees all. */
void local_unref(struct local *l);

/* --- local_queue.c: whose turn it is ---------------------------------------------------------- */
/* All that waits or holds something, in order, and what is planned for each; both lists are the
 * caller's. */
size_t local_queue_plan(const struct local *l, struct local_job ***jobs, struct slot_job **plan);
/* Starts all that may start now, and says of the others why they wait. */
void local_queue_turn(struct local *l);

/* --- local_clock.c: what is done without being asked ------------------------------------------ */
/* Looks at all jobs now, and again when the next thing is due. */
void local_look_after(struct local *l);
/* The same, for l->clock. */
void local_on_clock(uv_timer_t *clock);
/* struct local_children: a job's first process has ended. */
void local_on_child_exit(void *l, uint32_t job_id, int status);

/* --- local_answers.c -------------------------------------------------------------------------- */
/* The answer to a call, given in the next turn of the loop: SCHEDULER_DOWN where the folder cannot
 * be used, else OK, for the caller to change. Not owned. */
struct later *local_answer(struct local *l, scheduler_done done, void *arg,
			   const struct job_ref *job);
void local_answer_is(struct later *a, enum scheduler_result result, const char *text);
/* Is there anything left of the job that a call is about? Else *a says why not. */
bool local_is_live(struct local *l, const struct job_ref *ref, struct later *a);

/* --- local_why.c ------------------------------------------------------------------------------ */
/* What keeps the job waiting, and what would start sooner (scheduler.h: why); NULL: it does not
 * wait. A new reference. */
json_t *local_tell_why(const struct local *l, const struct job_ref *ref);

#endif
