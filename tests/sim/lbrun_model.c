/* SPDX-License-Identifier: MIT */
/* lbrun_model.c - the shell around lbrun's heart: what it sees of the world, and what its steps
 * do. */
#include "tests/sim/lbrun_model.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/mem.h"
#include "tests/sim/arrays.h"
#include "tests/sim/lbrun_process.h"
#include "tests/sim/sim.h"

enum {
	LOOK_MS = 2000, /* it looks for newer claims and orders this often */
	STUCK_STEPS = 1000,
	EXIT_KILLED = 128 + SIGKILL,
};

/* --- the end of the process ------------------------------------------------------------------- */

/* Its trainer is gone with it, and nobody judged that. */
static void lose_trainer(struct sim *sim, struct lbrun *p)
{
	const struct launch *l = &p->facts.launch;

	trainer_vanish(sim, p);
	if (p->has_begun && l->is_open)
		lbrun_fact(sim, p, FACT_TRAINER_ENDED, l->number,
			   CAUSE_LOST + (l->has_saved ? 100 : 0));
}

static void die(struct sim *sim, struct lbrun *p)
{
	static const struct ending killed = { .cause = CAUSE_LOST,
					      .exit_code = -1,
					      .signal = SIGKILL };

	lose_trainer(sim, p);
	if (p->has_begun && p->facts.claim == CLAIM_OURS && !p->facts.is_recorded &&
	    !disk_is_full(&sim->disk, sim->now_ms))
		lbrun_write_exit(sim, p, &killed);
	if (p->has_begun && p->facts.claim == CLAIM_OURS)
		task_leave(sim, p);
	lbrun_leave(sim, p);
	job_report(sim, p->job, EXIT_KILLED);
}

void lbrun_vanish(struct sim *sim, struct lbrun *p)
{
	if (p->is_over)
		return;
	lose_trainer(sim, p);
	lbrun_leave(sim, p);
	p->job->lbrun = NULL;
}

/* --- what it sees ----------------------------------------------------------------------------- */

static void gather(struct sim *sim, struct lbrun *p)
{
	struct shepherd_facts *f = &p->facts;

	f->is_full = !lbrun_write_kept(sim, p);
	f->full_ms = p->full_ms;
	f->hung_at_ms = p->trainer.hung_at_ms;
	f->stacks = STACKS_DONE;
	f->handed = p->handed;
}

/* A control is an lbrun that is blind to one thing. */
static struct next decide(struct sim *sim, const struct lbrun *p)
{
	struct shepherd_facts seen;

	if (sim->control == CONTROL_NONE || sim->control == CONTROL_PLAIN_SUBMIT ||
	    sim->control == CONTROL_NO_NODES || sim->control == CONTROL_NO_OUTAGES ||
	    sim->control == CONTROL_NO_MARKS || sim->control == CONTROL_NO_SCANCEL)
		return shepherd_decide(&p->facts, &p->policy, sim->now_ms);
	seen = p->facts;
	if (sim->control == CONTROL_NO_CLAIM)
		seen.newest_claim = 0;
	if (sim->control == CONTROL_NO_CLAIM || sim->control == CONTROL_NO_WAIT)
		seen.older_may_live = false;
	if (sim->control == CONTROL_NO_CLEAR)
		seen.launch.left = 0;
	if (sim->control == CONTROL_NO_BLAME)
		seen.launch.has_come_further = true;
	if (sim->control == CONTROL_NO_CHECK && seen.check == CHECK_BROKEN)
		seen.check = CHECK_WELL;
	if (sim->control == CONTROL_NO_GOING_ON)
		seen.goes_on = false;
	if (sim->control == CONTROL_NO_RANKS)
		seen.older_left_ranks = false;
	if (sim->control == CONTROL_NO_WORDS)
		seen.launch.srun_ends_ms = 0;
	if (sim->control == CONTROL_NO_ROOM)
		seen.closed_ms = INT64_MIN / 2;
	return shepherd_decide(&seen, &p->policy, sim->now_ms);
}

