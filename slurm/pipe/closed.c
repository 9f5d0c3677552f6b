/* SPDX-License-Identifier: MIT */
/* closed.c - knows by Slurm's words, the same in every release, that it is closed for now. */
#include "slurm/pipe/closed.h"

#include <stddef.h>
#include <string.h>

void closed_wait(struct answer *a)
{
	static const char *const words[] = {
		"Required partition not available (inactive or drain)",
		"System submissions disabled",
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (a->result == SCHEDULER_REFUSED && strstr(a->text, words[i]))
			a->result = SCHEDULER_DOWN;
}
