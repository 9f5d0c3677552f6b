/* SPDX-License-Identifier: MIT */
/* limits.c - one row for each limit that sbatch tells. */
#include "common/host/limits.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/strv.h"

static const struct {
	const char *name;
	int resource;
} limits[] = {
	{ LIMIT_VARIABLES "CPU", RLIMIT_CPU },         { LIMIT_VARIABLES "FSIZE", RLIMIT_FSIZE },
	{ LIMIT_VARIABLES "DATA", RLIMIT_DATA },       { LIMIT_VARIABLES "STACK", RLIMIT_STACK },
	{ LIMIT_VARIABLES "CORE", RLIMIT_CORE },       { LIMIT_VARIABLES "RSS", RLIMIT_RSS },
	{ LIMIT_VARIABLES "NPROC", RLIMIT_NPROC },     { LIMIT_VARIABLES "NOFILE", RLIMIT_NOFILE },
	{ LIMIT_VARIABLES "MEMLOCK", RLIMIT_MEMLOCK }, { LIMIT_VARIABLES "AS", RLIMIT_AS },
};
enum { LIMITS = sizeof(limits) / sizeof(limits[0]) };

void limits_tell(json_t *env)
{
	for (size_t i = 0; i < LIMITS; i++) {
		struct rlimit limit;
		char *text;

		if (getrlimit(limits[i].resource, &limit) < 0)
			continue;
		text = xasprintf("%lu", (unsigned long)limit.rlim_cur);
		js_set_str(env, limits[i].name, text);
		free(text);
	}
}

void limits_take(char *const *env)
{
	const char *mask = strv_get(env, "SLURM_UMASK");

	if (mask)
		umask((mode_t)strtoul(mask, NULL, 8));
	for (size_t i = 0; i < LIMITS; i++) {
		const char *text = strv_get(env, limits[i].name);
		struct rlimit limit;

		if (!text || getrlimit(limits[i].resource, &limit) < 0)
			continue;
		text += *text == 'U'; /* of --propagate */
		limit.rlim_cur = strtoul(text, NULL, 10);
		if (limit.rlim_cur > limit.rlim_max)
			limit.rlim_cur = limit.rlim_max;
		setrlimit(limits[i].resource, &limit);
	}
}
