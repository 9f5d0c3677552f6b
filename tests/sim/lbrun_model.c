/* SPDX-License-Identifier: MIT */
/* lbrun_model.c - an attempt in an invented world, from its claim to its exit record. */
#include "tests/sim/lbrun_model.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/mem.h"
#include "tests/sim/sim.h"

enum {
	LOOK_MS = 2000,       /* for newer claims and orders */
	OLDER_WAIT_MS = 5000, /* at most, for an older attempt without an exit record */
	OLDER_DEPTH = 8,
	GRACE_MS = 25 * SECOND,
	EXIT_KILLED = 128 + SIGKILL,
	EXIT_TERM = 128 + SIGTERM,
};

static void on_phase(struct sim *sim, void *arg, uint64_t stamp);

static void plan(struct sim *sim, struct lbrun *p, enum lbrun_phase phase, int64_t ms)
{
	p->phase = phase;
	sim_after(sim, ms, on_phase, p, ++p->stamp);
}

static void fact(struct sim *sim, const struct lbrun *p, enum fact_kind kind, int64_t a, int64_t b)
{
	sim_fact(sim, kind, p->run, p->folder->number, a, b);
}

static struct run_files *files_of(struct sim *sim, const struct lbrun *p)
{
	return &sim->disk.runs[p->run];
}

/* --- the spool -------------------------------------------------------------------------------- */

static void on_poke(struct sim *sim, void *arg, uint64_t stamp)
{
	char name[16];

	(void)arg;
	snprintf(name, sizeof(name), "r%02u", (unsigned)stamp);
	if (sim->daemon.engine)
		engine_poke(sim->daemon.engine, name);
	daemon_settle(sim);
}

static int64_t say(struct sim *sim, struct lbrun *p, const struct spool_record *record)
{
	struct spool_record r = *record;

	r.at_ms = sim->now_ms;
	r.launch = p->launch;
	if (rng_chance(&sim->rng, 0.3))
		sim_after(sim, rng_range(&sim->rng, 1, 200), on_poke, NULL, (uint64_t)p->run);
	return folder_append(p->folder, &r);
}

static void say_step(struct sim *sim, struct lbrun *p)
{
	int64_t seq = say(sim, p, &(struct spool_record){ .kind = SPOOL_STEP, .step = p->step });

	fact(sim, p, FACT_STEP, seq, p->step);
}

static void say_checkpoint(struct sim *sim, struct lbrun *p)
{
	struct run_files *files = files_of(sim, p);

	if (p->step <= files->checkpoint_step)
		return;
	files->checkpoint_step = p->step;
	fact(sim, p, FACT_CHECKPOINT, p->launch, p->step);
	say(sim, p, &(struct spool_record){ .kind = SPOOL_CHECKPOINT, .step = p->step });
}

/* --- the end of the attempt ------------------------------------------------------------------- */

static void leave(struct sim *sim, struct lbrun *p)
{
	struct lbruns *all = &sim->lbruns;

	for (size_t i = 0; i < all->live_count; i++) {
		if (all->live[i] == p) {
			all->live[i] = all->live[--all->live_count];
			break;
		}
	}
	p->phase = LBRUN_OVER;
	p->stamp++;
}

static void write_exit(struct sim *sim, struct lbrun *p, enum cause cause, int exit_code, int signo)
{
	struct folder *f = p->folder;

	f->exit = (struct attempt_exit){
		.cause = cause,
		.exit_code = exit_code,
		.signal = signo,
		.launches = p->launch,
		.last_seq = (int64_t)f->count,
		.time_ms = sim->now_ms,
	};
	snprintf(f->exit.token, sizeof(f->exit.token), "%s", f->token);
	f->exited_ms = sim->now_ms;
	fact(sim, p, FACT_EXITED, cause, f->exit.last_seq);
}

