/* SPDX-License-Identifier: MIT */
#include "daemon/lock.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/files.h"
#include "common/paths.h"

enum { PATIENCE_MS = 500, LOOK_MS = 20 };

/* A child of an lbd that was killed holds the lock on until its exec: a moment's patience. */
static int take(int fd)
{
	int64_t give_up_ms = clock_mono_ms() + PATIENCE_MS;
	int rc;

	while ((rc = flock(fd, LOCK_EX | LOCK_NB)) < 0 && clock_mono_ms() < give_up_ms)
		poll(NULL, 0, LOOK_MS);
	return rc;
}

static int refuse(const char *path, const char *home, struct err *err)
{
	char *holder = file_read(path, 512, NULL, NULL);

	if (holder)
		holder[strcspn(holder, "\n")] = '\0';
	err_set(err, ERR_LOCKED, "%s: another lbd is at work here (%s)", home,
		holder && *holder ? holder : "it has not said who it is");
	free(holder);
	return -1;
}

static int write_holder(int fd)
{
	char host[65] = "", text[160], when[CLOCK_TEXT_MAX];
	int len;

	gethostname(host, sizeof(host) - 1);
	len = snprintf(text, sizeof(text), "pid %d on %s since %s\n", getpid(), host,
		       clock_text(clock_wall_ms(), when));
	if (ftruncate(fd, 0) < 0 || pwrite(fd, text, (size_t)len, 0) != len)
		return -1;
	return 0;
}

int lock_take(const char *home, struct err *err)
{
	char *path = path_join("%s/lbd.lock", home);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);

	if (fd < 0) {
		err_errno(err, "%s", path);
	} else if (take(fd) < 0) {
		refuse(path, home, err);
		close(fd);
		fd = -1;
	} else if (write_holder(fd) < 0) {
		err_errno(err, "%s", path);
		close(fd);
		fd = -1;
	}
	free(path);
	return fd;
}
