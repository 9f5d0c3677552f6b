/* SPDX-License-Identifier: MIT */
/* excluded.h - jobs that wait only because of the nodes that they must not have. */
#ifndef SLURM_COMMANDS_EXCLUDED_H
#define SLURM_COMMANDS_EXCLUDED_H

#include "slurm/commands/look.h"

/* Sets idle_excluded of our jobs in *look. Asks once for all of them, and only where one of them
 * might wait so; what cannot be learned stays 0. */
void excluded_tell(struct look *look);

#endif
