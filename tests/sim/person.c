/* SPDX-License-Identifier: MIT */
/* person.c - people submit, kill, hold, save and restart runs: each a request to lbd's own
 * handlers. While lbd is not there they try again. */
#include <stdio.h>

#include "tests/sim/handler_taps.h"
#include "tests/sim/sim.h"

enum { TRY_AGAIN_MS = 30 * SECOND };

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

static bool submit(struct sim *sim, const char *name)
{
	json_t *toml = json_sprintf("[run]\nname = \"%s\"\nscheduler = \"%s\"\n"
				    "workdir = \"/\"\ncommand = [\"true\"]\n",
				    name, sim->is_local ? "local" : "slurm");

	return handler_ask(sim, VERB_SUBMIT, json_pack("{s:o}", "toml", toml));
}

static void on_submit(struct sim *sim, void *arg, uint64_t stamp)
{
	int run = (int)stamp;
	char name[16];
	bool done;

	name_of(run, name);
	/* It may have been accepted by an lbd that died before it could say so. */
	done = daemon_is_awake(sim) && (is_in_ledger(sim, name) || submit(sim, name)) &&
	       !sim->daemon.is_dead;
	daemon_settle(sim);
	if (!done) {
		sim_after(sim, TRY_AGAIN_MS, on_submit, arg, stamp);
		return;
	}
	sim->people[run].state = PERSON_LIVE;
	sim->people[run].failed_until_ms = sim->now_ms + rng_range(&sim->rng, 0, MIN_JOB_AGE_MS);
	sim_fact(sim, FACT_SUBMITTED, run, 0, 0, 0);
	if (sim->people[run].is_array)
		sim_fact(sim, FACT_ARRAY, run, 0, 0, 0);
}

/* --- kill and restart ------------------------------------------------------------------------- */

static bool give_order(struct sim *sim, const char *name, enum run_order order)
{
	static const enum verb verbs[] = {
		[ORDER_RUN] = VERB_RELEASE, [ORDER_HOLD] = VERB_HOLD,     [ORDER_STOP] = VERB_STOP,
		[ORDER_KILL] = VERB_KILL,   [ORDER_KILL_NOW] = VERB_KILL,
	};

	return handler_ask(sim, verbs[order],
			   json_pack("{s:s, s:b}", "run", name, "now", order == ORDER_KILL_NOW));
}

/* A file that lbd sees when it looks, at once or when it is there again; only that of a hold does
 * any more once it was seen, so it lies there for long. */
static void put_switch(struct sim *sim, int run, enum run_order wanted)
{
	sim->people[run].switched = wanted;
	if (daemon_is_awake(sim))
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

static void on_second_thought(struct sim *sim, void *arg, uint64_t stamp);

static void order(struct sim *sim, int run, const char *name, const struct ledger_run *row)
{
	enum run_order wanted = some_order(sim, row->wanted);
	bool is_allowed = wanted == ORDER_RUN ? row->wanted == ORDER_HOLD : wanted > row->wanted;

	if (!is_allowed)
		return;
	/* what a switch wants is a fact once lbd has seen it */
	if (!order_by_switch(sim, run, wanted) && !give_order(sim, name, wanted))
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
			handler_ask(sim, VERB_SAVE, json_pack("{s:s}", "run", name));
		if (row.wanted == ORDER_HOLD || (!sim->is_quiet && rng_chance(&sim->rng, 0.25)))
			order(sim, run, name, &row);
	} else if (!sim->is_quiet) {
		if (row.state == RUN_COMPLETED)
			sim->people[run].target_step += rng_range(&sim->rng, 200, 4000);
		put_switch(sim, run, ORDER_RUN);
		if (handler_ask(sim, VERB_RESTART, json_pack("{s:s}", "run", name)))
			sim_fact(sim, FACT_RESTARTED, run, 0, 0, 0);
	}
}

static void on_second_thought(struct sim *sim, void *arg, uint64_t stamp)
{
	(void)arg;
	if (daemon_is_awake(sim))
		act(sim, (int)stamp);
	daemon_settle(sim);
}

/* In quiet times all that people still do is to let go what they hold. */
static void on_person(struct sim *sim, void *arg, uint64_t stamp)
{
	int run = (int)stamp;

	if (daemon_is_awake(sim) && sim->people[run].state == PERSON_LIVE)
		act(sim, run);
	else if (!sim->is_quiet && sim->people[run].state == PERSON_LIVE)
		order_by_switch(sim, run, some_order(sim, ORDER_RUN));
	daemon_settle(sim);
	sim_after(sim, MINUTE + rng_exp(&sim->rng, sim->is_quiet ? 2.0 * HOUR : 1.5 * DAY),
		  on_person, arg, stamp);
}

static void be_array(struct sim *sim, int run)
{
	struct person *p = &sim->people[run];

	p->is_array = true;
	p->at_once = (int)rng_range(&sim->rng, 1, TASKS);
	p->checks_nodes = p->is_spread = p->may_shrink = p->loses_nodes = false;
	p->dependency = DEPENDENCY_NONE;
	for (int task = 0; task < TASKS; task++) {
		sim->people[task_number(run, task)] = *p;
		sim->people[task_number(run, task)].target_step = rng_range(&sim->rng, 1, 600);
	}
}

void people_begin(struct sim *sim)
{
	for (int run = 0; run < RUNS; run++) {
		struct person *p = &sim->people[run];

		p->target_step = rng_range(&sim->rng, 200, 12000);
		p->never_again = rng_chance(&sim->rng, 0.2);
		p->is_broken = rng_chance(&sim->rng, 0.1);
		p->prequeue = (int)rng_range(&sim->rng, 0, 2);
		p->checks_nodes = rng_chance(&sim->rng, 0.4);
		p->is_spread = rng_chance(&sim->rng, 0.3) && !sim->is_local;
		p->may_shrink = rng_chance(&sim->rng, 0.3) && !sim->is_local;
		p->loses_nodes = p->may_shrink && rng_chance(&sim->rng, 0.5);
		p->nodes_back_ms = rng_chance(&sim->rng, 0.3)
					   ? INT64_MAX
					   : sim->now_ms + rng_range(&sim->rng, 1, 20) * DAY;
		p->is_warned = rng_chance(&sim->rng, 0.5);
		p->is_unwatched = rng_chance(&sim->rng, 0.2);
		if (rng_chance(&sim->rng, 0.05) && !sim->is_local)
			p->dependency = rng_chance(&sim->rng, 0.5) ? DEPENDENCY_WAITS
								   : DEPENDENCY_KILLS;
		if (run < ARRAYS && rng_chance(&sim->rng, 0.5) && !sim->is_local)
			be_array(sim, run);
		sim_after(sim, rng_exp(&sim->rng, 0.5 * DAY), on_submit, NULL, (uint64_t)run);
		sim_after(sim, rng_exp(&sim->rng, 1.0 * DAY), on_person, NULL, (uint64_t)run);
	}
}

void people_rest(struct sim *sim)
{
	for (int run = 0; run < ALL_RUNS; run++) {
		int64_t soon = sim->disk.runs[run].checkpoint_step + 300;

		if (sim->people[run].target_step > soon)
			sim->people[run].target_step = soon;
		if (run < RUNS)
			sim_after(sim, HOUR, on_person, NULL, (uint64_t)run);
	}
}
