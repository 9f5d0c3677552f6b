/* SPDX-License-Identifier: MIT */
/* handler_taps.h - what people ask of lbd, by its own handlers. The linker puts functions of ours
 * where these would answer over the socket, read the clock of this machine, or write into an
 * attempt's folder. */
#ifndef TESTS_SIM_HANDLER_TAPS_H
#define TESTS_SIM_HANDLER_TAPS_H

#include <stdbool.h>
#include <jansson.h>

#include "common/run/verbs.h"

struct sim;

void handler_taps_open(struct sim *sim);
void handler_taps_close(void);
/* As a client asks, by the owner; takes `args`. True: lbd answered, and lived on. */
bool handler_ask(struct sim *sim, enum verb verb, json_t *args);

#endif
