/* SPDX-License-Identifier: MIT */
/* source.h - files of the source tree for tests, which run in a folder of their own (run.sh). */
#ifndef TESTS_UNIT_SOURCE_H
#define TESTS_UNIT_SOURCE_H

#include <stdio.h>
#include <stdlib.h>

/* The path of a file of the tree, in a buffer that the next call reuses. */
static inline const char *source_path(const char *relative)
{
	static char path[4096];
	const char *top = getenv("LB_SRC");

	snprintf(path, sizeof(path), "%s/%s", top ? top : ".", relative);
	return path;
}

#endif
