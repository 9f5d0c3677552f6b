/* SPDX-License-Identifier: GPL-2.0-or-later */
/* kept.c - a list that only grows until all of it goes. */
#include "slurm/helper/kept.h"

#include <stdlib.h>

#include "common/base/mem.h"

char *keep(struct kept *kept, char *text)
{
	if (!text)
		return NULL;
	kept->items = xrealloc(kept->items, (kept->count + 1) * sizeof(char *));
	kept->items[kept->count++] = text;
	return text;
}

void kept_fini(struct kept *kept)
{
	for (size_t i = 0; i < kept->count; i++)
		free(kept->items[i]);
	free(kept->items);
	*kept = (struct kept){ 0 };
}
