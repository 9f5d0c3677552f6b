/* SPDX-License-Identifier: MIT */
/* lbd_month.c - one world for one run. The agenda's `struct sim` is this one. */
#include "tests/sim/ettr/lbd_month.h"

#include <jansson.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/hosts.h"
#include "common/json.h"
#include "common/mem.h"
#include "common/paths.h"
#include "common/toml.h"
#include "daemon/engine.h"
#include "slurm/endings.h"
#include "worker/lbrun/ending.h"
#include "worker/lbrun/watch.h"

enum {
	EPOCH_S = 1767225600,
	STEP_MS = 10 * SECOND,
	BUSY_MS = 5 * SECOND,
	IDLE_MS = 30 * SECOND,
	SPOOL_MS = 30 * SECOND,
	ANSWER_MS = 50,             /* of Slurm, to each call */
	OPEN_MS = 2 * SECOND,       /* from a job's start to its lbrun's claim */
	IN_PLACE_PAUSE_MS = SECOND, /* as lbrun's */
	MIN_JOB_AGE_MS = 300 * SECOND,
	JOBS_MAX = 4096,
	MONO_MS = 1000 * SECOND, /* of lbd's clock, when the month begins: 0 often means "never" */
};

static const char run_name[] = "r1";

enum phase { PHASE_NONE, PHASE_START, PHASE_TRAIN, PHASE_STUCK };

struct said {       /* a line of the spool */
	char *text; /* owned */
	int64_t at_ms, launch;
};

struct job { /* and its attempt's folder */
	struct job_status status;
	bool avoided[NODE_COUNT], held[NODE_COUNT];
	int64_t over_ms;
	bool is_claimed, has_exit;
	struct attempt_exit exit;
	struct said *lines;
	size_t line_count, line_cap;
};

struct sim {
	const struct month *m;
	struct account *a;
	struct lbd_notes notes;
	struct agenda agenda;
	int64_t now_ms;
	struct rng rng;
	struct ledger *ledger;
	struct engine *engine;
	struct scheduler slurm;
	struct world world;
	int64_t planned_ms;
	uint64_t plan;
	struct run_spec spec;
	struct job *jobs[JOBS_MAX]; /* [number of the attempt - 1]; owned */
	size_t job_count;
	int64_t hang_ms, setup_ms; /* silence that lbrun allows: learned; before any step */
	/* the trainer */
	struct job *job; /* whose it is; NULL: none runs */
	enum phase phase;
	uint64_t stamp;  /* of what is planned for this phase */
	int64_t mark_ms; /* until then all is in the account */
	enum trouble why;
	int64_t launch, failures, without_before;
	bool has_progressed, is_new_saved;
	int64_t saved_step; /* -1: none */
	bool is_waiting_for_person;
};

/* --- the account ------------------------------------------------------------------------------ */

static void spent(struct sim *sim, enum where where)
{
	account_span(sim->a, where, sim->why, sim->mark_ms, sim->now_ms);
	sim->mark_ms = sim->now_ms;
}

static void after(struct sim *sim, int64_t ms, event_fn fn, void *arg, uint64_t stamp)
{
	agenda_add(&sim->agenda, sim->now_ms + ms, fn, arg, stamp);
}

/* --- the spool -------------------------------------------------------------------------------- */

static int64_t wall_ms(const struct sim *sim)
{
	return (int64_t)EPOCH_S * 1000 + sim->now_ms;
}

/* Takes the reference. */
static void say(struct sim *sim, struct job *job, json_t *line)
{
	if (job->line_count == job->line_cap) {
		job->line_cap = job->line_cap ? 2 * job->line_cap : 16;
		job->lines = xrealloc(job->lines, job->line_cap * sizeof(job->lines[0]));
	}
	job->lines[job->line_count++] = (struct said){js_line(line), wall_ms(sim), sim->launch};
	json_decref(line);
}

