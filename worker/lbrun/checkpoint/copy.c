/* SPDX-License-Identifier: MIT */
/* copy.c - chunks, compared and written at a rate. */
#include "worker/lbrun/checkpoint/copy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/failpoint.h"
#include "common/base/files.h"
#include "common/base/mem.h"
#include "common/base/paths.h"

enum { CHUNK_BYTES = 4 * 1024 * 1024, FOLDER_MODE = 0750 };

static int write_chunk(int fd, const char *from, size_t len, off_t at)
{
	while (len > 0) {
		ssize_t n = pwrite(fd, from, len, at);

		if (n < 0 && errno != EINTR)
			return -1;
		n = n < 0 ? 0 : n;
		from += n;
		len -= (size_t)n;
		at += n;
	}
	return 0;
}

/* So that what was written until now took as long as the rate says. */
static void keep_to_rate(const struct copy *c)
{
	int64_t due_ms, ms;

	if (c->rate <= 0)
		return;
	due_ms = c->begun_ms + (int64_t)((double)c->written / (double)c->rate * 1000);
	while ((ms = due_ms - clock_mono_ms()) > 0)
		poll(NULL, 0, ms < 1000 ? (int)ms : 1000);
}

static bool is_zero(const char *bytes, size_t len)
{
	return bytes[0] == 0 && memcmp(bytes, bytes + 1, len - 1) == 0;
}

static int copy_open(struct copy *c, int from, int to, const char *name, struct err *err)
{
	ssize_t len, was;

	for (off_t at = 0;; at += len) {
		if (failpoint(FP_STAGE_CHUNK, err) < 0)
			return -1;
		len = file_read_at(from, c->mine, CHUNK_BYTES, at);
		if (len < 0)
			return err_errno(err, "%s", name);
		if (len == 0)
			return ftruncate(to, at) < 0 ? err_errno(err, "%s", name) : 0;
		was = file_read_at(to, c->theirs, CHUNK_BYTES, at);
		if (was == 0 && is_zero(c->mine, (size_t)len))
			continue; /* a hole stays one */
		if (was >= len && memcmp(c->mine, c->theirs, (size_t)len) == 0)
			continue;
		if (write_chunk(to, c->mine, (size_t)len, at) < 0)
			return err_errno(err, "%s", name);
		c->written += len;
		keep_to_rate(c);
	}
}

int copy_make_holder(const char *path, struct err *err)
{
	char *holder = xstrndup(path, (size_t)(path_base(path) - path));
	int rc = folder_make(holder, FOLDER_MODE, err);

	free(holder);
	return rc;
}

int copy_file(struct copy *c, const char *source, const char *path, struct err *err)
{
	struct stat st = { 0 };
	int from = open(source, O_RDONLY | O_CLOEXEC), to = -1, rc = 0;

	if (from < 0 || fstat(from, &st) < 0)
		rc = err_errno(err, "%s", source);
	if (rc == 0)
		rc = copy_make_holder(path, err);
	if (rc == 0 && (to = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
				  (st.st_mode & 0777) | 0600)) < 0)
		rc = err_errno(err, "%s", path);
	if (rc == 0)
		rc = copy_open(c, from, to, path, err);
	if (rc == 0 && futimens(to, (struct timespec[]){ st.st_mtim, st.st_mtim }) < 0)
		rc = err_errno(err, "%s", path);
	if (from >= 0)
		close(from);
	if (to >= 0)
		close(to);
	return rc;
}

static int copy_link(const char *source, const char *path, struct err *err)
{
	char target[PATH_MAX];
	ssize_t n = readlink(source, target, sizeof(target) - 1);

	if (n < 0)
		return err_errno(err, "%s", source);
	target[n] = '\0';
	unlink(path); /* of a copy that was cut short */
	return symlink(target, path) < 0 ? err_errno(err, "%s", path) : 0;
}

int copy_frame(const char *source, const char *path, struct err *err)
{
	DIR *dir = opendir(source);
	const struct dirent *entry;
	int rc = dir ? folder_make(path, FOLDER_MODE, err) : err_errno(err, "%s", source);

	while (dir && rc == 0 && (entry = readdir(dir)) != NULL) {
		char *from = path_join("%s/%s", source, entry->d_name);
		char *to = path_join("%s/%s", path, entry->d_name);
		int type = folder_entry_type(dirfd(dir), entry);
		struct stat st;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			type = DT_UNKNOWN;
		if (type == DT_DIR)
			rc = copy_frame(from, to, err);
		else if (type == DT_LNK && stat(from, &st) == 0 && S_ISDIR(st.st_mode))
			rc = copy_link(from, to, err);
		free(to);
		free(from);
	}
	if (dir)
		closedir(dir);
	return rc;
}

void copy_init(struct copy *c, int64_t rate)
{
	*c = (struct copy){ .rate = rate, .begun_ms = clock_mono_ms() };
	c->mine = xmalloc(CHUNK_BYTES);
	c->theirs = xmalloc(CHUNK_BYTES);
}

void copy_fini(struct copy *c)
{
	free(c->mine);
	free(c->theirs);
	c->mine = c->theirs = NULL;
}
