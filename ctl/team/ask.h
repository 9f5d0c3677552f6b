/* SPDX-License-Identifier: MIT */
/* ask.h - asks about one run, wherever it is, and which runs here are meant. */
#ifndef CTL_TEAM_ASK_H
#define CTL_TEAM_ASK_H

#include <jansson.h>

#include "common/run/verbs.h"

struct ctl;
struct err;

/* A name that does not exist gets "did you mean". OWNER/RUN of a colleague is answered from files.
 * `args` is taken, and may be NULL. A new reference, or NULL with err. */
json_t *ask_about(struct ctl *ctl, enum verb verb, const char *run, json_t *args, struct err *err);
/* The same, waiting for an lbd that went away (client_ask_patient). */
json_t *ask_patiently(struct ctl *ctl, enum verb verb, const char *run, json_t *args,
		      struct err *err);

/* The names that the operands mean (OPERANDS_MANY), in their order, of each the oldest run first: a
 * new array, or NULL with err. What names one run stays as it is, whether there is one or not. */
json_t *runs_meant(struct ctl *ctl, struct err *err);

#endif
