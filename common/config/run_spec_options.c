/* SPDX-License-Identifier: MIT */
/* run_spec_options.c - [slurm] of a spec as options of sbatch: a key is the option of that name,
 * but for those that are lbd's own. */
#include <stdio.h>
#include <string.h>

#include "common/base/json.h"
#include "common/config/run_spec.h"

/* Keys that sbatch does not know, or means otherwise. */
static bool is_lbds_own(const char *name)
{
	static const char *const own[] = { "extra", "mpi", "network", "signal_before", "srun" };

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		if (strcmp(own[i], name) == 0)
			return true;
	}
	return strncmp(name, "container_", 10) == 0;
}

/* As sbatch reads it: minutes, or minutes and seconds. */
static void set_time(json_t *options, const char *name, int64_t ms)
{
	int64_t seconds = (ms + 999) / 1000;
	char text[48];

	if (seconds % 60 == 0)
		snprintf(text, sizeof(text), "%lld", (long long)seconds / 60);
	else
		snprintf(text, sizeof(text), "%lld:%02lld", (long long)seconds / 60,
			 (long long)seconds % 60);
	js_set_str(options, name, ms > 0 ? text : NULL);
}

json_t *run_spec_options(const struct run_spec *spec)
{
	json_t *options = json_object();

	for (size_t i = 0; i < run_spec_key_count; i++) {
		const struct key *key = &run_spec_keys[i];
		const void *value = (const char *)spec + key->offset;

		if (strcmp(key->section, "slurm") != 0 || is_lbds_own(key->name))
			continue;
		if (key->offset == offsetof(struct run_spec, time_text))
			set_time(options, key->name, spec->time_ms);
		else if (key->type == KEY_INT)
			js_set_int(options, key->name, *(const int64_t *)value);
		else
			js_set_str(options, key->name, *(char *const *)value);
	}
	return options;
}
