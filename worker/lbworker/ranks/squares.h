/* SPDX-License-Identifier: MIT */
/* squares.h - the square of the gradient's norm, of parts that lie on several ranks. */
#ifndef LBWORKER_SQUARES_H
#define LBWORKER_SQUARES_H

#include "worker/lbworker/ranks/mesh.h"
#include "worker/lbworker/ranks/ranks.h"

/* Each piece of a unit is summed up by the rank whose part it is; the sums are added in the order
 * of pieces, on every rank. pipe: the other stages of a pipeline, each with units of its own. room:
 * device memory for a double for each of our pieces, where the device has piece_squares. */
int squares_sum(struct ranks *ranks, struct ranks *pipe, const struct mesh *mesh,
		const struct model *model, double *room, double *squares, struct err *err);
/* Pieces of that rank's part of the model. */
size_t squares_pieces(const struct mesh *mesh, const struct model *model, int rank);

#endif
