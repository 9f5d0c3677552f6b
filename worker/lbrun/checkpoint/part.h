/* SPDX-License-Identifier: MIT */
/* part.h - the stage of one node among several (parts.h), and its part of a checkpoint. */
#ifndef LBRUN_CHECKPOINT_PART_H
#define LBRUN_CHECKPOINT_PART_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"

/* In the environment of ranks: "WORD:STAGE", the stage with %n for the node's name. */
#define PART_VARIABLE "LB_STAGE"

/* STAGE with the node's name for each %n; owned by the caller. */
char *part_folder(const char *stage, const char *node);
/* Anybody may write in /dev/shm: makes the folder and the one that holds it, both ours alone. */
int part_make_folder(const char *folder, struct err *err);
/* A new one, for a launch on so many nodes; owned by the caller. */
char *part_draw_word(int64_t attempt, int64_t nodes);
/* Empties it for the launch of that word, if it is not marked with it yet. */
int part_begin(const char *folder, const char *word, struct err *err);
/* Its word, owned by the caller; NULL = none. */
char *part_word(const char *folder);

/* In front of a rank: begins by the variable, if that is set, and tells the rank its folder. The
 * first rank of a node sees to the folder, the others wait for that. */
int part_enter(const char *node, bool is_first, struct err *err);

/* lbrun --stage-part PATH and lbrun --stage-clear STAGE, on each node. The exit status. */
int parts_main(const char *path);
int parts_clear_main(const char *stage);
/* Where the process of that rank leaves what it did, for who asked; owned by the caller. */
char *part_result_path(const char *part, const char *id, int64_t rank);

#endif
