/* SPDX-License-Identifier: MIT */
/* scratch.c - names are made and read here only. */
#include "worker/lbworker/base/scratch.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/files.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/procs.h"
#include "common/base/text.h"

enum { HOST_BYTES = 64 };

static const char *const kinds[] = { "tmp", "new", "old" };

static void host_name(char out[HOST_BYTES])
{
	if (gethostname(out, HOST_BYTES) != 0)
		out[0] = '\0';
	out[HOST_BYTES - 1] = '\0';
	for (char *c = out; *c; c++)
		if (*c == '/')
			*c = '_';
}

char *scratch_name(const char *path, const char *kind)
{
	char host[HOST_BYTES];

	host_name(host);
	return xasprintf("%s.%s-%ld-%s", path, kind, (long)getpid(), host);
}

/* The text behind "step-DIGITS.KIND-", or NULL when the name is none of ours. */
static const char *writer_of(const char *name)
{
	size_t digits;

	if (strncmp(name, "step-", 5) != 0)
		return NULL;
	digits = text_digits(name + 5);
	name += 5 + digits;
	if (digits == 0 || *name++ != '.')
		return NULL;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		size_t length = strlen(kinds[i]);
		if (strncmp(name, kinds[i], length) == 0 && name[length] == '-')
			return name + length + 1;
	}
	return NULL;
}

/* That behind "OF.tmp-", with a host: people have names like model.tmp-2. */
static const char *writer_of_one(const char *name, const char *of)
{
	size_t stem = strlen(of);

	if (!text_begins_with(name, of) || !text_begins_with(name + stem, ".tmp-"))
		return NULL;
	return strchr(name + stem + 5, '-') ? name + stem + 5 : NULL;
}

/* A process of ours with that number does not exist here. Our own number is a dead namesake's:
 * the sweep comes before the first save. */
static bool is_dead(const char *writer, const char *host)
{
	char *end;
	long pid;

	if (*writer < '0' || *writer > '9')
		return false;
	errno = 0;
	pid = strtol(writer, &end, 10);
	if (errno != 0 || pid <= 0 || pid > INT_MAX)
		return false;
	if (*end != '\0' && (*end != '-' || strcmp(end + 1, host) != 0))
		return false;
	return pid == getpid() || pid_is_gone(pid);
}

static bool sweep_one(const char *parent, const char *name)
{
	char *path = path_join("%s/%s", parent, name);
	struct err err = { 0 };
	int rc = folder_remove(path, &err);

	if (rc != 0)
		log_warn("left by a killed process: %s", err.text);
	free(path);
	return rc == 0;
}

static size_t sweep(const char *parent, const char *of)
{
	DIR *dir = opendir(parent);
	const struct dirent *entry;
	char host[HOST_BYTES];
	size_t gone = 0;

	host_name(host);
	while (dir && (entry = readdir(dir)) != NULL) {
		const char *writer = of ? writer_of_one(entry->d_name, of)
					: writer_of(entry->d_name);
		if (writer && is_dead(writer, host) && sweep_one(parent, entry->d_name))
			gone++;
	}
	if (dir)
		closedir(dir);
	return gone;
}

size_t scratch_sweep(const char *parent)
{
	return sweep(parent, NULL);
}

void scratch_sweep_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *parent = slash ? xstrndup(path, (size_t)(slash - path) + 1) : xstrdup(".");

	(void)sweep(parent, slash ? slash + 1 : path);
	free(parent);
}