static void finish(struct sim *sim, struct lbrun *p, enum cause cause, int exit_code)
{
	int status = exit_code >= 0 ? exit_code : EXIT_TERM;

	say(sim, p, &(struct spool_record){ .kind = SPOOL_ATTEMPT_END, .cause = cause });
	if (!rng_chance(&sim->rng, sim->climate.no_record))
		write_exit(sim, p, cause, exit_code, 0);
	leave(sim, p);
	job_report(sim, p->job, cause == CAUSE_COMPLETED ? 0 : status ? status : EXIT_TERM);
}

/* --- stopping --------------------------------------------------------------------------------- */

static enum cause stop_cause(const struct lbrun *p)
{
	if (p->stop == LBRUN_WARNED || (p->stop == LBRUN_SIGNALLED && p->is_warned))
		return CAUSE_TIMEOUT;
	return p->stop == LBRUN_ORDERED ? CAUSE_KILLED : CAUSE_LOST;
}

static void end_launch(struct sim *sim, struct lbrun *p, enum cause cause, int exit_code);

/* The trainer obeyed, or was killed. */
static void on_stopped(struct sim *sim, void *arg, uint64_t stamp)
{
	struct lbrun *p = arg;

	if (p->phase != LBRUN_TRAIN || (int64_t)stamp != p->stop_due_ms)
		return;
	if (sim->now_ms < p->frozen_until_ms)
		agenda_add(&sim->agenda, p->frozen_until_ms + LOOK_MS, on_stopped, p, stamp);
	else
		end_launch(sim, p, CAUSE_LOST, -1);
}

static void stop(struct sim *sim, struct lbrun *p, enum lbrun_stop why, bool now)
{
	int64_t due_ms = sim->now_ms + (now ? 20 : rng_range(&sim->rng, 20, GRACE_MS));

	if (why > p->stop)
		p->stop = why;
	if (p->phase == LBRUN_WAIT || p->phase == LBRUN_PAUSE) {
		finish(sim, p, stop_cause(p), -1);
	} else if (p->phase == LBRUN_TRAIN && (p->stop_due_ms == 0 || due_ms < p->stop_due_ms)) {
		if (!now && rng_chance(&sim->rng, 0.5))
			say_checkpoint(sim, p);
		p->stop_due_ms = due_ms;
		agenda_add(&sim->agenda, due_ms, on_stopped, p, (uint64_t)due_ms);
	}
}

/* Some trainers take no notice of a warning, and go on until the limit itself. */
void lbrun_warn(struct sim *sim, struct lbrun *p)
{
	if (sim->now_ms < p->frozen_until_ms || p->phase == LBRUN_BOOT || p->phase == LBRUN_OVER)
		return;
	p->is_warned = true;
	fact(sim, p, FACT_WARNED, p->launch, 0);
	if (p->phase != LBRUN_TRAIN || (!p->is_hung && rng_chance(&sim->rng, 0.7)))
		stop(sim, p, LBRUN_WARNED, false);
}

static void on_wish(struct sim *sim, void *arg, uint64_t stamp)
{
	struct lbrun *p = arg;

	(void)stamp;
	if (p->phase == LBRUN_TRAIN && sim->now_ms >= p->frozen_until_ms && p->stop_due_ms == 0 &&
	    !p->is_hung && !p->fails_early)
		say_checkpoint(sim, p);
}

void lbrun_notice_wish(struct sim *sim, const struct folder *folder)
{
	for (size_t i = 0; i < sim->lbruns.live_count; i++)
		if (sim->lbruns.live[i]->folder == folder)
			sim_after(sim, rng_range(&sim->rng, 0, LOOK_MS) + folder->delay_ms, on_wish,
				  sim->lbruns.live[i], 0);
}

static bool is_fenced(const struct sim *sim, const struct lbrun *p)
{
	return sim->control != CONTROL_NO_CLAIM &&
	       sim->disk.runs[p->run].newest_claim > p->folder->number;
}

/* As lbrun does every 2 s; here only when there is something to see. */
static void look(struct sim *sim, struct lbrun *p)
{
	if (is_fenced(sim, p))
		stop(sim, p, LBRUN_FENCED, true);
	else if (p->folder->order != ORDER_RUN)
		stop(sim, p, LBRUN_ORDERED, p->folder->order == ORDER_KILL_NOW);
}