static int64_t world_spool(void *self, const struct run *run, int64_t *offset, int64_t max_bytes,
			   int (*on_line)(const struct spool_line *line, void *arg),
			   void (*on_bad)(int64_t at, const struct err *why, void *arg), void *arg,
			   struct err *err)
{
	struct sim *sim = self;
	const struct job *job = sim->jobs[run->attempt.number - 1];
	int64_t start = *offset;

	(void)max_bytes;
	(void)on_bad;
	while (job && *offset < (int64_t)job->line_count) {
		const struct said *said = &job->lines[*offset];
		struct spool_line line = {
		    .seq = *offset + 1,
		    .time_ms = said->at_ms,
		    .launch = said->launch,
		    .line = json_loads(said->text, 0, NULL),
		};
		int rc = on_line(&line, arg);

		json_decref(line.line);
		if (rc != 0)
			return err_set(err, ERR_INTERNAL, "the reader stopped");
		++*offset;
	}
	return *offset - start;
}

/* --- Slurm ------------------------------------------------------------------------------------ */

static void set_word(struct job *job, uint32_t state, uint32_t reason, uint32_t exit_code)
{
	struct slurm_word word = {
	    .state = state,
	    .reason = reason,
	    .exit_code = exit_code,
	    .is_held = reason == SR_HELD_USER,
	};

	slurm_word_judge(&word, &job->status);
}

static json_t *names_of(const struct job *job)
{
	json_t *names = json_array();

	for (int i = 0; i < NODE_COUNT; i++)
		if (job->held[i])
			json_array_append_new(names, json_sprintf("gpu-node-%03d", i));
	return names;
}

static void read_names(const char *text, bool out[NODE_COUNT])
{
	json_t *names = hosts_expand(text ? text : ""), *name;
	size_t i;

	json_array_foreach(names, i, name)
	    out[strtol(strrchr(json_string_value(name), '-') + 1, NULL, 10)] = true;
	json_decref(names);
}

static void job_over(struct sim *sim, struct job *job, uint32_t state, uint32_t reason,
		     uint32_t exit_code)
{
	for (int i = 0; i < LEMONS; i++)
		if (job->held[i])
			sim->notes.on_lemons_ms +=
			    sim->now_ms - (job->status.start_time - EPOCH_S) * 1000;
	set_word(job, state, reason, exit_code);
	job->over_ms = sim->now_ms;
	sim->job = NULL;
	sim->phase = PHASE_NONE;
	sim->stamp++;
}

static void lbrun_begin(struct sim *sim, void *arg, uint64_t stamp);

static void on_launch_failed(struct sim *sim, void *arg, uint64_t stamp)
{
	(void)stamp;
	spent(sim, WHERE_START);
	sim->why = TROUBLE_LAUNCH;
	sim->a->count[TROUBLE_LAUNCH]++;
	job_over(sim, arg, SJ_FAILED, SR_LAUNCH_FAILURE, 0);
}

static void on_job_starts(struct sim *sim, void *arg, uint64_t stamp)
{
	struct job *job = arg;
	json_t *names;
	char *nodes;

	if (job->status.phase != JOB_PENDING)
		return;
	if (!month_place(sim->m, sim->now_ms, job->avoided, job->held)) {
		after(sim, MINUTE, on_job_starts, job, stamp);
		return;
	}
	spent(sim, WHERE_WAIT);
	names = names_of(job);
	nodes = hosts_fold(names, sizeof(job->status.nodes) - 1);
	snprintf(job->status.nodes, sizeof(job->status.nodes), "%s", nodes);
	free(nodes);
	json_decref(names);
	job->status.start_time = EPOCH_S + sim->now_ms / SECOND;
	set_word(job, SJ_RUNNING, SR_NONE, 0);
	if (month_launch_fails(sim->m, (int64_t)stamp))
		after(sim, LAUNCH_FAILS_MS, on_launch_failed, job, 0);
	else
		after(sim, OPEN_MS, lbrun_begin, job, 0);
}

