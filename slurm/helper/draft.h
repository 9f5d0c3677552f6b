/* SPDX-License-Identifier: GPL-2.0-or-later */
/* draft.h - a job's description for libslurm, from a request (slurm/wire.h). */
#ifndef SLURM_HELPER_DRAFT_H
#define SLURM_HELPER_DRAFT_H

#include <jansson.h>

#include "common/base/err.h"
#include "common/base/strv.h"
#include "slurm/helper/fields.h"
#include "slurm/helper/libslurm.h"

/* a job description and the strings it borrows */
struct draft {
	job_desc_msg_t desc;
	struct kept kept;
	struct strv env;
	char **argv;
};

/* The job is held. draft_fini is due in any case; -1 with err for what this libslurm cannot
 * express. */
int draft_init(struct draft *d, const json_t *request, struct err *err);
/* As it will be once released: what Slurm is asked about it is not about its hold. */
void draft_release(struct draft *d);
/* Wipes the environment, which may hold secrets. */
void draft_fini(struct draft *d);

#endif
