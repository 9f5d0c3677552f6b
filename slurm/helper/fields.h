/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fields.h - from what was asked for (slurm/batch/batch.h) to libslurm's job description. */
#ifndef SLURM_HELPER_FIELDS_H
#define SLURM_HELPER_FIELDS_H

#include <jansson.h>

#include "common/base/err.h"
#include "slurm/helper/kept.h"
#include "slurm/helper/libslurm.h"

/* Fills in `desc`, which slurm_init_job_desc_msg has seen. -1 with err for a field that this
 * libslurm cannot express: "--prefer: …". */
int fields_apply(const json_t *fields, job_desc_msg_t *desc, struct kept *kept, struct err *err);

/* Which key of a spec one of libslurm's errors is about, "slurm.partition", and what it says there
 * (borrowed from `desc`); NULL: who knows. */
const char *fields_blame(const job_desc_msg_t *desc, int code, const char **value);

#endif
