/* SPDX-License-Identifier: MIT */
/* helper_choice.h - which of the helpers beside lbd speaks to this site's Slurm. */
#ifndef SLURM_PIPE_HELPER_CHOICE_H
#define SLURM_PIPE_HELPER_CHOICE_H

#include <stdbool.h>

#include "common/base/err.h"

/* In the order of the choices of slurm.through in lbd.toml. */
enum slurm_through { SLURM_THROUGH_AUTO, SLURM_THROUGH_LIBRARY, SLURM_THROUGH_COMMANDS };

struct slurm_helper {
	char *path; /* owned: helper_choice_clear */
	bool by_commands;
	/* owned; why it is not the one that fits this site best; NULL: it is, or was asked for */
	char *note;
};

/* auto: of lbd-slurm beside lbd and ../lib/lowbits/lbd-slurm-*, each for one libslurm, the one
 * whose library can be loaded and whose release is that of this site's commands, else the nearest,
 * an older one first, as controllers take older clients; where there is none, lbd-slurm-commands.
 * `unfit`: paths that are not to be taken, NULL-terminated; NULL: none. -1 with ERR_SCHEDULER where
 * there is no Slurm, or no helper for it: err says what is missing. Runs programs: milliseconds. */
int helper_choose(enum slurm_through through, char *const *unfit, struct slurm_helper *out,
		  struct err *err);
void helper_choice_clear(struct slurm_helper *helper);

#endif
