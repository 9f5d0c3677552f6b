/* SPDX-License-Identifier: MIT */
/* failed.h - which nodes are down, of a job that one of them ended. */
#ifndef SLURM_COMMANDS_FAILED_H
#define SLURM_COMMANDS_FAILED_H

#include "slurm/commands/look.h"

/* Sets failed of our jobs in *look that a node ended; what cannot be learned stays "". */
void failed_tell(struct look *look);

#endif