enum op { OP_SUBMIT, OP_RELEASE, OP_CANCEL, OP_POLL };

struct call_record {
	enum op op;
	scheduler_done done;
	void *arg;
	struct job *job;
};

static struct job *find(struct sim *sim, const char *token)
{
	for (size_t i = sim->job_count; i-- > 0;)
		if (strcmp(sim->jobs[i]->status.ref.token, token) == 0)
			return sim->jobs[i];
	return NULL;
}

static size_t list(struct sim *sim, struct job_status **out)
{
	size_t first = sim->job_count, count = 0;

	while (first > 0 && (sim->jobs[first - 1]->over_ms == 0 ||
			     sim->now_ms - sim->jobs[first - 1]->over_ms < MIN_JOB_AGE_MS))
		first--;
	*out = xcalloc(sim->job_count - first + 1, sizeof(**out));
	for (; first < sim->job_count; first++)
		(*out)[count++] = sim->jobs[first]->status;
	return count;
}

static void release(struct sim *sim, struct job *job)
{
	int64_t n = sim->notes.jobs++;

	set_word(job, SJ_PENDING, SR_PRIORITY, 0);
	after(sim, month_queue_ms(sim->m, n), on_job_starts, job, (uint64_t)n);
}

static void on_call(struct sim *sim, void *arg, uint64_t stamp)
{
	struct call_record *c = arg;
	struct scheduler_reply reply = {.result = SCHEDULER_OK, .text = ""};
	struct job_status *rows = NULL;

	(void)stamp;
	if (c->op == OP_POLL) {
		reply.job_count = list(sim, &rows);
		reply.jobs = rows;
	} else if (c->op == OP_SUBMIT) {
		reply.job = c->job->status.ref;
	} else if (c->op == OP_RELEASE && c->job && c->job->status.phase == JOB_HELD) {
		release(sim, c->job);
	} else {
		reply.result = SCHEDULER_GONE; /* nobody cancels a live job in this month */
	}
	c->done(c->arg, &reply);
	free(rows);
	free(c);
}

static struct sim *sim_of(struct scheduler *s)
{
	return (struct sim *)(void *)((char *)s - offsetof(struct sim, slurm));
}

static void call(struct scheduler *s, enum op op, struct job *job, scheduler_done done, void *arg)
{
	struct call_record *c = xcalloc(1, sizeof(*c));

	*c = (struct call_record){op, done, arg, job};
	after(sim_of(s), ANSWER_MS, on_call, c, 0);
}

static void do_submit(struct scheduler *s, const struct job_request *request, scheduler_done done,
		      void *arg)
{
	struct sim *sim = sim_of(s);
	struct job *job = xcalloc(1, sizeof(*job));

	if (sim->job_count == JOBS_MAX)
		abort(); /* one every ten minutes of the month */
	sim->jobs[sim->job_count++] = job;
	snprintf(job->status.ref.token, sizeof(job->status.ref.token), "%s", request->token);
	snprintf(job->status.ledger_id, sizeof(job->status.ledger_id), "%s", request->ledger_id);
	job->status.ref.job_id = (uint32_t)sim->job_count;
	job->status.ref.submit_time = EPOCH_S + sim->now_ms / SECOND;
	read_names(request->exclude, job->avoided);
	set_word(job, SJ_PENDING, SR_HELD_USER, 0);
	call(s, OP_SUBMIT, job, done, arg);
}

static void do_release(struct scheduler *s, const struct job_ref *ref, scheduler_done done,
		       void *arg)
{
	call(s, OP_RELEASE, find(sim_of(s), ref->token), done, arg);
}

static void do_signal(struct scheduler *s, const struct job_ref *ref, int signo,
		      scheduler_done done, void *arg)
{
	(void)ref;
	(void)signo;
	call(s, OP_CANCEL, NULL, done, arg);
}

static void do_cancel(struct scheduler *s, const struct job_ref *ref, scheduler_done done,
		      void *arg)
{
	(void)ref;
	call(s, OP_CANCEL, NULL, done, arg);
}

