/* SPDX-License-Identifier: MIT */
/* person.c - people submit, kill and restart runs, with the same steps as lbd's handlers; while lbd
 * is not there they try again. */
#include <stdio.h>

#include "tests/sim/sim.h"

enum { TRY_AGAIN_MS = 30 * SECOND };

static const char *const by = "ann";

static void name_of(int run, char out[16])
{
	snprintf(out, 16, "r%02d", run);
}

/* --- submit ----------------------------------------------------------------------------------- */

static bool is_in_ledger(struct sim *sim, const char *name)
{
	struct ledger_run row;

	return ledger_run_find(sim->daemon.ledger, name, &row, NULL) == 0;
}

/* As the handler of "submit". */
static bool insert(struct sim *sim, const char *name)
{
	struct ledger *l = sim->daemon.ledger;
	struct ledger_run row = {
		.name = name,
		.owner = by,
		.scheduler = sim->is_local ? "local" : "slurm",
		.dir = name,
		.text = "",
		.wanted_by = "",
		.wanted_reason = "",
		.step = -1,
		.target_step = -1,
		.created_ms = daemon_wall_ms(sim),
	};
	struct err err = { 0 };
	int64_t id;

	if (ledger_run_insert(l, &row, &id, NULL) == 0 &&
	    engine_adopt(sim->daemon.engine, name, NULL) == 0)
		return engine_settle(sim->daemon.engine, &err) == 0;
	ledger_rollback(l);
	return false;
}

static void on_submit(struct sim *sim, void *arg, uint64_t stamp)
{
	int run = (int)stamp;
	char name[16];
	bool done;

	name_of(run, name);
	/* It may have been accepted by an lbd that died before it could say so. */
	done = sim->daemon.engine && (is_in_ledger(sim, name) || insert(sim, name)) &&
	       !sim->daemon.is_dead;
	daemon_settle(sim);
	if (!done) {
		sim_after(sim, TRY_AGAIN_MS, on_submit, arg, stamp);
		return;
	}
	sim->people[run].state = PERSON_LIVE;
	sim->people[run].failed_until_ms = sim->now_ms + rng_range(&sim->rng, 0, MIN_JOB_AGE_MS);
	sim_fact(sim, FACT_SUBMITTED, run, 0, 0, 0);
}

/* --- kill and restart ------------------------------------------------------------------------- */

/* As the handlers of "kill", "hold" and "release". */
static bool give_order(struct sim *sim, const char *name, const struct ledger_run *row,
		       enum run_order order)
{
	struct ledger *l = sim->daemon.ledger;

	if (ledger_run_set_wanted(l, row->id, order, by, "", daemon_wall_ms(sim), NULL) < 0)
		return false;
	engine_order(sim->daemon.engine, name, order, by, "");
	return ledger_commit(l, NULL) == 0;
}

/* A file that lbd sees when it looks, at once or when it is there again; only that of a hold does
 * any more once it was seen, so it lies there for long. */
static void put_switch(struct sim *sim, int run, enum run_order wanted)
{
	sim->people[run].switched = wanted;
	if (sim->daemon.engine)
		engine_on_switches(sim->daemon.engine);
}

static bool order_by_switch(struct sim *sim, int run, enum run_order wanted)
{
	enum run_order lies = sim->people[run].switched;
	bool takes_away = lies == ORDER_HOLD && wanted == ORDER_RUN;

	if (!takes_away &&
	    (wanted < ORDER_HOLD || wanted > ORDER_KILL || !rng_chance(&sim->rng, 0.3)))
		return false;
	put_switch(sim, run, wanted);
	return true;
}

static enum run_order some_order(struct sim *sim, enum run_order wanted)
{
	static const enum run_order orders[] = {
		ORDER_HOLD, ORDER_HOLD, ORDER_STOP, ORDER_KILL, ORDER_KILL_NOW,
	};

	if (wanted == ORDER_HOLD && (sim->is_quiet || rng_chance(&sim->rng, 0.7)))
		return ORDER_RUN;
	return orders[rng_range(&sim->rng, 0, 4)];
}

/* As the handler of "save": a file in the folder of the newest attempt. */
static void save(struct sim *sim, int run, const struct ledger_run *row)
{
	struct ledger_attempt attempt;
	struct folder *folder;

	if (row->state != RUN_RUNNING ||
	    ledger_attempt_newest(sim->daemon.ledger, row->id, &attempt, NULL) < 0)
		return;
	folder = disk_folder(&sim->disk, run, attempt.number);
	if (folder == NULL)
		return;
	sim_fact(sim, FACT_SAVE_ASKED, run, attempt.number, 0, 0);
	folder->wants_save = true;
	lbrun_notice(sim, folder);
}

