/* SPDX-License-Identifier: MIT */
/* lbd_month_lbrun.c - lbrun and its trainer: lbrun's real verdicts on launches that the month's
 * troubles end. */
#include "tests/sim/ettr/lbd_month_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "common/base/mem.h"
#include "slurm/job_result.h"
#include "worker/lbrun/end/ending.h"
#include "worker/lbrun/watch/watch.h"

enum {
	STEP_MS = 10 * SECOND,
	SPARE_MS = 5 * SECOND /* srun is ended, Slurm told */,
	UNHEARD_MS = 12 * SECOND /* others write it down, lbd looks, Slurm ends the job */,
	IN_PLACE_PAUSE_MS = SECOND /* as lbrun's */
};

/* Takes the reference. */
static void live_say(struct sim *sim, struct job *job, json_t *line)
{
	if (job->line_count == job->line_cap) {
		job->line_cap = job->line_cap ? 2 * job->line_cap : 16;
		job->lines = xrealloc(job->lines, job->line_cap * sizeof(job->lines[0]));
	}
	job->lines[job->line_count++] = (struct said){ js_line(line), live_wall_ms(sim),
						       sim->launch };
	json_decref(line);
}

static void enter(struct sim *sim, enum phase phase, int64_t ms, event_fn next)
{
	sim->phase = phase;
	live_after(sim, ms, next, NULL, ++sim->stamp);
}

static void on_saved(struct sim *sim, void *arg, uint64_t stamp)
{
	(void)arg;
	if (sim->stamp != stamp)
		return;
	sim->saved_step += sim->m->c.interval_ms / STEP_MS;
	sim->is_new_saved = true;
	live_say(sim, sim->job,
		 json_pack("{s:s, s:I, s:s, s:b, s:s}", "type", "checkpoint_valid", "step",
			   (json_int_t)sim->saved_step, "path", "step", "valid", 1, "text", ""));
	enter(sim, PHASE_TRAIN, sim->m->c.interval_ms + sim->m->c.save_ms, on_saved);
}

static void on_first_step(struct sim *sim, void *arg, uint64_t stamp)
{
	(void)arg;
	if (sim->stamp != stamp)
		return;
	live_spent(sim, WHERE_START);
	enter(sim, PHASE_TRAIN, sim->m->c.interval_ms + sim->m->c.save_ms, on_saved);
}

static void on_again(struct sim *sim, void *arg, uint64_t stamp);

static void begin_launch(struct sim *sim)
{
	sim->launch++;
	sim->notes.launches++;
	sim->is_new_saved = false;
	live_say(sim, sim->job,
		 json_pack("{s:s, s:I, s:i, s:I}", "type", "launch_start", "number",
			   (json_int_t)sim->launch, "pid", 7, "resumed_from_step",
			   (json_int_t)sim->saved_step));
	enter(sim, PHASE_START, sim->m->c.start_ms, on_first_step);
}

static void write_exit(struct sim *sim, enum cause cause, int exit_code)
{
	struct job *job = sim->job;

	live_say(sim, job,
		 json_pack("{s:s, s:s}", "type", "attempt_end", "cause", cause_name(cause)));
	job->exit = (struct attempt_exit){
		.cause = cause,
		.exit_code = exit_code,
		.launches = sim->launch,
		.last_seq = (int64_t)job->line_count,
		.time_ms = live_wall_ms(sim),
	};
	snprintf(job->exit.token, sizeof(job->exit.token), "%s", job->status.ref.token);
	job->has_exit = true;
}

