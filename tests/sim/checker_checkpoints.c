/* SPDX-License-Identifier: MIT */
/* checker_checkpoints.c - what a launch is started from: the newest checkpoint that has not failed,
 * and where all have, the newest. A checkpoint has failed when a launch from it ended by its own
 * fault before it got anywhere; what got beyond it clears it, and those of earlier steps. */
#include "tests/sim/checker_internal.h"

#include <string.h>

#include "common/base/mem.h"

static struct seen_checkpoint *find(struct view *v, int64_t stamp)
{
	for (size_t i = 0; i < v->saved_count; i++)
		if (v->saved[i].stamp == stamp)
			return &v->saved[i];
	return NULL;
}

static void add(struct view *v, const struct fact *f)
{
	if (v->saved_count == v->saved_cap) {
		v->saved_cap = v->saved_cap ? 2 * v->saved_cap : 16;
		v->saved = xrealloc(v->saved, v->saved_cap * sizeof(*v->saved));
	}
	v->saved[v->saved_count++] = (struct seen_checkpoint){ .stamp = f->a, .step = f->b };
}

static void drop(struct view *v, int64_t stamp)
{
	struct seen_checkpoint *gone = find(v, stamp);

	if (gone)
		*gone = v->saved[--v->saved_count];
}

/* They are forgiven, unless lbrun dies before it has written that down. */
static void clear_up_to(struct view *v, int64_t stamp)
{
	const struct seen_checkpoint *good = find(v, stamp);
	int64_t step = good ? good->step : -1;

	for (size_t i = 0; i < v->saved_count; i++)
		if (v->saved[i].step <= step && v->saved[i].standing == STANDING_FAILED)
			v->saved[i].standing = STANDING_DOUBTFUL;
}

/* A sound one beats one that failed, then the newer step counts. */
static bool is_better(const struct seen_checkpoint *a, const struct seen_checkpoint *b)
{
	if (a->standing == STANDING_DOUBTFUL || b->standing == STANDING_DOUBTFUL)
		return false;
	if (a->standing != b->standing)
		return a->standing == STANDING_SOUND;
	return a->step > b->step;
}

/* Two attempts at a time know not of each other's: they are left out. */
static void check_start(struct check *c, struct view *v, const struct fact *f)
{
	const struct seen_checkpoint *from = find(v, f->b);

	if (v->trainers > 0)
		return;
	if (!from && v->saved_count > 0)
		broken(c, f->run, f->at_ms, "a trainer began anew although there are checkpoints");
	for (size_t i = 0; from && i < v->saved_count; i++) {
		if (!is_better(&v->saved[i], from))
			continue;
		broken(c, f->run, f->at_ms,
		       from->standing == STANDING_FAILED
			       ? "a trainer was started from a checkpoint that had failed"
			       : "a trainer was started from an older checkpoint than it need");
		return;
	}
}

void check_checkpoint(struct check *c, struct view *v, const struct fact *f)
{
	struct seen_checkpoint *from;

	switch ((enum fact_kind)f->kind) {
	case FACT_SAVED:
		add(v, f);
		break;
	case FACT_DROPPED:
		drop(v, f->a);
		break;
	case FACT_TRAINER_FROM:
		check_start(c, v, f);
		break;
	case FACT_GOT_BEYOND:
		clear_up_to(v, f->b);
		break;
	default:
		from = find(v, f->b);
		if (from && from->standing != STANDING_FAILED)
			from->standing = f->kind == FACT_FROM_FAILED ? STANDING_FAILED
								     : STANDING_DOUBTFUL;
		break;
	}
}
