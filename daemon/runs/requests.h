/* SPDX-License-Identifier: MIT */
/* requests.h - what a person may ask of a running trainer without ending it. */
#ifndef DAEMON_RUNS_REQUESTS_H
#define DAEMON_RUNS_REQUESTS_H

#include <jansson.h>

#include "common/base/err.h"

struct lbd;
struct request;
struct switch_file;

/* The handler of save and stacks: the data of the answer, or NULL with err. */
json_t *requests_ask(struct request *r, struct err *err);

/* Asks every running trainer that the switch means. -1 with err when that could not be written
 * down: then nobody was asked. */
int requests_save_by_switch(struct lbd *lbd, const struct switch_file *s, struct err *err);

#endif
