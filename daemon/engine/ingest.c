/* SPDX-License-Identifier: MIT */
/* ingest.c - spool lines → ledger, each exactly once.
 *
 * The rows and the offset behind them are committed together, so a crash in between reads the same
 * lines again and stores them once. One table says what each kind of line does. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/run/hosts.h"
#include "common/base/json.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/text.h"
#include "daemon/engine/state.h"
#include "daemon/engine/decide/relaunch.h"
#include "sql/metric_batch.h"

enum {
	/* of all spools in one turn, and of each at least: people want their turn, too, after an
	 * absence in which hundreds of runs went on */
	TURN_BYTES = 4 * 1024 * 1024,
	LEAST_BYTES = 64 * 1024,
	TURN_MS = 1000, /* what a turn may take; slow disks and busy machines take less in it */
	BAD_LINES_TOLD = 3,
	THIN_AFTER = 500, /* steps */
	START_BYTES = 4096,
};

/* what `ls` shows, written once per turn */
struct newest {
	int64_t step, target_step;
	double loss, tokens_per_s, mfu;
	int64_t launch;
	struct ledger_steps steps;
};

static const struct ledger_steps no_steps = { .first = -1, .last = -1 };

struct ingest {
	struct engine *engine;
	struct run *run;
	const struct spool_line *spool;
	struct newest newest;
	struct metric_batch points;
	bool any;
};

/* --- trainer lines ---------------------------------------------------------------------------- */

/* The numeric fields of a line that holds others besides, as a JSON object. Plain lines are kept as
 * they came: printing them anew would be the dearest part of the ingest. */
static char *numeric_fields(json_t *line)
{
	json_t *fields = json_object();
	const char *key;
	json_t *value;
	char *text;

	json_object_foreach(line, key, value) {
		if (json_is_number(value))
			json_object_set(fields, key, value);
	}
	text = js_line(fields);
	json_decref(fields);
	return text;
}

static void write_launch_steps(struct ingest *in)
{
	struct err err = { 0 };
	struct newest *n = &in->newest;

	if (n->launch > 0 && n->steps.last >= 0)
		engine_wrote(in->engine,
			     ledger_launch_steps(in->engine->ledger, in->run->attempt.id, n->launch,
						 &n->steps, &err),
			     &err);
	n->steps = no_steps;
}

static void note_newest(struct ingest *in, const struct step_line *line,
			const struct ledger_metric *m)
{
	struct newest *n = &in->newest;

	if (n->launch != in->spool->launch)
		write_launch_steps(in);
	n->launch = in->spool->launch;
	if (n->steps.first < 0) {
		n->steps.first = m->step;
		n->steps.first_ms = m->time_ms;
	}
	n->steps.last = n->step = m->step;
	n->steps.last_ms = m->time_ms;
	n->loss = m->loss;
	if (line->target_step != JS_NONE)
		in->run->target_step = n->target_step = line->target_step;
	if (!isnan(line->tokens_per_s))
		n->tokens_per_s = line->tokens_per_s;
	if (!isnan(line->mfu))
		n->mfu = line->mfu;
	pace_note(&in->run->attempt.pace, in->spool->launch, m->step, m->time_ms);
}

/* The run's progress is that of rank 0; lbrun looks at what the others tell. */
static void store_step(struct ingest *in, const struct step_line *line, const char *text,
		       size_t len)
{
	struct ledger_metric m = {
		.run_id = in->run->id,
		.attempt_id = in->run->attempt.id,
		.seq = in->spool->seq,
		.launch = in->spool->launch,
		.step = line->step == JS_NONE ? 0 : line->step,
		.time_ms = in->spool->time_ms,
		.loss = line->loss,
	};

	if (line->rank != JS_NONE && line->rank > 0)
		return;
	metric_batch_add(&in->points, &m, text, len);
	note_newest(in, line, &m);
	in->run->ever_trained = true;
	in->run->dense_steps++;
}

