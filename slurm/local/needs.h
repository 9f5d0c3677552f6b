/* SPDX-License-Identifier: MIT */
/* needs.h - what a job asks of one machine, from the fields that describe it (slurm/batch/batch.h).
 */
#ifndef SLURM_LOCAL_NEEDS_H
#define SLURM_LOCAL_NEEDS_H

#include <jansson.h>

#include "common/base/err.h"
#include "slurm/local/slots.h"

struct needs {
	struct slots slots;   /* CPUs: 0 when it shares them */
	int64_t nodes;        /* 0: not said */
	int64_t time_seconds; /* limit; 0: none */
	int64_t warn_seconds; /* SIGUSR1 to lbrun so long before the limit; 0: none */
	const char *array;    /* indices as sbatch takes them, "0-9:2%3"; NULL: one job; borrowed */
};

/* -1 with ERR_REFUSED for what only Slurm can do. */
int needs_read(const json_t *fields, struct needs *out, struct err *err);
/* What was asked for and means nothing on one machine, as options: "--partition, --qos"; owned by
 * the caller. NULL: nothing. */
char *needs_unused(const json_t *fields);

#endif
