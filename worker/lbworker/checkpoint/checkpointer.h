/* SPDX-License-Identifier: MIT */
/* checkpointer.h - the checkpoints of a training while it runs: begins them, hears what became of
 * them, and tells lbrun, the terminal and the memory timeline.
 *
 * With checkpoint.enable = false there are none, and every call but the first does nothing.
 * A disk that is full or broken costs a checkpoint, not the training: what was saved before stays
 * as it was, and the next one is another try. */
#ifndef LBWORKER_CHECKPOINTER_H
#define LBWORKER_CHECKPOINTER_H

#include <stdbool.h>

#include "common/base/err.h"
#include "worker/lbworker/checkpoint/checkpoint.h"
#include "worker/lbworker/config/config.h"
#include "worker/lbworker/telemetry/report.h"
#include "worker/lbworker/telemetry/timeline.h"

struct checkpointer;

/* Makes the folder, and takes the memory that a copy of the state needs, so that a lack of either
 * shows now. Everything is borrowed, but for `path`, which is taken over: the checkpoint that
 * parts->state was loaded from, or NULL. */
struct checkpointer *checkpointer_create(const struct config *config,
					 const struct checkpoint_parts *parts,
					 struct report *report, char *path, struct err *err);
/* From now on the timeline (NULL is fine) is told, too. */
void checkpointer_show(struct checkpointer *checkpointer, struct timeline *timeline);
/* Waits for the one in flight. NULL is fine. */
void checkpointer_destroy(struct checkpointer *checkpointer);

/* The rest: 0, or -1 with err when the training must end, because a newer attempt runs. */

/* Is a checkpoint due after the present step? */
bool checkpointer_due(const struct checkpointer *checkpointer);
/* checkpoint.interval = "auto": would one lose less by now than waiting? Of rank 0 alone, which
 * then asks all for one. The first is a minute after the start at most, to learn what it costs. */
bool checkpointer_wants(const struct checkpointer *checkpointer);
/* Begins one of the present state, once the one before is through; when the newest is of this very
 * step, lbrun is told of that again. */
int checkpointer_save(struct checkpointer *checkpointer, struct err *err);
/* Hears what became of the one in flight, if it is through. */
int checkpointer_collect(struct checkpointer *checkpointer, struct err *err);
/* The same, but waits until it is through. */
int checkpointer_wait(struct checkpointer *checkpointer, struct err *err);
/* Saves and waits; that there is no checkpoint of the present step is an error as well. */
int checkpointer_finish(struct checkpointer *checkpointer, struct err *err);

/* Seconds that the training stood still for checkpoints since the last call. */
double checkpointer_waited_s(struct checkpointer *checkpointer);

#endif
