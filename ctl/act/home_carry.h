/* SPDX-License-Identifier: MIT */
/* home_carry.h - $LB_HOME to another file system, to which jobs that run cannot follow.
 *
 * What is over is copied. A run that is not over stays where it is, and a link in the new folder
 * leads there, until the move is said again after its end. Once the new folder is whole, a link
 * takes the old one's place in one step; only then anything is removed. Whatever dies in between:
 * say it again. */
#ifndef CTL_ACT_HOME_CARRY_H
#define CTL_ACT_HOME_CARRY_H

#include <stdbool.h>

#include "common/base/err.h"

/* Is this a case for home_carry: another file system, a move that was cut short, or runs to fetch?
 * Both are absolute paths. */
bool home_is_to_be_carried(const char *home, const char *to);

/* *left: how many runs stay where they were. ERR_REFUSED while an lbd works in the folder. */
int home_carry(const char *home, const char *to, int *left, struct err *err);

#endif
