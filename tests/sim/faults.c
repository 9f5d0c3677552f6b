/* SPDX-License-Identifier: MIT */
/* faults.c - what befalls a world until it becomes quiet. */
#include <signal.h>

#include "tests/sim/arrays.h"
#include "tests/sim/sim.h"

static void fault(struct sim *sim, enum fault what, int run)
{
	sim_fact(sim, FACT_FAULT, run, 0, what, 0);
}

/* --- the controller --------------------------------------------------------------------------- */

static void on_better(struct sim *sim, void *arg, uint64_t stamp)
{
	(void)arg;
	fault(sim, (enum fault)stamp, -1);
}

static void vanish_later(struct sim *sim, void *arg, uint64_t stamp)
{
	struct job *job = arg;

	(void)stamp;
	if (job->lbrun)
		lbrun_vanish(sim, job->lbrun);
}

static void job_fact(struct sim *sim, enum fact_kind kind, const struct job *job)
{
	sim_fact(sim, kind, job->run, job->number, job->status.ref.job_id, job->first_submit_time);
}

/* What the controller did after `saved_ms` has not happened. true: the job itself is gone. */
static bool undo(struct sim *sim, struct job *job, int64_t saved_ms)
{
	if (job->made_ms > saved_ms) {
		if (job->status.ref.job_id < sim->slurm.next_id)
			sim->slurm.next_id = job->status.ref.job_id;
		job_forget(sim, job);
		sim_after(sim, rng_range(&sim->rng, 0, 5 * SECOND), vanish_later, job, 0);
		return true;
	}
	if (job->status.phase == JOB_RUNNING && job->started_ms > saved_ms)
		job_unstart(sim, job, job->released_ms <= saved_ms);
	else if (job->status.phase == JOB_PENDING && job->released_ms > saved_ms)
		job_unrelease(sim, job);
	return false;
}

static void controller_crash(struct sim *sim)
{
	struct slurm_model *s = &sim->slurm;
	int64_t saved_ms = sim->now_ms - rng_range(&sim->rng, 0, SAVE_MS);
	int64_t away_ms = 2 * SECOND + rng_exp(&sim->rng, 5.0 * MINUTE);

	fault(sim, FAULT_CONTROLLER_CRASH, -1);
	for (size_t i = 0; i < s->known_count;)
		i += !undo(sim, s->known[i], saved_ms);
	s->down_until_ms = sim->now_ms + away_ms;
	sim_after(sim, away_ms, on_better, NULL, FAULT_CONTROLLER_BACK);
}

static void on_crash(struct sim *sim, void *arg, uint64_t stamp)
{
	(void)arg;
	(void)stamp;
	if (sim->now_ms >= sim->slurm.down_until_ms)
		controller_crash(sim);
}

void controller_crash_soon(struct sim *sim)
{
	sim_after(sim, rng_range(&sim->rng, 0, SAVE_MS), on_crash, NULL, 0);
}

static void controller_freeze(struct sim *sim)
{
	int64_t away_ms = 10 * SECOND + rng_exp(&sim->rng, 3.0 * MINUTE);

	fault(sim, FAULT_CONTROLLER_FROZEN, -1);
	sim->slurm.frozen_until_ms = sim->now_ms + away_ms;
	sim_after(sim, away_ms, on_better, NULL, FAULT_CONTROLLER_THAWED);
}

/* Processes die with their jobs' records, or live on for a while. */
static void cold_start(struct sim *sim)
{
	struct slurm_model *s = &sim->slurm;
	bool survive = rng_chance(&sim->rng, 0.5);

	fault(sim, FAULT_COLD_START, -1);
	while (s->known_count > 0) {
		struct job *job = s->known[0];
		double mean = survive ? 4.0 * HOUR : 2.0 * SECOND;

		job_forget(sim, job);
		sim_after(sim, rng_exp(&sim->rng, mean), vanish_later, job, 0);
	}
	s->next_id = 1;
	s->down_until_ms = sim->now_ms + rng_range(&sim->rng, 2, 120) * SECOND;
}

/* --- nodes ------------------------------------------------------------------------------------ */

static void on_node_fail(struct sim *sim, void *arg, uint64_t stamp)
{
	struct job *job = arg;

	if (job->stamp != stamp || job->status.phase != JOB_RUNNING)
		return;
	if (sim->now_ms < sim->slurm.down_until_ms || sim->now_ms < sim->slurm.frozen_until_ms)
		sim_after(sim, MINUTE, on_node_fail, job, stamp);
	else
		job_end(sim, job, SJ_NODE_FAIL, SR_NODE_DOWN);
}