static void on_step(struct ingest *in, json_t *line)
{
	struct step_line step;
	char *fields = numeric_fields(line);

	step_line_of(line, &step);
	store_step(in, &step, fields, strlen(fields));
	free(fields);
}

/* The trainer's word for it; lbrun looks for itself and tells in checkpoint_valid. */
static void on_nothing(struct ingest *in, json_t *line)
{
	(void)in;
	(void)line;
}

/* --- lbrun's records -------------------------------------------------------------------------- */

static void on_attempt_start(struct ingest *in, json_t *line)
{
	struct attempt *a = &in->run->attempt;
	char *names = hosts_fold(json_object_get(line, "nodes"), HOSTS_TEXT_BYTES);
	struct err err = { 0 };

	engine_note_nodes(in->engine, in->run, names[0] ? names : js_str(line, "host", ""));
	/* While the job counts as held or queued, the decision to start it will write them. */
	if (a->state == ATTEMPT_RUNNING)
		engine_wrote(in->engine,
			     ledger_attempt_started(in->engine->ledger, a->id, attempt_nodes(a),
						    in->spool->time_ms, &err),
			     &err);
	free(names);
}

/* A new checkpoint is the progress that ends a row of failures: the launch behind it may never get
 * to say how it ended. */
static void note_progress(struct engine *e, struct run *run, int64_t step)
{
	struct err err = { 0 };

	if (step >= 0)
		run->checkpoint_step = step;
	run->attempt.is_settled = true;
	engine_run_got_on(e, run);
	if (run->failures == 0)
		return;
	run->failures = 0;
	engine_wrote(e, ledger_run_set_failures(e->ledger, run->id, 0, run->backoff_until_ms, &err),
		     &err);
}

/* What a person chose to start from was for this launch; what follows goes on from the newest. */
static void resume_was_heeded(struct engine *e, struct run *run)
{
	struct err err = { 0 };

	engine_wrote(e, ledger_run_set_resume(e->ledger, run->id, "", &err), &err);
	run->resume_from[0] = '\0';
}

static void on_launch_start(struct ingest *in, json_t *line)
{
	int64_t number = js_int(line, "number", 0), step = js_int(line, "resumed_from_step", -1);
	struct err err = { 0 };
	char *from;

	in->run->attempt.launch = number;
	if (in->run->resume_from[0])
		resume_was_heeded(in->engine, in->run);
	engine_wrote(in->engine,
		     ledger_launch_start(in->engine->ledger, in->run->attempt.id, number,
					 js_int(line, "pid", 0), step, in->spool->time_ms, &err),
		     &err);
	if (step > in->run->checkpoint_step) /* an attempt that was given up had gone on */
		note_progress(in->engine, in->run, step);
	engine_run_began(in->engine, in->run);
	in->run->attempt.is_settled = false;
	in->run->attempt.is_node_named = false;
	in->run->gpu_count = 0;
	in->run->gpu_use_ms = 0;
	from = spool_launch_from(line);
	engine_event(in->engine, in->run, "launch", "lbrun", "launch %lld, %s", (long long)number,
		     from);
	free(from);
}

/* "lost": lbrun was told to end it, and the scheduler knows why; it counts, or does not, when the
 * attempt has ended. */
static void count_launch(struct ingest *in, enum cause cause, const json_t *line)
{
	bool progress = js_bool(line, "progress", false), counts = js_bool(line, "counts", true);
	struct run *run = in->run;
	struct err err = { 0 };

	run->attempt.is_settled = cause != CAUSE_LOST || progress;
	if (progress || cause == CAUSE_COMPLETED)
		engine_run_got_on(in->engine, run);
	if (progress)
		run->failures = 0;
	else if (counts && cause != CAUSE_LOST && relaunch_counts(&run->policy, cause, true))
		run->failures++;
	engine_wrote(in->engine,
		     ledger_run_set_failures(in->engine->ledger, run->id, run->failures,
					     run->backoff_until_ms, &err),
		     &err);
}

