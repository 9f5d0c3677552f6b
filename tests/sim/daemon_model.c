/* SPDX-License-Identifier: MIT */
/* daemon_model.c - lbd's loop and its world. The linker puts the functions named __wrap_… between
 * the engine and the ledger: they note what is written, tell the history of it once it is
 * committed, and let lbd die before or after a commit. */
#include "common/base/json.h"
#include "tests/sim/daemon_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sqlite3.h>

#include "common/base/files.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "tests/sim/arrays.h"
#include "tests/sim/handler_taps.h"
#include "tests/sim/ledger_taps.h"
#include "tests/sim/scheduler_calls.h"
#include "tests/sim/sim.h"

enum { RESTART_MIN_MS = 500, STUCK_TURNS = 20000, SURVIVORS = 8 };

int run_index(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	return 10 * (name[1] - '0') + name[2] - '0';
}

/* --- struct world ----------------------------------------------------------------------------- */

static int64_t world_wall(void *self)
{
	return daemon_wall_ms(self);
}

static int64_t world_mono(void *self)
{
	const struct sim *sim = self;

	return sim->now_ms + sim->daemon.mono_offset_ms;
}

int64_t daemon_wall_ms(const struct sim *sim)
{
	return (int64_t)EPOCH_S * 1000 + sim->now_ms + sim->daemon.wall_offset_ms;
}

static void world_token(void *self, char out[TOKEN_HEX + 1])
{
	struct sim *sim = self;

	snprintf(out, TOKEN_HEX + 1, "%016llx%016llx", (unsigned long long)rng_next(&sim->rng),
		 (unsigned long long)rng_next(&sim->rng));
}

enum { NODES_OF_A_RUN = 4 };

static int world_spec(void *self, const char *run_dir, struct run_spec *out, struct err *err)
{
	const struct sim *sim = self;

	(void)run_dir;
	(void)err;
	*out = (struct run_spec){
		.max_without_progress = MAX_WITHOUT_PROGRESS,
		.in_place = IN_PLACE,
		.backoff_first_ms = BACKOFF_FIRST_MS,
		.backoff_max_ms = BACKOFF_MAX_MS,
		.kill_grace_ms = KILL_GRACE_MS,
		.stop_grace_ms = STOP_GRACE_MS,
		.prequeue = sim->people[run_index(run_dir)].prequeue,
		.nodes = NODES_OF_A_RUN,
		.min_nodes = sim->people[run_index(run_dir)].may_shrink,
		.fewer_after_ms = 10 * MINUTE,
		.grow_back = true,
		.leave = true,
		.watch.node_ms = sim->people[run_index(run_dir)].is_spread ? NODE_TIMEOUT_MS : 0,
	};
	if (sim->people[run_index(run_dir)].is_array)
		out->script = xstrdup("array.slurm");
	out->never_on_exit_codes.items = xcalloc(1, sizeof(int64_t));
	out->never_on_exit_codes.items[0] = NEVER_EXIT_CODE;
	out->never_on_exit_codes.count = 1;
	return 0;
}

static int array_tasks(const struct sim *sim, const struct run *run)
{
	return sim->people[run_index(run->name)].is_array ? TASKS : 0;
}

/* Of the attempt, or of a task of it. */
static void make_folder(struct sim *sim, const struct run *run, int number, int64_t delay_ms)
{
	disk_make_folder(&sim->disk, number, run->attempt.number, run->attempt.job.token, delay_ms)
		->without_progress = run->failures;
}

static struct folder *folder_of(const struct sim *sim, const struct run *run)
{
	return disk_folder(&sim->disk, run_index(run->name), run->attempt.number);
}

