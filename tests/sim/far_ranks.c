/* SPDX-License-Identifier: MIT */
/* far_ranks.c - ranks on other nodes: their leases, the listener that gives these, and what both do
 * when a node dies, freezes or cannot be reached. */
#include "tests/sim/far_ranks.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/base/mem.h"
#include "tests/sim/lbrun_process.h"
#include "tests/sim/sim.h"

enum { TURN_MS = 500, SLURMD_MS = 2000 };

static const struct sockaddr_in nowhere;

/* --- the network ------------------------------------------------------------------------------ */

static bool is_cut(const struct sim *sim, int node)
{
	return sim->now_ms < sim->slurm.nodes[node].cut_until_ms;
}

static bool is_frozen(const struct sim *sim, int node)
{
	return sim->now_ms < sim->slurm.nodes[node].frozen_until_ms;
}

static bool are_connected(const struct sim *sim, int a, int b)
{
	return a == b || !(is_cut(sim, a) || is_cut(sim, b));
}

static bool is_heard(struct sim *sim, const struct far *far, const struct far_rank *r)
{
	return !far->p->is_over && !lbrun_is_frozen(sim, far->p) &&
	       are_connected(sim, r->node, far->p->node) && rng_chance(&sim->rng, 0.98);
}

/* --- do they run? ----------------------------------------------------------------------------- */

/* Who was never answered has no lease, and has not met the others either: it stands in its first
 * collective. */
static bool runs(const struct sim *sim, const struct far_rank *r)
{
	bool has_met = r->lease.answered_ms >= 0;
	bool is_leased = sim->control == CONTROL_NO_LEASE ||
			 lease_step(&r->lease, sim->now_ms) == LEASE_RUN;

	return r->lives && !is_frozen(sim, r->node) && is_leased && has_met;
}

static bool has_company(const struct sim *sim, const struct far *far)
{
	const struct lbrun *p = far->p;

	return p->trainer.is_there && p->facts.launch.number == far->launch &&
	       !lbrun_is_frozen(sim, p);
}

static void tell(struct sim *sim, struct far *far)
{
	bool is_alone = false;

	for (int i = 0; i < FAR_RANKS; i++)
		is_alone |= runs(sim, &far->ranks[i]);
	is_alone &= !has_company(sim, far);
	if (is_alone != far->is_alone)
		lbrun_fact(sim, far->p, is_alone ? FACT_RANKS_ALONE : FACT_RANKS_QUIET, far->launch,
			   0);
	far->is_alone = is_alone;
}

/* --- a rank ----------------------------------------------------------------------------------- */

static enum beat_kind say(struct sim *sim, struct far *far, int number, enum beat_kind kind)
{
	const struct far_rank *r = &far->ranks[number];
	struct beat beat = { .kind = kind,
			     .launch = far->launch,
			     .rank = number + 1,
			     .ranks = FAR_RANKS + 1,
			     .sent_ms = sim->now_ms };

	snprintf(beat.node, sizeof(beat.node), "n%d", r->node);
	return is_heard(sim, far, r) ? beats_hear(&far->p->beats, &beat, &nowhere, sim->now_ms)
				     : BEAT_NONE;
}

static void end_rank(struct sim *sim, struct far *far, int number)
{
	far->ranks[number].lives = false;
	far->ranks[number].is_unseen = say(sim, far, number, BEAT_ENDED) == BEAT_NONE;
}

static void ask(struct sim *sim, struct far *far, int number)
{
	struct far_rank *r = &far->ranks[number];
	enum beat_kind heard = say(sim, far, number,
				   r->lease.answered_ms < 0 ? BEAT_HELLO : BEAT_ALIVE);

	r->next_ms = sim->now_ms + beat_every_ms(NODE_TIMEOUT_MS);
	r->lease.is_over |= heard == BEAT_OVER;
	if (heard == BEAT_ANSWER) {
		r->lease.answered_ms = sim->now_ms;
		r->lease.stopped_ms = -1;
	}
}

