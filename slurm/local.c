/* SPDX-License-Identifier: MIT */
/* local.c - this machine as a scheduler: a released job starts at once, as a session of its own that
 * outlives lbd.
 *
 *   held ─release─▶ running ─its first process ends─▶ ended
 *     └───────cancel──────────────────────────────────▲
 *
 * Nothing is shared out: CPUs, memory, GPUs and time limits of a request are not enforced, and jobs
 * do not wait for each other.
 *
 * The job script is expected to exec lbrun, which is thus the job's first process. lbrun sets
 * FD_CLOEXEC on descriptor LB_LOCK_FD and never closes it: so the lock lasts exactly as long as
 * lbrun lives, and tells a restarted lbd so. An ended child of this lbd has a known wait status; a
 * job that ended while no lbd watched is lost, and what lbrun wrote down is the only word on it.
 *
 * Cancel asks lbrun by SIGQUIT, as it alone can end what left its session; asked again, lbrun, its
 * session and every descendant that can still be found are killed. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "slurm/backends.h"
#include "slurm/endings.h"
#include "slurm/local_jobs.h"

struct child {			/* a job that this lbd started; freed in on_child_closed */
	uv_process_t process;
	struct child *next, **link;	/* NULL link: not in the list */
	struct local *local;
	uint32_t job_id;
};

struct later {			/* an answer that is due; calls never call back from inside */
	struct later *next;
	scheduler_done done;
	void *arg;
	bool is_poll;
	enum scheduler_result result;
	struct job_ref job;
	char text[sizeof(((struct err *)0)->text)];
};

struct local {
	struct scheduler base;
	uv_loop_t *loop;
	struct local_jobs jobs;
	struct err broken;	/* why the folder cannot be used, if so */
	struct later *due, **due_end;
	uv_timer_t timer;
	struct child *children;
	int open_handles;	/* the timer and all children whose close callback is still due */
	void (*closed)(void *arg);
	void *closed_arg;
};

/* --- answers ------------------------------------------------------------------------------- */
static void answer_poll(struct local *l, const struct later *a)
{
	struct scheduler_reply reply = { .result = a->result, .text = a->text };
	struct job_status *list;
	size_t count = 0;

	local_jobs_refresh(&l->jobs);
	for (const struct local_job *job = l->jobs.first; job; job = job->next)
		count++;
	list = xcalloc(count + 1, sizeof(*list));
	for (const struct local_job *job = l->jobs.first; job; job = job->next)
		list[reply.job_count++] = job->status;
	reply.jobs = list;
	a->done(a->arg, &reply);
	free(list);
}

/* Answers what is due now; what the callbacks ask for comes in the next turn of the loop. */
static void on_due(uv_timer_t *timer)
{
	struct local *l = timer->data;
	struct later *a, *due = l->due;

	l->due = NULL;
	l->due_end = &l->due;
	while ((a = due)) {
		struct scheduler_reply reply = { .result = a->result, .text = a->text, .job = a->job };
		bool is_dropped = uv_is_closing((uv_handle_t *)timer);

		due = a->next;
		if (!is_dropped && a->is_poll && a->result == SCHEDULER_OK)
			answer_poll(l, a);
		else if (!is_dropped)
			a->done(a->arg, &reply);
		free(a);
	}
}

static struct later *answer_later(struct local *l, scheduler_done done, void *arg,
				  const struct job_ref *job)
{
	struct later *a = xcalloc(1, sizeof(*a));

	a->done = done;
	a->arg = arg;
	if (job)
		a->job = *job;
	if (l->broken.code) {
		a->result = SCHEDULER_DOWN;
		snprintf(a->text, sizeof(a->text), "%s", l->broken.text);
	}
	*l->due_end = a;
	l->due_end = &a->next;
	uv_timer_start(&l->timer, on_due, 0, 0);
	return a;
}

static void answer_is(struct later *a, enum scheduler_result result, const char *text)
{
	a->result = result;
	snprintf(a->text, sizeof(a->text), "%s", text);
}

