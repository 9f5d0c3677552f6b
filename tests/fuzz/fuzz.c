/* SPDX-License-Identifier: MIT */
/* fuzz.c - a file or a folder as inputs, where no fuzzer feeds them. */
#include "tests/fuzz/fuzz.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/mem.h"

static char folder[64];

void fuzz_broken(const char *file, int line, const char *promise)
{
	fprintf(stderr, "%s:%d: broken: %s\n", file, line, promise);
	abort();
}

char *fuzz_text(const uint8_t *data, size_t size)
{
	return xstrndup((const char *)data, size);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *at)
{
	(void)st;
	(void)flag;
	(void)at;
	return remove(path);
}

static void remove_folder(void)
{
	nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

const char *fuzz_path(const char *name)
{
	static char path[256];

	if (folder[0] == '\0') {
		snprintf(folder, sizeof(folder), "/dev/shm/lb-fuzz.XXXXXX");
		if (mkdtemp(folder) == NULL)
			fuzz_broken(__FILE__, __LINE__, "a folder in /dev/shm");
		atexit(remove_folder);
	}
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

void fuzz_file(const char *name, const uint8_t *data, size_t size)
{
	const char *path = fuzz_path(name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0) {
		char *parent = xstrndup(path, (size_t)(strrchr(path, '/') - path));

		mkdir(parent, 0700);
		free(parent);
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	}
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		fuzz_broken(__FILE__, __LINE__, "a file in /dev/shm");
	close(fd);
}
