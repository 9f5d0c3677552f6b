/* SPDX-License-Identifier: MIT */
/* attempt_watch.h - how lbrun watches a trainer: the member "watch" of attempt.json. */
#ifndef COMMON_RUN_ATTEMPT_WATCH_H
#define COMMON_RUN_ATTEMPT_WATCH_H

#include <stdint.h>
#include <jansson.h>

#include "common/base/err.h"

enum { WATCH_AUTO = -1 }; /* step_ms: learned from the steps themselves */

/* In the place of a regular expression for steps: what is printed is recognised (steps.h); it is
 * not read. */
#define PROGRESS_AUTO "auto"
#define PROGRESS_NONE "none"

/* milliseconds; 0 = no limit */
struct attempt_watch {
	int64_t setup_ms, step_ms, checkpoint_ms, eval_ms;
	int64_t output_ms;    /* for a trainer that never reports */
	int64_t node_ms;      /* so long a node of several may not be heard; 0 = no limit */
	int64_t usage_ms;     /* how often what the machines do is told; 0 = never */
	int64_t idle_gpu_ms;  /* so long a GPU may do nothing before that is told; 0 = never */
	char *progress_regex; /* has a group "step"; or one of the words below; NULL = none */
	char **node_errors;   /* regular expressions, NULL-terminated; NULL = none */
};

/* A new reference. */
json_t *attempt_watch_json(const struct attempt_watch *w);
/* What is absent has its default; `o` may be NULL. Strings of *out are owned. */
int attempt_watch_read(const json_t *o, struct attempt_watch *out, struct err *err);
void attempt_watch_clear(struct attempt_watch *w);

#endif
