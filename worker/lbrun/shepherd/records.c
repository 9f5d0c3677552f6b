/* SPDX-License-Identifier: MIT */
/* records.c - lbrun's own records in the spool: what begins, what ends, which checkpoint is
 * valid. */
#include <stdlib.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/run/hosts.h"
#include "worker/lbrun/shepherd/shepherd.h"

static json_t *record(const char *type)
{
	json_t *line = json_object();

	js_set_str(line, "type", type);
	return line;
}

void record_attempt_start(struct shepherd *s)
{
	json_t *line = record("attempt_start");
	const char *nodes = getenv("SLURM_JOB_NODELIST");

	js_set_str(line, "host", s->node);
	json_object_set_new(line, "nodes",
			    s->allocation.nodes ? json_copy(s->allocation.nodes)
						: hosts_expand(nodes ? nodes : s->node));
	js_set_int(line, "pid", getpid());
	journal_own(&s->journal, 0, line);
}

void record_launch_start(struct shepherd *s)
{
	json_t *line = record("launch_start");
	bool resumed = s->search.found == 1;

	js_set_int(line, "number", s->facts.launch.number);
	js_set_int(line, "pid", s->facts.launch.pid > 0 ? s->facts.launch.pid : JS_NONE);
	js_set_int(line, "resumed_from_step",
		   resumed && s->search.step >= 0 ? s->search.step : JS_NONE);
	js_set_str(line, "resumed_from", resumed ? s->search.path : NULL);
	journal_own(&s->journal, s->facts.launch.number, line);
}

void record_start(struct shepherd *s)
{
	json_t *phases = starting_end(&s->starting, clock_mono_ms()), *line;

	if (!phases)
		return;
	line = record("start");
	js_set_int(line, "number", s->facts.launch.number);
	json_object_set_new(line, "phases", phases);
	journal_own(&s->journal, s->facts.launch.number, line);
}

static void set_ending(json_t *line, const struct ending *end)
{
	js_set_str(line, "cause", cause_name(end->cause));
	js_set_int(line, "exit_code", end->exit_code < 0 ? JS_NONE : end->exit_code);
	js_set_int(line, "signal", end->signal ? end->signal : JS_NONE);
	js_set_str(line, "text", end->text);
}

void record_launch_end(struct shepherd *s, const struct next *end)
{
	json_t *line = record("launch_end");

	js_set_int(line, "number", s->facts.launch.number);
	js_set_bool(line, "progress", end->made_progress);
	if (!end->counts)
		js_set_bool(line, "counts", false);
	js_set_str(line, "node", s->facts.launch.node[0] ? s->facts.launch.node : NULL);
	set_ending(line, &s->facts.ending);
	journal_own(&s->journal, s->facts.launch.number, line);
}

void record_checkpoint(struct shepherd *s, const struct told_checkpoint *c)
{
	json_t *line = record("checkpoint_valid");

	js_set_int(line, "step", c->step < 0 ? JS_NONE : c->step);
	js_set_str(line, "path", c->path);
	js_set_bool(line, "valid", c->is_valid);
	js_set_bool(line, "progress", c->is_progress);
	js_set_str(line, "layout", c->layout[0] ? c->layout : NULL);
	js_set_int(line, "bytes", c->bytes < 0 ? JS_NONE : c->bytes);
	js_set_str(line, "text", c->text);
	s->pruning.is_due |= c->is_valid;
	journal_own(&s->journal, s->facts.launch.number, line);
}

void record_attempt_end(struct shepherd *s)
{
	json_t *line = record("attempt_end");

	set_ending(line, &s->facts.ending);
	journal_own(&s->journal, s->facts.launch.number, line);
}
