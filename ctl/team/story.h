/* SPDX-License-Identifier: MIT */
/* story.h - what happened to a run, from the files below its folder alone.
 *
 * Steps and events are numbered by where they stand (attempt and offset in its spool), so that who
 * asks again "after" one reads on from there. */
#ifndef CTL_TEAM_STORY_H
#define CTL_TEAM_STORY_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct err;

/* what the spools tell, from one place on */
struct story {
	json_t *steps, *events; /* as lbd has them; both owned */
	json_t *attempts;       /* the same; owned */
	json_t *attempt;        /* the one at hand; borrowed */
	json_t *checkpoint;     /* the newest valid one, or NULL; owned */
	int64_t number, offset, after;
	bool wants_steps;
	int64_t step_place;          /* of the newest step; 0 = none */
	int64_t stride, passed_over; /* each so many-th is kept; so many since the last one */
};

/* What happened to the run in this folder after the place `after`; -1: only what comes from now on.
 * 0, or -1 with err; story_fini is due in any case. */
int story_read(struct story *s, const char *run, int64_t after, bool wants_steps, struct err *err);
void story_fini(struct story *s);

/* Where it was read to. */
int64_t story_place(const struct story *s);

#endif
