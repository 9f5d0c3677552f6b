/* SPDX-License-Identifier: MIT */
/* slurm_arrays.c - job arrays in the controller: tasks are jobs with one number, and what polls and
 * accounting make of their records. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "slurm/job_result.h"
#include "slurm/pipe/cancelled.h"
#include "tests/sim/arrays.h"
#include "tests/sim/sim.h"

static bool is_of(const struct job *job, const struct job *array)
{
	return job == array || (job->task >= 0 && array->task >= 0 &&
				job->status.ref.job_id == array->status.ref.job_id &&
				job->first_submit_time == array->first_submit_time);
}

void array_make(struct sim *sim, struct job *first)
{
	first->task = 0;
	for (int task = 1; task < TASKS; task++) {
		struct job *job = xmalloc(sizeof(*job));

		*job = *first;
		job->task = task;
		job_add(sim, job);
	}
}

bool array_has_room(const struct sim *sim, const struct job *job)
{
	const struct slurm_model *s = &sim->slurm;
	int running = 0;

	for (size_t i = 0; i < s->known_count; i++)
		running += is_of(s->known[i], job) && s->known[i]->status.phase == JOB_RUNNING;
	return job->task < 0 || running < sim->people[job->run].at_once;
}

/* Those that the controller knows. */
static int list(const struct sim *sim, const struct job *job, struct job *out[TASKS])
{
	const struct slurm_model *s = &sim->slurm;
	int count = 0;

	for (size_t i = 0; i < s->known_count; i++)
		if (is_of(s->known[i], job))
			out[count++] = s->known[i];
	return count;
}

void array_each(struct sim *sim, struct job *job,
		void (*each)(struct sim *sim, struct job *job, void *arg), void *arg)
{
	struct job *tasks[TASKS];
	int count = list(sim, job, tasks);

	for (int i = 0; i < count; i++)
		each(sim, tasks[i], arg);
}

static void release_task(struct sim *sim, struct job *job, void *arg)
{
	(void)arg;
	job_release(sim, job);
}

void array_release(struct sim *sim, struct job *job)
{
	array_each(sim, job, release_task, NULL);
}

/* --- scancel ---------------------------------------------------------------------------------- */

/* It shares the record of all that wait: one that is sent back has its own. */
static bool is_waiting(const struct job *job)
{
	return job->status.phase <= JOB_PENDING && job->status.restart_count == 0;
}

static void cancel_one(struct sim *sim, struct job *job, uint32_t uid, bool leaves_record)
{
	job->keeps_record = leaves_record;
	job_cancel(sim, job, uid);
	if (leaves_record)
		return;
	job->status.phase = JOB_ENDED;
	job_forget(sim, job);
}

static bool is_meant(const struct job *job, unsigned which)
{
	return job->task < 0 || (which >> job->task & 1);
}

void array_cancel(struct sim *sim, struct job *job, uint32_t uid, unsigned which)
{
	struct job *tasks[TASKS];
	int count = list(sim, job, tasks), waiting = 0, meant = 0;

	for (int i = 0; i < count; i++) {
		waiting += is_waiting(tasks[i]);
		meant += is_waiting(tasks[i]) && is_meant(tasks[i], which);
	}
	for (int i = 0; i < count; i++) {
		bool was_waiting = is_waiting(tasks[i]);

		if (!is_meant(tasks[i], which))
			continue;
		tasks[i]->is_nameless = was_waiting && meant > 1;
		cancel_one(sim, tasks[i], uid, !was_waiting || waiting == 1);
		waiting -= was_waiting;
	}
}

/* NULL: no task of an array is there, and not over. */
static struct job *some_task(struct sim *sim)
{
	const struct slurm_model *s = &sim->slurm;
	struct job *found = NULL;
	int count = 0;

	for (size_t i = 0; i < s->known_count; i++) {
		struct job *job = s->known[i];

		if (job->task >= 0 && job_is_live(job) && rng_range(&sim->rng, 0, count++) == 0)
			found = job;
	}
	return found;
}

/* One, or all that wait. */
void array_cancel_some(struct sim *sim)
{
	static const uint32_t uids[] = { SLURMD_UID, OPERATOR_UID, OWNER_UID };
	struct job *job = some_task(sim), *tasks[TASKS];
	bool are_many = job && is_waiting(job) && rng_chance(&sim->rng, 0.3);
	unsigned which = 0;
	int count;

	if (job == NULL || sim->now_ms < sim->slurm.down_until_ms ||
	    sim->now_ms < sim->slurm.frozen_until_ms)
		return;
	count = list(sim, job, tasks);
	for (int i = 0; i < count; i++) {
		bool runs = tasks[i]->status.phase == JOB_RUNNING;

		if (tasks[i] != job && !(are_many && is_waiting(tasks[i])))
			continue;
		which |= 1u << tasks[i]->task;
		sim_fact(sim, FACT_TASK_CANCELLED, task_number(job->run, tasks[i]->task),
			 job->number, runs, runs ? sim->now_ms - tasks[i]->started_ms : 0);
	}
	array_cancel(sim, job, uids[rng_range(&sim->rng, 0, 2)], which);
}