/* As the handler of "restart". */
static bool restart(struct sim *sim, const char *name, const struct ledger_run *row)
{
	struct ledger *l = sim->daemon.ledger;
	int64_t id = row->id, now_ms = daemon_wall_ms(sim);
	enum run_state from = row->state;

	if (ledger_run_set_wanted(l, id, ORDER_RUN, by, "", now_ms, NULL) == 0 &&
	    ledger_run_set_failures(l, id, 0, 0, NULL) == 0 &&
	    ledger_run_move(l, id, from, RUN_CREATED, CAUSE_NONE, "restarted", now_ms, NULL) == 0 &&
	    ledger_commit(l, NULL) == 0)
		return engine_adopt(sim->daemon.engine, name, NULL) == 0;
	ledger_rollback(l);
	return false;
}

static void on_second_thought(struct sim *sim, void *arg, uint64_t stamp);

static void order(struct sim *sim, int run, const char *name, const struct ledger_run *row)
{
	enum run_order wanted = some_order(sim, row->wanted);
	bool is_allowed = wanted == ORDER_RUN ? row->wanted == ORDER_HOLD : wanted > row->wanted;

	if (!is_allowed)
		return;
	/* what a switch wants is a fact once lbd has seen it */
	if (!order_by_switch(sim, run, wanted) &&
	    (!give_order(sim, name, row, wanted) || sim->daemon.is_dead))
		return;
	sim_fact(sim, FACT_ORDERED, run, 0, wanted, 0);
	if (rng_chance(&sim->rng, 0.4))
		sim_after(sim, rng_range(&sim->rng, 10, 40 * SECOND), on_second_thought, NULL,
			  (uint64_t)run);
}

static void act(struct sim *sim, int run)
{
	struct ledger_run row;
	char name[16];

	name_of(run, name);
	if (ledger_run_find(sim->daemon.ledger, name, &row, NULL) < 0)
		return;
	if (!run_state_is_final(row.state)) {
		if (!sim->is_quiet && rng_chance(&sim->rng, 0.3))
			save(sim, run, &row);
		if (row.wanted == ORDER_HOLD || (!sim->is_quiet && rng_chance(&sim->rng, 0.25)))
			order(sim, run, name, &row);
	} else if (!sim->is_quiet) {
		if (row.state == RUN_COMPLETED)
			sim->people[run].target_step += rng_range(&sim->rng, 200, 4000);
		put_switch(sim, run, ORDER_RUN);
		if (restart(sim, name, &row) && !sim->daemon.is_dead)
			sim_fact(sim, FACT_RESTARTED, run, 0, 0, 0);
	}
}

static void on_second_thought(struct sim *sim, void *arg, uint64_t stamp)
{
	(void)arg;
	if (sim->daemon.engine)
		act(sim, (int)stamp);
	daemon_settle(sim);
}

/* In quiet times all that people still do is to let go what they hold. */
static void on_person(struct sim *sim, void *arg, uint64_t stamp)
{
	int run = (int)stamp;

	if (sim->daemon.engine && sim->people[run].state == PERSON_LIVE)
		act(sim, run);
	else if (!sim->is_quiet && sim->people[run].state == PERSON_LIVE)
		order_by_switch(sim, run, some_order(sim, ORDER_RUN));
	daemon_settle(sim);
	sim_after(sim, MINUTE + rng_exp(&sim->rng, sim->is_quiet ? 2.0 * HOUR : 1.5 * DAY),
		  on_person, arg, stamp);
}

void people_begin(struct sim *sim)
{
	for (int run = 0; run < RUNS; run++) {
		struct person *p = &sim->people[run];

		p->target_step = rng_range(&sim->rng, 200, 12000);
		p->never_again = rng_chance(&sim->rng, 0.2);
		p->is_broken = rng_chance(&sim->rng, 0.1);
		p->prequeues = rng_chance(&sim->rng, 0.3);
		p->is_warned = rng_chance(&sim->rng, 0.5);
		p->is_unwatched = rng_chance(&sim->rng, 0.2);
		if (rng_chance(&sim->rng, 0.05) && !sim->is_local)
			p->dependency = rng_chance(&sim->rng, 0.5) ? DEPENDENCY_WAITS
								   : DEPENDENCY_KILLS;
		sim_after(sim, rng_exp(&sim->rng, 0.5 * DAY), on_submit, NULL, (uint64_t)run);
		sim_after(sim, rng_exp(&sim->rng, 1.0 * DAY), on_person, NULL, (uint64_t)run);
	}
}

void people_rest(struct sim *sim)
{
	for (int run = 0; run < RUNS; run++) {
		int64_t soon = sim->disk.runs[run].checkpoint_step + 300;

		if (sim->people[run].target_step > soon)
			sim->people[run].target_step = soon;
		sim_after(sim, HOUR, on_person, NULL, (uint64_t)run);
	}
}
