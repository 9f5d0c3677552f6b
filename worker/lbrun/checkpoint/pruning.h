/* SPDX-License-Identifier: MIT */
/* pruning.h - checkpoints that are past their use go while the trainer runs
 * (common/checkpoint/retention.h).
 *
 * In a child, because a large folder takes its time and a hung file system for ever. One is renamed
 * before it is removed, to a name that no layout knows: half of one is never taken for a
 * checkpoint, and what a crash left goes with the next look. */
#ifndef LBRUN_CHECKPOINT_PRUNING_H
#define LBRUN_CHECKPOINT_PRUNING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/run/attempt_params.h"
#include "common/checkpoint/checkpoints.h"
#include "common/base/err.h"
#include "common/checkpoint/retention.h"
#include "worker/lbrun/checkpoint/search.h"

struct pruning {
	struct checkpoint_rules
		*rules; /* how the checkpoints are called; NULL: nothing is ever removed */
	struct retention rule;
	int64_t note_bytes; /* so large they are worth a word; 0: never */
	bool is_due;        /* there is a new checkpoint */
	pid_t pid;          /* of the child; 0 = there is none */
	int fd;             /* what it has to say */
	int64_t told_bytes; /* the size that was told last */
};

/* What the child did and saw. */
struct pruned {
	int64_t count, bytes;      /* of what went */
	int64_t total_bytes;       /* of what is left */
	char steps[200];           /* "20, 40" of what went */
	char text[ERR_TEXT_BYTES]; /* what could not be removed, and why; "" */
};

/* As the attempt's parameters say. */
void pruning_open(struct pruning *p, const struct attempt_params *params);
void pruning_close(struct pruning *p);
/* Is there anything to do? */
bool pruning_is_due(const struct pruning *p);
/* What the trainer was started from stays. What the search found broken, and what is suspect, are
 * no reason to let an older one go. */
int pruning_start(struct pruning *p, const char *folder, const struct search *search,
		  const struct handed *handed, struct err *err);
/* The child was reaped: what it said; false when it died before. */
bool pruning_end(struct pruning *p, struct pruned *out);
/* Has the size passed the bound, or doubled since that was told? Remembers that it is told now. */
bool pruning_is_large(struct pruning *p, int64_t total_bytes);

/* All files of a checked one. A folder goes as a whole; of several files the one that names it goes
 * first. */
int pruning_remove(const struct checkpoint *c, struct err *err);
/* For the child, and tests: removes what is past its use. */
void pruning_apply(const struct retention *rule, const struct checkpoint_rules *rules,
		   const char *folder, const struct search *search, const struct handed *handed,
		   struct pruned *out);

#endif
