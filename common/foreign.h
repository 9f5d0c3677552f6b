/* SPDX-License-Identifier: MIT */
/* foreign.h - the checkpoints of trainers that are not ours: how they are called, and when one is
 * complete.
 *
 *   pattern        "step-{step}" (with * and ? as in a shell), or a regular expression with the
 *                  named group step: "checkpoint_(?<step>\d+)\.pt"; it names entries of the folder
 *   complete_when  a file that exists once a checkpoint is complete: inside it (".metadata")
 *                  when it is a folder, beside it ("DONE_{step}") when it is a file; "manifest": it has
 *                  a manifest.json that holds. Not given: it is complete when it is there. */
#ifndef COMMON_FOREIGN_H
#define COMMON_FOREIGN_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "common/manifest.h"

struct foreign;

/* NULL with err (ERR_USAGE). */
struct foreign *foreign_create(const char *pattern, const char *complete_when, struct err *err);
void foreign_destroy(struct foreign *f);

/* The step of the entry with this name, -1 = it is no checkpoint. */
int64_t foreign_step(struct foreign *f, const char *name);
/* 0 when it is complete; `deep`: every byte is read where there are digests. */
int foreign_verify(struct foreign *f, const char *parent, const char *name, bool deep,
		   struct err *err);

/* The newest complete one, as checkpoint_newest_valid tells it: 1 found, 0 no candidates, -1 a
 * manifest is there, but none holds. What is incomplete was never a checkpoint; it is told to
 * on_bad and does not count as a candidate. */
int foreign_newest(struct foreign *f, const char *parent, bool deep, struct checkpoint_found *out,
		   void (*on_bad)(const char *path, const struct err *why, void *arg), void *arg,
		   struct err *err);

#endif
