/* SPDX-License-Identifier: MIT */
/* trainer_model.c - a trainer and what it leaves behind: steps, checkpoints, hangs, ends of all
 * kinds. */
#include <signal.h>

#include "tests/sim/lbrun_model.h"
#include "tests/sim/sim.h"

enum {
	EXITED_0 = 0,
	EXITED_1 = 1 << 8,
	EXITED_NEVER = NEVER_EXIT_CODE << 8,
	EXITED_TERM = (128 + SIGTERM) << 8,
};

static void fact(struct sim *sim, const struct lbrun *p, enum fact_kind kind, int64_t a, int64_t b)
{
	sim_fact(sim, kind, p->run, p->folder->number, a, b);
}

/* --- its processes ---------------------------------------------------------------------------- */

static void on_trainer(struct sim *sim, void *arg, uint64_t stamp);

static void plan(struct sim *sim, struct lbrun *p, int64_t ms)
{
	sim_after(sim, ms, on_trainer, p, ++p->trainer.stamp);
}

/* The last of them is gone. */
static void note_gone(struct sim *sim, struct lbrun *p)
{
	struct trainer *t = &p->trainer;

	if (t->lives || t->left > 0 || !t->is_there)
		return;
	t->is_there = false;
	if (t->is_paused)
		fact(sim, p, FACT_TRAINER_THAWED, p->facts.launch.number, 0);
	fact(sim, p, FACT_TRAINER_GONE, p->facts.launch.number, 0);
	far_stir(sim, p);
}

/* Its first process ends; what that had started may not. */
static void end(struct sim *sim, struct lbrun *p, int wait_status)
{
	struct trainer *t = &p->trainer;

	if (wait_status != SIGKILL)
		far_end(sim, p);
	t->lives = t->is_stalled = false;
	t->stamp++;
	t->left += rng_chance(&sim->rng, 0.2) ? (int)rng_range(&sim->rng, 1, 3) : 0;
	t->hung_at_ms = INT64_MAX;
	t->may_not_again = wait_status == EXITED_NEVER;
	launch_ended(&p->facts.launch, wait_status, sim->now_ms);
	note_gone(sim, p);
}

int trainer_clear(struct sim *sim, struct lbrun *p, int signo)
{
	struct trainer *t = &p->trainer;
	int count = t->left + t->lives;

	if (t->lives && signo == SIGKILL)
		end(sim, p, SIGKILL);
	if (signo == SIGKILL || rng_chance(&sim->rng, 0.1))
		t->left -= t->left > 0 && rng_chance(&sim->rng, 0.7);
	note_gone(sim, p);
	return count;
}

void trainer_vanish(struct sim *sim, struct lbrun *p)
{
	struct trainer *t = &p->trainer;

	/* while it wrote one, perhaps */
	if (t->lives && rng_chance(&sim->rng, 0.1))
		disk_save(sim, p->run, t->step + 1, false, false);
	t->lives = false;
	t->left = 0;
	t->stamp++;
	note_gone(sim, p);
}

void trainer_freeze(struct sim *sim, struct lbrun *p)
{
	if (p->trainer.is_there && !p->trainer.is_paused) {
		p->trainer.is_paused = true;
		fact(sim, p, FACT_TRAINER_FROZEN, p->facts.launch.number, 0);
	}
}

void trainer_thaw(struct sim *sim, struct lbrun *p)
{
	if (p->trainer.is_there && p->trainer.is_paused)
		fact(sim, p, FACT_TRAINER_THAWED, p->facts.launch.number, 0);
	p->trainer.is_paused = false;
}

/* --- its end by others ------------------------------------------------------------------------ */

static void on_obeyed(struct sim *sim, void *arg, uint64_t launch)
{
	struct lbrun *p = arg;

	if (p->is_over || !p->trainer.lives || p->facts.launch.number != (int64_t)launch ||
	    far_is_out_of_reach(sim, p))
		return;
	if (lbrun_is_frozen(sim, p)) {
		agenda_add(&sim->agenda, p->frozen_until_ms + 100, on_obeyed, p, launch);
		return;
	}
	end(sim, p, rng_chance(&sim->rng, 0.5) ? EXITED_0 : SIGTERM);
	lbrun_turn(sim, p);
}

