/* SPDX-License-Identifier: MIT */
/* seals.h - digests of checkpoints that the trainer itself called complete.
 *
 * They lie in runs/NAME/seals/, beside the attempts and never in the trainer's folder: one file for
 * each checkpoint, with names, sizes, times and XXH3-128 of its files. */
#ifndef LBRUN_CHECKPOINT_SEALS_H
#define LBRUN_CHECKPOINT_SEALS_H

#include <stdbool.h>
#include <sys/types.h>

#include "common/checkpoint/checkpoints.h"
#include "common/base/err.h"

/* Seals a checked checkpoint: its sizes at once, its digests by a child that reads with what the
 * trainer leaves of the disk. *pid: of that child, 0 = there is none; while one is at work, sizes
 * must do, and the caller may ask again. `folder` is made when it is missing. */
int seals_put(const char *folder, const struct checkpoint *c, pid_t *pid, struct err *err);

/* 0 when there is no seal for it, or it holds; -1 with err when a sealed file is gone, or differs
 * at the same size (a trainer that writes one again tells so again), or is shorter and no format
 * shows that it is whole. `folder` may be NULL. */
int seals_check(const char *folder, const struct checkpoint *c, struct look *look, struct err *err);

#endif