/* slurmd registers again, and ends what is no job of the controller's any more. */
static void on_node_back(struct sim *sim, void *arg, uint64_t stamp)
{
	struct node *node = arg;
	int number = (int)(node - sim->slurm.nodes);

	(void)stamp;
	fault(sim, FAULT_NODE_BACK, -1);
	for (struct lbrun *p = sim->lbruns.all, *next; p; p = next) {
		next = p->next;
		if (p->node == number && !p->is_over && p->job->status.phase != JOB_RUNNING)
			lbrun_vanish(sim, p);
	}
}

static void hit_jobs(struct sim *sim, int node, enum fault what, int64_t away_ms,
		     int64_t noticed_ms)
{
	const struct lbruns *all = &sim->lbruns;
	struct lbrun *hit[sizeof(all->live) / sizeof(all->live[0])];
	size_t count = 0;

	for (size_t i = 0; i < all->live_count; i++)
		if (all->live[i]->node == node || far_is_on(all->live[i], node))
			hit[count++] = all->live[i];
	for (size_t i = 0; i < count; i++) {
		struct job *job = hit[i]->job;
		bool is_host = hit[i]->node == node;

		if (what == FAULT_NODE_DIED && is_host)
			lbrun_vanish(sim, hit[i]);
		else if (what == FAULT_NODE_FROZEN && is_host)
			lbrun_freeze(sim, hit[i], sim->now_ms + away_ms);
		if (what != FAULT_NODE_FROZEN || away_ms > noticed_ms)
			sim_after(sim, noticed_ms, on_node_fail, job, job->stamp);
	}
}

static void node_fault(struct sim *sim)
{
	static const enum fault kinds[] = { FAULT_NODE_DIED, FAULT_NODE_LOST, FAULT_NODE_FROZEN };
	enum fault what = kinds[rng_range(&sim->rng, 0, 2)];
	int64_t away_ms = 30 * SECOND + rng_exp(&sim->rng, 1.0 * HOUR);
	int64_t noticed_ms = rng_range(&sim->rng, 15, 300) * SECOND;
	int number = (int)rng_range(&sim->rng, 0, NODES - 1);
	struct node *node = &sim->slurm.nodes[number];

	if (sim->now_ms < node->down_until_ms)
		return;
	if (what != FAULT_NODE_FROZEN && away_ms < noticed_ms)
		away_ms = noticed_ms + MINUTE;
	fault(sim, what, -1);
	node->down_until_ms = sim->now_ms + away_ms;
	if (what == FAULT_NODE_LOST)
		node->cut_until_ms = node->down_until_ms;
	if (what == FAULT_NODE_FROZEN)
		node->frozen_until_ms = node->down_until_ms;
	hit_jobs(sim, number, what, away_ms, noticed_ms);
	far_hit(sim, number, what == FAULT_NODE_DIED);
	sim_after(sim, away_ms + rng_range(&sim->rng, 0, MINUTE), on_node_back, node, 0);
}

/* Whoever could have known, and is still there. */
static void overtake(struct sim *sim, int number)
{
	const struct node *node = &sim->slurm.nodes[number];

	for (size_t i = 0; i < sim->lbruns.live_count; i++) {
		const struct lbrun *p = sim->lbruns.live[i];
		bool is_well = p->facts.claim == CLAIM_OURS &&
			       p->frozen_until_ms < node->announced_ms && p->job->is_known &&
			       p->job->status.phase == JOB_RUNNING;

		if (p->node == number && is_well)
			sim_fact(sim, FACT_OVERTAKEN, p->run, p->folder->number, node->announced_ms,
				 0);
	}
}

static void on_taken(struct sim *sim, void *arg, uint64_t stamp)
{
	struct node *node = arg;
	int number = (int)(node - sim->slurm.nodes);

	(void)stamp;
	fault(sim, FAULT_NODE_TAKEN, -1);
	if (node->is_reserved &&
	    sim->daemon.wall_offset_ms == 0) /* else lbd takes the time for another */
		overtake(sim, number);
	node->leaves_ms = 0;
	hit_jobs(sim, number, FAULT_NODE_DIED, node->down_until_ms - sim->now_ms,
		 rng_range(&sim->rng, 15, 300) * SECOND);
	far_hit(sim, number, true);
}

