/* SPDX-License-Identifier: MIT */
/* whole.h - is a file whole, as far as its format can tell? One that was cut short says so itself
 * in most formats that weights are kept in. */
#ifndef COMMON_CHECKPOINT_WHOLE_H
#define COMMON_CHECKPOINT_WHOLE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/checkpoint/zip_check.h"

/* 0 when nothing speaks against the regular file `path`, else -1 with err (its text without the
 * path). Never blocks on a FIFO, never reads more than a few megabytes unless look->is_deep.
 * *is_proven: the format itself shows that nothing is missing; else it could be cut anywhere. */
int file_is_whole(const char *path, struct look *look, bool *is_proven, struct err *err);

/* The step that a file written by torch.save holds under one of the usual names (iter_num,
 * global_step, step …); -1 = none is found. */
int64_t file_step_inside(const char *path);

/* Compressed: how large it is says little. */
bool file_is_packed(const char *path);
/* Lines of text, the last of which has its end, or a number with a fraction; less than a page,
 * which is written at once. Numbers in it may have fewer digits than they had. */
bool file_is_note(const char *path);

#endif
