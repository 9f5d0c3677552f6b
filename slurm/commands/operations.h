/* SPDX-License-Identifier: MIT */
/* commands/ - lbd-slurm-commands, the helper for sites where lbd-slurm does not fit: what that asks
 * of libslurm this one asks of squeue, scontrol, scancel and sbatch, in the same words to lbd
 * (slurm/wire.h).
 *
 * operations.h - what it can be asked for. Each sets *a. */
#ifndef SLURM_COMMANDS_OPERATIONS_H
#define SLURM_COMMANDS_OPERATIONS_H

#include "slurm/pipe/answer.h"

void op_submit(const json_t *request, struct answer *a);
void op_release(const json_t *request, struct answer *a);
void op_signal(const json_t *request, struct answer *a);
void op_cancel(const json_t *request, struct answer *a);
void op_poll(const json_t *request, struct answer *a);
void op_info(const json_t *request, struct answer *a);
void op_check(const json_t *request, struct answer *a);
void op_why(const json_t *request, struct answer *a);

#endif
