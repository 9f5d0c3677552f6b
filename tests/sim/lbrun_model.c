/* SPDX-License-Identifier: MIT */
/* lbrun_model.c - the shell around lbrun's heart: what it sees of the world, and what its steps do. */
#include "tests/sim/lbrun_model.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/mem.h"
#include "tests/sim/sim.h"

enum {
	LOOK_MS = 2000,  /* it looks for newer claims and orders this often */
	RETRY_MS = 1000, /* and whether the disk takes lines again */
	OLDER_DEPTH = 8,
	ASK_MS = 20 * SECOND,
	TERM_MS = 10 * SECOND, /* in which a trainer obeys, if it does */
	STUCK_STEPS = 1000,
	EXIT_KILLED = 128 + SIGKILL,
};

static void fact(struct sim *sim, const struct lbrun *p, enum fact_kind kind, int64_t a, int64_t b)
{
	sim_fact(sim, kind, p->run, p->folder->number, a, b);
}

static void on_retry(struct sim *sim, void *arg, uint64_t stamp);

static struct run_files *files_of(struct sim *sim, const struct lbrun *p)
{
	return &sim->disk.runs[p->run];
}

bool lbrun_is_frozen(const struct sim *sim, const struct lbrun *p)
{
	return sim->now_ms < p->frozen_until_ms;
}

/* --- the spool ------------------------------------------------------------------------------------ */

static void on_poke(struct sim *sim, void *arg, uint64_t stamp)
{
	char name[16];

	(void)arg;
	snprintf(name, sizeof(name), "r%02u", (unsigned)stamp);
	if (sim->daemon.engine)
		engine_poke(sim->daemon.engine, name);
	daemon_settle(sim);
}

/* Only what is written counts as acknowledged. */
static void write_line(struct sim *sim, struct lbrun *p, const struct spool_record *r)
{
	int64_t seq;

	if (rng_chance(&sim->rng, 0.3))
		sim_after(sim, rng_range(&sim->rng, 1, 200), on_poke, NULL, (uint64_t)p->run);
	seq = folder_append(p->folder, r);
	if (r->kind == SPOOL_STEP)
		fact(sim, p, FACT_STEP, seq, r->step);
	if (r->kind == SPOOL_CHECKPOINT && r->has_progress)
		fact(sim, p, FACT_CHECKPOINT, r->launch, r->step);
}

static void keep(struct lbrun *p, const struct spool_record *r)
{
	if (p->kept_count == p->kept_cap) {
		p->kept_cap = p->kept_cap ? 2 * p->kept_cap : 8;
		p->kept = xrealloc(p->kept, p->kept_cap * sizeof(*p->kept));
	}
	p->kept[p->kept_count++] = *r;
}

/* All that waited, in its order. */
static bool write_kept(struct sim *sim, struct lbrun *p)
{
	if (p->kept_count > 0 && disk_is_full(&sim->disk, sim->now_ms)) {
		p->full_ms = sim->now_ms;
		return false;
	}
	for (size_t i = 0; i < p->kept_count; i++) {
		p->kept[i].seen_ms = sim->now_ms;
		write_line(sim, p, &p->kept[i]);
	}
	p->kept_count = 0;
	return true;
}

void lbrun_say(struct sim *sim, struct lbrun *p, const struct spool_record *record)
{
	struct spool_record r = *record;

	r.at_ms = r.seen_ms = sim->now_ms;
	r.launch = p->facts.launch.number;
	keep(p, &r);
	if (!write_kept(sim, p))
		agenda_add(&sim->agenda, sim->now_ms + RETRY_MS, on_retry, p, 0);
}

/* --- the end of the process ----------------------------------------------------------------------- */

