/* SPDX-License-Identifier: MIT */
/* lbd_month.c - the month from its beginning to its end: lbd's turns, and the person who restarts
 * what failed. */
#include "tests/sim/ettr/lbd_month_internal.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/files.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "slurm/job_result.h"

enum { BUSY_MS = 5 * SECOND, IDLE_MS = 30 * SECOND, SPOOL_MS = 30 * SECOND };

static const char run_name[] = "r1";
const struct lbd_abilities lbd_by_default = { .half_life_ms = HALF_LIFE_MS,
					      .repeat_half_life_ms = REPEAT_HALF_LIFE_MS };

void live_spent(struct sim *sim, enum where where)
{
	account_span(sim->a, where, sim->why, sim->mark_ms, sim->now_ms);
	sim->mark_ms = sim->now_ms;
}

void live_after(struct sim *sim, int64_t ms, event_fn fn, void *arg, uint64_t stamp)
{
	agenda_add(&sim->agenda, sim->now_ms + ms, fn, arg, stamp);
}

int64_t live_wall_ms(const struct sim *sim)
{
	return (int64_t)EPOCH_S * 1000 + sim->now_ms;
}

/* --- the loop, and the person behind it ------------------------------------------------------- */

static void must(struct err *err, int rc)
{
	if (rc == 0)
		return;
	fprintf(stderr, "ettr: %s\n", err->text);
	abort();
}

static void on_turn(struct sim *sim, void *arg, uint64_t stamp);

static void plan_turn(struct sim *sim, int64_t at_ms)
{
	if (at_ms < sim->now_ms)
		at_ms = sim->now_ms;
	if (sim->planned_ms <= at_ms)
		return;
	sim->planned_ms = at_ms;
	agenda_add(&sim->agenda, at_ms, on_turn, NULL, ++sim->plan);
}

static void on_news(void *arg)
{
	struct sim *sim = arg;

	plan_turn(sim, sim->now_ms);
}

/* As the handler of "restart". */
static void on_person(struct sim *sim, void *arg, uint64_t stamp)
{
	struct ledger_run row;
	struct err err = { 0 };

	(void)arg;
	(void)stamp;
	sim->is_waiting_for_person = false;
	must(&err, ledger_run_find(sim->ledger, run_name, &row, &err));
	must(&err, ledger_run_set_failures(sim->ledger, row.id, 0, 0, &err));
	must(&err, ledger_run_move(sim->ledger, row.id, row.state, RUN_CREATED, CAUSE_NONE,
				   "restarted", live_wall_ms(sim), &err));
	must(&err, ledger_commit(sim->ledger, &err));
	must(&err, engine_adopt(sim->engine, run_name, &err));
}

static void on_turn(struct sim *sim, void *arg, uint64_t stamp)
{
	struct engine_health health;
	int64_t at_ms;

	(void)arg;
	if (sim->plan != stamp)
		return;
	sim->planned_ms = INT64_MAX;
	at_ms = engine_turn(sim->engine);
	if (at_ms != INT64_MAX)
		plan_turn(sim, at_ms - MONO_MS);
	engine_health(sim->engine, &health);
	if (health.live_runs > 0 || sim->is_waiting_for_person)
		return;
	sim->notes.failures++;
	sim->is_waiting_for_person = true;
	live_after(sim, sim->m->c.person_ms, on_person, NULL, 0);
}

/* --- begin and end ---------------------------------------------------------------------------- */

/* In memory, as the simulator's. */
static void open_ledger(struct sim *sim)
{
	struct err err = { 0 };
	char *path;

	sqlite3_vfs_register(sqlite3_vfs_find("memdb"), 1);
	snprintf(sim->folder, sizeof(sim->folder), "/tmp/lb-ettr-XXXXXX");
	must(&err, mkdtemp(sim->folder) ? 0 : err_set(&err, ERR_IO, "/tmp: cannot be written"));
	path = path_join("%s/ledger.db", sim->folder);
	must(&err, ledger_open(path, &sim->ledger, &err));
	free(path);
}

