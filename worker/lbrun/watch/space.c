/* SPDX-License-Identifier: MIT */
/* space.c - adds up a folder's bytes, and asks the file system what is free. */
#include "worker/lbrun/watch/space.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/base/files.h"
#include "common/base/mem.h"
#include "common/base/paths.h"

enum { DEPTH_MAX = 8, TRY_BYTES = 1 << 20 };

static void add(const char *path, int depth, struct space *sum)
{
	const struct dirent *entry;
	struct stat st;
	DIR *dir;

	if (lstat(path, &st) < 0 || sum->files >= SPACE_ENTRIES_MAX)
		return;
	sum->files++;
	sum->bytes += S_ISREG(st.st_mode) ? st.st_size : 0;
	dir = S_ISDIR(st.st_mode) && depth < DEPTH_MAX ? opendir(path) : NULL;
	while (dir && (entry = readdir(dir))) {
		char *below;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		below = path_join("%s/%s", path, entry->d_name);
		add(below, depth + 1, sum);
		free(below);
	}
	if (dir)
		closedir(dir);
}

struct space space_used(const char *path)
{
	struct space sum = { 0, 0 };

	add(path, 0, &sum);
	return sum;
}

struct space space_free(const char *path)
{
	struct statvfs fs;
	struct space have = { -1, -1 };

	if (statvfs(path, &fs) < 0)
		return have;
	have.bytes = (int64_t)fs.f_bavail * (int64_t)fs.f_frsize;
	if (fs.f_files > 0) /* some file systems have no such limit */
		have.files = (int64_t)fs.f_favail;
	return have;
}

bool space_is_short(const struct space *need, const struct space *have, char *out, size_t size)
{
	static const double gb = 1e9;

	if (have->bytes >= 0 && have->bytes < need->bytes) {
		snprintf(out, size, "a checkpoint takes %.1f GB, %.1f GB are free",
			 (double)need->bytes / gb, (double)have->bytes / gb);
		return true;
	}
	if (have->files >= 0 && have->files < need->files) {
		snprintf(out, size, "a checkpoint takes %lld files, %lld more are possible",
			 (long long)need->files, (long long)have->files);
		return true;
	}
	return false;
}

int space_try(const char *folder, struct err *err)
{
	char *path = path_join("%s/.lbrun-room", folder), *bytes = xmalloc(TRY_BYTES);
	int rc;

	memset(bytes, 'x', TRY_BYTES);
	rc = file_write_atomic(path, bytes, TRY_BYTES, 0600, err);
	unlink(path);
	free(bytes);
	free(path);
	return rc;
}