/* Nothing new begins there from now on. */
static void outage(struct sim *sim)
{
	struct node *node = &sim->slurm.nodes[rng_range(&sim->rng, 0, NODES - 1)];
	int64_t in_ms = 5 * MINUTE + rng_exp(&sim->rng, 2.0 * HOUR);
	int64_t away_ms = 30 * MINUTE + rng_exp(&sim->rng, 3.0 * HOUR);

	if (sim->now_ms < node->down_until_ms)
		return;
	fault(sim, FAULT_NODE_LEAVES, -1);
	node->announced_ms = sim->now_ms;
	node->leaves_ms = sim->now_ms + in_ms;
	node->down_until_ms = node->leaves_ms + away_ms;
	node->is_reserved = rng_chance(&sim->rng, 0.5);
	sim_after(sim, in_ms, on_taken, node, 0);
	sim_after(sim, in_ms + away_ms, on_node_back, node, 0);
}

/* It takes jobs, and what runs there mostly fails. */
static void broken_node(struct sim *sim)
{
	struct node *node = &sim->slurm.nodes[rng_range(&sim->rng, 0, NODES - 1)];

	fault(sim, FAULT_NODE_BROKEN, -1);
	node->broken_until_ms = sim->now_ms + HOUR + rng_exp(&sim->rng, 6.0 * HOUR);
}

static void on_end_meanwhile(struct sim *sim, void *arg, uint64_t stamp)
{
	struct job *job = arg;

	if (job->stamp == stamp && job->status.phase == JOB_RUNNING &&
	    sim->now_ms >= sim->slurm.down_until_ms && sim->now_ms >= sim->slurm.frozen_until_ms) {
		fault(sim, FAULT_PREEMPTED, job->run);
		job_end(sim, job, SJ_PREEMPTED, SR_NONE);
	}
}

static void on_kill_meanwhile(struct sim *sim, void *arg, uint64_t stamp)
{
	struct lbrun *p = arg;

	(void)stamp;
	if (p->is_over || lbrun_is_frozen(sim, p))
		return;
	fault(sim, FAULT_LBRUN_KILLED, p->run);
	lbrun_signal(sim, p, SIGKILL);
}

/* One with ranks on other nodes; NULL: there is none. */
static struct lbrun *any_with_far_ranks(struct sim *sim)
{
	const struct lbruns *all = &sim->lbruns;
	size_t count = all->live_count;
	size_t from = count > 0 ? (size_t)rng_range(&sim->rng, 0, (int64_t)count - 1) : 0;

	for (size_t i = 0; i < count; i++) {
		if (all->live[(from + i) % count]->far)
			return all->live[(from + i) % count];
	}
	return NULL;
}

/* The network fails between the nodes of a run, and before that is known its job ends, or lbrun. */
static void cut(struct sim *sim)
{
	struct lbrun *p = any_with_far_ranks(sim);
	struct node *node;
	int64_t in_ms = rng_range(&sim->rng, 0, 20 * SECOND);

	if (!p)
		return;
	node = &sim->slurm.nodes[p->far->ranks[rng_range(&sim->rng, 0, FAR_RANKS - 1)].node];
	fault(sim, FAULT_NODE_CUT, p->run);
	node->cut_until_ms = sim->now_ms + rng_range(&sim->rng, 5, 300) * SECOND;
	far_hit(sim, (int)(node - sim->slurm.nodes), false);
	if (rng_chance(&sim->rng, 0.4))
		sim_after(sim, in_ms, on_end_meanwhile, p->job, p->job->stamp);
	else if (rng_chance(&sim->rng, 0.5))
		sim_after(sim, in_ms, on_kill_meanwhile, p, 0);
}

/* --- single jobs ------------------------------------------------------------------------------ */

static bool is_controller_well(const struct sim *sim)
{
	return sim->now_ms >= sim->slurm.down_until_ms && sim->now_ms >= sim->slurm.frozen_until_ms;
}

static struct job *some_job(struct sim *sim)
{
	const struct slurm_model *s = &sim->slurm;
	struct job *job;

	if (s->known_count == 0 || !is_controller_well(sim))
		return NULL;
	job = s->known[rng_range(&sim->rng, 0, (int64_t)s->known_count - 1)];
	return job_is_live(job) ? job : NULL;
}

static void preemption(struct sim *sim)
{
	struct job *job = some_job(sim);

	if (job == NULL || job->status.phase != JOB_RUNNING)
		return;
	fault(sim, FAULT_PREEMPTED, job->run);
	job_end(sim, job, SJ_PREEMPTED, SR_NONE);
}

static void admin_cancel(struct sim *sim)
{
	static const uint32_t uids[] = { SLURMD_UID, OPERATOR_UID, OWNER_UID };
	struct job *job = some_job(sim);

	if (job == NULL)
		return;
	job_fact(sim, FACT_JOB_CANCELLED, job);
	array_cancel(sim, job, uids[rng_range(&sim->rng, 0, 2)], ALL_TASKS);
}

