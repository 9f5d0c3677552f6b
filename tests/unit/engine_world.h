/* SPDX-License-Identifier: MIT */
/* engine_world.h - the real engine and ledger in a world that the test turns: its clock, a
 * scheduler that answers when it is told to, spools that never end. */
#ifndef TESTS_UNIT_ENGINE_WORLD_H
#define TESTS_UNIT_ENGINE_WORLD_H

#include "tests/unit/ledger_home.h"

#include "daemon/engine/engine.h"
#include "daemon/engine/state.h"

static int64_t now_ms = 1000 * 1000;
static int64_t polls;         /* asked so far */
static scheduler_done answer; /* NULL: nothing is asked */
static void *answer_arg;

static int64_t clock_now(void *self)
{
	(void)self;
	return now_ms;
}

/* What it is asked of nodes that go away it answers at once. */
static struct scheduler_reply outages_reply;
static int64_t outages_asked;

static void outages_now(struct scheduler *s, scheduler_done done, void *arg)
{
	(void)s;
	outages_asked++;
	done(arg, &outages_reply);
}

static void poll_asked(struct scheduler *s, scheduler_done done, void *arg)
{
	(void)s;
	assert_null(answer); /* never two at once */
	polls++;
	answer = done;
	answer_arg = arg;
}

static const struct scheduler_ops ops = {
	.name = "test",
	.poll = poll_asked,
	.outages = outages_now,
};

/* The answer comes after so long. */
static inline void answer_after(int64_t ms, enum scheduler_result result)
{
	struct scheduler_reply reply = { .result = result, .text = "" };
	scheduler_done done = answer;

	assert_non_null(done);
	now_ms += ms;
	answer = NULL;
	done(answer_arg, &reply);
}

static inline void answer_with(const struct job_status *job)
{
	struct scheduler_reply reply = { .text = "", .jobs = job, .job_count = 1 };
	scheduler_done done = answer;

	assert_non_null(done);
	answer = NULL;
	done(answer_arg, &reply);
}

/* From the answer to the next question, as the engine's turns make it. */
static inline int64_t pause_ms(struct engine *e)
{
	int64_t begun_ms = now_ms, at_ms;

	while ((at_ms = engine_poll_due(e)) != INT64_MAX) {
		assert_true(at_ms > now_ms);
		now_ms = at_ms;
	}
	return now_ms - begun_ms;
}

static struct scheduler scheduler = { .ops = &ops };

/* What the run's job asked for. */
static const char *reservations;
static int64_t limit_ms;

static void bounds_told(void *self, const struct run *run, char **names, int64_t *job_limit_ms)
{
	(void)self;
	(void)run;
	*names = reservations ? strdup(reservations) : NULL;
	*job_limit_ms = limit_ms;
}

/* What is taken for a person's cancellation. */
static int64_t cancelled_tasks[8];
static size_t cancelled_count;

static size_t note_cancelled(void *self, const struct run *run, int64_t *tasks, size_t count)
{
	(void)self;
	(void)run;
	for (size_t i = 0; i < count; i++)
		cancelled_tasks[cancelled_count++] = tasks[i];
	return 0;
}

static enum run_order switched_to;

static void switched_now(void *self, const struct run *run, struct switched *out)
{
	(void)self;
	(void)run;
	*out = (struct switched){ .order = switched_to };
}

/* Spools that never end, and hold no line. */
static int64_t spool_looks, spool_bytes, spool_least;
static int64_t spool_ms; /* what one takes */

static int64_t spool_full(void *self, const struct run *run, int64_t *offset, int64_t max_bytes,
			  int (*on_line)(const struct spool_line *line, void *arg),
			  void (*on_bad)(int64_t offset, const struct err *why, void *arg),
			  void *arg, struct err *err)
{
	(void)self;
	(void)run;
	(void)on_line;
	(void)on_bad;
	(void)arg;
	(void)err;
	(void)offset;
	spool_looks++;
	spool_bytes += max_bytes;
	now_ms += spool_ms;
	spool_least = max_bytes < spool_least ? max_bytes : spool_least;
	return max_bytes;
}

static bool not_exited(void *self, const struct run *run, struct attempt_exit *out)
{
	(void)self;
	(void)run;
	(void)out;
	return false;
}

static int spec_gone(void *self, const char *run_dir, struct run_spec *out, struct err *err)
{
	(void)self;
	(void)out;
	return err_set(err, ERR_IO, "%s is away", run_dir);
}

static const struct world world = {
	.spec = spec_gone,
	.exited = not_exited,
	.spool = spool_full,
	.wall_ms = clock_now,
	.mono_ms = clock_now,
	.bounds = bounds_told,
	.switched = switched_now,
	.tasks_cancelled = note_cancelled,
};
static const struct poll_times times = { .busy_ms = 1000, .idle_ms = 15000, .spool_ms = 500 };

/* A run on n1 and n2 that trains since START_S. */
enum { START_S = 900 };

static inline struct run run_on_two_nodes(void)
{
	static char two[] = "n[1-2]";
	struct run run = { .scheduler = &scheduler, .state = RUN_RUNNING, .has_attempt = true };

	run.attempt.state = ATTEMPT_RUNNING;
	run.attempt.last_seen.start_time = START_S;
	run.attempt.nodes = two;
	return run;
}

#endif
