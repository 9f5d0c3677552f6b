/* SPDX-License-Identifier: MIT */
/* lbrun_steps.c - what the steps of a simulated lbrun do to its world. */

#include <stdlib.h>

#include "common/base/mem.h"
#include "tests/sim/arrays.h"
#include "tests/sim/lbrun_process.h"
#include "tests/sim/sim.h"

enum {
	ASK_MS = 20 * SECOND,
	TERM_MS = 10 * SECOND, /* in which a trainer obeys, if it does */
};

static void act_claim(struct sim *sim, struct lbrun *p)
{
	struct run_files *files = lbrun_files(sim, p);

	if (p->folder->claimed_ms && sim->control != CONTROL_NO_CLAIM) {
		p->facts.claim = CLAIM_TAKEN;
		return;
	}
	p->facts.claim = CLAIM_OURS;
	p->facts.claimed_ms = p->folder->claimed_ms = sim->now_ms;
	if (p->folder->number > files->newest_claim)
		files->newest_claim = p->folder->number;
	lbrun_fact(sim, p, FACT_CLAIMED, p->job->status.ref.job_id, 0);
	for (size_t i = 0; i < sim->lbruns.live_count; i++)
		if (sim->lbruns.live[i]->run == p->run && sim->lbruns.live[i] != p)
			lbrun_notice(sim, sim->lbruns.live[i]->folder);
	p->handed = xcalloc(1, sizeof(*p->handed));
	disk_load_handed(files, p->handed);
	p->facts.checks_failed = lbrun_checks_failed(sim, p);
	lbrun_say(sim, p,
		  &(struct spool_record){ .kind = SPOOL_ATTEMPT_START,
					  .step = p->node,
					  .others = p->policy.is_srun ? p->job->others : NULL });
}

static void act_turn_away(struct sim *sim, struct lbrun *p)
{
	lbrun_fact(sim, p, FACT_TURNED_AWAY, p->job->status.ref.job_id, 0);
	lbrun_leave(sim, p);
	job_report(sim, p->job, 0);
}

static void on_found(struct sim *sim, void *arg, uint64_t stamp)
{
	struct lbrun *p = arg;
	const struct saved *found;

	if (p->is_over || p->search_stamp != stamp || p->facts.looking != LOOKING_BUSY)
		return;
	if (lbrun_is_frozen(sim, p)) {
		agenda_add(&sim->agenda, p->frozen_until_ms, on_found, p, stamp);
		return;
	}
	p->facts.looking = LOOKING_DONE;
	p->facts.found = disk_search(lbrun_files(sim, p), p->handed, &found, &p->facts.newest_step);
	p->facts.found_step = found ? found->step : -1;
	if (rng_chance(&sim->rng, sim->climate.lost_search))
		p->facts.found = FOUND_UNKNOWN;
	p->trainer.from = found ? found->stamp : 0;
	p->trainer.from_bad = found && found->is_bad;
	lbrun_turn(sim, p);
}

/* --- the check of its node -------------------------------------------------------------------- */

static void on_checked(struct sim *sim, void *arg, uint64_t stamp)
{
	const struct node *node;
	struct lbrun *p = arg;

	if (p->is_over || p->check_stamp != stamp || p->facts.check != CHECK_BUSY)
		return;
	if (lbrun_is_frozen(sim, p)) {
		agenda_add(&sim->agenda, p->frozen_until_ms, on_checked, p, stamp);
		return;
	}
	node = &sim->slurm.nodes[p->node];
	p->facts.check = sim->now_ms < node->broken_until_ms ? CHECK_BROKEN : CHECK_WELL;
	if (p->facts.check == CHECK_BROKEN) {
		p->facts.check_text = "a node is broken";
		lbrun_say(sim, p,
			  &(struct spool_record){ .kind = SPOOL_NODE_BROKEN, .step = p->node });
		lbrun_fact(sim, p, FACT_NODE_REFUSED, p->node, 0);
	}
	lbrun_turn(sim, p);
}

/* Some never end by themselves. */
static void act_check(struct sim *sim, struct lbrun *p)
{
	p->check_stamp++;
	if (rng_chance(&sim->rng, 0.95))
		sim_after(sim, rng_range(&sim->rng, SECOND, 30 * SECOND), on_checked, p,
			  p->check_stamp);
}

static void act_check_kill(struct sim *sim, struct lbrun *p)
{
	sim_after(sim, rng_range(&sim->rng, 1, 5 * SECOND), on_checked, p, p->check_stamp);
}

/* To read every byte of a large one takes minutes. */
static void act_search(struct sim *sim, struct lbrun *p)
{
	int64_t ms = rng_chance(&sim->rng, 0.1) ? rng_range(&sim->rng, SECOND, 3 * MINUTE)
						: rng_range(&sim->rng, 5, SECOND);

	sim_after(sim, ms, on_found, p, ++p->search_stamp);
}

static void remember(struct sim *sim, struct lbrun *p)
{
	if (shepherd_may_remember(&p->facts, &p->policy) && !disk_is_full(&sim->disk, sim->now_ms))
		disk_save_handed(lbrun_files(sim, p), p->handed);
}

static void act_hand_over(struct sim *sim, struct lbrun *p)
{
	if (p->trainer.from) {
		p->handed->has_had = true;
		handed_begin(p->handed, saved_path, p->trainer.from, p->facts.found_step);
	}
	p->handed->is_first = false;
	remember(sim, p);
}

static void act_launch(struct sim *sim, struct lbrun *p)
{
	const struct launch *l = &p->facts.launch;

	lbrun_say(sim, p,
		  &(struct spool_record){ .kind = SPOOL_LAUNCH_START, .step = l->from_step });
	lbrun_fact(sim, p, FACT_TRAINER_FROM, l->number, (int64_t)p->trainer.from);
	trainer_start(sim, p);
}

