/* SPDX-License-Identifier: MIT */
/* slurm_jobs.c - a job's way through the controller. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/base/mem.h"
#include "tests/sim/arrays.h"
#include "tests/sim/scheduler_calls.h"
#include "tests/sim/sim.h"

enum { SLOTS = 2 }; /* jobs on one node */

void job_set_word(struct job *job, uint32_t state, uint32_t reason, uint32_t exit_code)
{
	job->state = state;
	job->reason = reason;
	set_status(&job->status, state, reason, exit_code);
}

bool job_is_live(const struct job *job)
{
	return job->status.phase < JOB_ENDING;
}

static void job_fact(struct sim *sim, enum fact_kind kind, const struct job *job)
{
	sim_fact(sim, kind, job->run, job->number, job->status.ref.job_id, job->first_submit_time);
}

/* Of a task of an array, that of the task. */
static void task_fact(struct sim *sim, enum fact_kind kind, const struct job *job)
{
	sim_fact(sim, kind, task_number(job->run, job->task), job->number, job->status.ref.job_id,
		 job->first_submit_time);
}

/* --- in and out of the controller's memory ---------------------------------------------------- */

static void know(struct slurm_model *s, struct job *job)
{
	if (s->known_count == s->known_cap) {
		s->known_cap = s->known_cap ? 2 * s->known_cap : 64;
		s->known = xrealloc(s->known, s->known_cap * sizeof(struct job *));
	}
	s->known[s->known_count++] = job;
	job->is_known = true;
}

static void leave_node(struct sim *sim, struct job *job)
{
	if (job->is_counted)
		sim->slurm.nodes[job->node].busy--;
	job->is_counted = false;
}

static void unknow(struct sim *sim, struct job *job)
{
	struct slurm_model *s = &sim->slurm;
	size_t i = 0;

	if (!job->is_known)
		return;
	while (s->known[i] != job)
		i++;
	memmove(s->known + i, s->known + i + 1, (--s->known_count - i) * sizeof(struct job *));
	job->is_known = false;
	job->stamp++;
	leave_node(sim, job);
}

void job_forget(struct sim *sim, struct job *job)
{
	job_fact(sim, FACT_JOB_FORGOTTEN, job);
	unknow(sim, job);
}

void job_add(struct sim *sim, struct job *job)
{
	job->next = sim->slurm.jobs;
	sim->slurm.jobs = job;
	know(&sim->slurm, job);
}

struct job *job_make(struct sim *sim, int run, int64_t number, const char *token,
		     const char *ledger_id, int64_t warn_ms, uint64_t excluded, bool needs_all)
{
	struct slurm_model *s = &sim->slurm;
	struct job *job = xcalloc(1, sizeof(*job));

	job->run = run;
	job->task = -1;
	job->number = number;
	job->made_ms = sim->now_ms;
	job->warn_ms = warn_ms;
	job->excluded = excluded;
	job->needs_all = needs_all;
	job->limit_ms = rng_range(&sim->rng, 6, 72) * HOUR;
	snprintf(job->status.ref.token, sizeof(job->status.ref.token), "%s", token);
	snprintf(job->status.ledger_id, sizeof(job->status.ledger_id), "%s", ledger_id);
	job->status.ref.job_id = s->next_id++;
	job->status.ref.submit_time = EPOCH_S + sim->now_ms / SECOND;
	job->first_submit_time = job->status.ref.submit_time;
	job_set_word(job, SJ_PENDING, SR_HELD_USER, 0);
	job_add(sim, job);
	if (sim->people[run].is_array)
		array_make(sim, job);
	job_fact(sim, FACT_JOB_MADE, job);
	if (sim->people[run].dependency != DEPENDENCY_NONE)
		job_fact(sim, FACT_JOB_DEPENDS, job);
	if (sim->control == CONTROL_PLAIN_SUBMIT)
		array_release(sim, job);
	return job;
}

struct job *job_find(struct sim *sim, const struct job_ref *ref)
{
	struct slurm_model *s = &sim->slurm;
	struct job *found = NULL;

	for (size_t i = 0; i < s->known_count; i++) {
		const struct job_ref *at = &s->known[i]->status.ref;
		bool is_it = at->job_id == ref->job_id && at->submit_time == ref->submit_time &&
			     strcmp(at->token, ref->token) == 0;

		if (is_it && (found == NULL || !job_is_live(found)))
			found = s->known[i];
	}
	return found;
}

/* --- start ------------------------------------------------------------------------------------ */

