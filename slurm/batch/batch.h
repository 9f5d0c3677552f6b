/* SPDX-License-Identifier: MIT */
/* batch/ - batch scripts read as sbatch reads them.
 *
 * batch.h - from the options of a batch job to the job that sbatch would have made of them. */
#ifndef SLURM_BATCH_BATCH_H
#define SLURM_BATCH_BATCH_H

#include <jansson.h>
#include <stdbool.h>
#include <time.h>

#include "common/base/err.h"

/* all borrowed; NULL = not given */
struct batch_request {
	const char *script; /* text[0..script_len) with its #SBATCH lines */
	size_t script_len;
	const char *file;                /* its name in messages; its last part names the job */
	const char *account, *partition; /* unless anything else says so */
	char *const *env;                /* NAME=value; SBATCH_* count */
	char *const *settings;           /* words: what [slurm] of the spec says */
	char *const *extra;              /* words: [slurm] extra, then the command line */
	char *const *plugin_options;     /* as directives.h has them; NULL = there are none */
	const char *no_plugins;          /* as there */
	const char *workdir;             /* where it is submitted from; absolute */
	bool has_waited; /* an earlier job of this request has waited for --begin, --dependency */
	time_t now;      /* what "now+1hour" counts from */
};

/* What is asked for, as the JSON object that schedulers turn into a job (slurm/helper/fields.c,
 * slurm/local/needs.c): sbatch's defaults and sums are in it. The caller decrefs. NULL with err:
 * "train.slurm:4: --nodes: …".
 *
 * *words, unless NULL, gets the same for sbatch's own command line, "--nodes=2" …; a
 * NULL-terminated list, each owned, freed by strv_free. What lbd says itself (name, comment, hold,
 * requeue) is left out. */
json_t *batch_resolve(const struct batch_request *request, char ***words, struct err *err);

/* What a job of these fields has at least, of one task of an array: "nodes", "tasks", "cpus",
 * "mem_mb" (null: Slurm's default, or all of a node's), "gpus". A new reference. */
json_t *batch_totals(const json_t *fields);

#endif
