/* SPDX-License-Identifier: MIT */
/* checks.h - what needs more than one key. */
#ifndef LBWORKER_CHECKS_H
#define LBWORKER_CHECKS_H

#include <stdio.h>

#include "common/config/toml.h"
#include "worker/lbworker/config/config.h"
#include "worker/lbworker/config/refusals.h"

enum { MAX_COUNT = 1 << 20 }; /* of most things that are counted */

/* All of it, so that a person mends a file in one go. Works out the shape of the model, what a step
 * accumulates and how a schedule fits on the way. */
void config_check(struct config *c, const struct config_order *order, const struct toml *toml,
		  struct refusals *r);

/* What is no mistake, but should be known; notes may be NULL. A default is not worth a word. */
/* The key of what is only there on a CPU, beside quantize.*; NULL: nothing is asked for. */
const char *few_bits_key(const struct config *config);
void config_note(const struct toml *toml, const char *key, FILE *notes, const char *text);

#endif