/* The job that a call is about, if it is there and has not ended; else *a says why not. */
static struct local_job *live_job(struct local *l, const struct job_ref *ref, struct later *a)
{
	struct local_job *job = local_jobs_find(&l->jobs, ref);

	if (a->result != SCHEDULER_OK)
		return NULL;
	if (job && job->status.phase != JOB_ENDED)
		return job;
	answer_is(a, SCHEDULER_GONE, job ? "the job has ended" : "no such local job");
	return NULL;
}

/* --- processes ----------------------------------------------------------------------------- */
static void local_unref(struct local *l)
{
	void (*closed)(void *arg) = l->closed;
	void *arg = l->closed_arg;

	if (--l->open_handles > 0)
		return;
	local_jobs_fini(&l->jobs);
	free(l);
	closed(arg);
}

static void on_child_closed(uv_handle_t *handle)
{
	struct child *c = handle->data;
	struct local *l = c->local;

	if (c->next)
		c->next->link = c->link;
	*c->link = c->next;
	free(c);
	local_unref(l);
}

static void save(struct local *l, const struct local_job *job)
{
	struct err err = { 0 };

	if (local_job_save(&l->jobs, job, &err))
		log_warn("a local job's record is not up to date: %s", err.text);
}

static void on_child_exit(uv_process_t *process, int64_t status, int signo)
{
	struct child *c = process->data;
	struct local_job *job = local_jobs_find_id(&c->local->jobs, c->job_id);
	int exit_code, signal;
	enum cause cause;

	cause = wait_status_judge(signo ? signo : (int)status << 8, &exit_code, &signal);
	if (job && job->status.phase != JOB_ENDED) {
		local_job_end(job, cause, exit_code, signal);
		save(c->local, job);
	}
	uv_close((uv_handle_t *)process, on_child_closed);
}

/* `descriptors`: output and lock. 0 or a libuv error; *pid is set on success. */
static int spawn(struct local *l, struct local_job *job, const int descriptors[2], int *pid)
{
	char sh[] = "/bin/sh";
	char *args[] = { sh, job->script_path, NULL };
	uv_stdio_container_t stdio[LOCAL_LOCK_FD + 1] = {
		{ .flags = UV_IGNORE },
		{ .flags = UV_INHERIT_FD, .data.fd = descriptors[0] },
		{ .flags = UV_INHERIT_FD, .data.fd = descriptors[0] },
		[LOCAL_LOCK_FD] = { .flags = UV_INHERIT_FD, .data.fd = descriptors[1] },
	};
	uv_process_options_t options = {
		.exit_cb = on_child_exit, .file = sh, .args = args, .env = job->env,
		.cwd = job->workdir, .flags = UV_PROCESS_DETACHED, .stdio = stdio,
		.stdio_count = LOCAL_LOCK_FD + 1,
	};
	struct child *c = xcalloc(1, sizeof(*c));
	int rc = uv_spawn(l->loop, &c->process, &options);

	c->process.data = c;
	c->local = l;
	c->job_id = job->status.ref.job_id;
	c->next = l->children;
	c->link = &l->children;
	if (c->next)
		c->next->link = &c->next;
	l->children = c;
	l->open_handles++;
	*pid = c->process.pid;
	if (rc)
		uv_close((uv_handle_t *)&c->process, on_child_closed);
	return rc;
}

