/* SPDX-License-Identifier: MIT */
/* activations.h - the memory of one micro-batch: what layers keep for backward, what all of them share.
 *
 * Names: N = batch * seq rows, S those of them that are here (split.h), D, F, V; Q = (H + 2G) * C. */
#ifndef LBWORKER_MODEL_ACTIVATIONS_H
#define LBWORKER_MODEL_ACTIVATIONS_H

#include "worker/lbworker/model/family.h"

struct model_activations {
	struct layer_kept *layer;
	struct layer_shared shared;
	void *last; /* [S,D] the residual stream after the last layer */
	struct norm_kept final_norm;
	void *final;               /* [S,D] normed */
	void *logits;              /* [chunk,V] */
	float *loss;               /* [N] */
	int32_t *tokens, *targets; /* [N] */
	size_t chunk_rows;
	double *loss_sum;
	void *memory; /* all of the above but layer */
};

struct model_activations *activations_create(const struct model *model, struct err *err);
void activations_destroy(const struct model *model, struct model_activations *a);
uint64_t activations_bytes(const struct model *model);

#endif
