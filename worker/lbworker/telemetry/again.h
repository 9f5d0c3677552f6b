/* SPDX-License-Identifier: MIT */
/* again.h - what a layer does not keep for its backward pass (enum again), as costs and in
 * words. */
#ifndef LBWORKER_AGAIN_H
#define LBWORKER_AGAIN_H

#include <stdio.h>

#include "worker/lbworker/config/config.h"

/* Of one token in one layer: what keeping a part takes, and what computing it again does. */
struct part_cost {
	double kept, moved;          /* bytes */
	double flop, attention_flop; /* causal */
};
/* Of the part whose bit is 1 << part. */
struct part_cost again_cost(const struct model_shape *shape, const struct model_options *options,
			    int part);

/* A line for people, or none when all is kept. */
void again_say(const struct config *config, FILE *to);

#endif