static void on_launch_end(struct ingest *in, json_t *line)
{
	enum cause cause = cause_from_name(js_str(line, "cause", ""));
	const char *text = js_str(line, "text", "");
	int64_t number = js_int(line, "number", 0);
	struct err err = { 0 };

	if (cause == CAUSE_COUNT)
		cause = CAUSE_LOST; /* a newer lbrun's word that this lbd does not know */
	if (cause != CAUSE_LAUNCH_FAIL)
		in->run->ever_trained = true;
	attempt_outlived(&in->run->attempt, number);
	write_launch_steps(in);
	engine_wrote(in->engine,
		     ledger_launch_end(in->engine->ledger, in->run->attempt.id, number, cause,
				       (int)js_int(line, "exit_code", -1),
				       (int)js_int(line, "signal", 0), text, in->spool->time_ms,
				       &err),
		     &err);
	count_launch(in, cause, line);
	engine_launch_blames(in->engine, in->run, cause, js_str(line, "node", ""));
	engine_event(in->engine, in->run, "launch_end", "lbrun", "launch %lld: %s%s%s",
		     (long long)number, cause_name(cause), text[0] ? ": " : "", text);
}

static void tell_bad_checkpoint(struct ingest *in, const struct ledger_checkpoint *c)
{
	char *text = text_about(c->path, c->text);

	engine_event(in->engine, in->run, "checkpoint_bad", "lbrun", "%s", text);
	free(text);
}

/* Trainers may tell of one twice; lbrun knows whether it is beyond what was there before. One
 * without a step (a ckpt.pt that is written over) is known by its path alone. */
static void tell_checkpoint(struct ingest *in, const struct ledger_checkpoint *c, bool is_progress)
{
	if (c->step >= 0 && c->step == in->run->checkpoint_step)
		return;
	if (is_progress)
		note_progress(in->engine, in->run, c->step);
	if (c->step < 0) {
		engine_event(in->engine, in->run, "checkpoint", "lbrun", "%s", c->path);
		return;
	}
	in->run->checkpoint_step = c->step;
	engine_event(in->engine, in->run, "checkpoint", "lbrun", "step %lld", (long long)c->step);
}

/* By this process's clock, at least 1: a line may have waited for lbd. */
static int64_t heard_at(const struct ingest *in, int64_t time_ms)
{
	int64_t age_ms = engine_wall(in->engine) - time_ms;
	int64_t at_ms = engine_now(in->engine) - (age_ms > 0 ? age_ms : 0);

	return at_ms > 0 ? at_ms : 1;
}

static void on_checkpoint_valid(struct ingest *in, json_t *line)
{
	struct err err = { 0 };
	struct ledger_checkpoint c = {
		.run_id = in->run->id,
		.step = js_int(line, "step", -1),
		.attempt = in->run->attempt.number,
		.path = js_str(line, "path", ""),
		.text = js_str(line, "text", ""),
		.valid = js_bool(line, "valid", false),
		.time_ms = in->spool->time_ms,
	};

	engine_wrote(in->engine, ledger_checkpoint_put(in->engine->ledger, &c, &err), &err);
	if (c.valid && in->spool->launch > 0)
		engine_wrote(in->engine,
			     ledger_launch_saved(in->engine->ledger, in->run->attempt.id,
						 in->spool->launch, c.step, c.time_ms, &err),
			     &err);
	if (c.valid)
		in->run->attempt.saved_ms = heard_at(in, c.time_ms);
	if (c.valid)
		tell_checkpoint(in, &c, js_bool(line, "progress", true));
	else
		tell_bad_checkpoint(in, &c);
}

