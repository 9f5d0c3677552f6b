/* SPDX-License-Identifier: MIT */
/* process.c - status, descriptors and words of a process, from /proc. */
#include "worker/lbrun/rank/process.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STATUS_MAX = 8192, LINK_MAX_BYTES = 64 };

size_t process_file(pid_t pid, const char *name, char *out, size_t size)
{
	char path[64];
	ssize_t n;
	int fd;

	out[0] = '\0';
	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, out, size - 1);
	close(fd);
	out[n > 0 ? n : 0] = '\0';
	return n > 0 ? (size_t)n : 0;
}

bool process_catches(pid_t pid, int signo)
{
	static const char key[] = "\nSigCgt:";
	char status[STATUS_MAX];
	const char *caught;

	process_file(pid, "status", status, sizeof(status));
	caught = strstr(status, key);
	return caught &&
	       strtoull(caught + sizeof(key) - 1, NULL, 16) & (UINT64_C(1) << (signo - 1));
}

/* "pipe:[123]"; false: it is none. */
static bool pipe_name(int folder, const char *fd, char out[LINK_MAX_BYTES])
{
	ssize_t n = readlinkat(folder, fd, out, LINK_MAX_BYTES - 1);

	out[n > 0 ? n : 0] = '\0';
	return strncmp(out, "pipe:", 5) == 0;
}

static int open_descriptors(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* The link's own mode says whether the descriptor can be read. */
static bool is_readable(int folder, const char *fd)
{
	struct stat st;

	return fstatat(folder, fd, &st, AT_SYMLINK_NOFOLLOW) == 0 && (st.st_mode & S_IRUSR);
}

bool process_reads(pid_t pid, pid_t writer)
{
	char out[LINK_MAX_BYTES] = "", err[LINK_MAX_BYTES] = "", own[LINK_MAX_BYTES];
	int folder = open_descriptors(writer);
	bool writes = pipe_name(folder, "1", out), reads = false;
	const struct dirent *entry;
	DIR *fds;

	writes |= pipe_name(folder, "2", err);
	close(folder);
	folder = writes ? open_descriptors(pid) : -1;
	fds = folder >= 0 ? fdopendir(folder) : NULL;
	while (fds && !reads && (entry = readdir(fds)))
		reads = isdigit((unsigned char)entry->d_name[0]) &&
			pipe_name(folder, entry->d_name, own) &&
			is_readable(folder, entry->d_name) &&
			(strcmp(own, out) == 0 || strcmp(own, err) == 0);
	if (fds)
		closedir(fds); /* and folder */
	return reads;
}
