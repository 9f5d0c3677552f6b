/* SPDX-License-Identifier: MIT */
/* local.c - this machine as a scheduler: a released job waits for its slots, then runs as a session
 * of its own that outlives lbd.
 *
 *   held ─release─▶ pending ─its turn─▶ running ─first process gone─▶ ending ─all gone─▶ ended
 *     └─────────────cancel─┴──────────────────────────────────────────────────────────────▲
 *
 * Who may start is slots.h's to say; each change here asks it again. GPUs, CPUs and memory of a job
 * are free when nothing of the job is left: every descendant carries its token in its environment,
 * and what outlives the first process for long is killed.
 *
 * An array is as many jobs as it has tasks; calls are for all of them, and a poll tells of them as
 * one.
 *
 * The job script is expected to exec lbrun, which is thus the job's first process. lbrun sets
 * FD_CLOEXEC on descriptor LB_LOCK_FD and never closes it: so the lock lasts exactly as long as
 * lbrun lives, and tells a restarted lbd so. An ended child of this lbd has a known wait status; a
 * job that ended while no lbd watched is lost, and what lbrun wrote down is the only word on it.
 *
 * At the time limit it is as in Slurm: SIGUSR1 to lbrun some time before, SIGTERM at the limit, and
 * half a minute later the end. The limit is lbd's to keep: one that passes while no lbd runs is
 * kept as soon as there is one.
 *
 * Cancel asks lbrun by SIGQUIT, as it alone can end what left its session; asked again, lbrun, its
 * session and every descendant that can still be found are killed. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/json.h"
#include "common/base/mem.h"
#include "slurm/backends.h"
#include "slurm/local/local_jobs.h"
#include "slurm/local/local_start.h"
#include "slurm/local/local_state.h"
#include "slurm/local/needs.h"
#include "slurm/batch/sbatch_values.h"

/* --- calls ------------------------------------------------------------------------------------ */
static int local_check(const struct scheduler *base, const struct job_request *request,
		       struct err *err)
{
	const struct local *l = (const struct local *)base;
	struct slots all = machine_slots(&l->machine);
	struct err why = { 0 };
	struct needs needs;

	if (needs_read(request->fields, &needs, err))
		return -1;
	if (needs.nodes > 1)
		return err_set(err, ERR_REFUSED,
			       "slurm.nodes: the job wants %lld nodes, this machine is "
			       "one; it could never start",
			       (long long)needs.nodes);
	if (needs.array && sbatch_array(needs.array, LOCAL_ARRAY_MAX, NULL, &why))
		return err_set(err, ERR_REFUSED, "--array: without Slurm, %s", why.text);
	return slots_check(&all, &needs.slots, err);
}

static void local_submit(struct scheduler *base, const struct job_request *request,
			 scheduler_done done, void *arg)
{
	struct local *l = (struct local *)base;
	struct later *a = local_answer(l, done, arg, NULL);
	struct err err = { 0 };
	const struct local_job *job;

	snprintf(a->job.token, sizeof(a->job.token), "%s", request->token);
	if (a->result != SCHEDULER_OK)
		return;
	if (local_check(base, request, &err)) {
		local_answer_is(a, SCHEDULER_REFUSED, err.text);
		return;
	}
	job = local_jobs_add(&l->jobs, request, &err);
	if (job)
		a->job = job->status.ref;
	else
		local_answer_is(a, SCHEDULER_DOWN, err.text);
}

static void local_release(struct scheduler *base, const struct job_ref *ref, scheduler_done done,
			  void *arg)
{
	struct local *l = (struct local *)base;
	struct later *a = local_answer(l, done, arg, ref);
	struct local_job *job = NULL;
	struct err err = { 0 };
	bool is_news = false;

	if (!local_is_live(l, ref, a))
		return;
	while ((job = local_next_live(l, ref, job))) {
		is_news = is_news || job->status.phase == JOB_HELD;
		if (job->status.phase == JOB_HELD)
			local_job_wait(job);
	}
	if (is_news && local_jobs_save(&l->jobs, ref, &err)) {
		while ((job = local_next_live(l, ref, job)))
			if (job->status.phase == JOB_PENDING)
				local_job_hold(job);
		local_answer_is(a, SCHEDULER_DOWN, err.text);
		return;
	}
	local_look_after(l);
}

/* It has not started, and will not. The caller saves. */
static void drop_waiting(struct local_job *job)
{
	job->is_cancelled = true;
	local_job_ending(job, CAUSE_KILLED, -1, 0);
	local_job_ended(job);
}

