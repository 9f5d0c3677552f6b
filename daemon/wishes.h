/* SPDX-License-Identifier: MIT */
/* wishes.h - what a person may ask of a running trainer without ending it. */
#ifndef DAEMON_WISHES_H
#define DAEMON_WISHES_H

#include <jansson.h>

#include "common/err.h"

struct request;

/* The data of the answer, or NULL with err. */
json_t *wish_stacks(struct request *r, struct err *err);
json_t *wish_save(struct request *r, struct err *err);

#endif