/* --- a turn ----------------------------------------------------------------------------------- */

static void stuck(struct sim *sim, const struct lbrun *p, const struct next *next)
{
	printf("sim: seed %llu: lbrun takes step after step at one moment: %s\n",
	       (unsigned long long)sim->seed, next_name(next->kind));
	history_print(&sim->history, p->run, sim->now_ms, 100, stdout);
	fflush(stdout);
	abort();
}

static void on_turn(struct sim *sim, void *arg, uint64_t stamp)
{
	struct lbrun *p = arg;

	if (p->stamp == stamp)
		lbrun_turn(sim, p);
}

void lbrun_turn(struct sim *sim, struct lbrun *p)
{
	struct next next = { .kind = NEXT_LOOK };

	if (p->is_over || !p->has_begun)
		return;
	if (lbrun_is_frozen(sim, p)) {
		agenda_add(&sim->agenda, p->frozen_until_ms, on_turn, p, ++p->stamp);
		return;
	}
	for (int i = 0; !p->is_over && next.kind != NEXT_WAIT; i++) {
		gather(sim, p);
		next = decide(sim, p);
		shepherd_note(&p->facts, &p->policy, &next, sim->now_ms);
		lbrun_act(sim, p, &next);
		if (i > STUCK_STEPS)
			stuck(sim, p, &next);
	}
	if (!p->is_over && next.at_ms != INT64_MAX)
		agenda_add(&sim->agenda, next.at_ms, on_turn, p, ++p->stamp);
}

/* --- what comes to it ------------------------------------------------------------------------- */

/* As lbrun does every 2 s; here only when there is something to see. */
static void on_look(struct sim *sim, void *arg, uint64_t stamp)
{
	struct lbrun *p = arg;

	if (p->is_over || !p->has_begun)
		return;
	if (lbrun_is_frozen(sim, p)) {
		agenda_add(&sim->agenda, p->frozen_until_ms, on_look, p, stamp);
		return;
	}
	lbrun_look(sim, p);
	lbrun_turn(sim, p);
}

void lbrun_notice(struct sim *sim, const struct folder *folder)
{
	for (size_t i = 0; i < sim->lbruns.live_count; i++)
		if (sim->lbruns.live[i]->folder == folder)
			sim_after(sim, rng_range(&sim->rng, 0, LOOK_MS) + folder->delay_ms, on_look,
				  sim->lbruns.live[i], 0);
}

static void on_signal(struct sim *sim, void *arg, uint64_t signo)
{
	struct lbrun *p = arg;

	if (p->is_over)
		return;
	if (lbrun_is_frozen(sim, p) || !p->has_begun) {
		int64_t at_ms = lbrun_is_frozen(sim, p) ? p->frozen_until_ms : sim->now_ms + 100;

		agenda_add(&sim->agenda, at_ms, on_signal, p, signo);
		return;
	}
	if (signo == SIGUSR1) {
		p->facts.is_warned = true;
	} else {
		lbrun_look(sim, p);
		if (p->facts.signalled != SIGQUIT)
			p->facts.signalled = (int)signo;
	}
	lbrun_turn(sim, p);
}

void lbrun_signal(struct sim *sim, struct lbrun *p, int signo)
{
	if (signo == SIGKILL)
		die(sim, p);
	else
		on_signal(sim, p, (uint64_t)signo);
}

void lbrun_warn(struct sim *sim, struct lbrun *p)
{
	if (lbrun_is_frozen(sim, p) || !p->has_begun || p->is_over)
		return;
	lbrun_fact(sim, p, FACT_WARNED, p->facts.launch.number, 0);
	on_signal(sim, p, SIGUSR1);
}

