/* SPDX-License-Identifier: MIT */
/* copy.h - files copied so that a copy that was cut short goes on: what is there is compared, and
 * only what differs is written. It blocks: for a child. */
#ifndef LBRUN_CHECKPOINT_COPY_H
#define LBRUN_CHECKPOINT_COPY_H

#include <stdint.h>

#include "common/base/err.h"

struct copy {
	int64_t rate;    /* bytes/s that are written at most; 0 = no limit */
	int64_t written; /* bytes so far */
	int64_t begun_ms;
	char *mine, *theirs; /* a chunk of each */
};

void copy_init(struct copy *c, int64_t rate);
void copy_fini(struct copy *c);
/* Makes the folder that `path` is to lie in. */
int copy_make_holder(const char *path, struct err *err);
/* Makes the folder of `to`. The copy has the times of what it was made from, by which it is known
 * to be of this very file. Not synced. */
int copy_file(struct copy *c, const char *from, const char *to, struct err *err);
/* Makes what a folder holds besides files: folders, empty ones too, and links to folders. */
int copy_frame(const char *from, const char *to, struct err *err);

#endif