/* --- polls ------------------------------------------------------------------------------------ */

static int weight_of(const struct job *job, const struct array_ends *ends)
{
	return array_record_weight(job->state, job->reason, job_nodes(&job->status)[0] != '\0',
				   job->status.end_time, ends);
}

static struct array_ends ends_of(struct job *const tasks[TASKS], int count)
{
	struct array_ends ends = { 0 };

	for (int i = 0; i < count; i++)
		array_ends_add(&ends, tasks[i]->state, tasks[i]->reason, tasks[i]->status.end_time);
	return ends;
}

/* NULL: there is none. */
static struct job *foremost(struct job *const tasks[TASKS], int count)
{
	struct array_ends ends = ends_of(tasks, count);
	struct job *best = NULL;

	for (int i = 0; i < count; i++)
		if (best == NULL || weight_of(tasks[i], &ends) > weight_of(best, &ends))
			best = tasks[i];
	return best;
}

bool array_is_outweighed(const struct sim *sim, const struct job *job)
{
	struct job *tasks[TASKS];
	int count = list(sim, job, tasks);

	return job->task >= 0 && foremost(tasks, count) != job;
}

static void note(const struct sim *sim, const struct job *job)
{
	struct wire_row row = {
		.job_id = job->status.ref.job_id,
		.submit_time = job->status.ref.submit_time,
		.state = job->state,
		.reason = job->reason,
		.start_time = job->status.start_time,
		.end_time = job->status.end_time,
		.controller_start = job_nodes(&job->status)[0]
					    ? 0
					    : EPOCH_S + sim->slurm.down_until_ms / SECOND,
		.nodes = job_nodes(&job->status),
	};
	char number[16] = "";

	memcpy(row.token, job->status.ref.token, sizeof(row.token));
	if (!job->is_nameless)
		snprintf(number, sizeof(number), "%d", job->task);
	cancelled_note(&row, number);
}

json_t *array_tell_cancelled(const struct sim *sim)
{
	struct answer answer = { .body = json_object() };

	cancelled_turn();
	for (size_t i = 0; i < sim->slurm.known_count; i++)
		if (sim->slurm.known[i]->task >= 0)
			note(sim, sim->slurm.known[i]);
	cancelled_tell(&answer);
	return answer.body;
}

void array_forget_polls(void)
{
	cancelled_min_job_age(MIN_JOB_AGE_MS / SECOND);
	cancelled_turn();
	cancelled_turn();
}

/* --- accounting ------------------------------------------------------------------------------- */

/* Of one that waited, and was cancelled while others did, it has nothing. */
static bool has_line(const struct job *job)
{
	return job->started_ms > 0 || job->is_nameless || job->keeps_record;
}

static bool is_asked(const struct job *job, const struct job_ref *ref)
{
	return job->task >= 0 && job->status.ref.job_id == ref->job_id &&
	       job->status.ref.submit_time == ref->submit_time &&
	       strcmp(job->status.ref.token, ref->token) == 0;
}

static void add_cancelled(json_t *list, const struct job *job)
{
	if (job->is_nameless) /* in one line */
		json_array_append_new(list, json_pack("[i]", job->task));
	else
		json_array_append_new(list, json_pack("[IbIIiI]", (json_int_t)job->task, 1,
						      (json_int_t)job->status.start_time,
						      (json_int_t)job->status.end_time, 0,
						      (json_int_t)job->status.canceller));
}

bool array_recall(const struct sim *sim, const struct job_ref *ref, struct job_status *out,
		  json_t **body)
{
	struct job *ended[TASKS];
	json_t *cancelled = json_array(), *known = json_array();
	bool is_more = false;
	int count = 0;

	for (struct job *job = sim->slurm.jobs; job; job = job->next) {
		if (!is_asked(job, ref))
			continue;
		is_more |= job->status.phase < JOB_ENDED;
		if (job->status.phase != JOB_ENDED || !has_line(job))
			continue;
		ended[count++] = job;
		json_array_append_new(known, json_integer(job->task));
		if (job->status.has_canceller)
			add_cancelled(cancelled, job);
	}
	*body = json_pack("{s:o, s:o, s:b}", "cancelled", cancelled, "known", known, "more",
			  is_more);
	if (count > 0)
		*out = foremost(ended, count)->status;
	return count > 0;
}