/* The local scheduler lives and dies with lbd; its jobs live on, and are found again. */
static bool is_answering(const struct sim *sim)
{
	return (!sim->is_local || daemon_is_awake(sim)) &&
	       sim->now_ms >= sim->slurm.down_until_ms && sim->now_ms >= sim->slurm.frozen_until_ms;
}

static int free_node(struct sim *sim, uint64_t excluded)
{
	int first = (int)rng_range(&sim->rng, 0, NODES - 1);

	for (int i = 0; i < NODES; i++) {
		struct node *node = &sim->slurm.nodes[(first + i) % NODES];
		bool may_be_used = (excluded >> (first + i) % NODES & 1) == 0;

		if (may_be_used && node->busy < SLOTS && sim->now_ms >= node->down_until_ms)
			return (first + i) % NODES;
	}
	return -1;
}

static void on_limit(struct sim *sim, void *arg, uint64_t stamp)
{
	struct job *job = arg;

	if (job->stamp != stamp || job->status.phase != JOB_RUNNING)
		return;
	if (is_answering(sim))
		job_end(sim, job, SJ_TIMEOUT, SR_TIME_LIMIT);
	else
		sim_after(sim, MINUTE, on_limit, job, stamp);
}

static void on_warning(struct sim *sim, void *arg, uint64_t stamp)
{
	struct job *job = arg;

	if (job->stamp == stamp && job->status.phase == JOB_RUNNING && job->lbrun &&
	    is_answering(sim))
		lbrun_warn(sim, job->lbrun);
}

/* The nodes behind the first, on which nothing but ranks runs: those have no slots. */
static char *spread(const struct sim *sim, struct job *job)
{
	int node, count = 0;

	for (int i = 1; i < NODES && count < FAR_RANKS; i++) {
		node = (job->node + i) % NODES;
		if (sim->now_ms >= sim->slurm.nodes[node].down_until_ms &&
		    (job->excluded >> node & 1) == 0)
			job->others[count++] = node;
	}
	return xasprintf("n%d,n%d,n%d", job->node, job->others[0], job->others[1]);
}

static void be_running(struct sim *sim, struct job *job, int node)
{
	char *nodes;

	job->node = node;
	job->is_counted = true;
	sim->slurm.nodes[node].busy++;
	job->started_ms = sim->now_ms;
	job->status.start_time = EPOCH_S + sim->now_ms / SECOND;
	nodes = sim->people[job->run].is_spread ? spread(sim, job) : xasprintf("n%d", node);
	strv_add(&sim->slurm.node_lists, nodes);
	job->status.nodes = nodes;
	job_set_word(job, SJ_RUNNING, SR_NONE, 0);
	job->stamp++;
	job_fact(sim, FACT_JOB_STARTED, job);
	if (rng_chance(&sim->rng, sim->climate.start_crash))
		controller_crash_soon(sim);
}

static void start_on(struct sim *sim, struct job *job, int node)
{
	be_running(sim, job, node);
	sim_fact(sim, FACT_JOB_PLACED, job->run, job->number, node,
		 sim->people[job->run].is_spread);
	sim_after(sim, job->limit_ms, on_limit, job, job->stamp);
	if (job->warn_ms)
		sim_after(sim, job->limit_ms - job->warn_ms, on_warning, job, job->stamp);
	lbrun_start(sim, job);
}

/* Where the controller has died meanwhile, what slurmd said is lost, and the job goes on. */
static void on_not_taken(struct sim *sim, void *arg, uint64_t stamp)
{
	struct job *job = arg;

	if (job->stamp == stamp && job->status.phase == JOB_RUNNING && is_answering(sim))
		job_cancel(sim, job, SLURMD_UID);
}

/* slurmd: "already running, do not launch second copy"; as it must not be requeued, it is
 * cancelled. */
static void start_again(struct sim *sim, struct job *job)
{
	be_running(sim, job, job->node);
	sim_after(sim, job->limit_ms, on_limit, job, job->stamp);
	sim_after(sim, rng_range(&sim->rng, 0, 2 * SECOND), on_not_taken, job, job->stamp);
}

/* Of those that a run of several asks for some were lost with its first job. */
bool nodes_are_missing(const struct sim *sim, int run)
{
	return sim->people[run].loses_nodes && sim->disk.runs[run].checkpoint_step > 0 &&
	       sim->now_ms < sim->people[run].nodes_back_ms;
}