/* A rank's GPUs are as many ranks' where one process sees to several. */
static void on_usage(struct ingest *in, json_t *line)
{
	enum { GPUS_MAX = 4096, PERCENT_MAX = 100 };
	const json_t *gpus = json_object_get(line, "gpus"), *gpu;
	int64_t rank = js_int(line, "rank", 0);
	struct run *run = in->run;
	size_t i;

	json_array_foreach(gpus, i, gpu) {
		int64_t use = js_int(gpu, "use", -1), at = rank + (int64_t)i;

		if (at < 0 || at >= GPUS_MAX)
			break;
		if ((size_t)at >= run->gpu_count) {
			run->gpu_use = xrealloc(run->gpu_use, (size_t)at + 1);
			memset(run->gpu_use + run->gpu_count, -1, (size_t)at + 1 - run->gpu_count);
			run->gpu_count = (size_t)at + 1;
		}
		run->gpu_use[at] = (int8_t)(use > PERCENT_MAX ? PERCENT_MAX : use);
		run->gpu_use_ms = in->spool->time_ms;
	}
}

static void on_note(struct ingest *in, json_t *line)
{
	const char *kind = js_str(line, "kind", "note"), *text = js_str(line, "text", "");

	engine_event(in->engine, in->run, kind, "lbrun", "%s", text);
	if (strcmp(kind, "node_error") == 0)
		engine_node_error(in->engine, in->run, text);
	if (strcmp(kind, "preflight_node") == 0)
		engine_node_broken(in->engine, in->run, text);
}

static void on_start(struct ingest *in, json_t *line)
{
	json_t *phases = json_object_get(line, "phases"), *seconds;
	char *text = js_line(phases);
	bool is_good = json_is_object(phases) && strlen(text) <= START_BYTES;
	struct err err = { 0 };
	const char *name;

	json_object_foreach(phases, name, seconds) {
		is_good = is_good && json_is_number(seconds);
	}
	if (is_good)
		engine_wrote(in->engine,
			     ledger_launch_set_start(in->engine->ledger, in->run->attempt.id,
						     js_int(line, "number", 0), text, &err),
			     &err);
	free(text);
}

static const struct {
	const char *type;
	bool from_trainer;
	void (*on)(struct ingest *in, json_t *line);
} kinds[] = {
	{ "step", true, on_step }, /* the most frequent first */
	{ "checkpoint", true, on_nothing },
	{ "hello", true, on_nothing },
	{ "phase", true, on_nothing },
	{ "bye", true, on_nothing },
	{ "attempt_start", false, on_attempt_start },
	{ "launch_start", false, on_launch_start },
	{ "start", false, on_start },
	{ "launch_end", false, on_launch_end },
	{ "checkpoint_valid", false, on_checkpoint_valid },
	{ "note", false, on_note },
	{ "usage", false, on_usage },
	{ "attempt_end", false, on_nothing }, /* exit.json says the same, later */
};

/* --- the spool -------------------------------------------------------------------------------- */

static void take_line(struct ingest *in, json_t *line)
{
	const char *type = js_str(line, "type", "");

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (kinds[i].from_trainer == in->spool->from_trainer &&
		    strcmp(kinds[i].type, type) == 0) {
			kinds[i].on(in, line);
			break;
		}
	}
}

static int on_line(const struct spool_line *spool, void *arg)
{
	struct ingest *in = arg;
	struct attempt *a = &in->run->attempt;

	if (spool->seq <= a->spool_seq)
		return 0;
	if (spool->seq != a->spool_seq + 1)
		engine_event(in->engine, in->run, "spool_gap", "lbd",
			     "lines %lld to %lld are missing", (long long)a->spool_seq + 1,
			     (long long)spool->seq - 1);
	in->spool = spool;
	in->any = true;
	if (spool->step)
		store_step(in, spool->step, spool->text, spool->text_len);
	else
		take_line(in, spool->line);
	a->spool_seq = spool->seq;
	return in->engine->broken ? -1 : 0;
}

static void on_bad(int64_t offset, const struct err *why, void *arg)
{
	struct ingest *in = arg;

	if (in->run->attempt.bad_lines++ < BAD_LINES_TOLD)
		engine_event(in->engine, in->run, "spool_bad", "lbd", "offset %lld: %s",
			     (long long)offset, why->text);
}

