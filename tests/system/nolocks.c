/* SPDX-License-Identifier: MIT */
/* nolocks.c - LD_PRELOAD: a file system whose locks say yes to everybody and that tells nothing of
 * what changes on it (inotify), and (NOLOCKS_HOST) another machine. What a network file system
 * without a lock daemon is like. Who asked to be told leaves a file NOLOCKS_ASKED.PROGRAM, if that
 * is set. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
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
