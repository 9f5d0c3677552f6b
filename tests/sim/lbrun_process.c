/* SPDX-License-Identifier: MIT */
/* lbrun_process.c - a simulated lbrun as a process: what it writes, what it sees, and its end. */
#include <stdio.h>
#include <stdlib.h>

#include "common/base/mem.h"
#include "tests/sim/arrays.h"
#include "tests/sim/lbrun_process.h"
#include "tests/sim/sim.h"
#include "worker/lbrun/decide/judge.h"

enum {
	RETRY_MS = 1000, /* it looks this often whether the disk takes lines again */
	OLDER_DEPTH = 8,
};

void lbrun_fact(struct sim *sim, const struct lbrun *p, enum fact_kind kind, int64_t a, int64_t b)
{
	sim_fact(sim, kind, p->run, p->folder->number, a, b);
}

struct run_files *lbrun_files(struct sim *sim, const struct lbrun *p)
{
	return &sim->disk.runs[p->run];
}

bool lbrun_is_frozen(const struct sim *sim, const struct lbrun *p)
{
	return sim->now_ms < p->frozen_until_ms;
}

/* --- the spool -------------------------------------------------------------------------------- */

static void on_poke(struct sim *sim, void *arg, uint64_t stamp)
{
	char name[16];

	(void)arg;
	snprintf(name, sizeof(name), "r%02d", run_of((int)stamp));
	if (daemon_is_awake(sim))
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
		lbrun_fact(sim, p, FACT_STEP, seq, r->step);
	if (r->kind == SPOOL_CHECKPOINT && r->has_progress)
		lbrun_fact(sim, p, FACT_CHECKPOINT, r->launch, r->step);
}

static void keep(struct lbrun *p, const struct spool_record *r)
{
	if (p->kept_count == p->kept_cap) {
		p->kept_cap = p->kept_cap ? 2 * p->kept_cap : 8;
		p->kept = xrealloc(p->kept, p->kept_cap * sizeof(*p->kept));
	}
	p->kept[p->kept_count++] = *r;
}

bool lbrun_write_kept(struct sim *sim, struct lbrun *p)
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

void lbrun_say(struct sim *sim, struct lbrun *p, const struct spool_record *record)
{
	struct spool_record r = *record;

	r.at_ms = r.seen_ms = sim->now_ms;
	r.launch = p->facts.launch.number;
	keep(p, &r);
	if (!lbrun_write_kept(sim, p))
		agenda_add(&sim->agenda, sim->now_ms + RETRY_MS, on_retry, p, 0);
}

/* --- what it sees ----------------------------------------------------------------------------- */

static bool older_may_live(const struct sim *sim, const struct lbrun *p)
{
	int looked = 0;

	for (int64_t n = p->folder->number - 1; n >= 1 && looked < OLDER_DEPTH; n--) {
		const struct folder *older = disk_folder(&sim->disk, p->run, n);

		if (older && older->claimed_ms && !older->exited_ms)
			return true;
		looked += older && older->claimed_ms;
	}
	return false;
}

static bool older_left_ranks(const struct sim *sim, const struct lbrun *p)
{
	for (int64_t n = p->folder->number - 1; n >= 1; n--) {
		const struct folder *older = disk_folder(&sim->disk, p->run, n);

		if (!older || !older->claimed_ms)
			continue;
		if (attempt_may_have_left_ranks(older->exited_ms ? &older->exit : NULL))
			return true;
		if (older->exit.launches > 0)
			return false;
	}
	return false;
}

int64_t lbrun_checks_failed(const struct sim *sim, const struct lbrun *p)
{
	int64_t failed = 0;

	for (int64_t n = p->folder->number - 1; n >= 1; n--) {
		const struct folder *older = disk_folder(&sim->disk, p->run, n);
		bool has_exit = older && older->exited_ms;

		if (has_exit && !older->exit.is_node)
			break;
		failed += has_exit;
	}
	return failed;
}

/* To a trainer a hold is the order to checkpoint and end. */
static enum run_order order_in(const struct folder *folder)
{
	return folder->order > ORDER_RUN && folder->order < ORDER_STOP ? ORDER_STOP : folder->order;
}

void lbrun_look(struct sim *sim, struct lbrun *p)
{
	struct shepherd_facts *f = &p->facts;

	f->newest_claim = sim->disk.runs[run_of(p->run)].newest_claim;
	f->older_may_live = f->launch.number == 0 && older_may_live(sim, p);
	f->older_left_ranks = f->launch.number == 0 && p->policy.is_srun &&
			      older_left_ranks(sim, p);
	if (order_in(p->folder) > f->order)
		f->order = order_in(p->folder);
	f->goes_on = p->folder->goes_on;
	if (p->folder->wants_save && f->launch.is_open && !f->launch.has_ended) {
		p->folder->wants_save = false;
		f->wants_save = true;
	}
}

/* --- the end of the process ------------------------------------------------------------------- */

void lbrun_leave(struct sim *sim, struct lbrun *p)
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
	far_stir(sim, p);
	p->is_over = true;
	p->stamp++;
	far_stir(sim, p);
}

void lbrun_write_exit(struct sim *sim, struct lbrun *p, const struct ending *end)
{
	struct folder *f = p->folder;

	f->exit = (struct attempt_exit){
		.cause = end->cause,
		.exit_code = end->exit_code,
		.signal = end->signal,
		.is_final = end->is_final,
		.is_node = end->is_node,
		.left_ranks = launch_may_have_left_ranks(&p->facts, &p->policy),
		.launches = p->facts.launch.number,
		.last_seq = (int64_t)f->count,
		.time_ms = sim->now_ms,
	};
	snprintf(f->exit.token, sizeof(f->exit.token), "%s", f->token);
	f->exited_ms = sim->now_ms;
	task_write_exit(sim, p);
	lbrun_fact(sim, p, FACT_EXITED, end->cause, f->exit.last_seq);
}
