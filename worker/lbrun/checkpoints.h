/* SPDX-License-Identifier: MIT */
/* checkpoints.h - which checkpoint the trainer starts from, found without blocking.
 *
 * Reading every byte of a large checkpoint takes minutes, and a hung file system for ever. A
 * person's order must win meanwhile: the search runs in a child that can be killed. */
#ifndef LBRUN_CHECKPOINTS_H
#define LBRUN_CHECKPOINTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"
#include "common/foreign.h"
#include "common/mem.h"

enum search_state { SEARCH_IDLE, SEARCH_RUNNING, SEARCH_DONE };

struct search {
	enum search_state state;
	pid_t pid;
	int fd;				/* -1 = closed */
	struct buf in;
	/* once SEARCH_DONE: as checkpoint_newest_valid tells it */
	int found;
	char *path;
	int64_t step;
	char text[504];
	struct foreign *foreign;	/* borrowed */
	/* Called for each checkpoint that was passed over. */
	void (*on_bad)(void *arg, const char *path, int64_t step, const char *why);
	void *arg;
};

void search_init(struct search *s);
/* `choice`: "latest" of those below parent, "scratch" for none, or the path of the one to take.
 * `foreign`: how another trainer calls its checkpoints; NULL = they are ours. */
int search_start(struct search *s, const char *parent, const char *choice, struct foreign *foreign,
		 struct err *err);
/* Reads what its child has to say; a child that dies without an answer counts as found = -1. */
void search_turn(struct search *s);
/* Kills it. The caller reaps. */
void search_stop(struct search *s);

/* The step at the end of a path ".../step-NNNNNNNN", -1 = none. */
int64_t checkpoint_step_of(const char *path);

/* The newest step below `parent` whose files have the sizes its manifest lists, or that is complete
 * as `foreign` (NULL = ours) tells; -1 = none. Cheap: it tells whether a launch made progress, not
 * what to start from. `path` (may be NULL): of a foreign one, owned by the caller; else NULL. */
int64_t checkpoint_newest_by_size(const char *parent, struct foreign *foreign, char **path);

#endif