static void act_trust(struct sim *sim, struct lbrun *p)
{
	handed_good(p->handed, saved_path, p->trainer.from);
	remember(sim, p);
}

/* A launch that failed by its own fault and got to nothing new: every later lbrun knows, unless
 * that could not be written, or another attempt has the run already. */
static void tell_failed(struct sim *sim, struct lbrun *p, const struct next *end)
{
	const struct trainer *t = &p->trainer;
	enum cause cause = end->ending.cause;
	bool is_own = cause == CAUSE_ERROR || cause == CAUSE_CRASH || cause == CAUSE_OOM ||
		      cause == CAUSE_HANG;
	bool is_early = p->handed->has_steps || sim->now_ms - p->facts.launch.begun_ms < SOON_MS;
	bool is_sure = end->counts && is_early && !disk_is_full(&sim->disk, sim->now_ms) &&
		       lbrun_files(sim, p)->newest_claim <= p->folder->number;

	if (t->from && !t->got_beyond && is_own)
		lbrun_fact(sim, p, is_sure ? FACT_FROM_FAILED : FACT_FROM_DOUBTFUL,
			   p->facts.launch.number, (int64_t)t->from);
}

/* "n7" → 7; -1 = nobody knows. */
static int blamed_node(const struct launch *l)
{
	return l->node[0] ? (int)strtol(l->node + 1, NULL, 10) : -1;
}

static void act_finish(struct sim *sim, struct lbrun *p, const struct next *end)
{
	const struct launch *l = &p->facts.launch;
	const struct trainer *t = &p->trainer;

	lbrun_fact(sim, p, FACT_TRAINER_ENDED, l->number,
		   (int64_t)end->ending.cause + (end->made_progress ? 100 : 0) +
			   (t->may_not_again ? 1000 : 0) + (t->ended_for_disk ? 10000 : 0) +
			   (end->counts ? 0 : 100000));
	if (end->ending.cause == CAUSE_NODE_FAIL)
		lbrun_fact(sim, p, FACT_NODE_BLAMED, blamed_node(l), 0);
	if (end->blames)
		handed_failed(p->handed, saved_path, t->from, "failed");
	tell_failed(sim, p, end);
	remember(sim, p);
	lbrun_say(sim, p,
		  &(struct spool_record){ .kind = SPOOL_LAUNCH_END,
					  .cause = end->ending.cause,
					  .exit_code = end->ending.exit_code,
					  .node = blamed_node(l),
					  .has_progress = end->made_progress,
					  .counts = end->counts });
}

static void act_leave(struct sim *sim, struct lbrun *p)
{
	if (p->kept_count > 0)
		lbrun_fact(sim, p, FACT_LINES_LOST, (int64_t)p->kept_count, p->facts.closed_ms);
	if (p->facts.is_recorded)
		task_leave(sim, p);
	lbrun_leave(sim, p);
	job_report(sim, p->job, ending_exit_status(&p->facts.ending));
}

/* Some die before they have written it. */
static void act_record(struct sim *sim, struct lbrun *p)
{
	bool is_marked = task_mark(sim, p, &p->facts.ending);

	if (rng_chance(&sim->rng, sim->climate.no_record)) {
		act_leave(sim, p);
	} else if (is_marked && !disk_is_full(&sim->disk, sim->now_ms)) {
		lbrun_write_exit(sim, p, &p->facts.ending);
		p->facts.is_recorded = true;
	}
}

void lbrun_act(struct sim *sim, struct lbrun *p, const struct next *next)
{
	switch (next->kind) {
	case NEXT_TURN_AWAY:
		act_turn_away(sim, p);
		break;
	case NEXT_CLAIM:
		act_claim(sim, p);
		break;
	case NEXT_LOOK:
		lbrun_look(sim, p);
		break;
	case NEXT_CHECK:
		act_check(sim, p);
		break;
	case NEXT_CHECK_KILL:
		act_check_kill(sim, p);
		break;
	case NEXT_SEARCH:
		act_search(sim, p);
		break;
	case NEXT_HAND_OVER:
		act_hand_over(sim, p);
		break;
	case NEXT_LAUNCH:
		act_launch(sim, p);
		break;
	case NEXT_TRUST:
		act_trust(sim, p);
		break;
	case NEXT_SAVE:
		trainer_save(sim, p);
		break;
	case NEXT_ASK:
		trainer_ask(sim, p, ASK_MS);
		break;
	case NEXT_TERM:
		trainer_ask(sim, p, TERM_MS);
		break;
	case NEXT_KILL:
		trainer_kill(sim, p);
		break;
	case NEXT_CLEAR:
		p->facts.launch.left = trainer_clear(sim, p, next->signo);
		break;
	case NEXT_DRAIN:
		far_close(sim, p);
		break;
	case NEXT_FINISH:
		act_finish(sim, p, next);
		break;
	case NEXT_CLOSE:
		lbrun_say(sim, p,
			  &(struct spool_record){ .kind = SPOOL_ATTEMPT_END,
						  .cause = p->facts.ending.cause });
		p->facts.is_unwritten = p->kept_count > 0;
		break;
	case NEXT_SYNC:
		p->facts.is_unwritten = !lbrun_write_kept(sim, p);
		break;
	case NEXT_RECORD:
		act_record(sim, p);
		break;
	case NEXT_LEAVE:
		act_leave(sim, p);
		break;
	case NEXT_WAIT:
	case NEXT_HEED:
	case NEXT_CHECK_SKIP:
	case NEXT_SEARCH_LOST:
	case NEXT_STACKS:
	case NEXT_GIVE_UP:
	case NEXT_COUNT:
		break;
	}
}