static void leave(struct sim *sim, struct lbrun *p)
{
	struct lbruns *all = &sim->lbruns;

	for (size_t i = 0; i < all->live_count; i++) {
		if (all->live[i] == p) {
			all->live[i] = all->live[--all->live_count];
			break;
		}
	}
	if (p->handed) {
		handed_clear(p->handed);
		free(p->handed);
		p->handed = NULL;
	}
	p->is_over = true;
	p->stamp++;
}

static void write_exit(struct sim *sim, struct lbrun *p, const struct ending *end)
{
	struct folder *f = p->folder;

	f->exit = (struct attempt_exit){
		.cause = end->cause,
		.exit_code = end->exit_code,
		.signal = end->signal,
		.is_final = end->is_final,
		.launches = p->facts.launch.number,
		.last_seq = (int64_t)f->count,
		.time_ms = sim->now_ms,
	};
	snprintf(f->exit.token, sizeof(f->exit.token), "%s", f->token);
	f->exited_ms = sim->now_ms;
	fact(sim, p, FACT_EXITED, end->cause, f->exit.last_seq);
}

/* Its trainer is gone with it, and nobody judged that. */
static void lose_trainer(struct sim *sim, struct lbrun *p)
{
	const struct launch *l = &p->facts.launch;

	trainer_vanish(sim, p);
	if (p->has_begun && l->is_open)
		fact(sim, p, FACT_TRAINER_ENDED, l->number, CAUSE_LOST + (l->has_saved ? 100 : 0));
}

static void die(struct sim *sim, struct lbrun *p)
{
	static const struct ending killed = { .cause = CAUSE_LOST,
					      .exit_code = -1,
					      .signal = SIGKILL };

	lose_trainer(sim, p);
	if (p->has_begun && p->facts.claim == CLAIM_OURS && !p->facts.is_recorded &&
	    !disk_is_full(&sim->disk, sim->now_ms))
		write_exit(sim, p, &killed);
	leave(sim, p);
	job_report(sim, p->job, EXIT_KILLED);
}

void lbrun_vanish(struct sim *sim, struct lbrun *p)
{
	if (p->is_over)
		return;
	lose_trainer(sim, p);
	leave(sim, p);
	p->job->lbrun = NULL;
}

/* --- what it sees --------------------------------------------------------------------------------- */

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

/* To a trainer a hold is the order to checkpoint and end. */
static enum run_order order_in(const struct folder *folder)
{
	return folder->order > ORDER_RUN && folder->order < ORDER_STOP ? ORDER_STOP : folder->order;
}

static void look(struct sim *sim, struct lbrun *p)
{
	struct shepherd_facts *f = &p->facts;

	f->newest_claim = files_of(sim, p)->newest_claim;
	f->older_may_live = f->launch.number == 0 && older_may_live(sim, p);
	if (order_in(p->folder) > f->order)
		f->order = order_in(p->folder);
	if (p->folder->wants_save && f->launch.is_open && !f->launch.has_ended) {
		p->folder->wants_save = false;
		f->wants_save = true;
	}
}

static void gather(struct sim *sim, struct lbrun *p)
{
	struct shepherd_facts *f = &p->facts;

	f->is_full = !write_kept(sim, p);
	f->full_ms = p->full_ms;
	f->hung_at_ms = p->trainer.hung_at_ms;
	f->stacks = STACKS_DONE;
	f->handed = p->handed;
}

/* A control is an lbrun that is blind to one thing. */
static struct next decide(struct sim *sim, const struct lbrun *p)
{
	struct shepherd_facts seen;

	if (sim->control == CONTROL_NONE || sim->control == CONTROL_PLAIN_SUBMIT)
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
	if (sim->control == CONTROL_NO_ROOM)
		seen.closed_ms = INT64_MIN / 2;
	return shepherd_decide(&seen, &p->policy, sim->now_ms);
}

/* --- the steps ------------------------------------------------------------------------------------ */