static void submit_run(struct sim *sim)
{
	struct ledger_run row = {
		.name = run_name,
		.owner = "ann",
		.scheduler = "slurm",
		.dir = run_name,
		.text = "",
		.wanted_by = "",
		.wanted_reason = "",
		.step = -1,
		.target_step = -1,
		.created_ms = live_wall_ms(sim),
	};
	struct err err = { 0 };
	int64_t id;

	must(&err, ledger_run_insert(sim->ledger, &row, &id, &err));
	must(&err, engine_adopt(sim->engine, run_name, &err));
	must(&err, engine_settle(sim->engine, &err));
}

static void begin(struct sim *sim, const struct lbd_abilities *can)
{
	/* else as lbd.toml's defaults */
	const struct node_rules rules = {
		.half_life_ms = can->half_life_ms,
		.threshold = 0.75,
		.repeat_half_life_ms = can->repeat_half_life_ms,
		.max_excluded = MAX_EXCLUDED,
		.max_share = 0.25,
	};
	static const struct poll_times times = {
		.busy_ms = BUSY_MS,
		.idle_ms = IDLE_MS,
		.spool_ms = SPOOL_MS,
	};
	struct err err = { 0 };

	sim->rng.state = sim->m->seed + 1;
	sim->planned_ms = INT64_MAX;
	sim->saved_step = 0;
	live_learn_limits(sim);
	sim->slurm.ops = &live_slurm_ops;
	sim->slurm.ages_held = can->ages_held;
	sim->world = live_world;
	sim->world.self = sim;
	must(&err, sim->world.spec(sim, "", &sim->spec, &err));
	open_ledger(sim);
	sim->engine = engine_create(sim->ledger, &sim->slurm, NULL, &sim->world, &times);
	engine_on_news(sim->engine, on_news, sim);
	engine_remember_nodes(sim->engine, &rules);
	must(&err, engine_load(sim->engine, &err));
	submit_run(sim);
	plan_turn(sim, 0);
	for (size_t i = 0; i < sim->m->count; i++)
		agenda_add(&sim->agenda, sim->m->troubles[i].at_ms, live_on_trouble, NULL, i);
}

static void end(struct sim *sim)
{
	engine_destroy(sim->engine);
	ledger_close(sim->ledger);
	folder_remove(sim->folder, NULL);
	run_spec_clear(&sim->spec);
	for (size_t i = 0; i < sim->job_count; i++) {
		for (size_t n = 0; n < sim->jobs[i]->line_count; n++)
			free(sim->jobs[i]->lines[n].text);
		free(sim->jobs[i]->lines);
		free(sim->jobs[i]->nodes);
		free(sim->jobs[i]);
	}
	live_drop_calls(sim);
	agenda_fini(&sim->agenda);
}

static void close_account(struct sim *sim)
{
	sim->now_ms = MONTH_MS;
	if (sim->phase == PHASE_TRAIN)
		account_train(sim->a, &sim->m->c, TROUBLE_NONE, sim->mark_ms, MONTH_MS);
	else
		live_spent(sim, sim->phase == PHASE_START   ? WHERE_START
				: sim->phase == PHASE_STUCK ? WHERE_NOTICE
							    : WHERE_WAIT);
	if (sim->job)
		live_job_over(sim, sim->job, SJ_CANCELLED, SR_NONE, 0);
}

void lbd_live(const struct month *m, const struct lbd_abilities *can, struct account *a,
	      struct lbd_notes *notes)
{
	struct sim *sim = xcalloc(1, sizeof(*sim));
	struct month mine = *m; /* the troubles are the same, and whose they are */
	struct event e;

	if (can->copy_ms > 0) {
		mine.c.drain_ms = m->c.save_ms;
		mine.c.save_ms = can->copy_ms;
		mine.c.interval_ms = can->interval_ms;
	}
	sim->heard_ms = can->heard_ms;
	sim->spares = can->spares;
	sim->m = &mine;
	sim->a = a;
	begin(sim, can);
	while (sim->agenda.count > 0 && sim->agenda.heap[0].at_ms < MONTH_MS) {
		agenda_take(&sim->agenda, &e);
		sim->now_ms = e.at_ms;
		e.fn(sim, e.arg, e.stamp);
	}
	close_account(sim);
	if (notes)
		*notes = sim->notes;
	end(sim);
	free(sim);
}
