/* SPDX-License-Identifier: GPL-2.0-or-later */
/* kept.h - strings that a job's description borrows, freed together. */
#ifndef SLURM_HELPER_KEPT_H
#define SLURM_HELPER_KEPT_H

#include <stddef.h>

struct kept {
	char **items;
	size_t count;
};

/* `text` is ours from now on, and freed by kept_fini; returned for convenience. NULL is fine. */
char *keep(struct kept *kept, char *text);
void kept_fini(struct kept *kept);

#endif