/* Of an array: any task. */
static bool has_started(const struct local *l, const struct job_ref *ref)
{
	bool has = false;

	for (const struct local_job *job = l->jobs.first; job; job = job->next)
		has = has || (job->status.phase >= JOB_RUNNING && local_job_is(job, ref));
	return has;
}

static void local_signal(struct scheduler *base, const struct job_ref *ref, int signo,
			 scheduler_done done, void *arg)
{
	struct local *l = (struct local *)base;
	struct later *a = local_answer(l, done, arg, ref);
	struct local_job *job = NULL;
	bool is_news = false;
	size_t told = 0;

	if (!local_is_live(l, ref, a))
		return;
	if (!has_started(l, ref)) {
		local_answer_is(a, SCHEDULER_REFUSED, "the job has not started");
		return;
	}
	while ((job = local_next_live(l, ref, job))) {
		if (job->status.phase < JOB_RUNNING) {
			drop_waiting(job);
			is_news = true;
		} else if (proc_signal(&job->proc, signo)) {
			continue;
		}
		told++;
	}
	if (is_news)
		local_save_all_of(l, ref);
	if (told == 0)
		local_answer_is(a, SCHEDULER_GONE, "the job's first process is gone");
}

/* The caller saves. */
static void cancel_job(struct local_job *job)
{
	if (job->status.phase < JOB_RUNNING) {
		drop_waiting(job);
	} else if (job->is_cancelled) {
		local_kill(job);
	} else {
		job->is_cancelled = true;
		proc_signal(&job->proc, SIGQUIT);
	}
}

static void local_cancel(struct scheduler *base, const struct job_ref *ref, scheduler_done done,
			 void *arg)
{
	struct local *l = (struct local *)base;
	struct later *a = local_answer(l, done, arg, ref);
	struct local_job *job = NULL;

	if (!local_is_live(l, ref, a))
		return;
	while ((job = local_next_live(l, ref, job)))
		cancel_job(job);
	local_save_all_of(l, ref);
	local_look_after(l);
}

static void local_poll(struct scheduler *base, scheduler_done done, void *arg)
{
	local_answer((struct local *)base, done, arg, NULL)->is_poll = true;
}

static void local_why(struct scheduler *base, const struct job_ref *ref,
		      const struct job_request *request, const char *avoided, scheduler_done done,
		      void *arg)
{
	struct local *l = (struct local *)base;
	struct later *a = local_answer(l, done, arg, ref);

	(void)request;
	(void)avoided;
	if (a->result == SCHEDULER_OK)
		a->body = local_tell_why(l, ref);
}

static void on_child_gone(void *arg)
{
	local_unref(arg);
}

/* --- life ------------------------------------------------------------------------------------- */
static void on_timer_closed(uv_handle_t *handle)
{
	local_unref(handle->data);
}

static void local_close(struct scheduler *base, void (*closed)(void *arg), void *arg)
{
	struct local *l = (struct local *)base;
	struct later *a;

	l->closed = closed;
	l->closed_arg = arg;
	while ((a = l->due)) {
		l->due = a->next;
		free(a);
	}
	uv_close((uv_handle_t *)&l->timer, on_timer_closed);
	uv_close((uv_handle_t *)&l->clock, on_timer_closed);
	local_children_let_go(&l->children);
}

static const struct scheduler_ops local_ops = {
	.name = "local",
	.check = local_check,
	.unused = needs_unused,
	.why = local_why,
	.submit = local_submit,
	.release = local_release,
	.signal = local_signal,
	.cancel = local_cancel,
	.poll = local_poll,
	.close = local_close,
};

struct scheduler *scheduler_local_create(uv_loop_t *loop, const char *folder,
					 const struct local_limits *limits)
{
	struct local *l = xcalloc(1, sizeof(*l));

	l->base.ops = &local_ops;
	l->children = (struct local_children){ loop, local_on_child_exit, on_child_gone, l, NULL };
	l->due_end = &l->due;
	l->open_handles = 2;
	uv_timer_init(loop, &l->timer);
	uv_timer_init(loop, &l->clock);
	l->timer.data = l->clock.data = l;
	machine_find(&l->machine, limits);
	if (local_jobs_init(&l->jobs, folder, &l->broken) == 0)
		uv_timer_start(&l->clock, local_on_clock, 0, 0);
	return &l->base;
}