static void on_start(struct sim *sim, void *arg, uint64_t stamp)
{
	struct job *job = arg;
	int node;

	if (job->stamp != stamp || job->status.phase != JOB_PENDING)
		return;
	if (job->is_doubled && job->lbrun && is_answering(sim)) {
		start_again(sim, job);
		return;
	}
	if (job->needs_all && nodes_are_missing(sim, job->run)) {
		job_set_word(job, SJ_PENDING, SR_RESOURCES, 0);
		sim_after(sim, MINUTE, on_start, job, stamp);
		return;
	}
	node = is_answering(sim) && job->lbrun == NULL && array_has_room(sim, job)
		       ? free_node(sim, job->excluded)
		       : -1;
	if (node >= 0)
		start_on(sim, job, node);
	else
		sim_after(sim, MINUTE, on_start, job, stamp);
}

static void queue(struct sim *sim, struct job *job)
{
	job_set_word(job, SJ_PENDING, SR_PRIORITY, 0);
	/* some clusters are empty */
	sim_after(sim,
		  rng_chance(&sim->rng, 0.1) ? rng_range(&sim->rng, 0, 2 * SECOND)
					     : rng_exp(&sim->rng, (double)sim->climate.queue_ms),
		  on_start, job, ++job->stamp);
}

/* --- end -------------------------------------------------------------------------------------- */

static void on_purge(struct sim *sim, void *arg, uint64_t stamp)
{
	struct job *job = arg;

	if (job->stamp != stamp || !job->is_known)
		return;
	if (is_answering(sim))
		unknow(sim, job);
	else
		sim_after(sim, MINUTE, on_purge, job, stamp);
}

static void on_freed(struct sim *sim, void *arg, uint64_t stamp)
{
	struct job *job = arg;

	if (job->stamp != stamp)
		return;
	job->status.phase = JOB_ENDED;
	job->state &= SJ_MASK;
	leave_node(sim, job);
	sim_after(sim, MIN_JOB_AGE_MS + rng_range(&sim->rng, 0, MINUTE), on_purge, job, stamp);
}

/* Over, as the controller sees it; its node may take a moment to be free. */
static void be_over(struct sim *sim, struct job *job, uint32_t state, uint32_t reason,
		    uint32_t exit_code)
{
	int64_t wait_ms = job->lbrun ? KILL_WAIT_MS + 5000 : rng_range(&sim->rng, 0, 5000);

	job_set_word(job, state | SJ_COMPLETING, reason, exit_code);
	job->status.end_time = EPOCH_S + sim->now_ms / SECOND;
	task_fact(sim, FACT_JOB_OVER, job);
	sim_after(sim, wait_ms, on_freed, job, ++job->stamp);
}

static void on_kill_wait(struct sim *sim, void *arg, uint64_t stamp)
{
	struct job *job = arg;

	(void)stamp;
	if (job->lbrun && sim->now_ms >= job->lbrun->frozen_until_ms)
		lbrun_vanish(sim, job->lbrun);
	else if (job->lbrun)
		sim_after(sim, 10 * SECOND, on_kill_wait, job, 0);
}

void job_end(struct sim *sim, struct job *job, enum slurm_state state, enum slurm_reason reason)
{
	bool ran = job->status.phase == JOB_RUNNING;

	if (!job_is_live(job))
		return;
	be_over(sim, job, state, reason, ran && state != SJ_NODE_FAIL ? SIGTERM : 0);
	/* who cannot be reached cannot be signalled */
	if (!ran || job->lbrun == NULL || (state == SJ_NODE_FAIL && !far_is_hit(sim, job->lbrun)))
		return;
	sim_after(sim, KILL_WAIT_MS, on_kill_wait, job, 0);
	lbrun_signal(sim, job->lbrun, SIGTERM);
}

/* Slurm lets it begin again after two minutes, once it is its turn. */
void job_requeue(struct sim *sim, struct job *job)
{
	job->status.restart_count++;
	job->status.ref.submit_time = EPOCH_S + sim->now_ms / SECOND;
	job_set_word(job, SJ_PENDING, SR_BEGIN_TIME, 0);
	sim_after(sim, 2 * MINUTE + rng_exp(&sim->rng, 15.0 * MINUTE), on_start, job, ++job->stamp);
	leave_node(sim, job);
	if (job->lbrun == NULL)
		return;
	sim_after(sim, KILL_WAIT_MS, on_kill_wait, job, 0);
	lbrun_signal(sim, job->lbrun, SIGTERM);
}

static void on_kill_invalid(struct sim *sim, void *arg, uint64_t stamp)
{
	struct job *job = arg;

	if (job->stamp == stamp && is_answering(sim))
		job_end(sim, job, SJ_CANCELLED, SR_DEPENDENCY_NEVER);
}

