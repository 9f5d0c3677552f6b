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
 * An array is as many jobs as it has tasks; calls are for all of them, and a poll tells of them as one.
 *
 * The job script is expected to exec lbrun, which is thus the job's first process. lbrun sets
 * FD_CLOEXEC on descriptor LB_LOCK_FD and never closes it: so the lock lasts exactly as long as
 * lbrun lives, and tells a restarted lbd so. An ended child of this lbd has a known wait status; a
 * job that ended while no lbd watched is lost, and what lbrun wrote down is the only word on it.
 *
 * At the time limit it is as in Slurm: SIGUSR1 to lbrun some time before, SIGTERM at the limit, and
 * half a minute later the end. The limit is lbd's to keep: one that passes while no lbd runs is kept
 * as soon as there is one.
 *
 * Cancel asks lbrun by SIGQUIT, as it alone can end what left its session; asked again, lbrun, its
 * session and every descendant that can still be found are killed. */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/strv.h"
#include "slurm/backends.h"
#include "slurm/job_result.h"
#include "slurm/local/local_env.h"
#include "slurm/local/local_jobs.h"
#include "slurm/local/local_start.h"
#include "slurm/local/needs.h"
#include "slurm/batch/sbatch_values.h"

enum {
	KILL_WAIT_SECONDS = 30, /* Slurm's: from the time limit to SIGKILL */
	ENDING_GRACE_MS = 5000, /* for lbrun's second process to clear up by itself */
	ENDING_LOOK_MS = 100,
	ADOPTED_LOOK_MS = 1000, /* a job that is not our child tells nobody that it ended */
};

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

static void look_after(struct local *l);

/* --- answers ---------------------------------------------------------------------------------- */
static void answer_poll(struct local *l, const struct later *a)
{
	struct scheduler_reply reply = { .result = a->result, .text = a->text };
	struct local_job **jobs;
	struct job_status *list;
	size_t count, n;

	look_after(l);
	local_jobs_forget(&l->jobs);
	jobs = local_jobs_sorted(&l->jobs, &count);
	list = xcalloc(count + 1, sizeof(*list));
	for (size_t i = 0; i < count; i += n) {
		n = local_jobs_together(jobs + i, count - i);
		local_jobs_fold(jobs + i, n, &list[reply.job_count++]);
	}
	reply.jobs = list;
	a->done(a->arg, &reply);
	free(list);
	free(jobs);
}