static void do_poll(struct scheduler *s, scheduler_done done, void *arg)
{
	call(s, OP_POLL, NULL, done, arg);
}

static void do_close(struct scheduler *s, void (*closed)(void *arg), void *arg)
{
	(void)s;
	closed(arg);
}

static const struct scheduler_ops slurm_ops = {
    .name = "slurm",
    .submit = do_submit,
    .release = do_release,
    .signal = do_signal,
    .cancel = do_cancel,
    .poll = do_poll,
    .close = do_close,
};

/* --- lbrun and the trainer -------------------------------------------------------------------- */

static void enter(struct sim *sim, enum phase phase, int64_t ms, event_fn next)
{
	sim->phase = phase;
	after(sim, ms, next, NULL, ++sim->stamp);
}

static void on_saved(struct sim *sim, void *arg, uint64_t stamp)
{
	(void)arg;
	if (sim->stamp != stamp)
		return;
	sim->saved_step += sim->m->c.interval_ms / STEP_MS;
	sim->is_new_saved = true;
	say(sim, sim->job,
	    json_pack("{s:s, s:I, s:s, s:b, s:s}", "type", "checkpoint_valid", "step",
		      (json_int_t)sim->saved_step, "path", "step", "valid", 1, "text", ""));
	enter(sim, PHASE_TRAIN, sim->m->c.interval_ms + sim->m->c.save_ms, on_saved);
}

static void on_first_step(struct sim *sim, void *arg, uint64_t stamp)
{
	(void)arg;
	if (sim->stamp != stamp)
		return;
	spent(sim, WHERE_START);
	enter(sim, PHASE_TRAIN, sim->m->c.interval_ms + sim->m->c.save_ms, on_saved);
}

static void on_again(struct sim *sim, void *arg, uint64_t stamp);

static void begin_launch(struct sim *sim)
{
	sim->launch++;
	sim->notes.launches++;
	sim->is_new_saved = false;
	say(sim, sim->job,
	    json_pack("{s:s, s:I, s:i, s:I}", "type", "launch_start", "number",
		      (json_int_t)sim->launch, "pid", 7, "resumed_from_step",
		      (json_int_t)sim->saved_step));
	enter(sim, PHASE_START, sim->m->c.start_ms, on_first_step);
}

static void write_exit(struct sim *sim, enum cause cause, int exit_code)
{
	struct job *job = sim->job;

	say(sim, job, json_pack("{s:s, s:s}", "type", "attempt_end", "cause", cause_name(cause)));
	job->exit = (struct attempt_exit){
	    .cause = cause,
	    .exit_code = exit_code,
	    .launches = sim->launch,
	    .last_seq = (int64_t)job->line_count,
	    .time_ms = wall_ms(sim),
	};
	snprintf(job->exit.token, sizeof(job->exit.token), "%s", job->status.ref.token);
	job->has_exit = true;
}

/* lbrun's verdict on a launch; `node`: where it began, or -1. A node that told of errors is left.
 */
static void end_launch(struct sim *sim, enum cause cause, int exit_code, int node)
{
	struct attempt_params params = {
	    .in_place = sim->spec.in_place,
	    .without_progress = sim->without_before,
	    .max_without_progress = sim->spec.max_without_progress,
	};
	struct ending ending = {.cause = cause, .exit_code = exit_code};
	json_t *line = json_pack("{s:s, s:I, s:s, s:i, s:b, s:s}", "type", "launch_end", "number",
				 (json_int_t)sim->launch, "cause", cause_name(cause), "exit_code",
				 exit_code, "progress", sim->is_new_saved, "text", "");

	if (node >= 0)
		json_object_set_new(line, "node", json_sprintf("gpu-node-%03d", node));
	say(sim, sim->job, line);
	spent(sim, WHERE_NOTICE);
	sim->failures = sim->is_new_saved ? 0 : sim->failures + 1;
	sim->has_progressed |= sim->is_new_saved;
	if (node < 0 && ending_may_relaunch(&ending, &params, sim->failures, sim->has_progressed)) {
		enter(sim, PHASE_STUCK, sim->is_new_saved ? 0 : IN_PLACE_PAUSE_MS, on_again);
		return;
	}
	write_exit(sim, cause, exit_code);
	job_over(sim, sim->job, SJ_FAILED, SR_EXIT_CODE, 1 << 8);
}