static void act_claim(struct sim *sim, struct lbrun *p)
{
	struct run_files *files = files_of(sim, p);

	if (p->folder->claimed_ms && sim->control != CONTROL_NO_CLAIM) {
		p->facts.claim = CLAIM_TAKEN;
		return;
	}
	p->facts.claim = CLAIM_OURS;
	p->facts.claimed_ms = p->folder->claimed_ms = sim->now_ms;
	if (p->folder->number > files->newest_claim)
		files->newest_claim = p->folder->number;
	fact(sim, p, FACT_CLAIMED, p->job->status.ref.job_id, 0);
	for (size_t i = 0; i < sim->lbruns.live_count; i++)
		if (sim->lbruns.live[i]->run == p->run && sim->lbruns.live[i] != p)
			lbrun_notice(sim, sim->lbruns.live[i]->folder);
	p->handed = xcalloc(1, sizeof(*p->handed));
	disk_load_handed(files, p->handed);
	lbrun_say(sim, p, &(struct spool_record){ .kind = SPOOL_ATTEMPT_START, .step = p->node });
}

static void act_turn_away(struct sim *sim, struct lbrun *p)
{
	fact(sim, p, FACT_TURNED_AWAY, p->job->status.ref.job_id, 0);
	leave(sim, p);
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
	p->facts.found = disk_search(files_of(sim, p), p->handed, &found, &p->facts.newest_step);
	p->facts.found_step = found ? found->step : -1;
	if (rng_chance(&sim->rng, sim->climate.lost_search))
		p->facts.found = FOUND_UNKNOWN;
	p->trainer.from = found ? found->stamp : 0;
	p->trainer.from_bad = found && found->is_bad;
	lbrun_turn(sim, p);
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
		disk_save_handed(files_of(sim, p), p->handed);
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
	fact(sim, p, FACT_TRAINER_FROM, l->number, (int64_t)p->trainer.from);
	trainer_start(sim, p);
}

static void act_trust(struct sim *sim, struct lbrun *p)
{
	handed_good(p->handed, saved_path, p->trainer.from);
	remember(sim, p);
}

/* A launch that failed by its own fault and got to nothing new: every later lbrun knows, unless that
 * could not be written, or another attempt has the run already. */
static void tell_failed(struct sim *sim, struct lbrun *p, const struct next *end)
{
	const struct trainer *t = &p->trainer;
	enum cause cause = end->ending.cause;
	bool is_own = cause == CAUSE_ERROR || cause == CAUSE_CRASH || cause == CAUSE_OOM ||
		      cause == CAUSE_HANG;
	bool is_early = p->handed->has_steps || sim->now_ms - p->facts.launch.begun_ms < SOON_MS;
	bool is_sure = end->counts && is_early && !disk_is_full(&sim->disk, sim->now_ms) &&
		       files_of(sim, p)->newest_claim <= p->folder->number;

	if (t->from && !t->got_beyond && is_own)
		fact(sim, p, is_sure ? FACT_FROM_FAILED : FACT_FROM_DOUBTFUL,
		     p->facts.launch.number, (int64_t)t->from);
}

static void act_finish(struct sim *sim, struct lbrun *p, const struct next *end)
{
	const struct launch *l = &p->facts.launch;
	const struct trainer *t = &p->trainer;

	fact(sim, p, FACT_TRAINER_ENDED, l->number,
	     (int64_t)end->ending.cause + (end->made_progress ? 100 : 0) +
		     (t->may_not_again ? 1000 : 0) + (t->ended_for_disk ? 10000 : 0) +
		     (end->counts ? 0 : 100000));
	if (end->blames)
		handed_failed(p->handed, saved_path, t->from, "failed");
	tell_failed(sim, p, end);
	remember(sim, p);
	lbrun_say(sim, p,
		  &(struct spool_record){ .kind = SPOOL_LAUNCH_END,
					  .cause = end->ending.cause,
					  .exit_code = end->ending.exit_code,
					  .has_progress = end->made_progress,
					  .counts = end->counts });
}