/* Answers what is due now; what the callbacks ask for comes in the next turn of the loop. */
static void on_due(uv_timer_t *timer)
{
	struct local *l = timer->data;
	struct later *a, *due = l->due;

	l->due = NULL;
	l->due_end = &l->due;
	while ((a = due)) {
		struct scheduler_reply reply = {
			.result = a->result, .text = a->text, .job = a->job, .body = a->body
		};
		bool is_dropped = uv_is_closing((uv_handle_t *)timer);

		due = a->next;
		if (!is_dropped && a->is_poll && a->result == SCHEDULER_OK)
			answer_poll(l, a);
		else if (!is_dropped)
			a->done(a->arg, &reply);
		json_decref(a->body);
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

/* The next one after `job` (NULL: the first) that `ref` names and that has not ended: more than one
 * where it is an array. */
static struct local_job *next_live(struct local *l, const struct job_ref *ref,
				   const struct local_job *job)
{
	struct local_job *at = job ? job->next : l->jobs.first;

	while (at && (at->status.phase == JOB_ENDED || !local_job_is(at, ref)))
		at = at->next;
	return at;
}

/* Is there anything left of the job that a call is about? Else *a says why not. */
static bool is_live(struct local *l, const struct job_ref *ref, struct later *a)
{
	bool is_known = false;

	if (a->result != SCHEDULER_OK)
		return false;
	if (next_live(l, ref, NULL))
		return true;
	for (const struct local_job *job = l->jobs.first; job; job = job->next)
		is_known = is_known || local_job_is(job, ref);
	answer_is(a, SCHEDULER_GONE, is_known ? "the job has ended" : "no such local job");
	return false;
}

/* --- processes -------------------------------------------------------------------------------- */
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

static void save(struct local *l, const struct local_job *job)
{
	struct err err = { 0 };

	if (local_job_save(&l->jobs, job, &err))
		log_warn("a local job's record is not up to date: %s", err.text);
}

static void on_child_gone(void *arg)
{
	local_unref(arg);
}

static void on_child_exit(void *arg, uint32_t job_id, int status)
{
	struct local *l = arg;
	struct local_job *job = local_jobs_find_id(&l->jobs, job_id);
	int exit_code, signal;
	enum cause cause = wait_status_judge(status, &exit_code, &signal);

	if (job && job->status.phase == JOB_RUNNING) {
		local_job_ending(job, cause, exit_code, signal);
		save(l, job);
	}
	look_after(l);
}

static int start(struct local *l, struct local_job *job, char **env, struct err *err)
{
	bool is_child = false;
	int rc = local_start(&l->children, &l->jobs, job, env, &is_child, err);

	l->open_handles += is_child;
	return rc;
}

/* The record says "released" before anything starts: a crash in between leaves a job that may have
 * run, never one that may be started again. */
static void start_job(struct local *l, struct local_job *job)
{
	struct err err = { 0 };
	char **env = local_env_make(job, &err);

	local_job_run(job);
	if (!env || local_job_save(&l->jobs, job, &err) || start(l, job, env, &err)) {
		local_job_ending(job, CAUSE_LAUNCH_FAIL, -1, 0);
		local_job_ended(job);
		snprintf(job->status.reason, sizeof(job->status.reason), "%.47s", err.text);
		log_warn("a local job did not start: %s", err.text);
	}
	strv_free(env);
	save(l, job);
}

/* --- the queue -------------------------------------------------------------------------------- */

/* By what it really holds: the machine may have had more to give when the job started. */
static struct slot_job slot_job_of(const struct local *l, const struct local_job *job)
{
	struct slot_job s = { .wants = job->wants,
			      .array_id = job->task.array_id,
			      .array_limit = job->task.limit,
			      .holds = local_job_holds(job) };
	cpu_set_t cpus;

	if (!s.holds)
		return s;
	CPU_AND(&cpus, &job->cpus, &l->machine.cpus);
	s.wants.gpus = __builtin_popcountll(job->gpus & l->machine.gpus);
	s.wants.cpus = CPU_COUNT(&cpus);
	return s;
}

static void give_slots(const struct local *l, struct local_job *job)
{
	uint64_t gpus = 0;
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	for (const struct local_job *other = l->jobs.first; other; other = other->next) {
		if (!local_job_holds(other))
			continue;
		gpus |= other->gpus;
		CPU_OR(&cpus, &cpus, &other->cpus);
	}
	job->gpus = gpus_pick(l->machine.gpus, gpus, job->wants.gpus);
	cpus_pick(&l->machine.cpus, &cpus, job->wants.cpus, &job->cpus);
}

static bool is_queued(const struct local_job *job)
{
	return job->status.phase == JOB_PENDING || local_job_holds(job);
}

/* All that waits or holds something, in order, and what is planned for each; both lists are the
 * caller's. */
static size_t plan_queue(const struct local *l, struct local_job ***jobs, struct slot_job **plan)
{
	struct slots all = machine_slots(&l->machine);
	size_t count, n = 0;

	*jobs = local_jobs_sorted(&l->jobs, &count);
	*plan = xcalloc(count + 1, sizeof(**plan));
	for (size_t i = 0; i < count; i++) {
		if (!is_queued((*jobs)[i]))
			continue;
		(*plan)[n] = slot_job_of(l, (*jobs)[i]);
		(*jobs)[n++] = (*jobs)[i];
	}
	slots_plan(&all, *plan, n);
	return n;
}

/* Starts all that may start now, and says of the others why they wait. */
static void queue_turn(struct local *l)
{
	struct slots all = machine_slots(&l->machine);
	struct local_job **jobs;
	struct slot_job *plan;
	size_t n = plan_queue(l, &jobs, &plan);

	for (size_t i = 0; i < n; i++) {
		if (plan[i].verdict == SLOT_STARTS) {
			give_slots(l, jobs[i]);
			start_job(l, jobs[i]);
		} else if (plan[i].verdict != SLOT_TAKEN) {
			slots_reason(&all, &plan[i], jobs[i]->status.reason);
		}
	}
	free(plan);
	free(jobs);
}

/* --- what is to be done without being asked --------------------------------------------------- */
static size_t signal_marked(const struct local_job *job, int signo)
{
	char mark[LOCAL_MARK_BYTES];

	local_env_mark(job, mark);
	return procs_marked(mark, signo);
}

static void kill_all_of(const struct local_job *job)
{
	proc_kill_family(&job->proc);
	signal_marked(job, SIGKILL);
}

static void ending_turn(struct local *l, struct local_job *job)
{
	bool is_late = clock_mono_ms() >= job->ending_since_ms + ENDING_GRACE_MS;

	if (signal_marked(job, is_late ? SIGKILL : 0) > 0)
		return;
	local_job_ended(job);
	save(l, job);
}

static void time_out(struct local *l, struct local_job *job)
{
	job->is_timed_out = true;
	save(l, job);
	log_info("local job %u has reached its time limit", job->status.ref.job_id);
	proc_signal(&job->proc, SIGTERM);
}

/* When the job is next to be looked at for its time limit, in seconds since the epoch. */
static int64_t limit_turn(struct local *l, struct local_job *job)
{
	int64_t now = clock_wall_ms() / 1000, end = job->status.start_time + job->time_seconds;

	if (job->time_seconds <= 0)
		return INT64_MAX;
	if (!job->is_warned && job->warn_seconds > 0 && now >= end - job->warn_seconds) {
		job->is_warned = true;
		proc_signal(&job->proc, SIGUSR1);
	}
	if (!job->is_timed_out && now >= end)
		time_out(l, job);
	if (now >= end + KILL_WAIT_SECONDS)
		kill_all_of(job);
	if (job->is_timed_out)
		return now >= end + KILL_WAIT_SECONDS ? now + 1 : end + KILL_WAIT_SECONDS;
	return job->is_warned || job->warn_seconds <= 0 ? end : end - job->warn_seconds;
}

/* In how many ms the job is to be looked at again. */
static int64_t job_turn(struct local *l, struct local_job *job)
{
	int64_t due, now_ms = clock_wall_ms();

	if (job->status.phase == JOB_RUNNING && !job->is_child &&
	    !local_job_is_alive(&l->jobs, job)) {
		local_job_ending(job, CAUSE_LOST, -1, 0);
		save(l, job);
	}
	if (job->status.phase == JOB_ENDING) {
		ending_turn(l, job);
		/* over now: others may have its slots */
		return job->status.phase == JOB_ENDED ? 0 : ENDING_LOOK_MS;
	}
	if (job->status.phase != JOB_RUNNING)
		return INT64_MAX;
	due = limit_turn(l, job);
	if (due < INT64_MAX)
		due = due * 1000 > now_ms ? due * 1000 - now_ms : 1;
	return !job->is_child && due > ADOPTED_LOOK_MS ? ADOPTED_LOOK_MS : due;
}

static void on_clock(uv_timer_t *timer)
{
	look_after(timer->data);
}

static void look_after(struct local *l)
{
	int64_t due = INT64_MAX;

	if (uv_is_closing((uv_handle_t *)&l->clock))
		return;
	for (struct local_job *job = l->jobs.first; job; job = job->next)
		job_turn(l, job);
	queue_turn(l);
	for (struct local_job *job = l->jobs.first; job; job = job->next) {
		int64_t at = job_turn(l, job);

		due = at < due ? at : due;
	}
	if (due < INT64_MAX)
		uv_timer_start(&l->clock, on_clock, (uint64_t)due, 0);
	else
		uv_timer_stop(&l->clock);
}

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
		return err_set(err, ERR_USAGE,
			       "slurm.nodes: the job wants %lld nodes, this machine is "
			       "one; it could never start",
			       (long long)needs.nodes);
	if (needs.array && sbatch_array(needs.array, LOCAL_ARRAY_MAX, NULL, &why))
		return err_set(err, ERR_USAGE, "--array: without Slurm, %s", why.text);
	return slots_check(&all, &needs.slots, err);
}

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
	if (local_check(base, request, &err)) {
		answer_is(a, SCHEDULER_REFUSED, err.text);
		return;
	}
	job = local_jobs_add(&l->jobs, request, &err);
	if (job)
		a->job = job->status.ref;
	else
		answer_is(a, SCHEDULER_DOWN, err.text);
}