/* What the controller has forgotten counts as satisfied. */
static bool is_doomed(const struct sim *sim, const struct job *job)
{
	const struct person *p = &sim->people[job->run];

	return p->dependency != DEPENDENCY_NONE && sim->now_ms < p->failed_until_ms;
}

static void never_start(struct sim *sim, struct job *job)
{
	job_set_word(job, SJ_PENDING, SR_DEPENDENCY_NEVER, 0);
	job_fact(sim, FACT_DEPENDENCY_FAILED, job);
	job->stamp++;
	if (sim->people[job->run].dependency == DEPENDENCY_KILLS)
		sim_after(sim, rng_range(&sim->rng, 0, 5 * SECOND), on_kill_invalid, job,
			  job->stamp);
}

void job_release(struct sim *sim, struct job *job)
{
	if (job->status.phase != JOB_HELD)
		return;
	job->released_ms = sim->now_ms;
	if (is_doomed(sim, job))
		never_start(sim, job);
	else
		queue(sim, job);
}

/* slurmd registers with what it runs, and is told to end what should not. */
static void on_registered(struct sim *sim, void *arg, uint64_t stamp)
{
	struct job *job = arg;

	(void)stamp;
	if (job->lbrun == NULL || job->status.phase == JOB_RUNNING)
		return;
	sim_after(sim, KILL_WAIT_MS, on_kill_wait, job, 0);
	lbrun_signal(sim, job->lbrun, SIGTERM);
}

void job_unrelease(struct sim *sim, struct job *job)
{
	job->stamp++;
	job_set_word(job, SJ_PENDING, SR_HELD_USER, 0);
	job_fact(sim, FACT_JOB_UNRELEASED, job);
}

/* Its node asked the controller that died whether it may launch it. It launches nothing then, and
 * as the job may not be requeued has it cancelled, when the new controller takes it for one that
 * waits. */
static void on_unconfirmed(struct sim *sim, void *arg, uint64_t stamp)
{
	struct job *job = arg;

	if (job->stamp != stamp || job->status.phase != JOB_PENDING)
		return;
	if (is_answering(sim))
		job_cancel(sim, job, SLURMD_UID);
	else
		sim_after(sim, rng_range(&sim->rng, 1, 20) * SECOND, on_unconfirmed, job, stamp);
}

void job_unstart(struct sim *sim, struct job *job, bool is_released)
{
	bool is_unconfirmed = is_released && job->lbrun && !job->lbrun->has_begun &&
			      rng_chance(&sim->rng, 0.5);

	job->is_doubled = is_released && job->lbrun && !is_unconfirmed &&
			  rng_chance(&sim->rng, 0.5);
	job->status.nodes = "";
	job->status.start_time = 0;
	leave_node(sim, job);
	if (is_released)
		queue(sim, job);
	else
		job_unrelease(sim, job);
	if (is_unconfirmed) {
		lbrun_vanish(sim, job->lbrun);
		sim_after(sim, SECOND, on_unconfirmed, job, job->stamp);
	}
	if (job->lbrun && !job->is_doubled)
		sim_after(sim, rng_range(&sim->rng, 1, 300) * SECOND, on_registered, job, 0);
}

void job_lose(struct sim *sim, struct job *job)
{
	if (job->lbrun)
		lbrun_vanish(sim, job->lbrun);
	be_over(sim, job, SJ_FAILED, SR_NONE, 0);
	job->status.cause = CAUSE_LOST;
}

void job_cancel(struct sim *sim, struct job *job, uint32_t uid)
{
	if (job_is_live(job)) {
		job->status.has_canceller = true;
		job->status.canceller = uid;
	}
	job_end(sim, job, SJ_CANCELLED, SR_NONE);
}

static void on_report(struct sim *sim, void *arg, uint64_t stamp)
{
	struct job *job = arg;
	int status = (int)(stamp & 0xff);

	/* of one that it has forgotten the controller takes no word, nor does accounting then */
	if (job->stamp != stamp >> 8 || job->status.phase != JOB_RUNNING || !job->is_known)
		return;
	if (!is_answering(sim))
		sim_after(sim, rng_range(&sim->rng, 1, 30) * SECOND, on_report, job, stamp);
	else if (status == 0)
		be_over(sim, job, SJ_COMPLETE, SR_NONE, 0);
	else
		be_over(sim, job, SJ_FAILED, SR_EXIT_CODE, (uint32_t)status << 8);
}

void job_report(struct sim *sim, struct job *job, int exit_status)
{
	job->lbrun = NULL;
	sim_after(sim, rng_range(&sim->rng, 5, 500), on_report, job,
		  job->stamp << 8 | (unsigned)exit_status);
}
