/* SPDX-License-Identifier: MIT */
/* request.h - attempts/N/WISH: what a person would like of a running attempt, left by lbd for lbrun.
 *
 *   stacks   write down where the trainer's processes are
 *   save     ask the trainer for a checkpoint; it goes on then
 *
 * lbrun looks every 2 s, takes the file away and does it. Unlike an order (order.h) a wish changes
 * nothing about whether the attempt goes on. */
#ifndef COMMON_RUN_REQUEST_H
#define COMMON_RUN_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/err.h"

enum wish { WISH_STACKS, WISH_SAVE, WISH_COUNT };

const char *wish_name(enum wish wish);
int wish_write(const char *folder, enum wish wish, const char *by, struct err *err);
/* Takes it away; false when there was none. `by`: who left it, "" = unknown. */
bool wish_take(const char *folder, enum wish wish, char *by, size_t size);

#endif
