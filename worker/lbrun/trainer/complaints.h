/* SPDX-License-Identifier: MIT */
/* complaints.h - why it died, as far as what it printed tells: the line that explains the most, and
 * the rank whose end ended the others. complaint_rows.h has the tables.
 *
 * Pure: lines and a clock in. What was survived for a while (steps went on) explains nothing. */
#ifndef LBRUN_TRAINER_COMPLAINTS_H
#define LBRUN_TRAINER_COMPLAINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "worker/lbrun/trainer/complaint_rows.h"

struct regexp;

enum {
	COMPLAINT_BYTES = 240,
	MARK_BYTES = 80,
	COMPLAINT_SURVIVED_MS = 60 * 1000, /* when a step comes so long after it */
	COMPLAINT_OLD_MS = 30 * 60 * 1000, /* where no steps are known */
};

struct complaint {
	enum weight weight; /* WEIGHT_NONE = nothing was said */
	const char *advice; /* NULL = none */
	char node[65];      /* "" = not known */
	int64_t rank;       /* -1 = not known */
	int64_t at_ms;
	char text[COMPLAINT_BYTES];
};

struct rank_end {
	bool is_known;
	int exit_code; /* -1 = none */
	int signal;    /* 0 = none */
	int64_t rank;  /* -1 = not known */
	bool is_local; /* that is its number on its node, as far as was told */
	char node[65];
	bool oom;           /* the kernel killed it, or something that it started, for memory */
	bool is_first_hand; /* its own shepherd says so, which saw it end; else a launcher */
	bool is_ordered;    /* its srun was told to end it, for no reason that anybody gave */
};

/* what was raised did not end the program, or perhaps not */
enum aside { ASIDE_NOT, ASIDE_THREAD, ASIDE_IGNORED };
/* drawn around a message; its first line has been heard */
enum box { BOX_NONE, BOX_BEGUN, BOX_TOLD };

struct complaints {
	struct regexp *rows[64], *ends[32];
	struct regexp *sign, *harmless, *noise, *frame;
	struct complaint best, last; /* `last`: the last line of stderr */
	struct rank_end end;
	int64_t end_ms;
	/* when any rank's end was told last, an exception, a step; INT64_MIN = never */
	int64_t last_end_ms, raised_ms, step_ms;
	/* by a launcher, before it says how that ended, and its number on its node; -1 = none */
	int64_t named_rank, named_local;
	int64_t followers[16]; /* ranks that said they end because of another, in turn; */
	size_t follower_count;
	int64_t followed_ms; /* the newest said so */
	bool launcher_ends;  /* it has said that it ends all that is left, */
	int64_t ends_ms;     /* the last time then, */
	bool has_reason;     /* and behind the end of a rank, or what explains it */
	int frame_lines;     /* so many lines may hold the frame of `best` */
	bool goes_on;        /* `best` ends in a colon: the next line is a part of it */
	bool in_traceback;
	enum box box;
	enum aside said, aside; /* by the line before; of the traceback */
	int64_t traceback_rank;
	/* exceptions that were raised together; behind the first of them */
	bool in_group, is_later;
	int64_t group_rank;
	char traceback_mark[MARK_BYTES]; /* stood in front of its first line */
};

/* one line */
struct heard {
	const char *text; /* without prefix and escape sequences; ends in NUL */
	size_t len;
	const char *node; /* "" = not known */
	int64_t rank;     /* -1 = not known */
	bool is_stderr;
	int64_t now_ms;
};

void complaints_init(struct complaints *c);
void complaints_fini(struct complaints *c);
void complaints_reset(struct complaints *c); /* a new launch */
void complaints_hear(struct complaints *c, const struct heard *line);
/* Where the line is srun's own word, of no rank, for a node that it cannot reach: what begins with
 * the node's name and a colon, else NULL. */
const char *complaint_unreached(const struct heard *heard);
/* Is it srun's own word that it ends all that is left of the step? */
bool complaint_srun_ends(const struct heard *heard);
/* A rank's own shepherd says how it ended: the first such word counts, before a launcher's; but of
 * one that follows another a signal that ended that one is the cause, told soon after, before the
 * launcher ends the rest. */
void complaints_rank_ended(struct complaints *c, const struct rank_end *end, int64_t now_ms);
/* Has that rank said that it ends because of another (WEIGHT_FOLLOWS), or that it calls MPI_Abort?
 * Then SIGABRT is how it left, and no crash. */
bool complaints_follows(const struct complaints *c, int64_t rank);
/* The training went on. */
void complaints_step(struct complaints *c, int64_t now_ms);

/* Did no step come behind the end of a rank, or behind what was raised, a moment ago? */
bool complaints_end_is_last(const struct complaints *c, int64_t now_ms);
bool complaints_raised_last(const struct complaints *c, int64_t now_ms);

/* What explains the end best; NULL = nothing does. Borrowed. */
const struct complaint *complaints_best(const struct complaints *c, int64_t now_ms);

#endif
