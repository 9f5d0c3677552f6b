/* SPDX-License-Identifier: MIT */
/* home.h - where $LB_HOME is, and how it is moved while runs live in it.
 *
 * Jobs and the ledger know the folder by its path. HOME/home holds the path at which the folder was
 * first used; after a move a link stands there, so that whatever knows that path goes on. */
#ifndef COMMON_RUN_HOME_H
#define COMMON_RUN_HOME_H

#include "common/base/err.h"

/* Writes HOME/home where there is none. ERR_REFUSED when the folder was moved or copied by other
 * means than home_move: the path that it holds does not lead here. */
int home_check(const char *home, struct err *err);

/* Moves the folder to `to`, an absolute path, and leaves a link in its place, in one step where the
 * file system can: nobody ever finds nothing. A folder that somebody has moved already (from = to)
 * gets the link that is missing. Safe to repeat. ERR_REFUSED when it cannot be done with live runs;
 * nothing is changed then. */
int home_move(const char *from, const char *to, struct err *err);

#endif