static void local_release(struct scheduler *base, const struct job_ref *ref, scheduler_done done,
			  void *arg)
{
	struct local *l = (struct local *)base;
	struct later *a = answer_later(l, done, arg, ref);
	struct local_job *job = NULL;
	struct err err = { 0 };
	bool is_news = false;

	if (!is_live(l, ref, a))
		return;
	while ((job = next_live(l, ref, job))) {
		is_news = is_news || job->status.phase == JOB_HELD;
		if (job->status.phase == JOB_HELD)
			local_job_wait(job);
	}
	if (is_news && local_jobs_save(&l->jobs, ref, &err)) {
		while ((job = next_live(l, ref, job)))
			if (job->status.phase == JOB_PENDING)
				local_job_hold(job);
		answer_is(a, SCHEDULER_DOWN, err.text);
		return;
	}
	look_after(l);
}

static void save_all_of(struct local *l, const struct job_ref *ref)
{
	struct err err = { 0 };

	if (local_jobs_save(&l->jobs, ref, &err))
		log_warn("a local job's record is not up to date: %s", err.text);
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
	struct later *a = answer_later(l, done, arg, ref);
	struct local_job *job = NULL;
	bool is_news = false;
	size_t told = 0;

	if (!is_live(l, ref, a))
		return;
	if (!has_started(l, ref)) {
		answer_is(a, SCHEDULER_REFUSED, "the job has not started");
		return;
	}
	while ((job = next_live(l, ref, job))) {
		if (job->status.phase < JOB_RUNNING) {
			drop_waiting(job);
			is_news = true;
		} else if (proc_signal(&job->proc, signo)) {
			continue;
		}
		told++;
	}
	if (is_news)
		save_all_of(l, ref);
	if (told == 0)
		answer_is(a, SCHEDULER_GONE, "the job's first process is gone");
}

