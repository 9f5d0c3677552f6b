/* SPDX-License-Identifier: MIT */
/* predecessor.h - where this attempt runs, and whether an older one of the same run may still
 * live. */
#ifndef LBRUN_SHEPHERD_PREDECESSOR_H
#define LBRUN_SHEPHERD_PREDECESSOR_H

#include <stdbool.h>
#include <stdint.h>

#include "common/run/attempt.h"

enum {
	OLDER_DEPTH = 8,   /* so many attempts that began back, at most, */
	OLDER_LOOKS = 256, /* and so many in all: most never begin where nodes are short */
};

/* Host, boot id, pid, job and restart count of this process. */
void claim_of_this_process(struct attempt_claim *claim, const char *token);

/* `task`: of an array, NULL: of none. It follows only itself: no other writes where it does. */

/* Some attempt before `claim`'s was claimed, left no exit record, and its lbrun is not known to be
 * dead. */
bool predecessor_may_live(const char *run_dir, int64_t number, const char *task,
			  const struct attempt_claim *claim);
/* Ranks of some attempt before it may run on other nodes than its lbrun did: that one left no word,
 * or said so, and no launch behind it has waited for their leases. */
bool predecessor_may_have_ranks(const char *run_dir, int64_t number, const char *task,
				const struct attempt_claim *claim);
/* Some attempt before it may still write to checkpoints, for it may live or lost a node, and no
 * launch behind it has seen to that. */
bool predecessor_may_write(const char *run_dir, int64_t number, const char *task,
			   const struct attempt_claim *claim);

#endif