/* In the transaction that stored them: the ledger never holds more than it promises. */
static void thin(struct ingest *in)
{
	struct err err = { 0 };

	if (in->run->dense_steps < THIN_AFTER)
		return;
	in->run->dense_steps = 0;
	engine_wrote(in->engine, ledger_metric_thin(in->engine->ledger, in->run->id, &err), &err);
}

static void write_newest(struct ingest *in)
{
	const struct newest *n = &in->newest;
	const struct attempt *a = &in->run->attempt;
	struct err err = { 0 };

	write_launch_steps(in);
	if (n->step >= 0)
		engine_wrote(in->engine,
			     ledger_run_set_progress(in->engine->ledger, in->run->id, n->step,
						     n->target_step, n->loss, n->tokens_per_s,
						     n->mfu, &err),
			     &err);
	if (n->step >= 0 && in->run->target_step >= 0)
		engine_warn_of_limit(in->engine, in->run);
	engine_wrote(in->engine,
		     ledger_attempt_set_spool(in->engine->ledger, a->id, a->spool_offset,
					      a->spool_seq, &err),
		     &err);
}

/* An array's progress is told in tasks: nobody else has steps to tell, nor when a launch begins. */
void engine_count_tasks(struct engine *e, struct run *run)
{
	bool is_first_look = run->tasks_changed_ns == 0;
	int64_t done, all;
	struct err err = { 0 };

	if (!run->spec.script || !e->world->tasks ||
	    !e->world->tasks(e->world->self, run, &run->tasks_changed_ns, &done, &all))
		return;
	if (!is_first_look && done == run->tasks_done && all == run->target_step)
		return;
	run->target_step = all;
	if (run->resume_from[0])
		resume_was_heeded(e, run);
	if (done > run->tasks_done)
		note_progress(e, run, -1);
	if (is_first_look) /* an lbd before this one noted it */
		run->attempt.is_settled |= e->world->any_task_done(e->world->self, run);
	run->tasks_done = done;
	engine_wrote(e, ledger_run_set_progress(e->ledger, run->id, done, all, NAN, NAN, NAN, &err),
		     &err);
	e->written |= WROTE_LINES;
}

void engine_ingest_begin(struct engine *e)
{
	if (e->turn_bytes == 0)
		e->turn_bytes = TURN_BYTES;
	e->ingest_bytes = e->turn_bytes;
}

void engine_ingest_end(struct engine *e, int64_t took_ms)
{
	int64_t bytes = e->turn_bytes - e->ingest_bytes;

	if (bytes <= 0)
		return;
	bytes = bytes * TURN_MS / (took_ms > 0 ? took_ms : 1);
	bytes = bytes < TURN_BYTES ? bytes : TURN_BYTES;
	e->turn_bytes = bytes > LEAST_BYTES ? bytes : LEAST_BYTES;
}

bool engine_ingest(struct engine *e, struct run *run)
{
	struct attempt *a = &run->attempt;
	int64_t most = e->ingest_bytes > LEAST_BYTES ? e->ingest_bytes : LEAST_BYTES;
	struct ingest in = {
		.engine = e,
		.run = run,
		.newest = { -1, -1, NAN, NAN, NAN, 0, no_steps },
	};
	int64_t offset = a->spool_offset, bytes;
	struct err err = { 0 }, lost = { 0 };

	bytes = e->world->spool(e->world->self, run, &a->spool_offset, most, on_line, on_bad, &in,
				&err);
	if (bytes < 0 && !e->broken && !a->is_unreadable)
		log_warn("%s: spool: %s", run->name, err.text);
	a->is_unreadable = bytes < 0;
	e->ingest_bytes -= bytes > 0 ? bytes : 0;
	/* the next line may have been too long for what was left */
	a->has_more = bytes > 0 && bytes > most - SPOOL_MAX_LINE_BYTES;
	a->drained = bytes >= 0 && !a->has_more;
	engine_wrote(e, metric_batch_write(&in.points, e->ledger, &lost), &lost);
	if (a->spool_offset == offset)
		return false;
	write_newest(&in);
	thin(&in);
	return in.any;
}