static int world_submit(void *self, const struct run *run, const char *ledger, scheduler_done done,
			void *arg, struct err *err)
{
	struct sim *sim = self;
	json_t *fields;

	(void)err;
	if (daemon_dies_here(sim))
		return 0;
	make_folder(sim, run, run_index(run->name),
		    rng_chance(&sim->rng, 0.3) ? rng_range(&sim->rng, 0, 2000) : 0);
	for (int task = 0; task < array_tasks(sim, run); task++)
		make_folder(sim, run, task_number(run_index(run->name), task), 0);
	fields = json_object();
	js_set_int(fields, "attempt", run->attempt.number);
	js_set_int(fields, "min_nodes", run->attempt.asks_fewer ? 1 : NODES_OF_A_RUN);
	js_set_int(fields, "warn_time",
		   sim->people[run_index(run->name)].is_warned ? WARN_MS / SECOND : 0);
	submit_attempt(run, ledger, fields, done, arg);
	return 0;
}

static int world_retell(void *self, const struct run *run, struct err *err)
{
	struct sim *sim = self;
	struct folder *folder = folder_of(sim, run);

	(void)err;
	if (folder)
		folder->without_progress = run->failures;
	for (int task = 0; folder && task < array_tasks(sim, run); task++)
		make_folder(sim, run, task_number(folder->run, task), 0);
	return 0;
}

static int world_room(void *self, const struct run *run, scheduler_done done, void *arg,
		      struct err *err)
{
	json_t *fields = json_pack("{s:I}", "attempt", (json_int_t)run->attempt.number);
	const struct job_request job = { .run = run->name, .fields = fields };

	(void)self;
	(void)err;
	run->scheduler->ops->room(run->scheduler, &job, done, arg);
	json_decref(fields);
	return 0;
}

static int world_save(void *self, const struct run *run, struct err *err)
{
	struct sim *sim = self;
	struct folder *folder = folder_of(sim, run);

	if (daemon_dies_here(sim))
		return 0;
	if (folder == NULL || disk_is_full(&sim->disk, sim->now_ms))
		return err_set(err, ERR_IO, "the disk is full");
	folder->wants_save = true;
	lbrun_notice(sim, folder);
	return 0;
}

/* why: as in FACT_ORDER_LEFT */
static void leave_order(struct sim *sim, struct folder *folder, enum run_order order, int why)
{
	folder->order = order;
	folder->goes_on = why != 0;
	sim_fact(sim, FACT_ORDER_LEFT, folder->run, folder->number, order, why);
	lbrun_notice(sim, folder);
}

static int world_order(void *self, const struct run *run, struct err *err)
{
	struct sim *sim = self;
	struct folder *folder = folder_of(sim, run);
	bool goes_on = run->attempt.goes_on && run->wanted == ORDER_RUN;

	/* nothing to die at: who tries on and on is to be found */
	if (folder == NULL || disk_is_full(&sim->disk, sim->now_ms))
		return err_set(err, ERR_IO, "the disk is full");
	if (daemon_dies_here(sim))
		return 0;
	leave_order(sim, folder, goes_on ? ORDER_STOP : run->wanted,
		    !goes_on                             ? 0
		    : run->attempt.leaving.begins_ms > 0 ? 2
							 : 1);
	for (int task = 0; task < array_tasks(sim, run); task++)
		leave_order(sim,
			    disk_folder(&sim->disk, task_number(folder->run, task), folder->number),
			    run->wanted, 0);
	return 0;
}

/* number: of the run, or of a task of it */
static int end_survivors(struct sim *sim, int number, int64_t newest, struct err *err)
{
	int rc = 0;

	for (int64_t n = newest; n >= 1 && n > newest - SURVIVORS; n--) {
		struct folder *folder = disk_folder(&sim->disk, number, n);
		struct attempt_exit ended;

		if (folder == NULL || folder->exited_ms || sim->daemon.is_dead)
			continue;
		if (task_of(number) >= 0 && array_exited(sim, run_of(number), n, &ended))
			continue;
		if (disk_is_full(&sim->disk, sim->now_ms)) {
			rc = err_set(err, ERR_IO, "the disk is full");
			continue;
		}
		leave_order(sim, folder, ORDER_KILL_NOW, 0);
	}
	return rc;
}