/* The job is over, as slurmd there knows: it ends what is left, some of which takes its time. */
static bool is_ended_by_slurm(struct sim *sim, const struct far *far, struct far_rank *r)
{
	const struct job *job = far->p->job;
	bool is_over = job->status.phase >= JOB_ENDING ||
		       (far->p->is_over && !(job->is_known && job->status.phase == JOB_RUNNING));

	if (!is_over || is_cut(sim, r->node))
		return false;
	if (r->term_ms == 0)
		r->term_ms = sim->now_ms + (rng_chance(&sim->rng, 0.5)
						    ? rng_range(&sim->rng, 0, SLURMD_MS)
						    : rng_range(&sim->rng, 0, KILL_WAIT_MS));
	return sim->now_ms >= r->term_ms;
}

/* A rank that ends since nobody answers it leaves a note in the attempt's folder. */
static void leave_note(struct sim *sim, const struct far *far, const struct far_rank *r)
{
	struct folder *folder = far->p->folder;

	if (r->lease.is_over || disk_is_full(&sim->disk, sim->now_ms))
		return;
	if (folder->unheard_launch != far->launch)
		folder->unheard_nodes = 0;
	folder->unheard_launch = far->launch;
	folder->unheard_nodes++;
	folder->unheard_ms = sim->now_ms;
	lbrun_fact(sim, far->p, FACT_UNHEARD, far->launch, 0);
}

static void live_on(struct sim *sim, struct far *far, int number)
{
	struct far_rank *r = &far->ranks[number];
	enum lease_step step;

	if (!r->lives || is_frozen(sim, r->node))
		return;
	if (is_ended_by_slurm(sim, far, r)) {
		end_rank(sim, far, number);
		return;
	}
	step = lease_step(&r->lease, sim->now_ms);
	if (step == LEASE_STOP && r->lease.stopped_ms < 0)
		r->lease.stopped_ms = sim->now_ms;
	if (sim->now_ms >= r->next_ms)
		ask(sim, far, number);
	if (lease_step(&r->lease, sim->now_ms) == LEASE_KILL && sim->control != CONTROL_NO_LEASE) {
		leave_note(sim, far, r);
		end_rank(sim, far, number);
	}
}

/* --- the listener ----------------------------------------------------------------------------- */

static bool is_newest(const struct far *far)
{
	return far->p->far == far && far->p->facts.launch.number == far->launch;
}

static bool hears_over(const struct sim *sim, const struct beats *b)
{
	return b->launch > 0 && !b->is_told_over && beats_are_over(b, sim->now_ms);
}

static void on_lost(struct lbrun *p, const char *node)
{
	if (p->facts.lost_node[0] || p->facts.cut_off || !p->facts.launch.is_open)
		return;
	if (node[0])
		launch_node_lost(&p->facts, node);
	else
		p->facts.cut_off = "nobody is heard";
}

static void on_over(struct sim *sim, struct lbrun *p)
{
	p->beats.is_told_over = true;
	beats_clear(&p->beats);
	p->facts.launch.is_quiet = true;
	if (p->facts.lost_node[0] && p->facts.kill_again_ms != INT64_MAX)
		p->facts.kill_again_ms = sim->now_ms;
}

/* The rank beside it, which nothing can cut off. */
static void hear_near(struct sim *sim, struct lbrun *p)
{
	struct beat beat = { .kind = p->trainer.is_there ? BEAT_ALIVE : BEAT_ENDED,
			     .launch = p->far->launch,
			     .ranks = FAR_RANKS + 1 };

	snprintf(beat.node, sizeof(beat.node), "n%d", p->node);
	beats_hear(&p->beats, &beat, &nowhere, sim->now_ms);
}

