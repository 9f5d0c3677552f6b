/* SPDX-License-Identifier: MIT */
/* local_clock.c - what happens to local jobs without being asked: their end, their time limit, the
 * turn of the next. */
#include <signal.h>
#include <stdint.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/procs.h"
#include "slurm/job_result.h"
#include "slurm/local/local_state.h"

enum {
	KILL_WAIT_MS = 30 * 1000, /* Slurm's: from the time limit to SIGKILL */
	KILL_AGAIN_MS = 1000,
	ENDING_GRACE_MS = 5000, /* for lbrun's second process to clear up by itself */
	ENDING_LOOK_MS = 100,
	ADOPTED_LOOK_MS = 1000, /* a job that is not our child tells nobody that it ended */
};

/* In how many ms it is to be looked at again. To look takes all of /proc: between two looks what
 * else happens does not ask for another. */
static int64_t ending_turn(struct local *l, struct local_job *job)
{
	int64_t now_ms = clock_mono_ms();
	bool is_late = now_ms >= job->ending_since_ms + ENDING_GRACE_MS;

	if (now_ms < job->look_ms)
		return job->look_ms - now_ms;
	job->look_ms = now_ms + ENDING_LOOK_MS;
	if (local_signal_marked(job, is_late ? SIGKILL : 0) > 0)
		return ENDING_LOOK_MS;
	local_job_ended(job);
	local_save(l, job);
	return 0; /* others may have its slots */
}

static void time_out(struct local *l, struct local_job *job)
{
	job->is_timed_out = true;
	local_save(l, job);
	log_info("local job %u has reached its time limit", job->status.ref.job_id);
	proc_signal(&job->proc, SIGTERM);
}

/* When the job is next to be looked at for its time limit, by the monotonic clock. One that is told
 * late, by an lbd that was away or on a machine that slept, has its half minute all the same. */
static int64_t limit_turn(struct local *l, struct local_job *job, int64_t now_ms)
{
	int64_t end_ms = job->began_ms + 1000 * job->time_seconds;
	int64_t warn_ms = end_ms - 1000 * job->warn_seconds;

	if (job->time_seconds <= 0)
		return INT64_MAX;
	if (!job->is_warned && job->warn_seconds > 0 && now_ms >= warn_ms) {
		job->is_warned = true;
		proc_signal(&job->proc, SIGUSR1);
	}
	if (!job->is_timed_out && now_ms < end_ms)
		return job->is_warned || job->warn_seconds <= 0 ? end_ms : warn_ms;
	if (!job->is_timed_out)
		time_out(l, job);
	if (job->kill_ms == 0)
		job->kill_ms = now_ms + KILL_WAIT_MS;
	if (now_ms < job->kill_ms)
		return job->kill_ms;
	local_kill(job);
	return now_ms + KILL_AGAIN_MS;
}

/* In how many ms the job is to be looked at again. */
static int64_t job_turn(struct local *l, struct local_job *job)
{
	int64_t due, now_ms = clock_mono_ms();

	if (job->status.phase == JOB_RUNNING && !job->is_child &&
	    !local_job_is_alive(&l->jobs, job)) {
		local_job_ending(job, CAUSE_LOST, -1, 0);
		local_save(l, job);
	}
	if (job->status.phase == JOB_ENDING)
		return ending_turn(l, job);
	if (job->status.phase != JOB_RUNNING)
		return INT64_MAX;
	due = limit_turn(l, job, now_ms);
	if (due < INT64_MAX)
		due -= now_ms;
	return !job->is_child && due > ADOPTED_LOOK_MS ? ADOPTED_LOOK_MS : due;
}

void local_on_clock(uv_timer_t *timer)
{
	local_look_after(timer->data);
}

void local_look_after(struct local *l)
{
	int64_t due = INT64_MAX;

	if (uv_is_closing((uv_handle_t *)&l->clock))
		return;
	for (struct local_job *job = l->jobs.first; job; job = job->next)
		job_turn(l, job);
	local_queue_turn(l);
	for (struct local_job *job = l->jobs.first; job; job = job->next) {
		int64_t at = job_turn(l, job);

		due = at < due ? at : due;
	}
	if (due < INT64_MAX)
		uv_timer_start(&l->clock, local_on_clock, (uint64_t)due, 0);
	else
		uv_timer_stop(&l->clock);
}

void local_on_child_exit(void *arg, uint32_t job_id, int status)
{
	struct local *l = arg;
	struct local_job *job = local_jobs_find_id(&l->jobs, job_id);
	int exit_code, signal;
	enum cause cause = wait_status_judge(status, &exit_code, &signal);

	if (job && job->status.phase == JOB_RUNNING) {
		local_job_ending(job, cause, exit_code, signal);
		local_save(l, job);
	}
	local_look_after(l);
}
