/* SPDX-License-Identifier: MIT */
/* limit_figures.h - how much of a limit of accounting is used, as the controller tells everybody by
 * "scontrol show assoc_mgr". */
#ifndef SLURM_PIPE_LIMIT_FIGURES_H
#define SLURM_PIPE_LIMIT_FIGURES_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* What a job waits for, and whose it is; NULL: not known. */
struct limit_of {
	const char *reason, *account, *qos;
	unsigned uid;
	const json_t *totals; /* what the job asks for, as batch_totals tells it; NULL: not known */
	int64_t minutes;      /* its time limit; 0 or less: none, or not known */
};

/* Asks for the limit that the reason names: {"limit","allowed","used","text"}, a new reference;
 * "used" is absent where the limit is one for each job. A job that asks for more than a limit
 * allows all jobs together is told so, for it never starts as it is. NULL: it is none of
 * accounting, or not told. */
json_t *limit_figures(const struct limit_of *of);

/* The same in what scontrol printed, one record a line. *parent, which may be NULL, gets the name
 * of the account above, "" = none. Pure. */
json_t *limit_figures_read(const struct limit_of *of, const char *text, char *parent, size_t size);

#endif
