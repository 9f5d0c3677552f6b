/* SPDX-License-Identifier: MIT */
/* spent.c - names of the kinds of time. */
#include "common/run/spent.h"

const char *spent_name(enum spent spent)
{
	static const char *const names[SPENT_COUNT] = {
		[SPENT_PRODUCTIVE] = "productive",
		[SPENT_QUEUE] = "queue",
		[SPENT_STARTUP] = "startup",
		[SPENT_RESTORE] = "restore",
		[SPENT_LOST] = "lost",
		[SPENT_HANG] = "hang",
		[SPENT_PAUSE] = "pause",
		[SPENT_OTHER] = "other",
	};

	return names[spent];
}

bool spent_holds_nodes(enum spent spent)
{
	return spent != SPENT_QUEUE && spent != SPENT_PAUSE && spent != SPENT_OTHER;
}
