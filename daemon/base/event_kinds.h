/* SPDX-License-Identifier: MIT */
/* event_kinds.h - the kinds of events there are, and which of them are news. */
#ifndef DAEMON_BASE_EVENT_KINDS_H
#define DAEMON_BASE_EVENT_KINDS_H

#include <stdbool.h>

#include "common/base/err.h"

/* lbctl notify test: told whatever notify.on says; and that it was told. */
#define KIND_TEST "notify_test"
#define KIND_TOLD "notify_told"

/* Does notify.on, unless it is given, contain it? */
bool event_is_usual(const char *kind);
/* What to do about it, for people; "none" where there is nothing. */
const char *event_next(const char *kind);
/* -1 with err, which names the nearest, when there is no such kind. */
int event_kind_check(const char *kind, struct err *err);

#endif
