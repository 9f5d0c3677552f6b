/* SPDX-License-Identifier: MIT */
/* ranks/ - one training in several processes, each a rank: who they are, what each holds of the
 * model, and how their gradients become one. docs/RANKS.md is for people.
 *
 * ranks.h - who we are among them, and words to all of them.
 *
 * The ranks that a word is for make the same calls in the same order: all of them, but for groups
 * (ranks_group) and what passes between two stages. The first failure sticks: every later call
 * fails at once, so that a pass may go to its end before anybody looks. */
#ifndef LBWORKER_RANKS_H
#define LBWORKER_RANKS_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "kernels/comm.h"

struct ranks {
	int rank, size;
	int beside;          /* ranks on this machine; at least 1 */
	int sharing;         /* those of them that may run on our cores; at least 1 */
	double waited_s;     /* in exchanges so far */
	uint64_t sent_bytes; /* to others so far */

	/* private */
	struct ranks *world; /* of which these are some (ranks_group); NULL: these are all */
	int first, stride;   /* theirs is number first + stride * r */
	struct comm_part *world_send, *world_receive; /* [world->size] */
	const struct comm_table *table;               /* NULL: we are alone */
	struct comm *comm;
	struct comm_lane *lane;                  /* makes all exchanges of the comm */
	const struct arrays_table *arrays_table; /* arrays.h; the world's */
	struct arrays *arrays;                   /* NULL: arrays go as words do */
	double begin_s, deadline_s, train_s;     /* train_s: deadline_s from the first step on */
	struct comm_part *send, *receive;        /* [size], for gathers */
	struct err failure;
	bool is_told;  /* by another rank: nothing is left to say */
	bool all_know; /* all have found the failure by themselves, and end: none is to be told */
};

struct ranks_options {
	void *room; /* of those that one process has forked (local_ranks.h), and which one we are */
	int rank;
	double begin_s;    /* so long ranks wait for each other to begin, and before they have, */
	double deadline_s; /* and for each other's bytes */
};

/* How many of us srun or mpiexec has started, with MPI or without; 1: none has. */
int ranks_launched(void);
/* What a launcher tells each rank by itself: our number, how many are beside us, which device is
 * ours. Nobody else is known yet: size is 1. */
void ranks_alone(struct ranks *ranks);
/* room NULL: as the environment says, by srun or mpiexec; else we are alone. -1 with err, and
 * nothing to close. Afterwards *ranks stays where it is. */
int ranks_open(struct ranks *ranks, const struct ranks_options *options, struct err *err);
void ranks_close(struct ranks *ranks);

/* The first step is done: from now on nobody is late because of what he reads. */
void ranks_have_begun(struct ranks *ranks);

/* `size` of the ranks, of which we are one: first, first + stride, ... They say to each other what
 * all could, by the same functions; failures and what is counted are the world's, which is
 * borrowed. */
void ranks_group(struct ranks *group, struct ranks *world, int first, int stride, int size);

/* Of this machine's cores, those that are ours; 0: all that we may run on. */
int ranks_threads(const struct ranks *ranks);

/* Where a rank runs: a launcher may have bound each to cores of its own. */
struct ranks_place {
	char node[COMM_NODE_BYTES];
	cpu_set_t cpus;
};
/* beside and sharing, by the places of all, [size]. */
void ranks_count_places(struct ranks *ranks, const struct ranks_place *all);

/* send, receive: [size] (comm.h). */
int ranks_exchange(struct ranks *ranks, const struct comm_part *send,
		   const struct comm_part *receive, struct err *err);
/* The same, begun, to go on beside what the caller computes: a ticket for ranks_wait, or 0 when
 * there is nothing to wait for, which err tells when it failed. The bytes are borrowed until that
 * wait; of the world and its groups all go in the order in which they were begun. */
uint64_t ranks_begin(struct ranks *ranks, const struct comm_part *send,
		     const struct comm_part *receive, struct err *err);
int ranks_wait(struct ranks *ranks, uint64_t ticket, struct err *err);
/* Nothing that was begun is under way behind it. */
void ranks_drain(struct ranks *ranks);
/* For a trace (comm_lane_note); 0 when alone. */
size_t ranks_note(struct ranks *ranks, struct comm_span *span, size_t room);
/* all[size] pieces of `bytes`, by rank. */
int ranks_gather(struct ranks *ranks, const void *mine, size_t bytes, void *all, struct err *err);
/* What rank 0 has there. */
int ranks_from_first(struct ranks *ranks, void *at, size_t bytes, struct err *err);
/* All wait until another thread of rank 0 has set the flag, for however long: they hear from rank 0
 * meanwhile. NULL on other ranks. */
int ranks_wait_for_first(struct ranks *ranks, const atomic_bool *is_done, struct err *err);

/* A failure as other ranks hear it: without our number, where this rank itself has told it; else
 * NULL. */
const char *ranks_own_words(const struct ranks *ranks, const char *text);
/* Tells all others that this one ends, and why; nothing when they know. */
void ranks_fail(struct ranks *ranks, const struct err *err);

/* What must be the same on all ranks before they begin; "" where it is compared another time. */
struct ranks_facts {
	char version[32], config[40], data[40], device[64], weights[24];
	char host[64]; /* may differ */
};
/* -1 when some rank's differ from those of rank 0: err names the first such rank. */
int ranks_compare(struct ranks *ranks, const struct ranks_facts *mine, struct err *err);

#endif