static void act_leave(struct sim *sim, struct lbrun *p)
{
	if (p->kept_count > 0)
		fact(sim, p, FACT_LINES_LOST, (int64_t)p->kept_count, p->facts.closed_ms);
	leave(sim, p);
	job_report(sim, p->job, ending_exit_status(&p->facts.ending));
}

/* Some die before they have written it. */
static void act_record(struct sim *sim, struct lbrun *p)
{
	if (rng_chance(&sim->rng, sim->climate.no_record)) {
		act_leave(sim, p);
	} else if (!disk_is_full(&sim->disk, sim->now_ms)) {
		write_exit(sim, p, &p->facts.ending);
		p->facts.is_recorded = true;
	}
}

static void act(struct sim *sim, struct lbrun *p, const struct next *next)
{
	switch (next->kind) {
	case NEXT_TURN_AWAY:
		act_turn_away(sim, p);
		break;
	case NEXT_CLAIM:
		act_claim(sim, p);
		break;
	case NEXT_LOOK:
		look(sim, p);
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
		p->facts.is_unwritten = !write_kept(sim, p);
		break;
	case NEXT_RECORD:
		act_record(sim, p);
		break;
	case NEXT_LEAVE:
		act_leave(sim, p);
		break;
	case NEXT_WAIT:
	case NEXT_HEED:
	case NEXT_SEARCH_LOST:
	case NEXT_STACKS:
	case NEXT_DRAIN:
	case NEXT_GIVE_UP:
	case NEXT_COUNT:
		break;
	}
}

/* --- a turn --------------------------------------------------------------------------------------- */

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
		act(sim, p, &next);
		if (i > STUCK_STEPS)
			stuck(sim, p, &next);
	}
	if (!p->is_over && next.at_ms != INT64_MAX)
		agenda_add(&sim->agenda, next.at_ms, on_turn, p, ++p->stamp);
}

/* --- what comes to it ----------------------------------------------------------------------------- */

static void on_retry(struct sim *sim, void *arg, uint64_t stamp)
{
	struct lbrun *p = arg;

	(void)stamp;
	if (p->is_over || p->kept_count == 0)
		return;
	if (disk_is_full(&sim->disk, sim->now_ms) || lbrun_is_frozen(sim, p))
		agenda_add(&sim->agenda,
			   p->frozen_until_ms > sim->now_ms ? p->frozen_until_ms
							    : sim->disk.full_until_ms + RETRY_MS,
			   on_retry, p, 0);
	else
		lbrun_turn(sim, p);
}

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
	look(sim, p);
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
		look(sim, p);
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
	fact(sim, p, FACT_WARNED, p->facts.launch.number, 0);
	on_signal(sim, p, SIGUSR1);
}

/* All that was due meanwhile is due now: a look first of all. */
static void on_thaw(struct sim *sim, void *arg, uint64_t stamp)
{
	struct lbrun *p = arg;

	if (p->is_over || p->frozen_until_ms != (int64_t)stamp)
		return;
	trainer_thaw(sim, p);
	sim_after(sim, p->folder->delay_ms, on_look, p, 0);
}

void lbrun_freeze(struct sim *sim, struct lbrun *p, int64_t until_ms)
{
	if (!lbrun_is_frozen(sim, p))
		trainer_freeze(sim, p);
	p->frozen_until_ms = until_ms;
	agenda_add(&sim->agenda, until_ms, on_thaw, p, (uint64_t)until_ms);
}

/* --- the beginning -------------------------------------------------------------------------------- */

/* As attempt.json has it by now. */
static void read_params(struct lbrun *p)
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
		.never_on_exit_codes = never,
		.never_count = 1,
	};
	p->policy = (struct shepherd_policy){ .params = &p->params, .in_slurm = true };
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
	read_params(p);
	p->has_begun = true;
	p->facts.newest_claim = files_of(sim, p)->newest_claim;
	lbrun_turn(sim, p);
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
		free(p);
	}
	all->live_count = 0;
}
