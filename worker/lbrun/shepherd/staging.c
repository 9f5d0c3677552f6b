/* SPDX-License-Identifier: MIT */
/* staging.c - the node's stage of an attempt: opened, drained while the trainer runs, and before
 * the job ends. */
#include <stdio.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "worker/lbrun/shepherd/shepherd.h"
#include "worker/lbrun/trainer/launcher.h"

enum { PARTS_WAIT_MS = 5 * 60 * 1000 };

/* Without it checkpoints are saved where they are shared: dearer, and as safe. */
static void go_without(struct shepherd *s, const char *why)
{
	journal_note(&s->journal, 0, "stage_off", "%s: checkpoints are saved in %s", why,
		     s->params.checkpoint_dir);
	output_say(&s->output, "%s: checkpoints are saved in %s", why, s->params.checkpoint_dir);
}

void staging_open(struct shepherd *s)
{
	const struct stage_where where = {
		.task = saves_task(s),
		.generation = s->handed.generation,
		.node = s->node,
		.nodes = launcher_nodes(),
	};
	struct err why = { 0 };

	s->stage = (struct stage){ .fd = -1, .lock_fd = -1 };
	if (!s->params.stage || s->policy.finds_own)
		return;
	if (where.nodes > 1 && !s->policy.is_srun)
		go_without(s, "checkpoint.stage on several nodes is for run.launcher = \"srun\"");
	else if (stage_open(&s->stage, &s->params, &where, s->rules, &why) < 0)
		go_without(s, why.text);
	else
		stage_look(&s->stage, NULL);
}

void staging_before_launch(struct shepherd *s)
{
	struct err why = { 0 };

	if (!stage_is_on(&s->stage))
		return;
	if (stage_has_parts(&s->stage))
		staging_tell_lost(s);
	if (stage_begin_launch(&s->stage, &why) < 0)
		output_say(&s->output, "%s", why.text);
	stage_look(&s->stage, s->search.found == 1 ? s->search.path : NULL);
}

/* Somebody wants the job to end: what will not be saved by then? */
static void tell_risk(struct shepherd *s, int64_t left_ms)
{
	char text[400], needs[60] = "";
	int64_t needs_ms;

	stage_risk_text(&s->stage, text, sizeof(text), &needs_ms);
	if (s->is_risk_told || !text[0])
		return;
	s->is_risk_told = true;
	if (needs_ms >= 0 && needs_ms <= left_ms)
		return;
	if (needs_ms >= 0)
		snprintf(needs, sizeof(needs), ", which takes about %.0f s",
			 (double)needs_ms / 1000);
	journal_note(&s->journal, s->facts.launch.number, "stage_risk",
		     "%s; %.0f s are left to copy it%s", text, (double)left_ms / 1000, needs);
}

static bool is_held(const struct shepherd *s)
{
	return stage_has_parts(&s->stage) && !s->facts.launch.is_open;
}

/* A launch on several nodes starts from what is shared: that shall be the newest. */
int64_t staging_held_until_ms(const struct shepherd *s)
{
	const struct shepherd_facts *f = &s->facts;
	int64_t from_ms = f->launch.ended_ms > f->claimed_ms ? f->launch.ended_ms : f->claimed_ms;

	return is_held(s) && stage_is_draining(&s->stage) ? from_ms + PARTS_WAIT_MS : INT64_MIN;
}

void staging_turn(struct shepherd *s, int64_t now_ms)
{
	int64_t until_ms = shepherd_drain_until_ms(&s->facts, &s->policy);
	int64_t left_ms = until_ms == INT64_MAX ? INT64_MAX : until_ms - now_ms;

	if (!stage_is_on(&s->stage))
		return;
	if ((s->facts.is_over || is_held(s)) && left_ms == INT64_MAX)
		left_ms = INT64_MAX - 1; /* nobody is disturbed any more */
	if ((s->facts.signalled || s->facts.order > ORDER_RUN) && left_ms < INT64_MAX - 1)
		tell_risk(s, left_ms);
	stage_turn(&s->stage, left_ms, now_ms);
}

void staging_reaped(struct shepherd *s)
{
	struct drained out;
	char *path = NULL;

	if (!stage_reaped(&s->stage, &out, &path, clock_mono_ms()))
		(void)path;
	else if (out.is_done)
		saves_drained(s, path);
	else
		journal_note(&s->journal, s->facts.launch.number, "stage_stays", "%s: %s", path,
			     out.text);
	free(path);
}

void staging_tell_lost(struct shepherd *s)
{
	char text[400];

	if (!stage_is_on(&s->stage))
		return;
	stage_risk_text(&s->stage, text, sizeof(text), NULL);
	if (!text[0])
		return;
	journal_note(&s->journal, s->facts.launch.number, "stage_lost",
		     "%s: a job on another node goes on from the newest in %s", text,
		     s->params.checkpoint_dir);
	output_say(&s->output, "%s", text);
}
