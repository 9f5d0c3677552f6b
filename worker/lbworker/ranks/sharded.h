/* SPDX-License-Identifier: MIT */
/* sharded.h - a model of which each rank holds a part: gathers weights before a pass needs them,
 * sums up gradients as they are complete, and knows what is ours.
 *
 * All arrays have their full length everywhere, and each parameter its place; memory is taken only
 * by what is there (reserve and discard of backend.h). */
#ifndef LBWORKER_SHARDED_H
#define LBWORKER_SHARDED_H

#include <stdint.h>

#include "worker/lbworker/model/model.h"
#include "worker/lbworker/ranks/mesh.h"
#include "worker/lbworker/ranks/ranks.h"

struct sharded_options {
	struct mesh mesh;
	int64_t width; /* of the trees (reduction.h) */
	bool fast;     /* each rank adds up its own micro-batches first: one reduction a step */
	/* weights that products read as codes of 8 bits go as those, where it makes no difference
	 * (precision_sent) */
	bool as_codes;
};

struct sharded;

/* For struct model_options, take, of a model for these ranks; the argument: struct
 * sharded_options. */
void sharded_take(void *options, struct model *m);

/* Watches the passes of the model, which is borrowed, as are the ranks. NULL with err. */
struct sharded *sharded_create(struct ranks *ranks, struct model *model,
			       const struct sharded_options *options, struct err *err);
void sharded_destroy(struct sharded *s); /* NULL is fine */
/* These ranks are some of `world`, and hold a slice of the model, which `tensor` have together
 * (struct model_split): the model asks those, and all of the world tell each other how it goes.
 * Borrowed. */
void sharded_split(struct sharded *s, struct ranks *world, struct ranks *tensor);
/* These share sequences (struct model_context): some of the ranks, neighbours. A micro-batch then
 * is as many leaves as there are of them, one for what each has made of it. Borrowed. */
void sharded_context(struct sharded *s, struct ranks *sharers);

/* The model's layers are shared out to stages (struct model_pipeline), too: `pipe` are those with
 * the same samples and the same slice, by stage, `plane` all of the same slice, stage by stage.
 * Borrowed. */
void sharded_stages(struct sharded *s, struct ranks *pipe, struct ranks *plane);
/* Between stages, [degree]; a failure sticks, and is told by sharded_sum(). */
int sharded_stream(struct sharded *s, const struct comm_part *send,
		   const struct comm_part *receive);

/* How many units go to other ranks as codes. */
size_t sharded_units_as_codes(const struct sharded *s);
/* Of unit u, what this rank holds and updates. */
struct model_unit sharded_own(const struct sharded *s, size_t unit);
/* Lets go of weights that are not ours, where the stage has it so; all that is there is right. */
void sharded_trim(struct sharded *s);

/* --- a step --- */

/* What ranks tell each other in each step. */
struct rank_note {
	double own_ms, data_ms; /* of the step before: without waiting for others; for samples */
	int64_t step;
	uint64_t decision; /* of the step before, as bits: the same everywhere */
	uint32_t orders;   /* flags of enum report_order */
	uint32_t padding;
};

/* Before a pass for micro-batches [first, first + ranks) of `leaves`; is_last: of the step. */
void sharded_wave(struct sharded *s, int64_t first, int64_t leaves, bool is_last);
/* Behind the last pass: the sum of all gradients is in the rank's shard of model->grads. loss: our
 * sums of losses, one for each wave. Adds up losses in the order of micro-batches and squares of
 * gradients in the order of parameters. notes[world->size]: what all say. -1 when a rank has
 * failed. */
struct step_sums {
	double loss, squares;
};
int sharded_sum(struct sharded *s, const double *loss, int64_t leaves, const struct rank_note *mine,
		struct rank_note *notes, struct step_sums *sums, struct err *err);
/* For updates of whole matrices: all of the unit's sum of gradients is in model->grads; and then
 * our shard of it only, where the stage has it so. arg: the struct sharded. What fails is told by
 * the next exchange. */
void sharded_gather_gradients(void *arg, size_t unit);
void sharded_release_gradients(void *arg, size_t unit);
/* The shards are others, or will be: the rest of the weights is old. */
void sharded_updated(struct sharded *s);
/* Behind that, our shard of the unit is new: begins to gather it where it stays, or is needed
 * first. */
void sharded_ahead(struct sharded *s, size_t unit);

/* The sum of the losses of so many leaves, in their order; loss: ours, one for each wave. */
int sharded_losses(struct sharded *s, const double *loss, int64_t leaves, double *sum,
		   struct err *err);
const struct mesh *sharded_mesh(const struct sharded *s);

/* --- for checkpoints --- */

/* An array of the model's layout, with elements of so many bytes. each > 1: it has one element for
 * so many parameters, and units begin at multiples of them. */
struct sharded_array {
	void *from;
	size_t element_bytes, each;
	struct model_unit without; /* units within it are left out; count 0: none */
};
/* All of it, of the whole model (model_whole), to host memory of the first of the world; elsewhere
 * `to` is NULL. Of slices only with each 1. */
int sharded_collect_whole(struct sharded *s, const struct sharded_array *array, void *to,
			  struct err *err);

#endif
