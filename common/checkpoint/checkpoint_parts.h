/* SPDX-License-Identifier: MIT */
/* checkpoint_parts.h - for checkpoint_find.c and checkpoint_check.c alone. */
#ifndef COMMON_CHECKPOINT_CHECKPOINT_PARTS_H
#define COMMON_CHECKPOINT_CHECKPOINT_PARTS_H

#include "common/checkpoint/checkpoints.h"
#include "common/checkpoint/layouts.h"

struct checkpoint_rules {
	const struct layout *row; /* NULL: auto */
	bool is_own;
	struct regexp *pattern; /* NULL: by layout */
	int pattern_depth;      /* slashes in it */
	char *complete_when;    /* NULL = not given */
};

/* The step as the pattern finds it in a name below the folder; -1 = no checkpoint. */
int64_t checkpoint_pattern_step(const struct checkpoint_rules *rules, const char *relative);

void checkpoint_add_part(struct checkpoint *c, const char *name);

#endif
