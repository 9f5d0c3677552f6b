/* SPDX-License-Identifier: MIT */
/* request.h - attempts/N/REQUEST: what a person would like of a running attempt, left by lbd for
 * lbrun.
 *
 *   stacks   write down where the trainer's processes are
 *   save     ask the trainer for a checkpoint; it goes on then
 *
 * Of an array it lies in the folder of each task that runs. lbrun looks every 2 s, takes the file
 * away and does it. Unlike an order (order.h) a request changes nothing about whether the attempt
 * goes on. */
#ifndef COMMON_RUN_REQUEST_H
#define COMMON_RUN_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/err.h"

enum trainer_request { TRAINER_REQUEST_STACKS, TRAINER_REQUEST_SAVE, TRAINER_REQUEST_COUNT };

const char *trainer_request_name(enum trainer_request request);
int trainer_request_write(const char *folder, enum trainer_request request, const char *by,
			  struct err *err);
/* Takes it away; false when there was none. `by`: who left it, "" = unknown. */
bool trainer_request_take(const char *folder, enum trainer_request request, char *by, size_t size);

#endif