static void on_again(struct sim *sim, void *arg, uint64_t stamp)
{
	(void)arg;
	if (sim->stamp != stamp)
		return;
	spent(sim, WHERE_NOTICE);
	begin_launch(sim);
}

static void on_hang_seen(struct sim *sim, void *arg, uint64_t stamp)
{
	(void)arg;
	if (sim->stamp == stamp)
		end_launch(sim, CAUSE_HANG, -1, -1);
}

/* The other ranks hang until lbrun ends them, and srun cannot start new ones on a node that is
 * gone: what lbrun does meanwhile comes to nothing. Slurm ends the job, and lbrun with it. */
static void on_node_fail(struct sim *sim, void *arg, uint64_t stamp)
{
	(void)arg;
	if (sim->stamp != stamp)
		return;
	spent(sim, WHERE_NOTICE);
	write_exit(sim, CAUSE_LOST, -1);
	job_over(sim, sim->job, SJ_NODE_FAIL, SR_NODE_DOWN, 0);
}

static void gpu_fails(struct sim *sim, const struct trouble_at *t)
{
	say(sim, sim->job,
	    json_pack("{s:s, s:s, s:o}", "type", "note", "kind", "node_error", "text",
		      json_sprintf("gpu-node-%03d: NVRM: Xid 79", t->node)));
	end_launch(sim, CAUSE_ERROR, 1, t->node);
}

static void on_trouble(struct sim *sim, void *arg, uint64_t stamp)
{
	const struct trouble_at *t = &sim->m->troubles[stamp];
	bool is_up = sim->phase == PHASE_START || sim->phase == PHASE_TRAIN;
	int64_t silence_ms = sim->phase == PHASE_START ? sim->setup_ms : sim->hang_ms;

	(void)arg;
	if (!is_up || !trouble_hits(t, sim->job->held))
		return;
	if (sim->phase == PHASE_START) {
		spent(sim, WHERE_START);
	} else {
		account_train(sim->a, &sim->m->c, t->kind, sim->mark_ms, sim->now_ms);
		sim->mark_ms = sim->now_ms;
	}
	sim->why = t->kind;
	sim->a->count[t->kind]++;
	if (t->kind == TROUBLE_GPU)
		gpu_fails(sim, t);
	else if (t->kind == TROUBLE_OWN)
		end_launch(sim, CAUSE_ERROR, 1, -1);
	else if (t->kind == TROUBLE_HANG)
		enter(sim, PHASE_STUCK, silence_ms, on_hang_seen);
	else
		enter(sim, PHASE_STUCK, SLURMD_TIMEOUT_MS, on_node_fail);
}

static void lbrun_begin(struct sim *sim, void *arg, uint64_t stamp)
{
	struct job *job = arg;

	(void)stamp;
	sim->job = job;
	job->is_claimed = true;
	sim->launch = sim->failures = 0;
	sim->has_progressed = false;
	say(sim, job,
	    json_pack("{s:s, s:s, s:o}", "type", "attempt_start", "host", "gpu-node", "nodes",
		      names_of(job)));
	begin_launch(sim);
}

/* What lbrun's watch allows before the first step, and once it has seen some of a trainer that
 * tells its phases. */
