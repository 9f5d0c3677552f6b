/* SPDX-License-Identifier: MIT */
/* signals.h - SIGTERM and SIGINT as a question that is asked between two steps. */
#ifndef LBWORKER_SIGNALS_H
#define LBWORKER_SIGNALS_H

#include <stdbool.h>

/* Until there is something to save, signals end us as they would end any program. */
void signals_catch(void);
bool signals_ask_to_stop(void);

#endif
