/* SPDX-License-Identifier: MIT */
/* sharded_state.h - what the files of sharded.h share. */
#ifndef LBWORKER_SHARDED_STATE_H
#define LBWORKER_SHARDED_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "worker/lbworker/ranks/arrays.h"
#include "worker/lbworker/ranks/reduction.h"
#include "worker/lbworker/ranks/sharded.h"

/* A kind of pass, as a device may record it. */
struct pass {
	uint64_t program, bytes; /* sent to others */
};
enum { PASSES = 16 };

/* The gradient of a unit on its way to those who add it up. */
struct under_way {
	size_t unit;
	uint64_t ticket; /* of arrays_wait */
	float *received; /* device: of the others, by rank */
};
enum { UNDER_WAY = 2 };

struct sharded_codes; /* sharded_codes.c */

struct sharded {
	struct ranks *ranks, *world, *tensor; /* ranks: those that share the gradients */
	struct ranks *pipe, *plane; /* other stages of the same samples; all but other slices */
	struct ranks *sharers;      /* of sequences */
	struct model *model;
	struct sharded_options options;
	struct reduction *reduction;
	struct sharded_codes *codes; /* of weights; NULL: all go as they are */
	size_t units_as_codes;
	bool *whole;                           /* by unit: its weights are all there, and new */
	bool *comes;                           /* or on their way, */
	uint64_t *ticket;                      /* of arrays_wait */
	size_t *own_at;                        /* by unit: where our part lies in the reduction */
	double *squares;                       /* device, one of each piece; NULL: none is needed */
	struct under_way under_way[UNDER_WAY]; /* at number % UNDER_WAY */
	unsigned sent_off, taken_in;           /* gradients */
	struct comm_part *send, *receive;      /* [plane->size] */
	int64_t first, leaves;                 /* of the present wave */
	bool reduces;                          /* in this wave */
	struct pass passes[PASSES], *pass;     /* pass: the present one */
	unsigned next_pass;
	uint64_t sent_before; /* by the world, before the pass */
	struct err failure;   /* of the passes since the last sum */
};

/* sharded_exchange.c. The whole unit, as far as it is of this stage. */
struct model_unit sharded_unit(const struct sharded *s, size_t unit);
uint64_t sharded_begin(struct sharded *s); /* of s->send, s->receive */
void sharded_wait(struct sharded *s, uint64_t ticket);
bool sharded_is_in_our_row(const struct sharded *s, int rank);
/* Weights as products read them. */
struct comm_part sharded_wanted(const struct sharded *s, struct model_unit range);

/* sharded_weights.c. struct model_watch's. */
void sharded_soon(void *arg, size_t unit);
void sharded_need(void *arg, size_t unit);
void sharded_release(void *arg, size_t unit);
/* The rows of a mesh share an array among their ranks: begins to give each other what each has of
 * the unit; a ticket. What fails sticks, in s->failure. */
uint64_t sharded_gather(struct sharded *s, float *array, size_t unit);
/* What a pass has sent by now is what it sends when it is replayed. */
void sharded_note_sent(struct sharded *s);
/* Of an array all but our shard. */
void sharded_discard_others(const struct sharded *s, float *array, size_t unit);

static inline struct comm_part sharded_bytes(float *array, struct model_unit range)
{
	return (struct comm_part){ array + range.first, range.count * sizeof(float) };
}

/* sharded_codes.c. How many units go as codes; SIZE_MAX: no memory. */
size_t sharded_codes_make(struct sharded *s);
void sharded_codes_free(struct sharded *s); /* made or not */
bool sharded_goes_as_codes(const struct sharded *s, size_t unit);
/* Codes of weights that have changed since, by all ranks at the same time. */
void sharded_codes_refresh(struct sharded *s);
void sharded_codes_outdated(struct sharded *s);
/* Ours of a unit, where those of a range come to, and what becomes of what has come. */
struct comm_part sharded_codes_of(const struct sharded *s, size_t unit);
struct comm_part sharded_codes_come(const struct sharded *s, struct model_unit range);
void sharded_codes_came(const struct sharded *s, size_t unit);

/* sharded_gradients.c. What of a unit's gradient this rank adds up; struct model_watch's done. */
struct model_unit sharded_part(const struct sharded *s, size_t unit);
void sharded_done(void *arg, size_t unit);

/* sharded_losses.c. One exchange for all that is told at the end of a step: our note and our
 * losses, one a wave. notes[world->size]: what all say; *sum: of all losses, in the order of
 * micro-batches. -1 with err. */
int sharded_tell(struct sharded *s, const double *loss, int64_t leaves,
		 const struct rank_note *mine, struct rank_note *notes, double *sum,
		 struct err *err);

#endif