/* The caller saves. */
static void cancel_job(struct local_job *job)
{
	if (job->status.phase < JOB_RUNNING) {
		drop_waiting(job);
	} else if (job->is_cancelled) {
		kill_all_of(job);
	} else {
		job->is_cancelled = true;
		proc_signal(&job->proc, SIGQUIT);
	}
}

static void local_cancel(struct scheduler *base, const struct job_ref *ref, scheduler_done done,
			 void *arg)
{
	struct local *l = (struct local *)base;
	struct later *a = answer_later(l, done, arg, ref);
	struct local_job *job = NULL;

	if (!is_live(l, ref, a))
		return;
	while ((job = next_live(l, ref, job)))
		cancel_job(job);
	save_all_of(l, ref);
	look_after(l);
}

static void local_poll(struct scheduler *base, scheduler_done done, void *arg)
{
	answer_later((struct local *)base, done, arg, NULL)->is_poll = true;
}

/* With as much as is free of what it lacks, if it would start so. */
static void add_smaller(const struct local *l, const struct slot_job *plan, size_t n, size_t at,
			json_t *sooner)
{
	const struct slot_job *job = &plan[at];
	struct slots all = machine_slots(&l->machine), less = job->wants;
	const char *what = job->verdict == SLOT_NO_GPUS   ? "gpus"
			   : job->verdict == SLOT_NO_CPUS ? "cpus"
			   : job->verdict == SLOT_NO_MEM  ? "mem_mb"
							  : NULL;

	if (what == NULL || job->free <= 0)
		return;
	*(job->verdict == SLOT_NO_GPUS   ? &less.gpus
	  : job->verdict == SLOT_NO_CPUS ? &less.cpus
					 : &less.mem_mb) = job->free;
	if (slots_would_start(&all, plan, n, at, &less))
		json_array_append_new(sooner, json_pack("{s:I, s:I}", "start",
							(json_int_t)(clock_wall_ms() / 1000), what,
							(json_int_t)job->free));
}

/* When the last of those that run must be over by its time limit, if all have one: it starts by
 * then, unless others are ahead of it. 0: nobody knows. */
static int64_t all_over_by(struct local_job *const *jobs, size_t n)
{
	int64_t latest = 0;

	for (size_t i = 0; i < n; i++) {
		int64_t end = jobs[i]->status.start_time + jobs[i]->time_seconds;

		if (!local_job_holds(jobs[i]))
			continue;
		if (jobs[i]->time_seconds <= 0)
			return 0;
		latest = end > latest ? end : latest;
	}
	return latest;
}

static json_t *tell_why(const struct local *l, const struct job_ref *ref)
{
	struct local_job **jobs;
	struct slot_job *plan;
	size_t n = plan_queue(l, &jobs, &plan), at = 0, ahead = 0;
	json_t *o = NULL, *sooner = json_array();

	while (at < n && !(jobs[at]->status.phase == JOB_PENDING && local_job_is(jobs[at], ref)))
		ahead += jobs[at++]->status.phase == JOB_PENDING;
	if (at < n) {
		o = json_pack("{s:s, s:s, s:I}", "reason", jobs[at]->status.reason, "detail",
			      jobs[at]->status.reason, "ahead", (json_int_t)ahead);
		add_smaller(l, plan, n, at, sooner);
		json_object_set(o, "sooner", sooner);
		if (ahead == 0 && all_over_by(jobs, n) > 0)
			js_set_int(o, "start", all_over_by(jobs, n));
	}
	json_decref(sooner);
	free(jobs);
	free(plan);
	return o;
}

static void local_why(struct scheduler *base, const struct job_ref *ref,
		      const struct job_request *request, const char *avoided, scheduler_done done,
		      void *arg)
{
	struct local *l = (struct local *)base;
	struct later *a = answer_later(l, done, arg, ref);

	(void)request;
	(void)avoided;
	if (a->result == SCHEDULER_OK)
		a->body = tell_why(l, ref);
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
	l->children = (struct local_children){ loop, on_child_exit, on_child_gone, l, NULL };
	l->due_end = &l->due;
	l->open_handles = 2;
	uv_timer_init(loop, &l->timer);
	uv_timer_init(loop, &l->clock);
	l->timer.data = l->clock.data = l;
	machine_find(&l->machine, limits);
	if (local_jobs_init(&l->jobs, folder, &l->broken) == 0)
		uv_timer_start(&l->clock, on_clock, 0, 0);
	return &l->base;
}
