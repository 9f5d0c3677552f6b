/* SPDX-License-Identifier: MIT */
/* beater.h - the process beside a rank's lbrun that says that its node lives, and ends the rank
 * when nobody hears that any more (beat.h). */
#ifndef LBRUN_HEARTBEAT_BEATER_H
#define LBRUN_HEARTBEAT_BEATER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

/* In the environment of ranks: "PORT:TIMEOUT_MS:LAUNCH:SECRET:HOST" of the listener. */
#define HEARTBEAT_VARIABLE "LB_HEARTBEAT"
#define HEARTBEAT_FORMAT "%d:%lld:%lld:%s:%s"

struct beater {
	int fd;         /* to be polled for reading; -1 = there is none */
	bool has_lease; /* it has heard an answer: without it the rank must not live */
	/* the rank ends, for nobody answered for so long; 0 = that is not why */
	int64_t unheard_ms;
};

/* By the environment, from which the variable is taken: torchrun's ranks are their node's affair.
 * Before this process becomes a subreaper. -1 with err: they were asked for, and there are none. */
int beater_start(struct beater *b, const char *node, int64_t rank, struct err *err);
/* What it has to say, a line for people, its own end among that; false: nothing. *ends: the rank
 * must end. */
bool beater_heard(struct beater *b, char *text, size_t size, bool *ends);
/* Nothing of the rank lives any more: that is told, within a moment. */
void beater_end(struct beater *b);

#endif