/* All that was due meanwhile is due now: a look first of all. */
static void on_thaw(struct sim *sim, void *arg, uint64_t stamp)
{
	struct lbrun *p = arg;

	if (p->is_over || p->frozen_until_ms != (int64_t)stamp)
		return;
	if (!far_is_lease_over(sim, p))
		trainer_thaw(sim, p);
	far_stir(sim, p);
	sim_after(sim, p->folder->delay_ms, on_look, p, 0);
}

void lbrun_freeze(struct sim *sim, struct lbrun *p, int64_t until_ms)
{
	far_stir(sim, p);
	if (!lbrun_is_frozen(sim, p)) {
		p->frozen_from_ms = sim->now_ms;
		trainer_freeze(sim, p);
	}
	p->frozen_until_ms = until_ms;
	far_stir(sim, p);
	agenda_add(&sim->agenda, until_ms, on_thaw, p, (uint64_t)until_ms);
}

/* --- the beginning ---------------------------------------------------------------------------- */

/* As attempt.json has it by now. */
static void read_params(const struct sim *sim, struct lbrun *p)
{
	static int64_t never[] = { NEVER_EXIT_CODE };

	p->params = (struct attempt_params){
		.number = p->folder->number,
		.in_place = IN_PLACE,
		.without_progress = p->folder->without_progress,
		.max_without_progress = MAX_WITHOUT_PROGRESS,
		.kill_grace_ms = KILL_GRACE_MS,
		.stop_grace_ms = STOP_GRACE_MS,
		.kill_wait_ms = KILL_WAIT_MS,
		.warn_ms = WARN_MS,
		.preflight_ms = sim->people[p->run].checks_nodes ? PREFLIGHT_MS : 0,
		.preflight_tries = PREFLIGHT_TRIES,
		.never_on_exit_codes = never,
		.never_count = 1,
		.watch.node_ms = sim->people[p->run].is_spread ? NODE_TIMEOUT_MS : 0,
	};
	p->policy = (struct shepherd_policy){ .params = &p->params,
					      .in_slurm = true,
					      .is_srun = sim->people[p->run].is_spread,
					      .lease_ms = sim->people[p->run].is_spread
								  ? beat_lease_ms(NODE_TIMEOUT_MS)
								  : 0 };
	shepherd_begin(&p->facts, &p->policy);
}

static void on_begin(struct sim *sim, void *arg, uint64_t stamp)
{
	struct lbrun *p = arg;

	(void)stamp;
	if (p->is_over)
		return;
	if (lbrun_is_frozen(sim, p)) {
		agenda_add(&sim->agenda, p->frozen_until_ms, on_begin, p, 0);
		return;
	}
	if (task_enter(sim, p)) {
		lbrun_leave(sim, p);
		job_report(sim, p->job, 0);
		return;
	}
	read_params(sim, p);
	p->has_begun = true;
	p->facts.newest_claim = sim->disk.runs[run_of(p->run)].newest_claim;
	lbrun_turn(sim, p);
}

void lbrun_start(struct sim *sim, struct job *job)
{
	struct lbruns *all = &sim->lbruns;
	struct lbrun *p = xcalloc(1, sizeof(*p));

	p->next = all->all;
	all->all = p;
	p->job = job;
	p->run = task_number(job->run, job->task);
	p->node = job->node;
	p->folder = disk_folder(&sim->disk, p->run, job->number);
	p->full_ms = INT64_MIN;
	p->trainer.hung_at_ms = INT64_MAX;
	job->lbrun = p;
	if (all->live_count == sizeof(all->live) / sizeof(all->live[0]))
		abort(); /* far more than there are slots on all nodes */
	all->live[all->live_count++] = p;
	sim_after(sim, rng_range(&sim->rng, 50, 3000), on_begin, p, 0);
}

void lbruns_fini(struct lbruns *all)
{
	while (all->all) {
		struct lbrun *p = all->all;

		all->all = p->next;
		if (p->handed)
			handed_clear(p->handed);
		free(p->handed);
		free(p->kept);
		far_clear(p);
		free(p);
	}
	all->live_count = 0;
}
