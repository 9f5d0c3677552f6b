/* SPDX-License-Identifier: MIT */
/* sbatch_values.h - the values of sbatch's options, read as sbatch reads them (sbatch(1)).
 *
 * Each returns 0, or -1 with `err` saying what is allowed; *out is set on success only. */
#ifndef SLURM_BATCH_SBATCH_VALUES_H
#define SLURM_BATCH_SBATCH_VALUES_H

#include <jansson.h>
#include <stdint.h>
#include <time.h>

#include "common/base/err.h"

enum { SBATCH_UNLIMITED = -1 }; /* a time limit without end, in seconds or minutes */

/* Digits at *at, which moves behind them; an absent number is 0, as in sbatch: "1-:30". */
int64_t sbatch_digits(const char **at);

/* A whole number from min to max, and nothing after it. */
int sbatch_number(const char *text, int64_t min, int64_t max, int64_t *out, struct err *err);

/* "M", "M:S", "H:M:S", "D-H", "D-H:M", "D-H:M:S", "UNLIMITED", "INFINITE", "-1". Seconds. */
int sbatch_duration(const char *text, int64_t *out_s, struct err *err);

/* A moment for --begin and --deadline: "16:00", "noon", "tomorrow", "now+1hour",
 * "2030-01-20T12:34:00", "MMDDYY", "MM/DD" … in local time, after `now`. */
int sbatch_moment(const char *text, time_t now, time_t *out, struct err *err);

/* "16G", "512M", "100K", "2T", each also with a B behind; bare: megabytes. */
int sbatch_megabytes(const char *text, int64_t *out_mb, struct err *err);

/* "4", "2-4", "1k": *out_max is 0 when there is no upper end. */
int sbatch_nodes(const char *text, int64_t *out_min, int64_t *out_max, struct err *err);

/* "USR1", "SIGUSR1", "10" → 10. */
int sbatch_signal_number(const char *text, int64_t *out, struct err *err);

/* How many different nodes "n[1-3,7],login" names. */
int sbatch_node_count(const char *text, int64_t *out, struct err *err);

enum { SBATCH_ARRAY_MAX = 4000000 }; /* tasks; MaxArraySize, of each site, is no more */

/* of an array's tasks */
struct sbatch_indices {
	int64_t *items; /* ascending, each once; the caller's to free */
	size_t count;
	int64_t limit; /* of tasks at once; 0: none */
};

/* Indices like "1-10:3,15%2", at most `max` of them. `out` may be NULL. */
int sbatch_array(const char *text, int64_t max, struct sbatch_indices *out, struct err *err);

#endif