static int world_end_all(void *self, const struct run *run, struct err *err)
{
	int number = run_index(run->name);
	int rc = end_survivors(self, number, run->attempt.number, err);

	for (int task = 0; task < array_tasks(self, run); task++)
		rc |= end_survivors(self, task_number(number, task), run->attempt.number, err);
	return rc;
}

static bool world_claimed(void *self, const struct run *run)
{
	const struct sim *sim = self;
	const struct folder *f = folder_of(sim, run);

	return f && f->claimed_ms && f->claimed_ms + f->delay_ms <= sim->now_ms &&
	       strcmp(f->token, run->attempt.job.token) == 0;
}

static bool world_depends(void *self, const struct run *run)
{
	const struct sim *sim = self;

	return sim->people[run_index(run->name)].dependency != DEPENDENCY_NONE;
}

static bool world_exited(void *self, const struct run *run, struct attempt_exit *out)
{
	const struct sim *sim = self;
	const struct folder *f = folder_of(sim, run);

	if (array_tasks(sim, run) > 0)
		return array_exited(sim, run_index(run->name), run->attempt.number, out);
	if (f == NULL || f->exited_ms == 0 || f->exited_ms + f->delay_ms > sim->now_ms)
		return false;
	*out = f->exit;
	return true;
}

static void world_unheard(void *self, const struct run *run, const char *host, struct unheard *out)
{
	const struct sim *sim = self;
	const struct folder *f = folder_of(sim, run);
	bool is_told = f && f->unheard_nodes > 0 && f->unheard_launch >= run->attempt.launch &&
		       f->unheard_ms + f->delay_ms <= sim->now_ms;

	(void)host;
	*out = (struct unheard){ .of = is_told ? FAR_RANKS : 0,
				 .nodes = is_told ? f->unheard_nodes : 0,
				 .silent_ms = is_told ? NODE_TIMEOUT_MS : 0 };
}

static int64_t world_spool(void *self, const struct run *run, int64_t *offset, int64_t max_bytes,
			   int (*on_line)(const struct spool_line *line, void *arg),
			   void (*on_bad)(int64_t at, const struct err *why, void *arg), void *arg,
			   struct err *err)
{
	const struct sim *sim = self;
	const struct folder *f = folder_of(sim, run);

	(void)on_bad;
	return f ? folder_read(f, sim->now_ms, offset, max_bytes, on_line, arg, err) : 0;
}

/* As lbd.toml's defaults. */
static const struct node_rules node_rules = {
	.half_life_ms = DAY,
	.threshold = 0.75,
	.max_excluded = MAX_EXCLUDED,
	.patience_ms = 2 * MINUTE,
};

static void world_switched(void *self, const struct run *run, struct switched *out)
{
	struct sim *sim = self;
	enum run_order order = sim->people[run_index(run->name)].switched;

	*out = (struct switched){ .is_known = true, .order = order };
	if (order != ORDER_RUN) {
		out->file = "switch";
		out->by = "bob";
		out->text = "";
	}
}

static const struct world world_ops = {
	.wall_ms = world_wall,
	.mono_ms = world_mono,
	.token = world_token,
	.spec = world_spec,
	.submit = world_submit,
	.retell = world_retell,
	.room = world_room,
	.save = world_save,
	.order = world_order,
	.end_all = world_end_all,
	.switched = world_switched,
	.claimed = world_claimed,
	.exited = world_exited,
	.unheard = world_unheard,
	.depends = world_depends,
	.spool = world_spool,
};

/* --- the loop --------------------------------------------------------------------------------- */

static void on_turn(struct sim *sim, void *arg, uint64_t stamp);

static void plan_turn(struct sim *sim, int64_t at_ms)
{
	struct daemon_model *d = &sim->daemon;

	if (at_ms < sim->now_ms)
		at_ms = sim->now_ms;
	if (d->planned_ms != INT64_MAX && d->planned_ms <= at_ms)
		return;
	d->planned_ms = at_ms;
	agenda_add(&sim->agenda, at_ms, on_turn, NULL, ++d->plan);
}

static void on_news(void *arg)
{
	struct sim *sim = arg;

	plan_turn(sim, sim->now_ms);
}

