/* SPDX-License-Identifier: MIT */
/* stage_plan.h - what is to be done with the checkpoints in a node's stage. Pure.
 *
 * Only whole ones come here. The newest is drained, and stays for a relaunch in place; what is
 * older than a sealed one goes. While one is drained a newer one waits, lest saves that are quicker
 * than drains keep any from being sealed - unless the job is about to end: then what is newer and
 * can still be drained comes first. */
#ifndef LBRUN_CHECKPOINT_STAGE_PLAN_H
#define LBRUN_CHECKPOINT_STAGE_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct staged {
	int64_t step, bytes; /* step -1 = it tells none */
	bool is_sealed;      /* its copy counts */
	bool is_needed;      /* the trainer may still be loading it */
};

struct stage_view {
	const struct staged *items; /* newest first */
	size_t count;
	int64_t draining;     /* index of the one that is copied now; -1 = none */
	int64_t copied_bytes; /* of it, at the least */
	bool is_limited;      /* its copying keeps to a rate */
	int64_t rate;         /* bytes/s, measured without limit or with it; 0 = not known */
	int64_t left_ms;      /* until the job ends; INT64_MAX = that is not known to be near */
	int64_t free_bytes;   /* in the stage */
	bool keeps_none;      /* no launch is ever started from what is sealed */
};

struct stage_step {
	int64_t drain;   /* index of the one to be copied next, or further; -1 = none */
	bool breaks_off; /* what is being copied is left for it */
	bool is_unlimited;
};

/* drops[i]: that one can go. */
struct stage_step stage_decide(const struct stage_view *view, bool *drops);

/* What would be lost if the job ended now: the newest that is not sealed, -1 = nothing; *back_to:
 * step of the newest sealed one here, -1 = there is none. */
int64_t stage_at_risk(const struct stage_view *view, int64_t *back_to);
/* Of that one: how long its copy will still take, by what was measured; -1 = not known. */
int64_t stage_needs_ms(const struct stage_view *view, int64_t index);

#endif