/* True: there are news. */
static bool hear(struct sim *sim, struct lbrun *p)
{
	const char *lost;
	bool has_news = false;

	if (beats_wake(&p->beats, sim->now_ms)) {
		lbrun_look(sim, p);
		has_news = true;
	}
	if (shepherd_may_remember(&p->facts, &p->policy)) {
		beats_trust(&p->beats);
		trainer_thaw(sim, p);
	}
	if (!p->beats.is_told_over)
		hear_near(sim, p);
	beats_turn(&p->beats, sim->now_ms);
	p->facts.launch.is_heard |= beats_are_heard(&p->beats);
	while ((lost = beats_lost(&p->beats, sim->now_ms)) != NULL) {
		on_lost(p, lost);
		has_news = true;
	}
	if (hears_over(sim, &p->beats)) {
		on_over(sim, p);
		has_news = true;
	}
	return has_news;
}

/* --- while something is wrong ----------------------------------------------------------------- */

static bool is_well(const struct sim *sim, const struct far *far)
{
	const struct lbrun *p = far->p;

	if (p->is_over || lbrun_is_frozen(sim, p) || is_cut(sim, p->node) || !p->beats.is_open ||
	    !is_newest(far) || !p->facts.launch.is_heard || p->job->status.phase != JOB_RUNNING)
		return false;
	for (int i = 0; i < FAR_RANKS; i++) {
		const struct far_rank *r = &far->ranks[i];

		if (!r->lives || r->lease.stopped_ms >= 0 || is_cut(sim, r->node) ||
		    is_frozen(sim, r->node))
			return false;
	}
	return true;
}

static bool is_done(const struct far *far)
{
	bool is_listening = is_newest(far) && !far->p->is_over && !far->p->beats.is_told_over;

	for (int i = 0; i < FAR_RANKS; i++)
		is_listening |= far->ranks[i].lives;
	return !is_listening;
}

static void on_turn(struct sim *sim, void *arg, uint64_t stamp);

static void plan(struct sim *sim, struct far *far)
{
	int64_t at_ms = sim->now_ms + TURN_MS;

	for (int i = 0; i < FAR_RANKS; i++) {
		int64_t next_ms = lease_next_ms(&far->ranks[i].lease);

		if (far->ranks[i].lives && next_ms > sim->now_ms && next_ms < at_ms)
			at_ms = next_ms;
	}
	agenda_add(&sim->agenda, at_ms, on_turn, far, 0);
}

static void on_turn(struct sim *sim, void *arg, uint64_t stamp)
{
	struct far *far = arg;
	bool has_news = false;

	(void)stamp;
	for (int i = 0; i < FAR_RANKS; i++)
		live_on(sim, far, i);
	if (is_newest(far) && !far->p->is_over && !lbrun_is_frozen(sim, far->p))
		has_news = hear(sim, far->p);
	tell(sim, far);
	far->is_stirred = !is_done(far) && !is_well(sim, far);
	if (far->is_stirred)
		plan(sim, far);
	else if (is_well(sim, far))
		trainer_resume(sim, far->p);
	if (has_news)
		lbrun_turn(sim, far->p);
}

/* As if all beats until now had been sent, and answered. */
static void catch_up(struct sim *sim, struct far *far)
{
	struct beats *b = &far->p->beats;

	for (int i = 0; i < FAR_RANKS; i++) {
		struct far_rank *r = &far->ranks[i];

		if (!r->lives || r->lease.answered_ms < 0)
			continue;
		r->lease.answered_ms = sim->now_ms -
				       rng_range(&sim->rng, 0, beat_every_ms(NODE_TIMEOUT_MS));
		r->next_ms = r->lease.answered_ms + beat_every_ms(NODE_TIMEOUT_MS);
		b->ranks[i + 1].heard_ms = r->lease.answered_ms;
	}
	b->turn_ms = sim->now_ms;
}

static void stir(struct sim *sim, struct far *far)
{
	tell(sim, far);
	if (far->is_stirred || is_done(far))
		return;
	if (is_newest(far) && far->p->facts.launch.is_heard && !far->p->beats.is_told_over)
		catch_up(sim, far);
	far->is_stirred = true;
	agenda_add(&sim->agenda, sim->now_ms, on_turn, far, 0);
}

void far_stir(struct sim *sim, struct lbrun *p)
{
	for (struct far *far = p->far; far; far = far->older)
		stir(sim, far);
}

/* --- their beginning and end ------------------------------------------------------------------ */

