/* SPDX-License-Identifier: MIT */
/* layout.h - where each parameter of a model lies, and what its tensors are called. */
#ifndef LBWORKER_MODEL_LAYOUT_H
#define LBWORKER_MODEL_LAYOUT_H

#include "worker/lbworker/families/family.h"
#include "worker/lbworker/model/model.h"

struct model_layer {
	size_t at[PARAM_COUNT]; /* offsets into the parameter array; ABSENT */
};
#define ABSENT SIZE_MAX

static inline bool layer_has(const struct model *m, size_t l, enum param param)
{
	return m->layer[l].at[param] != ABSENT;
}

/* Fills in places, counts, units and tensors of a model whose shape, options and family are there;
 * its arrays are the caller's to free. */
void layout_make(struct model *m);

/* The tensors of layer l; whether one of a table is there; and how often: once for each expert. */
const struct family_tensor *model_layer_table(const struct model *m, size_t l);
bool model_has_row(const struct model *m, const struct family_tensor *row);
size_t model_copies(const struct model *m, const struct family_tensor *row);

/* Where a parameter of no layer lies. A tied head is the embedding. */
static inline size_t model_outer(const struct model *m, enum param param)
{
	if (param == PARAM_HEAD && m->shape.tied)
		param = PARAM_EMBEDDING;
	return m->layer[m->shape.layers].at[param];
}

static inline size_t model_unit_of_head(const struct model *m)
{
	return m->shape.tied ? 0 : m->shape.layers + 1;
}

#endif