static void admin_requeue(struct sim *sim)
{
	struct job *job = some_job(sim);

	if (job == NULL || job->status.phase != JOB_RUNNING)
		return;
	sim_fact(sim, FACT_FAULT, task_number(job->run, job->task), job->number, FAULT_REQUEUED, 0);
	job_requeue(sim, job);
}

static void lbrun_kill(struct sim *sim)
{
	const struct lbruns *all = &sim->lbruns;
	struct lbrun *p;

	if (all->live_count == 0)
		return;
	p = all->live[rng_range(&sim->rng, 0, (int64_t)all->live_count - 1)];
	if (sim->now_ms < p->frozen_until_ms)
		return;
	fault(sim, FAULT_LBRUN_KILLED, p->run);
	lbrun_signal(sim, p, SIGKILL);
}

/* --- the disk --------------------------------------------------------------------------------- */

static void disk_full(struct sim *sim)
{
	int64_t full_ms = 5 * SECOND + rng_exp(&sim->rng, rng_chance(&sim->rng, 0.2)
								  ? 1.0 * HOUR
								  : 2.0 * MINUTE);

	if (disk_is_full(&sim->disk, sim->now_ms))
		return;
	fault(sim, FAULT_DISK_FULL, -1);
	sim->disk.full_until_ms = sim->now_ms + full_ms;
	sim_after(sim, full_ms, on_better, NULL, FAULT_DISK_FREE);
}

/* --- lbd's host ------------------------------------------------------------------------------- */

static void clock_jump(struct sim *sim)
{
	static const int64_t jumps[] = { HOUR, -HOUR, DAY, -DAY };
	/* none by a time limit to the second: an attempt that lbd was not there for, and that by
	 * the clock was over at once, can not be told from one that was */
	int64_t uneven_ms = rng_range(&sim->rng, MINUTE, HOUR / 2);

	fault(sim, FAULT_CLOCK_JUMP, -1);
	sim->daemon.wall_offset_ms = rng_chance(&sim->rng, 0.3)
					     ? 0
					     : jumps[rng_range(&sim->rng, 0, 3)] + uneven_ms;
}

static void reboot(struct sim *sim)
{
	const struct slurm_model *s = &sim->slurm;

	fault(sim, FAULT_REBOOT, -1);
	daemon_crash(sim);
	for (size_t i = 0; i < s->known_count; i++)
		if (s->known[i]->status.phase == JOB_RUNNING)
			job_lose(sim, s->known[i]);
}

/* --- the table -------------------------------------------------------------------------------- */

static const struct {
	size_t mean; /* offset in struct climate */
	void (*happen)(struct sim *sim);
} table[] = {
	{ offsetof(struct climate, controller_crash), controller_crash },
	{ offsetof(struct climate, controller_freeze), controller_freeze },
	{ offsetof(struct climate, cold_start), cold_start },
	{ offsetof(struct climate, node_fault), node_fault },
	{ offsetof(struct climate, preemption), preemption },
	{ offsetof(struct climate, admin_cancel), admin_cancel },
	{ offsetof(struct climate, admin_requeue), admin_requeue },
	{ offsetof(struct climate, lbrun_kill), lbrun_kill },
	{ offsetof(struct climate, daemon_crash), daemon_crash },
	{ offsetof(struct climate, daemon_freeze), daemon_freeze },
	{ offsetof(struct climate, clock_jump), clock_jump },
	{ offsetof(struct climate, reboot), reboot },
	{ offsetof(struct climate, disk_full), disk_full },
	{ offsetof(struct climate, broken_node), broken_node },
	{ offsetof(struct climate, outage), outage },
	{ offsetof(struct climate, cut), cut },
	{ offsetof(struct climate, task_cancel), array_cancel_some },
};

static double mean_of(const struct sim *sim, size_t which)
{
	return *(const double *)(const void *)((const char *)&sim->climate + table[which].mean);
}

static void on_fault(struct sim *sim, void *arg, uint64_t which)
{
	double mean = mean_of(sim, which);

	if (sim->is_quiet)
		return;
	table[which].happen(sim);
	sim_after(sim, rng_exp(&sim->rng, mean), on_fault, arg, which);
}

void faults_begin(struct sim *sim)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (mean_of(sim, i) > 0)
			sim_after(sim, rng_exp(&sim->rng, mean_of(sim, i)), on_fault, NULL, i);
}