void trainer_ask(struct sim *sim, struct lbrun *p, int64_t within_ms)
{
	struct trainer *t = &p->trainer;
	bool is_ignored = t->takes_no_notice && p->facts.stop.why == STOP_WARNED;

	if (!t->lives || is_ignored || rng_chance(&sim->rng, t->is_hung ? 0.7 : 0.2))
		return;
	if (!t->is_hung && rng_chance(&sim->rng, 0.5))
		trainer_save(sim, p);
	sim_after(sim, rng_range(&sim->rng, 20, within_ms), on_obeyed, p,
		  (uint64_t)p->facts.launch.number);
}

static void on_killed(struct sim *sim, void *arg, uint64_t launch)
{
	struct lbrun *p = arg;

	if (p->is_over || !p->trainer.lives || p->facts.launch.number != (int64_t)launch)
		return;
	end(sim, p, p->policy.is_srun ? EXITED_TERM : SIGKILL);
	lbrun_turn(sim, p);
}

/* srun ends with its step, if it reaches all ranks; else lbrun kills it a moment later. */
void trainer_kill(struct sim *sim, struct lbrun *p)
{
	bool waits = far_is_out_of_reach(sim, p) ||
		     (p->policy.is_srun && p->facts.lost_node[0] && p->facts.launch.is_heard);

	far_close(sim, p);
	if (p->trainer.lives && !waits)
		sim_after(sim, 1, on_killed, p, (uint64_t)p->facts.launch.number);
}

/* --- its own life ----------------------------------------------------------------------------- */

void trainer_start(struct sim *sim, struct lbrun *p)
{
	const struct person *person = &sim->people[p->run];
	const struct launch *l = &p->facts.launch;
	bool is_broken = person->is_broken && !sim->is_quiet;
	struct trainer *t = &p->trainer;

	*t = (struct trainer){
		.lives = true,
		.is_there = true,
		.stamp = t->stamp,
		.from = t->from,
		.from_bad = t->from_bad,
		.left = t->left,
		.step = l->from_step > 0 ? l->from_step : 0,
		.hung_at_ms = INT64_MAX,
		.takes_no_notice = rng_chance(&sim->rng, 0.3),
	};
	t->fails_early = t->from_bad || sim->now_ms < sim->slurm.nodes[p->node].broken_until_ms ||
			 rng_chance(&sim->rng, is_broken ? 0.9 : sim->climate.early_failure);
	p->facts.listens = rng_chance(&sim->rng, 0.5);
	fact(sim, p, FACT_TRAINER_STARTED, l->number, 0);
	far_start(sim, p);
	plan(sim, p,
	     t->fails_early ? rng_range(&sim->rng, 1, 5 * MINUTE)
			    : MINUTE + rng_exp(&sim->rng, (double)sim->climate.tick_ms));
}

/* It says nothing any more. Unwatched, it stays so until its job ends. */
static void hang(struct sim *sim, struct lbrun *p)
{
	p->trainer.is_hung = true;
	if (sim->people[p->run].is_unwatched)
		return;
	fact(sim, p, FACT_TRAINER_HUNG, p->facts.launch.number, 0);
	p->trainer.hung_at_ms = sim->now_ms + rng_range(&sim->rng, HANG_MIN_MS, HANG_MAX_MS);
}

/* One of its ranks has ended, srun says that it ends the others, and its signal does not reach
 * them: they wait for that rank. */
static void leave_over(struct sim *sim, struct lbrun *p)
{
	p->trainer.is_hung = true;
	p->facts.launch.srun_ends_ms = sim->now_ms;
	fact(sim, p, FACT_TRAINER_LEFT_OVER, p->facts.launch.number, 0);
}

static void fail(struct sim *sim, struct lbrun *p)
{
	int64_t dice = rng_range(&sim->rng, 0, 9);

	if (rng_chance(&sim->rng, sim->climate.lost_signal) || far_is_out_of_reach(sim, p)) {
		leave_over(sim, p);
		return;
	}
	if (dice == 5) /* the kernel did it, and counts that */
		p->facts.launch.ooms_at_start = 0, p->facts.launch.ooms = 1;
	if (dice < 6)
		end(sim, p, dice < 5 ? SIGSEGV : SIGKILL);
	else if (dice < 7 && sim->people[p->run].never_again)
		end(sim, p, EXITED_NEVER);
	else
		end(sim, p, EXITED_1);
}