static void learn_limits(struct sim *sim)
{
	struct attempt_watch limits;
	struct watch w;

	attempt_watch_read(NULL, &limits, NULL);
	watch_init(&w, &limits, 0);
	watch_phase(&w, 0, "setup", 0);
	sim->setup_ms = watch_limit_ms(&w);
	watch_phase(&w, 0, "train", 0);
	for (int64_t n = 0; n < WATCH_WINDOW; n++)
		watch_step(&w, 0, n * STEP_MS);
	sim->hang_ms = watch_limit_ms(&w);
	attempt_watch_clear(&limits);
}

/* --- lbd's world ------------------------------------------------------------------------------ */

static int64_t world_wall(void *self)
{
	return wall_ms(self);
}

static int64_t world_mono(void *self)
{
	return ((struct sim *)self)->now_ms + MONO_MS;
}

static void world_token(void *self, char out[TOKEN_HEX + 1])
{
	struct sim *sim = self;

	snprintf(out, TOKEN_HEX + 1, "%016llx%016llx", (unsigned long long)rng_next(&sim->rng),
		 (unsigned long long)rng_next(&sim->rng));
}

/* All else as by default. */
static int world_spec(void *self, const char *dir, struct run_spec *out, struct err *err)
{
	static const char text[] = "[run]\nname = \"r1\"\ncommand = [\"train\"]\nworkdir = \"/\"\n"
				   "[slurm]\nnodes = 64\n"
				   "[watch]\nnode_error_regex = [\"NVRM: Xid\"]\n";
	struct toml toml = {0};
	int rc;

	(void)self;
	(void)dir;
	if (toml_parse(&toml, text, strlen(text), "spec.toml", err) < 0)
		return -1;
	rc = run_spec_read(&toml, out, err);
	toml_clear(&toml);
	return rc;
}

static int world_submit(void *self, const struct run *run, const char *ledger, scheduler_done done,
			void *arg, struct err *err)
{
	struct sim *sim = self;
	struct job_request job = {
	    .token = run->attempt.job.token,
	    .ledger_id = ledger,
	    .run = run->name,
	    .exclude = run->excluded,
	    .nodes = JOB_NODES,
	};

	(void)err;
	if (run->attempt.number != (int64_t)sim->job_count + 1)
		abort(); /* Slurm loses nothing here: one job for each attempt */
	sim->without_before = run->failures;
	run->scheduler->ops->submit(run->scheduler, &job, done, arg);
	return 0;
}

static int world_nothing(void *self, const struct run *run, struct err *err)
{
	(void)self;
	(void)run;
	(void)err;
	return 0;
}

static void world_switched(void *self, const struct run *run, struct switched *out)
{
	(void)self;
	(void)run;
	*out = (struct switched){.is_known = true, .order = ORDER_RUN};
}

static const struct job *job_of(const struct sim *sim, const struct run *run)
{
	size_t number = (size_t)run->attempt.number;

	return number >= 1 && number <= sim->job_count ? sim->jobs[number - 1] : NULL;
}

static bool world_claimed(void *self, const struct run *run)
{
	const struct job *job = job_of(self, run);

	return job && job->is_claimed;
}

static bool world_exited(void *self, const struct run *run, struct attempt_exit *out)
{
	const struct job *job = job_of(self, run);

	if (job && job->has_exit)
		*out = job->exit;
	return job && job->has_exit;
}

static const struct world world_ops = {
    .wall_ms = world_wall,
    .mono_ms = world_mono,
    .token = world_token,
    .spec = world_spec,
    .submit = world_submit,
    .retell = world_nothing,
    .order = world_nothing,
    .end_all = world_nothing,
    .switched = world_switched,
    .claimed = world_claimed,
    .exited = world_exited,
    .spool = world_spool,
};

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
	struct err err = {0};

	(void)arg;
	(void)stamp;
	sim->is_waiting_for_person = false;
	must(&err, ledger_run_find(sim->ledger, run_name, &row, &err));
	must(&err, ledger_run_set_failures(sim->ledger, row.id, 0, 0, &err));
	must(&err, ledger_run_move(sim->ledger, row.id, row.state, RUN_CREATED, CAUSE_NONE,
				   "restarted", wall_ms(sim), &err));
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
	after(sim, sim->m->c.person_ms, on_person, NULL, 0);
}

