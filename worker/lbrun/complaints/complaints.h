/* SPDX-License-Identifier: MIT */
/* complaints/ - why a trainer died, as far as what it printed tells: the line that explains the
 * most, and the rank whose end ended the others. Pure: lines and a clock in.
 *
 * complaints.h - all that was heard of one launch. What was survived for a while (steps went on)
 * explains nothing. */
#ifndef LBRUN_COMPLAINTS_COMPLAINTS_H
#define LBRUN_COMPLAINTS_COMPLAINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "worker/lbrun/complaints/complaint_rows.h"
#include "worker/lbrun/complaints/heard.h"
#include "worker/lbrun/complaints/rank_ends.h"
#include "worker/lbrun/complaints/traceback.h"

struct regexp;

enum { COMPLAINT_BYTES = 240 };

struct complaint {
	enum weight weight; /* WEIGHT_NONE = nothing was said */
	const char *advice; /* NULL = none */
	char node[65];      /* "" = not known */
	int64_t rank;       /* -1 = not known */
	int64_t at_ms;
	bool is_outside; /* COMPLAINT_OUTSIDE */
	char text[COMPLAINT_BYTES];
};

struct complaints {
	struct regexp *rows[COMPLAINT_ROWS_MAX];
	struct regexp *sign, *harmless, *noise, *frame, *step;
	struct complaint best, last; /* `last`: the last line of stderr */
	struct rank_ends ends;
	struct traceback traceback;
	/* when an exception was told last, and a step; INT64_MIN = never */
	int64_t raised_ms, step_ms;
	int frame_lines; /* so many lines may hold the frame of `best` */
	bool goes_on;    /* `best` ends in a colon: the next line is a part of it */
	int place;       /* how far the frame in between is indented; -1 = there was none */
};

void complaints_init(struct complaints *c);
void complaints_fini(struct complaints *c);
void complaints_reset(struct complaints *c); /* a new launch */
void complaints_hear(struct complaints *c, const struct heard *line);
/* The training went on. */
void complaints_step(struct complaints *c, int64_t now_ms);

/* Did no step come behind the end of a rank, behind what was raised, or behind a launcher's word
 * that it has lost a node, a moment ago? */
bool complaints_end_is_last(const struct complaints *c, int64_t now_ms);
bool complaints_raised_last(const struct complaints *c, int64_t now_ms);
bool complaints_lost_node_last(const struct complaints *c, int64_t now_ms);

/* What explains the end best; NULL = nothing does. Borrowed. */
const struct complaint *complaints_best(const struct complaints *c, int64_t now_ms);

#endif