static void on_look(struct sim *sim, void *arg, uint64_t stamp)
{
	struct lbrun *p = arg;

	if (p->phase == LBRUN_OVER || p->phase == LBRUN_BOOT)
		return;
	if (sim->now_ms < p->frozen_until_ms)
		agenda_add(&sim->agenda, p->frozen_until_ms + rng_range(&sim->rng, 0, LOOK_MS),
			   on_look, p, stamp);
	else
		look(sim, p);
}

static void will_look(struct sim *sim, struct lbrun *p)
{
	sim_after(sim, rng_range(&sim->rng, 0, LOOK_MS) + p->folder->delay_ms, on_look, p, 0);
}

void lbrun_notice_order(struct sim *sim, const struct folder *folder)
{
	for (size_t i = 0; i < sim->lbruns.live_count; i++)
		if (sim->lbruns.live[i]->folder == folder)
			will_look(sim, sim->lbruns.live[i]);
}

static void on_signal(struct sim *sim, void *arg, uint64_t stamp)
{
	struct lbrun *p = arg;

	if (p->phase == LBRUN_OVER)
		return;
	if (sim->now_ms < p->frozen_until_ms || p->phase == LBRUN_BOOT) {
		int64_t at_ms = sim->now_ms < p->frozen_until_ms ? p->frozen_until_ms
								 : sim->now_ms + 100;

		agenda_add(&sim->agenda, at_ms, on_signal, p, stamp);
		return;
	}
	look(sim, p);
	if (p->phase != LBRUN_OVER)
		stop(sim, p, LBRUN_SIGNALLED, stamp == SIGQUIT);
}

static void trainer_gone(struct sim *sim, struct lbrun *p)
{
	bool progress = files_of(sim, p)->checkpoint_step > p->checkpoint_at_start;

	if (p->phase != LBRUN_TRAIN)
		return;
	if (sim->now_ms < p->frozen_until_ms)
		fact(sim, p, FACT_TRAINER_THAWED, p->launch, 0);
	fact(sim, p, FACT_TRAINER_ENDED, p->launch, CAUSE_LOST + (progress ? 100 : 0));
}

void lbrun_signal(struct sim *sim, struct lbrun *p, int signo)
{
	if (signo != SIGKILL) {
		on_signal(sim, p, (uint64_t)signo);
		return;
	}
	trainer_gone(sim, p);
	if (p->phase != LBRUN_BOOT)
		write_exit(sim, p, CAUSE_LOST, -1, SIGKILL);
	leave(sim, p);
	job_report(sim, p->job, EXIT_KILLED);
}

void lbrun_vanish(struct sim *sim, struct lbrun *p)
{
	trainer_gone(sim, p);
	leave(sim, p);
	p->job->lbrun = NULL;
}

static void on_thaw(struct sim *sim, void *arg, uint64_t stamp)
{
	struct lbrun *p = arg;

	if (p->phase == LBRUN_TRAIN && p->frozen_until_ms == (int64_t)stamp)
		fact(sim, p, FACT_TRAINER_THAWED, p->launch, 0);
	if (p->phase != LBRUN_OVER)
		will_look(sim, p);
}

void lbrun_freeze(struct sim *sim, struct lbrun *p, int64_t until_ms)
{
	if (p->phase == LBRUN_TRAIN && p->frozen_until_ms <= sim->now_ms)
		fact(sim, p, FACT_TRAINER_FROZEN, p->launch, 0);
	p->frozen_until_ms = until_ms;
	agenda_add(&sim->agenda, until_ms, on_thaw, p, (uint64_t)until_ms);
}

/* --- launches --------------------------------------------------------------------------------- */

