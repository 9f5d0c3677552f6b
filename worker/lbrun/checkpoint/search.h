/* SPDX-License-Identifier: MIT */
/* checkpoint/ - where a launch begins, and which checkpoints are kept.
 *
 * search.h - which checkpoint the trainer starts from, found without blocking.
 *
 * Reading every byte of a large checkpoint takes minutes, and a hung file system for ever. A
 * person's order must win meanwhile: the search runs in a child that can be killed. */
#ifndef LBRUN_CHECKPOINT_SEARCH_H
#define LBRUN_CHECKPOINT_SEARCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/checkpoint/checkpoints.h"
#include "common/base/err.h"
#include "common/base/mem.h"
#include "common/checkpoint/handed.h"

enum { SEARCH_UNKNOWN = -2 };

enum search_state { SEARCH_IDLE, SEARCH_RUNNING, SEARCH_DONE };

/* What is looked for; all of it borrowed. */
struct search_request {
	const char *folder;
	const char *stage;  /* of this node (stage.h), looked in as well; NULL = there is none */
	const char *choice; /* "latest", "scratch" for none, or the path of the one to take */
	const struct checkpoint_rules *rules;
	const struct handed *handed;
	const char *seals; /* folder; NULL = there are none */
	int64_t check_ms;  /* so long every byte is read; what is left is looked at cheaply */
};

struct bad_checkpoint {
	char *path;
	uint64_t stamp;
};

struct search {
	enum search_state state;
	pid_t pid;
	int fd; /* -1 = closed */
	struct buf in;
	/* once SEARCH_DONE: 1 found; 0 there is none, or only what was never finished; -1 there are
	 * some and none is valid: never start from step 0 then; SEARCH_UNKNOWN: the child died, or
	 * the folder cannot be read, which says nothing of what is there */
	int found;
	char *path;
	int64_t step; /* -1 = it does not tell */
	uint64_t stamp;
	/* of those that are valid, suspects too; -1 = none. What is beyond it is progress */
	int64_t newest_step;
	bool is_unread; /* the time was up before every byte was read */
	char text[504];
	struct bad_checkpoint *bad; /* the ones that were passed over */
	size_t bad_count;
	/* Called for each checkpoint that was passed over; is_suspect: it is valid, but led to a
	 * failure. */
	void (*on_bad)(void *arg, const char *path, int64_t step, bool is_suspect, const char *why);
	void *arg;
};

void search_init(struct search *s);
int search_start(struct search *s, const struct search_request *request, struct err *err);
/* The step of the one found, as a trainer tells steps: -1 also where its name has a time alone. */
int64_t search_told_step(const struct search *s);
/* Was it passed over by the last search as broken? */
bool search_was_bad(const struct search *s, const struct checkpoint *c);
/* Reads what its child has to say; a child that dies without an answer: SEARCH_UNKNOWN. */
void search_turn(struct search *s);
/* Kills it. The caller reaps. */
void search_stop(struct search *s);

#endif