/* A spare takes its place, in the same job; the first node has lbrun. */
static bool takes_place(const struct sim *sim, int node)
{
	struct job *job = sim->job;

	for (int i = 0; node != job->head && i < NODE_COUNT; i++) {
		int spare = sim->m->order[i];

		if (!job->spare[spare])
			continue;
		job->spare[spare] = job->held[node] = false;
		job->held[spare] = true;
		return true;
	}
	return false;
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
	struct ending ending = { .cause = cause, .exit_code = exit_code };
	json_t *line = json_pack("{s:s, s:I, s:s, s:i, s:b, s:s}", "type", "launch_end", "number",
				 (json_int_t)sim->launch, "cause", cause_name(cause), "exit_code",
				 exit_code, "progress", sim->is_new_saved, "text", "");

	if (node >= 0)
		json_object_set_new(line, "node", json_sprintf("gpu-node-%03d", node));
	if (cause == CAUSE_NODE_FAIL)
		json_object_set_new(line, "counts", json_false());
	live_say(sim, sim->job, line);
	live_spent(sim, WHERE_NOTICE);
	sim->failures = sim->is_new_saved ? 0 : sim->failures + (cause != CAUSE_NODE_FAIL);
	sim->has_progressed |= sim->is_new_saved;
	if ((node < 0 || takes_place(sim, node)) &&
	    ending_may_relaunch(&ending, &params, sim->failures, sim->has_progressed)) {
		/* the nodes' parts are brought together first, at worst a whole drain */
		enter(sim, PHASE_STUCK,
		      sim->m->c.drain_ms + (sim->is_new_saved ? 0 : IN_PLACE_PAUSE_MS), on_again);
		return;
	}
	write_exit(sim, cause, exit_code);
	live_job_over(sim, sim->job, SJ_FAILED, SR_EXIT_CODE, 1 << 8);
}

static void on_again(struct sim *sim, void *arg, uint64_t stamp)
{
	(void)arg;
	if (sim->stamp != stamp)
		return;
	live_spent(sim, WHERE_NOTICE);
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
	live_spent(sim, WHERE_NOTICE);
	write_exit(sim, CAUSE_LOST, -1);
	live_job_over(sim, sim->job, SJ_NODE_FAIL, SR_NODE_DOWN, 0);
}

static void on_silence(struct sim *sim, void *arg, uint64_t stamp)
{
	(void)arg;
	if (sim->stamp == stamp)
		end_launch(sim, CAUSE_NODE_FAIL, -1, sim->lost);
}

/* By heartbeats. Of lbrun's own node the others tell lbd, which ends the job. */
static void node_fails(struct sim *sim, const struct trouble_at *t)
{
	bool has_lbrun = t->node == sim->job->head;

	sim->lost = t->node;
	if (sim->heard_ms == 0)
		enter(sim, PHASE_STUCK, SLURMD_TIMEOUT_MS, on_node_fail);
	else if (has_lbrun)
		enter(sim, PHASE_STUCK, sim->heard_ms + UNHEARD_MS, on_node_fail);
	else
		enter(sim, PHASE_STUCK, sim->heard_ms + SPARE_MS, on_silence);
}

static void gpu_fails(struct sim *sim, const struct trouble_at *t)
{
	live_say(sim, sim->job,
		 json_pack("{s:s, s:s, s:o}", "type", "note", "kind", "node_error", "text",
			   json_sprintf("gpu-node-%03d: NVRM: Xid 79", t->node)));
	end_launch(sim, CAUSE_ERROR, 1, t->node);
}

void live_on_trouble(struct sim *sim, void *arg, uint64_t stamp)
{
	const struct trouble_at *t = &sim->m->troubles[stamp];
	bool is_up = sim->phase == PHASE_START || sim->phase == PHASE_TRAIN;
	int64_t silence_ms = sim->phase == PHASE_START ? sim->setup_ms : sim->hang_ms;

	(void)arg;
	if (!sim->job)
		return;
	if (t->kind == TROUBLE_NODE)
		sim->job->spare[t->node] = false; /* it is noticed when it is needed */
	if (!is_up || !trouble_hits(t, sim->job->held))
		return;
	if (sim->phase == PHASE_START) {
		live_spent(sim, WHERE_START);
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
		node_fails(sim, t);
}

void live_lbrun_begin(struct sim *sim, void *arg, uint64_t stamp)
{
	struct job *job = arg;

	(void)stamp;
	sim->job = job;
	job->is_claimed = true;
	sim->launch = sim->failures = 0;
	sim->has_progressed = false;
	live_say(sim, job,
		 json_pack("{s:s, s:s, s:o}", "type", "attempt_start", "host", "gpu-node", "nodes",
			   live_names_of(job)));
	begin_launch(sim);
}

/* What lbrun's watch allows before the first step, and once it has seen some of a trainer that
 * tells its phases. */
void live_learn_limits(struct sim *sim)
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
