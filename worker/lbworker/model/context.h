/* SPDX-License-Identifier: MIT */
/* context.h - sequences that several ranks share (struct model_context). Private to the files of
 * the model. Everything but attention and positions goes row by row, and needs nothing of the
 * others. */
#ifndef LBWORKER_CONTEXT_H
#define LBWORKER_CONTEXT_H

#include "worker/lbworker/model/layer.h"

static inline bool context_is_shared(const struct model *m)
{
	return m->options.context.degree > 1;
}

/* Tokens of ours that follow one another, at least; it divides m->seq. */
static inline size_t context_run(const struct model *m)
{
	return context_is_shared(m) ? m->seq / 2 : m->seq;
}

/* Where in its sequence the t-th of our tokens of it stands, 0 .. m->seq - 1. */
size_t context_position(const struct model *m, size_t t);

/* Attention of our queries over all keys: k->attended and k->lse; then s->dqkv of s->dattended,
 * before they were turned by the table (NULL: they were not). shape: of what is here. */
void context_attend(const struct model *m, const struct layer_kept *k, const struct layer_shared *s,
		    const struct attention *shape);
void context_backward(const struct model *m, const struct layer_kept *k,
		      const struct layer_shared *s, const float *table,
		      const struct attention *shape);

#endif
