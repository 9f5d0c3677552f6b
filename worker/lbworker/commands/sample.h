/* SPDX-License-Identifier: MIT */
/* sample.h - one token, drawn from what a model says of the next one. */
#ifndef LBWORKER_SAMPLE_H
#define LBWORKER_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

struct sampler {
	double temperature; /* 0: the most likely one */
	size_t top_k;       /* of so many most likely ones; 0: all */
	double top_p;       /* of the most likely ones that have this share together; 0 or 1: all */
};

/* logits[vocab] are left as they are; uniform is in 0 to 1. Equal ones: the lower number comes
 * first. */
int32_t sample_token(const struct sampler *sampler, const float *logits, size_t vocab,
		     double uniform);

/* Nothing can be told from logits that are not finite: -1. */
int sample_check(const float *logits, size_t count, struct err *err);

/* The logarithm of the probability that logits[vocab] give a token. */
double sample_likelihood(const float *logits, size_t vocab, int32_t token);

#endif
