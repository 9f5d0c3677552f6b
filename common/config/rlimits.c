/* SPDX-License-Identifier: MIT */
/* rlimits.c - one table of limits for who tells of them and who takes them. */
#include "common/config/rlimits.h"

#include <stdlib.h>
#include <sys/resource.h>

#include "common/base/strv.h"

const struct rlimit_row rlimit_rows[RLIMIT_ROWS] = {
	{ "SLURM_RLIMIT_CPU", RLIMIT_CPU },         { "SLURM_RLIMIT_FSIZE", RLIMIT_FSIZE },
	{ "SLURM_RLIMIT_DATA", RLIMIT_DATA },       { "SLURM_RLIMIT_STACK", RLIMIT_STACK },
	{ "SLURM_RLIMIT_CORE", RLIMIT_CORE },       { "SLURM_RLIMIT_RSS", RLIMIT_RSS },
	{ "SLURM_RLIMIT_NPROC", RLIMIT_NPROC },     { "SLURM_RLIMIT_NOFILE", RLIMIT_NOFILE },
	{ "SLURM_RLIMIT_MEMLOCK", RLIMIT_MEMLOCK }, { "SLURM_RLIMIT_AS", RLIMIT_AS },
};

void rlimits_take(char *const *env)
{
	for (int i = 0; i < RLIMIT_ROWS; i++) {
		const char *text = strv_get(env, rlimit_rows[i].variable);
		struct rlimit limit;

		if (!text || getrlimit(rlimit_rows[i].resource, &limit) < 0)
			continue;
		text += *text == 'U'; /* of --propagate */
		limit.rlim_cur = strtoul(text, NULL, 10);
		if (limit.rlim_cur > limit.rlim_max)
			limit.rlim_cur = limit.rlim_max;
		setrlimit(rlimit_rows[i].resource, &limit);
	}
}
