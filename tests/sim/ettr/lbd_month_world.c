/* SPDX-License-Identifier: MIT */
/* lbd_month_world.c - the month as lbd's engine sees it: clocks, specs, and what an attempt's
 * folder holds. */
#include "common/base/json.h"
#include "tests/sim/ettr/lbd_month_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/config/toml.h"
#include "tests/sim/scheduler_calls.h"

static int64_t world_wall(void *self)
{
	return live_wall_ms(self);
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
	struct toml toml = { 0 };
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
	json_t *fields = json_object();

	(void)err;
	sim->without_before = run->failures;
	js_set_int(fields, "attempt", run->attempt.number);
	js_set_int(fields, "min_nodes", JOB_NODES);
	submit_attempt(run, ledger, fields, done, arg);
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
	*out = (struct switched){ .is_known = true, .order = ORDER_RUN };
}

static bool world_claimed(void *self, const struct run *run)
{
	const struct job *job = live_job_of(self, run->attempt.number);

	return job && job->is_claimed;
}

static bool world_exited(void *self, const struct run *run, struct attempt_exit *out)
{
	const struct job *job = live_job_of(self, run->attempt.number);

	if (job && job->has_exit)
		*out = job->exit;
	return job && job->has_exit;
}

static int64_t world_spool(void *self, const struct run *run, int64_t *offset, int64_t max_bytes,
			   int (*on_line)(const struct spool_line *line, void *arg),
			   void (*on_bad)(int64_t at, const struct err *why, void *arg), void *arg,
			   struct err *err)
{
	const struct job *job = live_job_of(self, run->attempt.number);
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

const struct world live_world = {
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
