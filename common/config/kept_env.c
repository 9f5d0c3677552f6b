/* SPDX-License-Identifier: MIT */
/* kept_env.c - picks variables by name and prefix. */
#include "common/config/kept_env.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/bytes.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/mem.h"

/* What a trainer needs to find its programs and libraries again. A list, not the whole
 * environment: that may hold tokens and passwords, and what is sent ends in files. Anything else
 * belongs in run.env_file. */
/* clang-format off */
static const char *const kept_variables[] = {
	"PATH",			/* programs */
	"LD_LIBRARY_PATH",	/* libraries, as modules set it */
	"PYTHONPATH",
	"VIRTUAL_ENV",		/* an activated Python environment */
	"CONDA_PREFIX", "CONDA_DEFAULT_ENV",
	"MODULEPATH", "LOADEDMODULES",	/* so that `module` in a script goes on from here */
	"LANG", "LC_ALL", "TZ",	/* how programs write text and times */
	"MASTER_ADDR", "MASTER_PORT",	/* where ranks meet */
};
/* clang-format on */

/* Beginnings of variables that tune communication; a network's profile gives way to them. */
static const char *const kept_families[] = {
	"NCCL_", "TORCH_NCCL_", "OFI_NCCL_", "FI_", "GLOO_", "UCX_",
};

static void add_family(json_t *env, const char *family)
{
	size_t len = strlen(family);

	for (char **entry = environ; *entry; entry++) {
		const char *value = strchr(*entry, '=');
		char *name, *key;

		if (!value || strncmp(*entry, family, len) != 0)
			continue;
		name = xstrndup(*entry, (size_t)(value - *entry));
		key = js_bytes_key(name);
		json_object_set_new(env, key, js_bytes(value + 1));
		free(key);
		free(name);
	}
}

char *kept_umask(void)
{
	const char *told = getenv("SLURM_UMASK");

	return told ? xstrdup(told) : xasprintf("0%03o", (unsigned)file_umask() & 0777);
}

json_t *kept_environment(void)
{
	json_t *env = json_object();
	char *mask = kept_umask();

	for (size_t i = 0; i < sizeof(kept_variables) / sizeof(kept_variables[0]); i++) {
		const char *value = getenv(kept_variables[i]);

		if (value)
			json_object_set_new(env, kept_variables[i], js_bytes(value));
	}
	for (size_t i = 0; i < sizeof(kept_families) / sizeof(kept_families[0]); i++)
		add_family(env, kept_families[i]);
	js_set_str(env, "SLURM_UMASK", mask);
	free(mask);
	return env;
}
