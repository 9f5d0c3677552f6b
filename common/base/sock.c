/* SPDX-License-Identifier: MIT */
/* sock.c - connects to and listens at Unix sockets, also at paths that are too long for them.
 *
 * sun_path is 108 bytes, and people keep their state in deep folders. The kernel resolves
 * /proc/self/fd/N/name like any path, so an open folder stands in for its long name. */
#include "common/base/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/mem.h"

enum { BACKLOG = 128 };

struct address {
	struct sockaddr_un un;
	int folder_fd; /* keeps /proc/self/fd/N alive; -1 for short paths */
};

static int open_folder(const char *path, const char *slash)
{
	char *folder = slash == path ? xstrdup("/") : xstrndup(path, (size_t)(slash - path));
	int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int saved = errno;

	free(folder);
	errno = saved;
	return fd;
}

/* 0, or -1 with errno set. */
static int address_init(struct address *a, const char *path)
{
	const char *slash = strrchr(path, '/');
	int n;

	*a = (struct address){ .un.sun_family = AF_UNIX, .folder_fd = -1 };
	if (path[0] == '\0') { /* would mean "any abstract name" */
		errno = ENOENT;
		return -1;
	}
	if (strlen(path) < sizeof(a->un.sun_path)) {
		memcpy(a->un.sun_path, path, strlen(path) + 1);
		return 0;
	}
	if (!slash) {
		errno = ENAMETOOLONG;
		return -1;
	}
	a->folder_fd = open_folder(path, slash);
	if (a->folder_fd < 0)
		return -1;
	n = snprintf(a->un.sun_path, sizeof(a->un.sun_path), "/proc/self/fd/%d/%s", a->folder_fd,
		     slash + 1);
	if (n < 0 || (size_t)n >= sizeof(a->un.sun_path)) {
		close(a->folder_fd);
		errno = ENAMETOOLONG;
		return -1;
	}
	return 0;
}

static void address_fini(struct address *a)
{
	int saved = errno;

	if (a->folder_fd >= 0)
		close(a->folder_fd);
	errno = saved;
}

static int dial(const struct address *a, int flags, int64_t patience_ms)
{
	struct timeval patience = { .tv_sec = patience_ms / 1000,
				    .tv_usec = patience_ms % 1000 * 1000 + 1 }; /* 0: for ever */
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
	int rc, saved;

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)); /* connect's, too */
	do
		rc = connect(fd, (const struct sockaddr *)&a->un, sizeof(a->un));
	while (rc < 0 && errno == EINTR);
	if (rc == 0)
		return fd;
	saved = errno;
	close(fd);
	errno = saved;
	return -1;
}

/* Makes room for bind. Only a socket that refuses connections is taken away: one that is merely
 * slow (EAGAIN: its backlog is full) belongs to a living daemon. */
static int clear_stale(const struct address *a, const char *path, struct err *err)
{
	struct stat st;
	int fd;

	if (lstat(a->un.sun_path, &st) < 0)
		return errno == ENOENT ? 0 : err_errno(err, "%s", path);
	if (!S_ISSOCK(st.st_mode))
		return err_set(err, ERR_IO, "%s: exists and is no socket", path);
	fd = dial(a, SOCK_NONBLOCK, 0);
	if (fd >= 0 || errno == EAGAIN || errno == EINPROGRESS) {
		if (fd >= 0)
			close(fd);
		return err_set(err, ERR_LOCKED, "%s: somebody listens there already", path);
	}
	if (errno != ECONNREFUSED && errno != ENOENT)
		return err_errno(err, "%s", path);
	if (unlink(a->un.sun_path) < 0 && errno != ENOENT)
		return err_errno(err, "%s", path);
	return 0;
}

int sock_set_mode(const char *path, mode_t mode)
{
	char same[64];
	int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	int rc, saved;

	if (fd < 0)
		return -1;
	snprintf(same, sizeof(same), "/proc/self/fd/%d", fd);
	rc = chmod(same, mode);
	saved = errno;
	close(fd);
	errno = saved;
	return rc;
}

static int bind_and_listen(const struct address *a, const char *path, mode_t mode, struct err *err)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int rc;

	if (fd < 0)
		return err_errno(err, "socket");
	/* The file is born with the mode of the socket's inode: closed to others from the first
	 * moment, without touching the umask of a process that may have threads. */
	if (fchmod(fd, 0600) < 0 || bind(fd, (const struct sockaddr *)&a->un, sizeof(a->un)) < 0) {
		rc = errno == EADDRINUSE ? err_set(err, ERR_LOCKED, "%s: in use", path)
					 : err_errno(err, "%s", path);
		close(fd);
		return rc;
	}
	if (listen(fd, BACKLOG) < 0 || sock_set_mode(a->un.sun_path, mode) < 0) {
		rc = err_errno(err, "%s", path);
		unlink(a->un.sun_path);
		close(fd);
		return rc;
	}
	return fd;
}

int sock_listen(const char *path, mode_t mode, struct err *err)
{
	struct address a;
	int fd;

	if (address_init(&a, path) < 0)
		return err_errno(err, "%s", path);
	fd = clear_stale(&a, path, err);
	if (fd == 0)
		fd = bind_and_listen(&a, path, mode, err);
	address_fini(&a);
	return fd;
}

int sock_connect(const char *path, int64_t patience_ms, struct err *err)
{
	struct address a;
	int fd = -1;

	if (address_init(&a, path) == 0) {
		fd = dial(&a, 0, patience_ms);
		address_fini(&a);
	}
	if (fd >= 0)
		return fd;
	if (errno == ENOENT || errno == ECONNREFUSED || errno == ENOTDIR)
		return err_set(err, ERR_DAEMON, "%s: nobody listens there", path);
	if (errno == EACCES || errno == EPERM)
		return err_set(err, ERR_REFUSED, "%s: permission denied", path);
	if (errno == EAGAIN)
		return err_set(err, ERR_TIMEOUT, "%s: nobody accepts a connection", path);
	return err_errno(err, "%s", path);
}
