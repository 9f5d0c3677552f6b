/* SPDX-License-Identifier: MIT */
/* rlimits.h - what a process may have, as sbatch tells a job of its submitter's:
 * SLURM_RLIMIT_NOFILE=1024 and the like. */
#ifndef COMMON_CONFIG_RLIMITS_H
#define COMMON_CONFIG_RLIMITS_H

struct rlimit_row {
	const char *variable;
	int resource;
};
enum { RLIMIT_ROWS = 10 };
extern const struct rlimit_row rlimit_rows[RLIMIT_ROWS];

/* Makes those that `env` tells its own, as far as it may. */
void rlimits_take(char *const *env);

#endif
