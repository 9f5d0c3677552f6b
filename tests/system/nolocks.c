/* SPDX-License-Identifier: MIT */
/* nolocks.c - LD_PRELOAD: a file system whose locks say yes to everybody and that tells nothing of
 * what changes on it (inotify), and (NOLOCKS_HOST) another machine. What a network file system
 * without a lock daemon is like. Who asked to be told leaves a file NOLOCKS_ASKED.PROGRAM, if that
 * is set. Below NOLOCKS_REPEATS what was not there, when it was opened to be read, is not there
 * until its folder is opened. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <unistd.h>

static int answer(int fd, int command, void *arg, const char *name)
{
	int (*real)(int, int, ...) = NULL;

	*(void **)&real = dlsym(RTLD_NEXT, name);
	if (command == F_SETLK || command == F_SETLKW)
		return 0;
	if (command == F_GETLK) {
		((struct flock *)arg)->l_type = F_UNLCK;
		return 0;
	}
	return real(fd, command, arg);
}

/* As on NFS: the watch is granted, and nothing is ever heard. (Nobody changes /usr.) */
int inotify_add_watch(int fd, const char *path, uint32_t mask)
{
	int (*real)(int, const char *, uint32_t) = NULL;
	const char *asked = getenv("NOLOCKS_ASKED");
	char name[4096];

	(void)path;
	*(void **)&real = dlsym(RTLD_NEXT, "inotify_add_watch");
	if (asked) {
		snprintf(name, sizeof(name), "%s.%s", asked, program_invocation_short_name);
		close(open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	}
	return real(fd, "/usr", mask);
}

int flock(int fd, int operation)
{
	(void)fd;
	(void)operation;
	return 0;
}

int fcntl(int fd, int command, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, command);
	arg = va_arg(ap, void *);
	va_end(ap);
	return answer(fd, command, arg, "fcntl");
}

int fcntl64(int fd, int command, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, command);
	arg = va_arg(ap, void *);
	va_end(ap);
	return answer(fd, command, arg, "fcntl64");
}

int gethostname(char *name, size_t len)
{
	const char *host = getenv("NOLOCKS_HOST");
	int (*real)(char *, size_t) = NULL;

	*(void **)&real = dlsym(RTLD_NEXT, "gethostname");
	if (host == NULL)
		return real(name, len);
	strncpy(name, host, len);
	return 0;
}

/* --- what is repeated ------------------------------------------------------------------------- */

enum { ABSENT_MAX = 64 };

static char absent[ABSENT_MAX][4096]; /* paths; an empty one is free */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_said_absent(const char *path)
{
	bool is = false;

	for (int i = 0; i < ABSENT_MAX; i++)
		is |= strcmp(absent[i], path) == 0;
	return is;
}

static void say_absent(const char *path)
{
	for (int i = 0; i < ABSENT_MAX; i++)
		if (absent[i][0] == '\0') {
			strncpy(absent[i], path, sizeof(absent[i]) - 1);
			return;
		}
}

static void ask_anew(const char *folder)
{
	size_t len = strlen(folder);

	for (int i = 0; i < ABSENT_MAX; i++)
		if (strncmp(absent[i], folder, len) == 0 && absent[i][len] == '/' &&
		    strchr(absent[i] + len + 1, '/') == NULL)
			absent[i][0] = '\0';
}

static int opened(const char *path, int flags, mode_t mode)
{
	int (*real)(const char *, int, ...) = NULL;
	const char *below = getenv("NOLOCKS_REPEATS");
	bool is_read = below && !(flags & (O_CREAT | O_DIRECTORY)) &&
		       strncmp(path, below, strlen(below)) == 0;
	int fd = -1;

	*(void **)&real = dlsym(RTLD_NEXT, "open");
	if (!below)
		return real(path, flags, mode);
	pthread_mutex_lock(&lock);
	if (is_read && is_said_absent(path))
		errno = ENOENT;
	else
		fd = real(path, flags, mode);
	if (fd >= 0 && flags & O_DIRECTORY)
		ask_anew(path);
	if (fd < 0 && errno == ENOENT && is_read && !is_said_absent(path))
		say_absent(path);
	pthread_mutex_unlock(&lock);
	return fd;
}

int open(const char *path, int flags, ...)
{
	mode_t mode = 0;

	if (flags & O_CREAT) {
		va_list ap;

		va_start(ap, flags);
		mode = va_arg(ap, mode_t);
		va_end(ap);
	}
	return opened(path, flags, mode);
}

/* What _FORTIFY_SOURCE makes of it. */
int __open_2(const char *path, int flags);
int __open_2(const char *path, int flags)
{
	return opened(path, flags, 0);
}
