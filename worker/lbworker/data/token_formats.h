/* SPDX-License-Identifier: MIT */
/* token_formats.h - what a file holds that does not begin as a shard of ours or llm.c's. */
#ifndef LBWORKER_TOKEN_FORMATS_H
#define LBWORKER_TOKEN_FORMATS_H

#include <stdint.h>

#include "common/base/err.h"

/* Where tokens lie in a file. */
struct token_layout {
	uint64_t first;       /* byte */
	uint32_t token_bytes; /* 1, 2, 4 or 8, little-endian, no sign */
	uint64_t token_count; /* by what said_by names, "its header" */
	const char *said_by;
};

/* Looks at the beginning of a file (and, of Megatron's, at the .idx beside it): 1 when it is of a
 * format whose tokens lie in one row, NumPy's, LitGPT's packed or Megatron's; 0 when nothing tells;
 * -1 with err when it is something else, by its name: text, JSON, an archive … */
int token_layout_find(struct token_layout *out, const char *path, const void *start, uint64_t bytes,
		      struct err *err);

#endif
