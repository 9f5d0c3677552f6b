/* SPDX-License-Identifier: MIT */
/* choose.h - lbworker eval --choices: which answer a model takes for the likeliest. */
#ifndef LBWORKER_CHOOSE_H
#define LBWORKER_CHOOSE_H

#include "common/base/err.h"
#include "worker/lbworker/commands/infer.h"

/* Prints acc (the likeliest answer is the right one) and acc_norm (likelihoods by character of the
 * answer), each with its standard error, as lm-evaluation-harness has them; with
 * arguments->scores each answer's log-likelihood goes to that file, a line of JSON a question. */
int choose(struct infer *infer, const struct infer_arguments *arguments, struct err *err);

#endif
