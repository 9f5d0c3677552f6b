/* SPDX-License-Identifier: MIT */
/* activations.h - the memory of one micro-batch: what layers keep for backward, what all of them
 * share.
 *
 * Names: N = batch * seq rows, S those of them that are here (split.h), D, F, V; Q = (H + 2G) *
 * C. */
#ifndef LBWORKER_MODEL_ACTIVATIONS_H
#define LBWORKER_MODEL_ACTIVATIONS_H

#include "worker/lbworker/model/layer.h"

struct model_activations {
	struct layer_kept *layer;
	struct layer_kept common; /* what no layer keeps, for all of them */
	struct layer_shared shared;
	void *last; /* [S,D] the residual stream after the last layer */
	struct norm_kept final_norm;
	void *final;               /* [S,D] normed */
	void *logits;              /* [chunk,V] */
	float *loss;               /* [N] */
	int32_t *tokens, *targets; /* [N] */
	size_t chunk_rows;
	double *loss_sum;
	void *memory; /* all of the above but layer, and but what is those' that it is beside */
};

/* beside: those of another micro-batch that is under way, which it shares with what only one can
 * use at a time; NULL: the first. */
struct model_activations *activations_create(const struct model *model,
					     const struct model_activations *beside,
					     struct err *err);
void activations_destroy(const struct model *model, struct model_activations *a);
/* Of all that are under way. */
uint64_t activations_bytes(const struct model *model);

#endif
