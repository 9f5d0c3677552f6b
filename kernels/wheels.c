/* SPDX-License-Identifier: MIT */
/* wheels.c - one pattern for each Python environment that there may be. */
#include "kernels/wheels.h"

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool open_first(const glob_t *found)
{
	for (size_t i = 0; i < found->gl_pathc; i++)
		if (dlopen(found->gl_pathv[i], RTLD_NOW | RTLD_GLOBAL))
			return true;
	return false;
}

/* root: what holds lib/python3.N/. */
static bool open_below(const char *root, const char *soname)
{
	char pattern[PATH_MAX];
	glob_t found = { 0 };
	bool is_open;

	if (!root || root[0] != '/' ||
	    snprintf(pattern, sizeof(pattern),
		     "%s/{lib,lib64}/python3*/{site,dist}-packages/nvidia/*/lib/%s", root,
		     soname) >= (int)sizeof(pattern))
		return false;
	is_open = glob(pattern, GLOB_BRACE, NULL, &found) == 0 && open_first(&found);
	globfree(&found);
	return is_open;
}

/* The folder above that of the first python3 on PATH; false: there is none. */
static bool python_root(char out[PATH_MAX])
{
	const char *path = getenv("PATH"), *end;

	for (; path && *path; path = *end ? end + 1 : end) {
		end = path + strcspn(path, ":");
		snprintf(out, PATH_MAX, "%.*s/python3", (int)(end - path), path);
		if (access(out, X_OK) != 0)
			continue;
		snprintf(out, PATH_MAX, "%.*s/..", (int)(end - path), path);
		return true;
	}
	return false;
}

bool wheels_open(const char *soname)
{
	const char *home = getenv("HOME");
	char local[PATH_MAX], python[PATH_MAX];

	snprintf(local, sizeof(local), "%s/.local", home ? home : "");
	return open_below(getenv("VIRTUAL_ENV"), soname) ||
	       open_below(getenv("CONDA_PREFIX"), soname) ||
	       (python_root(python) && open_below(python, soname)) || open_below(local, soname) ||
	       open_below("/usr/local", soname) || open_below("/usr", soname);
}