static void begin_launch(struct sim *sim, struct lbrun *p)
{
	const struct person *person = &sim->people[p->run];
	bool is_bad = rng_chance(
		&sim->rng, person->is_broken && !sim->is_quiet ? 0.9 : sim->climate.early_failure);

	p->launch++;
	p->checkpoint_at_start = files_of(sim, p)->checkpoint_step;
	p->step = p->checkpoint_at_start > 0 ? p->checkpoint_at_start : 0;
	p->fails_early = is_bad;
	p->is_hung = false;
	p->stop_due_ms = 0;
	say(sim, p,
	    &(struct spool_record){ .kind = SPOOL_LAUNCH_START, .step = p->checkpoint_at_start });
	fact(sim, p, FACT_TRAINER_STARTED, p->launch, 0);
	plan(sim, p, LBRUN_TRAIN,
	     is_bad ? rng_range(&sim->rng, 1, 5 * MINUTE)
		    : MINUTE + rng_exp(&sim->rng, (double)sim->climate.tick_ms));
}

static bool may_relaunch(const struct lbrun *p, enum cause cause, int exit_code)
{
	int64_t of_run = p->failures + (p->has_progressed ? 0 : p->folder->without_progress);

	return p->stop == LBRUN_GOES_ON && p->failures <= IN_PLACE &&
	       of_run < MAX_WITHOUT_PROGRESS && exit_code != NEVER_EXIT_CODE &&
	       (cause == CAUSE_ERROR || cause == CAUSE_CRASH || cause == CAUSE_OOM ||
		cause == CAUSE_HANG);
}

static void end_launch(struct sim *sim, struct lbrun *p, enum cause cause, int exit_code)
{
	bool progress = files_of(sim, p)->checkpoint_step > p->checkpoint_at_start;

	if (is_fenced(sim, p) && p->stop < LBRUN_FENCED)
		p->stop = LBRUN_FENCED;
	else if (p->folder->order != ORDER_RUN && p->stop < LBRUN_ORDERED)
		p->stop = LBRUN_ORDERED;
	if (p->stop != LBRUN_GOES_ON)
		cause = stop_cause(p);
	fact(sim, p, FACT_TRAINER_ENDED, p->launch,
	     cause + (progress ? 100 : 0) + (exit_code == NEVER_EXIT_CODE ? 1000 : 0));
	p->failures = progress ? 0 : p->failures + 1;
	p->has_progressed |= progress;
	say(sim, p,
	    &(struct spool_record){ .kind = SPOOL_LAUNCH_END,
				    .cause = cause,
				    .exit_code = exit_code,
				    .has_progress = progress });
	if (may_relaunch(p, cause, exit_code))
		plan(sim, p, LBRUN_PAUSE, progress ? 0 : SECOND);
	else
		finish(sim, p, cause, exit_code);
}

/* It says nothing any more. Unwatched, it stays so until its job ends. */
static void hang(struct sim *sim, struct lbrun *p)
{
	p->is_hung = true;
	if (sim->people[p->run].is_unwatched)
		return;
	fact(sim, p, FACT_TRAINER_HUNG, p->launch, 0);
	plan(sim, p, LBRUN_TRAIN, rng_range(&sim->rng, HANG_MIN_MS, HANG_MAX_MS));
}

static void fail(struct sim *sim, struct lbrun *p)
{
	int64_t dice = rng_range(&sim->rng, 0, 9);

	if (dice < 5)
		end_launch(sim, p, CAUSE_CRASH, -1);
	else if (dice < 6)
		end_launch(sim, p, CAUSE_OOM, -1);
	else if (dice < 7 && sim->people[p->run].never_again)
		end_launch(sim, p, CAUSE_ERROR, NEVER_EXIT_CODE);
	else
		end_launch(sim, p, CAUSE_ERROR, 1);
}

/* The trainer has something to say. */
static void train(struct sim *sim, struct lbrun *p)
{
	const struct climate *w = &sim->climate;

	for (int64_t n = rng_range(&sim->rng, 1, 2); n > 0; n--) {
		p->step += rng_range(&sim->rng, 1, 60);
		say_step(sim, p);
	}
	if (rng_chance(&sim->rng, 0.6) || p->step >= sim->people[p->run].target_step)
		say_checkpoint(sim, p);
	if (p->step >= sim->people[p->run].target_step)
		end_launch(sim, p, CAUSE_COMPLETED, 0);
	else if (rng_chance(&sim->rng, w->failure))
		fail(sim, p);
	else if (rng_chance(&sim->rng, w->hang))
		hang(sim, p);
	else
		plan(sim, p, LBRUN_TRAIN, MINUTE + rng_exp(&sim->rng, (double)w->tick_ms));
}

