/* SPDX-License-Identifier: MIT */
/* selector.h - which runs an order is for: the same word on a command line, in a request to lbd and
 * as the name of a switch file.
 *
 *   brisk-otter-39     this run
 *   sweep-*            a glob over the names of runs: '*' any text, '?' any one character
 *   sweep-3@group      every run whose spec says run.group = "sweep-3"
 *   ada@user           every run that ada submitted
 *   ALL                every run */
#ifndef COMMON_TEAM_SELECTOR_H
#define COMMON_TEAM_SELECTOR_H

#include <stdbool.h>

#include "common/base/err.h"

enum selector_kind { SELECT_RUN, SELECT_GLOB, SELECT_GROUP, SELECT_USER, SELECT_ALL };
enum { SELECTOR_MAX_BYTES = 64 };

struct selector {
	enum selector_kind kind;
	char word[SELECTOR_MAX_BYTES + 1]; /* name, pattern, group or user; ALL: "ALL" */
};

/* ERR_USAGE with what is allowed; never more than what name_check allows, '*', '?' and '@'. */
int selector_parse(const char *text, struct selector *out, struct err *err);

/* A run has always a name and an owner; `group` may be NULL or "". */
bool selector_matches(const struct selector *s, const char *name, const char *group,
		      const char *owner);

/* Does it name one run, and no other can ever be meant? */
bool selector_is_one(const struct selector *s);

#endif