static int start(struct local *l, struct local_job *job, struct err *err)
{
	int fds[2] = { -1, -1 }, rc = -1, pid;

	fds[0] = open(job->output, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	fds[1] = local_job_lock(&l->jobs, job, err);
	if (fds[0] < 0)
		err_errno(err, "%s", job->output);
	else if (fds[1] >= 0 && (rc = spawn(l, job, fds, &pid)))
		rc = err_set(err, ERR_IO, "cannot start %s in %s: %s", job->script_path,
			     job->workdir, uv_strerror(rc));
	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	if (rc)
		return -1;
	/* A process that is gone already leaves no name; its exit is on the way. */
	proc_name_of(pid, &job->proc);
	job->is_child = true;
	return 0;
}

/* --- calls --------------------------------------------------------------------------------- */
static void local_submit(struct scheduler *base, const struct job_request *request,
			 scheduler_done done, void *arg)
{
	struct local *l = (struct local *)base;
	struct later *a = answer_later(l, done, arg, NULL);
	struct err err = { 0 };
	const struct local_job *job;

	snprintf(a->job.token, sizeof(a->job.token), "%s", request->token);
	if (a->result != SCHEDULER_OK)
		return;
	job = local_jobs_add(&l->jobs, request, &err);
	if (job)
		a->job = job->status.ref;
	else
		answer_is(a, SCHEDULER_DOWN, err.text);
}

/* The record says "released" before anything starts: a crash in between leaves a job that may have
 * run, never one that may be started again. */
static void local_release(struct scheduler *base, const struct job_ref *ref, scheduler_done done,
			  void *arg)
{
	struct local *l = (struct local *)base;
	struct later *a = answer_later(l, done, arg, ref);
	struct local_job *job = live_job(l, ref, a);
	struct err err = { 0 };

	if (!job || job->status.phase != JOB_HELD)
		return;
	job->status.phase = JOB_RUNNING;
	job->status.reason[0] = '\0';
	job->status.start_time = clock_wall_ms() / 1000;
	snprintf(job->status.state, sizeof(job->status.state), "RUNNING");
	if (local_job_save(&l->jobs, job, &err) || start(l, job, &err)) {
		local_job_end(job, CAUSE_LAUNCH_FAIL, -1, 0);
		snprintf(job->status.reason, sizeof(job->status.reason), "%.47s", err.text);
		answer_is(a, SCHEDULER_OK, err.text);
		log_warn("a local job did not start: %s", err.text);
	}
	local_job_drop_env(job);
	save(l, job);
}

static void local_signal(struct scheduler *base, const struct job_ref *ref, int signo,
			 scheduler_done done, void *arg)
{
	struct local *l = (struct local *)base;
	struct later *a = answer_later(l, done, arg, ref);
	const struct local_job *job = live_job(l, ref, a);

	if (!job)
		return;
	if (job->status.phase == JOB_HELD)
		answer_is(a, SCHEDULER_REFUSED, "the job has not started");
	else if (proc_signal(&job->proc, signo))
		answer_is(a, SCHEDULER_GONE, "the job's first process is gone");
}

static void local_cancel(struct scheduler *base, const struct job_ref *ref, scheduler_done done,
			 void *arg)
{
	struct local *l = (struct local *)base;
	struct later *a = answer_later(l, done, arg, ref);
	struct local_job *job = live_job(l, ref, a);
	bool is_again;

	if (!job)
		return;
	is_again = job->is_cancelled;
	job->is_cancelled = true;
	if (job->status.phase == JOB_HELD)
		local_job_end(job, CAUSE_KILLED, -1, 0);
	else if (is_again)
		proc_kill_family(&job->proc);
	else
		proc_signal(&job->proc, SIGQUIT);
	if (!is_again)
		save(l, job);
}

static void local_poll(struct scheduler *base, scheduler_done done, void *arg)
{
	answer_later((struct local *)base, done, arg, NULL)->is_poll = true;
}

/* --- life ---------------------------------------------------------------------------------- */
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
	for (struct child *c = l->children; c; c = c->next)
		if (!uv_is_closing((uv_handle_t *)&c->process))
			uv_close((uv_handle_t *)&c->process, on_child_closed);
}

static const struct scheduler_ops local_ops = {
	.name = "local",
	.submit = local_submit,
	.release = local_release,
	.signal = local_signal,
	.cancel = local_cancel,
	.poll = local_poll,
	.close = local_close,
};

struct scheduler *scheduler_local_create(uv_loop_t *loop, const char *folder)
{
	struct local *l = xcalloc(1, sizeof(*l));

	l->base.ops = &local_ops;
	l->loop = loop;
	l->due_end = &l->due;
	l->open_handles = 1;
	uv_timer_init(loop, &l->timer);
	l->timer.data = l;
	local_jobs_init(&l->jobs, folder, &l->broken);
	return &l->base;
}