void far_start(struct sim *sim, struct lbrun *p)
{
	struct far *far;

	if (!sim->people[p->run].is_spread)
		return;
	far = xcalloc(1, sizeof(*far));
	far->older = p->far;
	p->far = far;
	far->p = p;
	far->launch = p->facts.launch.number;
	for (int i = 0; i < FAR_RANKS; i++) {
		far->ranks[i] = (struct far_rank){
			.node = p->job->others[i],
			.lives = true,
			.lease = { .timeout_ms = NODE_TIMEOUT_MS,
				   .answered_ms = -1,
				   .stopped_ms = -1 },
		};
	}
	p->beats.timeout_ms = NODE_TIMEOUT_MS;
	beats_open(&p->beats, far->launch);
	p->beats.turn_ms = 0;
	stir(sim, far);
}

/* Twice, so that it mostly arrives; who does not hear it asks. */
void far_close(struct sim *sim, struct lbrun *p)
{
	if (!p->far || !p->beats.is_open)
		return;
	stir(sim, p->far);
	beats_close(&p->beats);
	for (int i = 0; i < FAR_RANKS; i++) {
		struct far_rank *r = &p->far->ranks[i];

		r->lease.is_over |= r->lives && !is_frozen(sim, r->node) &&
				    are_connected(sim, r->node, p->node);
	}
	stir(sim, p->far);
}

void far_end(struct sim *sim, struct lbrun *p)
{
	for (int i = 0; p->far && i < FAR_RANKS; i++) {
		const struct far_rank *r = &p->far->ranks[i];

		if (r->lives && !is_frozen(sim, r->node) && are_connected(sim, r->node, p->node))
			end_rank(sim, p->far, i);
	}
	far_stir(sim, p);
}

bool far_is_out_of_reach(const struct sim *sim, const struct lbrun *p)
{
	for (int i = 0; p->far && is_newest(p->far) && i < FAR_RANKS; i++) {
		const struct far_rank *r = &p->far->ranks[i];

		if (is_frozen(sim, r->node) || r->is_unseen ||
		    !are_connected(sim, r->node, p->node))
			return true;
	}
	return false;
}

bool far_is_on(const struct lbrun *p, int node)
{
	for (int i = 0; p->far && is_newest(p->far) && i < FAR_RANKS; i++)
		if (p->far->ranks[i].node == node)
			return true;
	return false;
}

bool far_is_lease_over(const struct sim *sim, const struct lbrun *p)
{
	return p->far && is_newest(p->far) && p->facts.launch.is_heard && p->beats.is_open &&
	       sim->now_ms - p->frozen_from_ms >= beat_lease_ms(NODE_TIMEOUT_MS);
}

bool far_is_hit(const struct sim *sim, const struct lbrun *p)
{
	if (sim->now_ms < sim->slurm.nodes[p->node].down_until_ms)
		return false;
	for (int i = 0; p->far && i < FAR_RANKS; i++)
		if (sim->now_ms < sim->slurm.nodes[p->far->ranks[i].node].down_until_ms)
			return true;
	return false;
}

static void hit(struct sim *sim, struct far *far, int node, bool is_dead)
{
	bool is_hit = far->p->node == node;

	for (int i = 0; i < FAR_RANKS; i++) {
		struct far_rank *r = &far->ranks[i];

		if (r->node != node || !r->lives)
			continue;
		is_hit = true;
		r->is_unseen |= is_dead;
		r->lives &= !is_dead;
	}
	if (!is_hit)
		return;
	stir(sim, far);
	if (is_newest(far))
		trainer_stall(sim, far->p);
}

void far_hit(struct sim *sim, int node, bool is_dead)
{
	for (struct lbrun *p = sim->lbruns.all; p; p = p->next)
		for (struct far *far = p->far; far; far = far->older)
			if (!is_done(far))
				hit(sim, far, node, is_dead);
}

void far_clear(struct lbrun *p)
{
	while (p->far) {
		struct far *far = p->far;

		p->far = far->older;
		free(far);
	}
	beats_clear(&p->beats);
}