static void count_turn(struct sim *sim)
{
	struct daemon_model *d = &sim->daemon;

	d->turn_count++;
	if (++d->turns_now < STUCK_TURNS)
		return;
	printf("sim: seed %llu: lbd turns and turns at one moment\n",
	       (unsigned long long)sim->seed);
	history_print(&sim->history, -1, sim->now_ms, 100, stdout);
	fflush(stdout);
	abort();
}

static void on_turn(struct sim *sim, void *arg, uint64_t stamp)
{
	struct daemon_model *d = &sim->daemon;
	int64_t at_ms;

	(void)arg;
	if (d->engine == NULL || d->plan != stamp)
		return;
	if (!daemon_is_awake(sim)) {
		d->planned_ms = d->frozen_until_ms;
		agenda_add(&sim->agenda, d->frozen_until_ms, on_turn, NULL, stamp);
		return;
	}
	count_turn(sim);
	d->planned_ms = INT64_MAX;
	at_ms = engine_turn(d->engine);
	if (at_ms != INT64_MAX)
		plan_turn(sim, at_ms - d->mono_offset_ms);
	daemon_settle(sim);
}

/* --- life and death --------------------------------------------------------------------------- */

static void on_restart(struct sim *sim, void *arg, uint64_t stamp)
{
	(void)arg;
	(void)stamp;
	daemon_start(sim);
}

static void bury(struct sim *sim)
{
	struct daemon_model *d = &sim->daemon;
	int64_t away_ms = RESTART_MIN_MS + rng_exp(&sim->rng, rng_chance(&sim->rng, 0.1)
								      ? 2.0 * HOUR
								      : 10.0 * SECOND);

	engine_destroy(d->engine);
	d->engine = NULL;
	d->is_dead = false;
	d->life++;
	d->plan++;
	d->planned_ms = INT64_MAX;
	d->frozen_until_ms = 0;
	d->down_since_ms = sim->now_ms;
	ledger_rollback(d->ledger);
	d->pending.count = 0;
	d->has_written = false;
	sim_fact(sim, FACT_DAEMON_DOWN, -1, 0, 0, 0);
	sim_after(sim, away_ms, on_restart, NULL, 0);
}

void daemon_settle(struct sim *sim)
{
	if (sim->daemon.is_dead)
		bury(sim);
}

void daemon_crash(struct sim *sim)
{
	if (sim->daemon.engine == NULL)
		return;
	sim->daemon.is_dead = true;
	bury(sim);
}

bool daemon_is_awake(const struct sim *sim)
{
	return sim->daemon.engine && sim->now_ms >= sim->daemon.frozen_until_ms;
}

static void on_thaw(struct sim *sim, void *arg, uint64_t life)
{
	struct daemon_model *d = &sim->daemon;

	(void)arg;
	if (d->engine == NULL || d->life != life)
		return;
	d->down_ms += sim->now_ms - d->down_since_ms;
	sim_fact(sim, FACT_FAULT, -1, 0, FAULT_DAEMON_THAWED, 0);
	sim_fact(sim, FACT_DAEMON_UP, -1, 0, 0, 0);
}

/* To all others it is as one that is gone. */
void daemon_freeze(struct sim *sim)
{
	struct daemon_model *d = &sim->daemon;
	int64_t away_ms = 10 * SECOND + rng_exp(&sim->rng, rng_chance(&sim->rng, 0.5) ? 5.0 * MINUTE
										      : 3.0 * HOUR);

	if (!daemon_is_awake(sim))
		return;
	d->frozen_until_ms = sim->now_ms + away_ms;
	d->down_since_ms = sim->now_ms;
	sim_fact(sim, FACT_FAULT, -1, 0, FAULT_DAEMON_FROZEN, 0);
	sim_fact(sim, FACT_DAEMON_DOWN, -1, 0, 0, 0);
	sim_after(sim, away_ms, on_thaw, NULL, d->life);
}

