/* SPDX-License-Identifier: MIT */
/* sim.c - one world from its beginning to its end: faults for thirty days, then quiet until every
 * run has come to its end, then a last half day in which nothing may be left. */
#include "tests/sim/sim.h"

#include <stdlib.h>

#include "common/base/mem.h"
#include "tests/sim/checker.h"

enum { AFTERWARDS_MS = DAY / 2 };

static void on_quiet(struct sim *sim, void *arg, uint64_t stamp)
{
	(void)arg;
	(void)stamp;
	sim->is_quiet = true;
	climate_calm(&sim->climate);
	sim_fact(sim, FACT_QUIET, -1, 0, 0, 0);
	people_rest(sim);
}

static struct sim *sim_create(uint64_t seed, enum negative_control control)
{
	struct sim *sim = xcalloc(1, sizeof(*sim));

	sim->seed = seed;
	sim->control = control;
	sim->rng.state = seed * 0xd1342543de82ef95u + 1;
	sim->now_ms = BEGIN_MS;
	climate_draw(&sim->climate, &sim->rng);
	sim->is_local = rng_chance(&sim->rng, 0.1);
	if (sim->is_local)
		climate_local(&sim->climate, &sim->rng);
	disk_init(&sim->disk);
	slurm_init(&sim->slurm, sim);
	daemon_init(sim);
	daemon_start(sim);
	faults_begin(sim);
	people_begin(sim);
	sim_after(sim, (int64_t)FAULT_DAYS * DAY, on_quiet, NULL, 0);
	return sim;
}

static void sim_destroy(struct sim *sim)
{
	daemon_fini(sim);
	slurm_fini(&sim->slurm);
	lbruns_fini(&sim->lbruns);
	disk_fini(&sim->disk);
	agenda_fini(&sim->agenda);
	history_fini(&sim->history);
	free(sim);
}

static bool is_all_over(const struct sim *sim)
{
	struct engine_health health;

	if (sim->daemon.engine == NULL)
		return false;
	for (int run = 0; run < RUNS; run++)
		if (sim->people[run].state != PERSON_LIVE)
			return false;
	engine_health(sim->daemon.engine, &health);
	return health.live_runs == 0;
}

static void live_until(struct sim *sim, int64_t until_ms, bool stop_when_over)
{
	struct event e;

	while (sim->agenda.count > 0 && sim->agenda.heap[0].at_ms < until_ms) {
		agenda_take(&sim->agenda, &e);
		if (e.at_ms > sim->now_ms)
			sim->daemon.turns_now = 0;
		sim->now_ms = e.at_ms;
		e.fn(sim, e.arg, e.stamp);
		if (stop_when_over && is_all_over(sim))
			return;
	}
	sim->now_ms = until_ms;
}

static int check(struct sim *sim, FILE *out)
{
	struct world_end end = {
		.seed = sim->seed,
		.now_ms = sim->now_ms,
		.runs = RUNS,
		.ledger = sim->daemon.ledger,
		.spool_ms = sim->daemon.times.spool_ms,
		.idle_ms = sim->daemon.times.idle_ms,
		.polls = sim->slurm.poll_count,
		.calls = sim->slurm.call_count,
		.turns = sim->daemon.turn_count,
		.up_ms = sim->now_ms - BEGIN_MS - sim->daemon.down_ms,
		.max_without_progress = MAX_WITHOUT_PROGRESS,
		.in_place = IN_PLACE,
		.backoff_max_ms = BACKOFF_MAX_MS,
		.hang_max_ms = HANG_MAX_MS,
		.left_over_max_ms = LEFT_OVER_MAX_MS,
		.stop_grace_ms = STOP_GRACE_MS,
		.max_excluded = MAX_EXCLUDED,
		.preflight_tries = PREFLIGHT_TRIES,
	};

	for (size_t i = 0; i < sim->slurm.known_count; i++)
		end.live_jobs += job_is_live(sim->slurm.known[i]);
	return history_check(&sim->history, &end, out);
}

int sim_run(uint64_t seed, enum negative_control control, FILE *out)
{
	struct sim *sim = sim_create(seed, control);
	int64_t quiet_ms = BEGIN_MS + (int64_t)FAULT_DAYS * DAY;
	int broken;

	live_until(sim, quiet_ms + 1, false);
	live_until(sim, quiet_ms + (int64_t)QUIET_DAYS * DAY, true);
	live_until(sim, sim->now_ms + AFTERWARDS_MS, false);
	broken = check(sim, out);
	sim_destroy(sim);
	return broken;
}