/* --- begin and end ---------------------------------------------------------------------------- */

/* In memory, as the simulator's. */
static void open_ledger(struct sim *sim)
{
	char folder[] = "/tmp/lb-ettr-XXXXXX", *path;
	struct err err = {0};

	sqlite3_vfs_register(sqlite3_vfs_find("memdb"), 1);
	must(&err, mkdtemp(folder) ? 0 : err_set(&err, ERR_IO, "/tmp: cannot be written"));
	path = path_join("%s/ledger.db", folder);
	must(&err, ledger_open(path, &sim->ledger, &err));
	unlink(path);
	rmdir(folder);
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
	    .created_ms = wall_ms(sim),
	};
	struct err err = {0};
	int64_t id;

	must(&err, ledger_run_insert(sim->ledger, &row, &id, &err));
	must(&err, engine_adopt(sim->engine, run_name, &err));
	must(&err, engine_settle(sim->engine, &err));
}

static void begin(struct sim *sim, int64_t half_life_ms)
{
	/* else as lbd.toml's defaults */
	const struct node_rules rules = {
	    .half_life_ms = half_life_ms,
	    .threshold = 0.75,
	    .max_excluded = 4,
	};
	static const struct poll_times times = {
	    .busy_ms = BUSY_MS,
	    .idle_ms = IDLE_MS,
	    .spool_ms = SPOOL_MS,
	};
	struct err err = {0};

	sim->rng.state = sim->m->seed + 1;
	sim->planned_ms = INT64_MAX;
	sim->saved_step = 0;
	learn_limits(sim);
	sim->slurm.ops = &slurm_ops;
	sim->world = world_ops;
	sim->world.self = sim;
	must(&err, world_spec(sim, "", &sim->spec, &err));
	open_ledger(sim);
	sim->engine = engine_create(sim->ledger, &sim->slurm, NULL, &sim->world, &times);
	engine_on_news(sim->engine, on_news, sim);
	engine_remember_nodes(sim->engine, &rules);
	must(&err, engine_load(sim->engine, &err));
	submit_run(sim);
	plan_turn(sim, 0);
	for (size_t i = 0; i < sim->m->count; i++)
		agenda_add(&sim->agenda, sim->m->troubles[i].at_ms, on_trouble, NULL, i);
}

static void end(struct sim *sim)
{
	engine_destroy(sim->engine);
	ledger_close(sim->ledger);
	run_spec_clear(&sim->spec);
	for (size_t i = 0; i < sim->job_count; i++) {
		for (size_t n = 0; n < sim->jobs[i]->line_count; n++)
			free(sim->jobs[i]->lines[n].text);
		free(sim->jobs[i]->lines);
		free(sim->jobs[i]);
	}
	for (size_t i = 0; i < sim->agenda.count; i++)
		if (sim->agenda.heap[i].fn == on_call)
			free(sim->agenda.heap[i].arg);
	agenda_fini(&sim->agenda);
}

static void close_account(struct sim *sim)
{
	sim->now_ms = MONTH_MS;
	if (sim->phase == PHASE_TRAIN)
		account_train(sim->a, &sim->m->c, TROUBLE_NONE, sim->mark_ms, MONTH_MS);
	else
		spent(sim, sim->phase == PHASE_START   ? WHERE_START
			   : sim->phase == PHASE_STUCK ? WHERE_NOTICE
						       : WHERE_WAIT);
	if (sim->job)
		job_over(sim, sim->job, SJ_CANCELLED, SR_NONE, 0);
}

void lbd_live(const struct month *m, int64_t half_life_ms, struct account *a,
	      struct lbd_notes *notes)
{
	struct sim *sim = xcalloc(1, sizeof(*sim));
	struct event e;

	sim->m = m;
	sim->a = a;
	begin(sim, half_life_ms);
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
