/* SPDX-License-Identifier: MIT */
/* sbatch_options.h - every option of sbatch(1), as one table: its names, whether it takes a value,
 * its environment variable, and what sets it.
 *
 * A setter writes what the option asks for into `fields`, a JSON object in words of our own (the
 * constants of libslurm are lbd-slurm's to know): slurm/helper/fields.c lists them. */
#ifndef SLURM_BATCH_SBATCH_OPTIONS_H
#define SLURM_BATCH_SBATCH_OPTIONS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "common/base/err.h"

enum sbatch_arity { SBATCH_FLAG, SBATCH_VALUE, SBATCH_MAY_VALUE };

/* what has been asked for so far */
struct sbatch_choice {
	json_t *fields;
	const char *workdir; /* where sbatch would have been called: relative paths start here */
	time_t now;
};

struct sbatch_option {
	const char *name; /* "job-name"; NULL: by environment variable only */
	char letter;      /* 'J'; 0 = none */
	enum sbatch_arity arity;
	const char *variable; /* "SBATCH_JOB_NAME"; NULL = none */
	/* `value` is NULL where there was none. -1 with `err` saying what is wrong with it. */
	int (*set)(struct sbatch_choice *choice, const struct sbatch_option *option,
		   const char *value, struct err *err);
	const char *field; /* for `set`; a refusal's reason for refused options */
	int64_t min, max;  /* of numbers */
	/* in which options with the same `set` differ: --requeue 1, --no-requeue 0 */
	int64_t constant;
	/* names a part of a cluster, or is Slurm's to do: without it this is told */
	bool of_cluster;
};

extern const struct sbatch_option sbatch_options[];
extern const size_t sbatch_option_count;

/* By its whole name; NULL: there is none. */
const struct sbatch_option *sbatch_option_named(const char *name, size_t len);
/* By its whole name or by a beginning that no other option shares; NULL with err. */
const struct sbatch_option *sbatch_option_find(const char *name, size_t len, struct err *err);
const struct sbatch_option *sbatch_option_letter(char letter);

#endif