bool daemon_dies_here(struct sim *sim)
{
	struct daemon_model *d = &sim->daemon;

	if (!d->is_dead && d->engine && rng_chance(&sim->rng, sim->climate.crash_point))
		d->is_dead = true;
	return d->is_dead;
}

uint64_t node_bits(const char *names)
{
	uint64_t bits = 0;

	for (const char *at = names; at && (at = strchr(at, 'n')); at++)
		bits |= (uint64_t)1 << strtol(at + 1, NULL, 10);
	return bits;
}

void daemon_start(struct sim *sim)
{
	struct daemon_model *d = &sim->daemon;
	struct err err = { 0 };

	if (d->engine)
		return;
	/* a new process, perhaps on a host that was started anew */
	d->mono_offset_ms = rng_range(&sim->rng, 0, 1000 * (int64_t)HOUR);
	d->world = world_ops;
	d->world.self = sim;
	d->down_ms += sim->now_ms - d->down_since_ms;
	d->engine = engine_create(d->ledger, sim->is_local ? NULL : &sim->slurm.base,
				  sim->is_local ? &sim->slurm.base : NULL, &d->world, &d->times);
	world_add_arrays(sim);
	array_forget_polls();
	/* nobody has told it yet */
	sim->slurm.base.ages_held = false;
	engine_on_news(d->engine, on_news, sim);
	d->lbd = (struct lbd){
		.ledger = d->ledger,
		.engine = d->engine,
		.slurm = sim->is_local ? NULL : &sim->slurm.base,
		.local = sim->is_local ? &sim->slurm.base : NULL,
		.config = { .home = d->folder, .runs_folder = d->folder },
	};
	engine_remember_nodes(d->engine, &node_rules);
	sim_fact(sim, FACT_DAEMON_UP, -1, 0, 0, 0);
	if (engine_load(d->engine, &err) < 0) {
		printf("sim: seed %llu: engine_load: %s\n", (unsigned long long)sim->seed,
		       err.text);
		abort();
	}
	plan_turn(sim, sim->now_ms);
}

/* All in memory: SQLite's own file system for that becomes the default one, so that ledger_open
 * works as ever; the empty file that it makes is where it looks for it. */
static void open_ledger(struct daemon_model *d)
{
	char *path;
	struct err err = { 0 };

	sqlite3_vfs_register(sqlite3_vfs_find("memdb"), 1);
	/* specs are real files, and a world makes many */
	snprintf(d->folder, sizeof(d->folder), "%s/lb-sim-XXXXXX",
		 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	if (mkdtemp(d->folder) == NULL)
		abort();
	path = path_join("%s/ledger.db", d->folder);
	if (ledger_open(path, &d->ledger, &err) < 0) {
		printf("sim: %s\n", err.text);
		abort();
	}
	free(path);
}

void daemon_init(struct sim *sim)
{
	struct daemon_model *d = &sim->daemon;
	static const struct rhythm {
		int64_t busy, idle, spool;
	} rhythms[] = {	/* seconds */
		{ 10, 150, 150 }, { 15, 180, 600 }, { 20, 240, 300 }, { 30, 240, 600 },
	}, usual = { 2, 30, 30 };
	const struct rhythm *rhythm;

	*d = (struct daemon_model){ .planned_ms = INT64_MAX, .down_since_ms = sim->now_ms };
	/* A world in which lbd looks as often as it usually does takes long; a few will do. */
	rhythm = rng_chance(&sim->rng, 0.03) ? &usual : &rhythms[rng_range(&sim->rng, 0, 3)];
	d->times = (struct poll_times){
		.busy_ms = rhythm->busy * SECOND,
		.idle_ms = rhythm->idle * SECOND,
		.spool_ms = rhythm->spool * SECOND,
	};
	open_ledger(d);
	ledger_taps_open(sim);
	handler_taps_open(sim);
}

void daemon_fini(struct sim *sim)
{
	struct daemon_model *d = &sim->daemon;

	engine_destroy(d->engine);
	ledger_close(d->ledger);
	history_fini(&d->pending);
	ledger_taps_close();
	handler_taps_close();
	folder_remove(d->folder, NULL);
}