/* Its next collective waits for that rank. Some find out by themselves, and fail. */
void trainer_stall(struct sim *sim, struct lbrun *p)
{
	struct trainer *t = &p->trainer;

	if (!t->lives || t->is_hung || p->is_over)
		return;
	t->is_stalled = t->is_hung = true;
	t->stamp++;
	if (!sim->people[p->run].is_unwatched)
		t->hung_at_ms = sim->now_ms + rng_range(&sim->rng, HANG_MIN_MS, HANG_MAX_MS);
	t->fails_early |= rng_chance(&sim->rng, 0.2);
	if (t->fails_early)
		plan(sim, p, rng_range(&sim->rng, 1, 20 * SECOND));
}

void trainer_resume(struct sim *sim, struct lbrun *p)
{
	struct trainer *t = &p->trainer;

	if (!t->lives || !t->is_stalled || p->is_over)
		return;
	t->is_stalled = t->is_hung = false;
	t->hung_at_ms = INT64_MAX;
	plan(sim, p, MINUTE);
}

static void say_step(struct sim *sim, struct lbrun *p)
{
	struct trainer *t = &p->trainer;

	if (t->from && !t->got_beyond && t->step > p->facts.launch.from_step) {
		t->got_beyond = true;
		fact(sim, p, FACT_GOT_BEYOND, p->facts.launch.number, (int64_t)t->from);
	}
	p->handed->has_steps = true;
	launch_told_step(&p->facts.launch, t->step, INT64_MIN, sim->now_ms);
	lbrun_say(sim, p, &(struct spool_record){ .kind = SPOOL_STEP, .step = t->step });
}

/* On a full disk it leaves half of one, and mostly dies of it. */
static void fail_to_save(struct sim *sim, struct lbrun *p)
{
	disk_save(sim, p->run, p->trainer.step, false, false);
	if (!p->trainer.lives || rng_chance(&sim->rng, 0.3))
		return;
	/* lbrun can only tell where it could not write either */
	p->trainer.ended_for_disk = p->kept_count > 0;
	end(sim, p, EXITED_1);
}

void trainer_save(struct sim *sim, struct lbrun *p)
{
	struct trainer *t = &p->trainer;
	struct launch *l = &p->facts.launch;
	bool is_new = t->step > l->from_step && t->step > l->step_saved && t->step > 0;

	if (!t->lives || t->is_hung || t->fails_early || !is_new)
		return;
	if (disk_is_full(&sim->disk, sim->now_ms)) {
		fail_to_save(sim, p);
		return;
	}
	disk_save(sim, p->run, t->step, true, rng_chance(&sim->rng, sim->climate.bad_checkpoint));
	p->handed->has_had = true;
	lbrun_say(sim, p,
		  &(struct spool_record){ .kind = SPOOL_CHECKPOINT,
					  .step = t->step,
					  .has_progress = launch_saved(l, t->step, false) });
}

/* It has something to say. */
static void train(struct sim *sim, struct lbrun *p)
{
	const struct climate *w = &sim->climate;
	struct trainer *t = &p->trainer;
	int64_t target = sim->people[p->run].target_step;

	for (int64_t n = rng_range(&sim->rng, 1, 2); n > 0; n--) {
		t->step += rng_range(&sim->rng, 1, 60);
		say_step(sim, p);
	}
	if (rng_chance(&sim->rng, 0.6) || t->step >= target)
		trainer_save(sim, p);
	if (!t->lives)
		return;
	if (t->step >= target)
		end(sim, p, EXITED_0);
	else if (rng_chance(&sim->rng, w->failure))
		fail(sim, p);
	else if (rng_chance(&sim->rng, w->hang))
		hang(sim, p);
	else
		plan(sim, p, MINUTE + rng_exp(&sim->rng, (double)w->tick_ms));
}

static void on_trainer(struct sim *sim, void *arg, uint64_t stamp)
{
	struct lbrun *p = arg;
	struct trainer *t = &p->trainer;
	bool may_hang;

	if (p->is_over || !t->lives || t->stamp != stamp)
		return;
	if (lbrun_is_frozen(sim, p) || t->is_paused) {
		int64_t from_ms = lbrun_is_frozen(sim, p) ? p->frozen_until_ms : sim->now_ms;

		agenda_add(&sim->agenda, from_ms + 100, on_trainer, p, stamp);
		return;
	}
	/* a few time limits, which is all that ends one that nobody watches, are longer than a
	 * world is quiet */
	may_hang = !sim->is_quiet || !sim->people[p->run].is_unwatched;
	if (t->fails_early && may_hang && rng_chance(&sim->rng, 0.25))
		hang(sim, p);
	else if (t->fails_early)
		fail(sim, p);
	else
		train(sim, p);
	lbrun_turn(sim, p);
}
