/* SPDX-License-Identifier: MIT */
/* place.h - a sealed copy of a checkpoint takes its place among the others.
 *
 * What is drained from a node's stage (drain.h) becomes whole in a hidden folder of its own, beside
 * the checkpoints: .lb-drain-NAME-HASH. A manifest in it seals it: from then on the checkpoint
 * counts, and whoever comes by finishes the renames that bring it into place, however often that is
 * cut short. */
#ifndef LBRUN_CHECKPOINT_PLACE_H
#define LBRUN_CHECKPOINT_PLACE_H

#include <stdbool.h>

#include "common/base/err.h"

#define DRAIN_PREFIX ".lb-drain-"
#define DRAIN_PART ".part" /* ends the name of one that is not sealed yet */
/* In the folder: a JSON list of what is to be renamed, in that order; each below the parent,
 * too. */
#define PLACE_ORDER "order.json"

/* The folder of a checkpoint that lies at `relative` below `parent`; owned by the caller. */
char *place_folder(const char *parent, const char *relative);

/* Renames what is still in `sealed` to where it belongs below `parent`, and removes the rest of it.
 * What lies there by the same name is removed. Doing it again is fine. */
int place_sealed(const char *parent, const char *sealed, struct err *err);
/* All that are sealed below `parent`: what a crash left. The first that cannot be placed ends
 * it. */
int place_all(const char *parent, struct err *err);
/* Removes copies that were begun below `parent` on this host, and never sealed, but for `keep` (a
 * path; may be NULL). */
void place_clear_parts(const char *parent, const char *host, const char *keep);

#endif
