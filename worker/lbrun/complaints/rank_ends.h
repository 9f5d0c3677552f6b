/* SPDX-License-Identifier: MIT */
/* rank_ends.h - the rank whose end ended the others, by its own shepherd's word or by what its
 * launcher printed. Pure: lines and a clock in. */
#ifndef LBRUN_COMPLAINTS_RANK_ENDS_H
#define LBRUN_COMPLAINTS_RANK_ENDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "worker/lbrun/complaints/complaint_rows.h"
#include "worker/lbrun/complaints/heard.h"

struct regexp;

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

struct rank_ends {
	struct regexp *patterns[RANK_END_PATTERNS_MAX], *lost_node;
	struct rank_end first; /* the one that counts */
	int64_t first_ms;
	/* when any rank's end was told last, and a node that its launcher has lost; INT64_MIN =
	 * never */
	int64_t last_ms, lost_node_ms;
	/* by a launcher, before it says how that ended, and its number on its node; -1 = none */
	int64_t named_rank, named_local;
	int64_t followers[16]; /* ranks that said they end because of another, in turn; */
	size_t follower_count;
	int64_t followed_ms; /* the newest said so */
	bool launcher_ends;  /* it has said that it ends all that is left, */
	int64_t ends_ms;     /* the last time then, */
	bool has_reason;     /* and behind the end of a rank, or what explains it */
};

void rank_ends_init(struct rank_ends *e);
void rank_ends_fini(struct rank_ends *e);
void rank_ends_reset(struct rank_ends *e); /* a new launch */
/* A rank ended, by the word of its own shepherd (`is_first_hand`) or of a launcher. The first such
 * word counts; a shepherd's before a launcher's of the same rank; but of one that follows another a
 * signal that ended that one is the cause, told soon after, before the launcher ends the rest. */
void rank_ends_add(struct rank_ends *e, const struct rank_end *end, int64_t now_ms);
/* What a line of a launcher tells of an end. */
void rank_ends_hear(struct rank_ends *e, const struct heard *line);
/* Where srun says in it that it ends all. `is_explained`: something was said of why. */
void rank_ends_hear_of_all(struct rank_ends *e, const struct heard *line, bool is_explained);
/* That rank said that it ends because of another. */
void rank_ends_note_follower(struct rank_ends *e, int64_t rank, int64_t now_ms);
/* Has that rank said so (WEIGHT_FOLLOWS), or that it calls MPI_Abort? Then SIGABRT is how it left,
 * and no crash. */
bool rank_ends_follows(const struct rank_ends *e, int64_t rank);
/* The training went on: what was survived for a while explains nothing. */
void rank_ends_step(struct rank_ends *e, int64_t now_ms);

#endif
