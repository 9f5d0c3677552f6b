/* SPDX-License-Identifier: MIT */
/* saver.h - checkpoints beside the training: the loop waits for a copy in memory, a thread writes.
 *
 * At most one is in flight. The loop starts one, goes on training, and collects what became of it
 * between two steps; all calls are the loop's. */
#ifndef LBWORKER_SAVER_H
#define LBWORKER_SAVER_H

#include <stdatomic.h>
#include <stdbool.h>

#include "common/base/err.h"
#include "worker/lbworker/checkpoint/checkpoint.h"

struct saver;

struct saver_result {
	int64_t step;
	char *path;             /* absolute, owned by the caller; NULL: it failed, see err */
	double copy_s, write_s; /* the loop waited; the thread worked */
	struct err err;         /* ERR_REFUSED: a newer attempt runs, this one must end */
};

/* Takes memory for the copy at once (twelve bytes a parameter); NULL when there is none. What parts
 * and rules point to is borrowed. */
struct saver *saver_create(const struct checkpoint_parts *parts,
			   const struct checkpoint_rules *rules, struct err *err);
/* Waits for the writer. NULL is fine. */
void saver_destroy(struct saver *saver);

/* Copies the present state and starts to write it. Nothing may be in flight. *seconds that the copy
 * took. -1: another rank has failed meanwhile. */
int saver_start(struct saver *saver, double *seconds, struct err *err);
bool saver_busy(const struct saver *saver);
/* None is being written; set by the writer. */
const atomic_bool *saver_is_through(const struct saver *saver);

/* True with *out when the one in flight is through; with `wait` it waits for that. False when there
 * is none, or it is still being written. */
bool saver_collect(struct saver *saver, bool wait, struct saver_result *out);

#endif
