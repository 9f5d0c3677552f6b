/* SPDX-License-Identifier: MIT */
/* operations.h - what a helper can be asked for. Each helper has its own; each sets *a. */
#ifndef SLURM_PIPE_OPERATIONS_H
#define SLURM_PIPE_OPERATIONS_H

#include "slurm/pipe/answer.h"

/* in known.c; all others are each helper's own */
void op_known(const json_t *request, struct answer *a);

void op_submit(const json_t *request, struct answer *a);
void op_release(const json_t *request, struct answer *a);
void op_signal(const json_t *request, struct answer *a);
void op_cancel(const json_t *request, struct answer *a);
void op_poll(const json_t *request, struct answer *a);
void op_info(const json_t *request, struct answer *a);
void op_check(const json_t *request, struct answer *a);
void op_outages(const json_t *request, struct answer *a);
void op_room(const json_t *request, struct answer *a);
void op_why(const json_t *request, struct answer *a);

#endif
