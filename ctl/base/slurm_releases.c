/* SPDX-License-Identifier: MIT */
/* slurm_releases.c - the table of Slurm's releases. */
#include "ctl/base/slurm_releases.h"

#include <stddef.h>

#include "common/base/text.h"

enum { FIRST_LIBRARY = 35 };

static const char *const releases[] = { "20.02", "20.11", "21.08", "22.05", "23.02", "23.11",
					"24.05", "24.11", "25.05", "25.11", "26.05" };
enum { COUNT = sizeof(releases) / sizeof(releases[0]) };

int slurm_release_index(const char *version)
{
	for (int i = 0; version && i < COUNT; i++)
		if (text_begins_with(version, releases[i]))
			return i;
	return -1;
}

const char *slurm_release_of_library(int number)
{
	int i = number - FIRST_LIBRARY;

	return i >= 0 && i < COUNT ? releases[i] : NULL;
}
