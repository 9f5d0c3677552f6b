/* SPDX-License-Identifier: MIT */
/* arrays.h - job arrays in a simulated world. To Slurm each task of one is a job of its own; to
 * lbrun, to the disk and to the checker it is a run of its own, behind the people's: so whatever
 * holds of a run's trainers holds of those of a task.
 *
 * What makes an array of them is lbd's and lbrun's own code, on files of this machine: the marks
 * (common/run/array_tasks.h), the end of all (array_end.h), which task is not to run
 * (worker/lbrun/shepherd/script.c), what polls tell of tasks that were cancelled
 * (slurm/pipe/cancelled.h), and which record stands for all (slurm/job_result.h). */
#ifndef TESTS_SIM_ARRAYS_H
#define TESTS_SIM_ARRAYS_H

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>

#include "daemon/engine/engine.h"
#include "slurm/scheduler.h"
#include "tests/sim/run_numbers.h"

struct sim;
struct job;
struct lbrun;
struct ending;
struct job_status;

/* --- Slurm (slurm_arrays.c) ------------------------------------------------------------------- */

/* The first was made: the others. */
void array_make(struct sim *sim, struct job *first);
/* May another of its tasks begin (--array=0-4%2)? */
bool array_has_room(const struct sim *sim, const struct job *job);
/* To each that the controller knows of the job's array, or to it alone. */
void array_each(struct sim *sim, struct job *job,
		void (*each)(struct sim *sim, struct job *job, void *arg), void *arg);
void array_release(struct sim *sim, struct job *job);
/* A waiting one leaves no record, unless nothing else waits: then one is left for all that were
 * cancelled at once. */
enum { ALL_TASKS = 0xffff };
void array_cancel(struct sim *sim, struct job *job, uint32_t uid, unsigned which);
/* An administrator does. */
void array_cancel_some(struct sim *sim);
/* Does another record tell of the array? */
bool array_is_outweighed(const struct sim *sim, const struct job *job);
/* "cancelled" of a poll's answer (slurm/wire.h). */
json_t *array_tell_cancelled(const struct sim *sim);
/* lbd's helper is another one: it knows nothing of earlier polls. */
void array_forget_polls(void);
/* What accounting remembers, as slurm/accounting.c makes it of sacct's lines; false: nothing. */
bool array_recall(const struct sim *sim, const struct job_ref *ref, struct job_status *out,
		  json_t **body);

/* --- lbrun (lbrun_tasks.c) -------------------------------------------------------------------- */

/* true: the task is not to run, and has said so. */
bool task_enter(struct sim *sim, struct lbrun *p);
/* It ended like this: where it completed, for ever. false: that could not be written. */
bool task_mark(struct sim *sim, const struct lbrun *p, const struct ending *end);
void task_write_exit(struct sim *sim, const struct lbrun *p);
/* The last to do this says how the attempt ended. */
void task_leave(struct sim *sim, const struct lbrun *p);

/* --- lbd's world (world_arrays.c) ------------------------------------------------------------- */

void world_add_arrays(struct sim *sim);
bool array_exited(const struct sim *sim, int run, int64_t number, struct attempt_exit *out);
/* attempts/N of the run, which is made; owned by the caller. */
char *array_folder(const struct sim *sim, int run, int64_t number);

#endif