/* --- the beginning of the attempt ------------------------------------------------------------- */

static void turn_away(struct sim *sim, struct lbrun *p)
{
	fact(sim, p, FACT_TURNED_AWAY, p->job->status.ref.job_id, 0);
	leave(sim, p);
	job_report(sim, p->job, 0);
}

static bool older_may_live(const struct sim *sim, const struct lbrun *p)
{
	for (int64_t n = p->folder->number - 1; n >= 1 && n >= p->folder->number - OLDER_DEPTH;
	     n--) {
		const struct folder *older = disk_folder(&sim->disk, p->run, n);

		if (older && older->claimed_ms && !older->exited_ms)
			return true;
	}
	return false;
}

static void claim(struct sim *sim, struct lbrun *p)
{
	struct run_files *files = files_of(sim, p);
	bool heeds = sim->control != CONTROL_NO_CLAIM;

	if (heeds && (files->newest_claim > p->folder->number || p->folder->claimed_ms)) {
		turn_away(sim, p);
		return;
	}
	p->folder->claimed_ms = sim->now_ms;
	if (p->folder->number > files->newest_claim)
		files->newest_claim = p->folder->number;
	fact(sim, p, FACT_CLAIMED, p->job->status.ref.job_id, 0);
	for (size_t i = 0; i < sim->lbruns.live_count; i++)
		if (sim->lbruns.live[i]->run == p->run && sim->lbruns.live[i] != p)
			will_look(sim, sim->lbruns.live[i]);
	say(sim, p, &(struct spool_record){ .kind = SPOOL_ATTEMPT_START, .step = p->node });
	plan(sim, p, LBRUN_WAIT, heeds && older_may_live(sim, p) ? OLDER_WAIT_MS : 10);
	look(sim, p);
}

static void on_phase(struct sim *sim, void *arg, uint64_t stamp)
{
	struct lbrun *p = arg;

	if (p->stamp != stamp)
		return;
	if (sim->now_ms < p->frozen_until_ms) {
		agenda_add(&sim->agenda, p->frozen_until_ms + LOOK_MS + 500, on_phase, p, stamp);
		return;
	}
	switch (p->phase) {
	case LBRUN_BOOT:
		claim(sim, p);
		break;
	case LBRUN_WAIT:
	case LBRUN_PAUSE:
		begin_launch(sim, p);
		break;
	case LBRUN_TRAIN:
		if (p->stop_due_ms != 0)
			; /* asked to end, it only waits for that */
		else if (p->is_hung)
			end_launch(sim, p, CAUSE_HANG, -1);
		else if (p->fails_early && rng_chance(&sim->rng, 0.25))
			hang(sim, p);
		else if (p->fails_early)
			fail(sim, p);
		else
			train(sim, p);
		break;
	case LBRUN_OVER:
		break;
	}
}

void lbrun_start(struct sim *sim, struct job *job)
{
	struct lbruns *all = &sim->lbruns;
	struct lbrun *p = xcalloc(1, sizeof(*p));

	p->next = all->all;
	all->all = p;
	p->job = job;
	p->run = job->run;
	p->node = job->node;
	p->folder = disk_folder(&sim->disk, job->run, job->number);
	job->lbrun = p;
	if (all->live_count == sizeof(all->live) / sizeof(all->live[0]))
		abort(); /* far more than there are slots on all nodes */
	all->live[all->live_count++] = p;
	plan(sim, p, LBRUN_BOOT, rng_range(&sim->rng, 50, 3000));
}

void lbruns_fini(struct lbruns *all)
{
	while (all->all) {
		struct lbrun *p = all->all;

		all->all = p->next;
		free(p);
	}
	all->live_count = 0;
}
