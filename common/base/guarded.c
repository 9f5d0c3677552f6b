/* SPDX-License-Identifier: MIT */
/* guarded.c - who could change a file: by its own mode, or by that of a folder on the way to it. */
#include "common/base/guarded.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "common/base/accounts.h"
#include "common/base/files.h"
#include "common/base/shell_words.h"

/* --- who may own, who may write --------------------------------------------------------------- */

static long number_in(const char *path, const char *fmt)
{
	FILE *f = fopen(path, "re");
	long number = -1;

	if (f && fscanf(f, fmt, &number) != 1)
		number = -1;
	if (f)
		fclose(f);
	return number;
}

/* In a user namespace that does not know root, as of a container or of a sandboxed systemd unit,
 * root's files seem to be nobody's. */
static bool is_unmapped_root(uid_t uid)
{
	return number_in("/proc/self/uid_map", "%*d %*d %ld") != 4294967295L &&
	       (long)uid == number_in("/proc/sys/kernel/overflowuid", "%ld");
}

static bool may_own(uid_t owner, uid_t uid)
{
	return owner == 0 || owner == uid || is_unmapped_root(owner);
}

/* Then the mode has, in its group's place, what anybody on the list may do at most. `fd` may be one
 * of O_PATH, of which the kernel tells no attributes. */
static bool has_access_list(int fd)
{
	char link[40];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return getxattr(link, "system.posix_acl_access", NULL, 0) > 0;
}

/* `is_way`: a folder on the way to what is checked. */
static int check_one(int fd, const struct stat *st, const char *path, bool is_way, uid_t uid,
		     struct err *err)
{
	bool by_group = (st->st_mode & S_IWGRP) &&
			(!group_is_private(st->st_gid, uid) || has_access_list(fd));
	bool by_all = st->st_mode & S_IWOTH;
	char word[SHELL_WORD_BYTES];
	struct account owner;

	if (!may_own(st->st_uid, uid)) {
		account_of(st->st_uid, &owner);
		err_set(err, ERR_REFUSED,
			"%s: belongs to somebody else (%s, uid %u), and what lies there acts "
			"as you: use one that is yours, below folders that are yours or root's",
			path, owner.name ? owner.name : "without a name", st->st_uid);
		account_clear(&owner);
		return -1;
	}
	if ((!by_group && !by_all) || (is_way && (st->st_mode & S_ISVTX)))
		return 0;
	/* a place of everybody's is to stay one, and root's mode is not this user's to change */
	if (st->st_uid != uid || (by_all && (st->st_mode & S_ISVTX)))
		return err_set(err, ERR_REFUSED,
			       "%s: others can write to it, and what lies there acts as you: use a "
			       "folder that only you can write to",
			       path);
	return err_set(err, ERR_REFUSED,
		       "%s: others can write to it, and what lies there acts as you; mend "
		       "it with: chmod %s-w %s",
		       path,
		       by_group && by_all ? "go"
		       : by_all           ? "o"
					  : "g",
		       shell_word(path, word));
}

/* --- the way to it ---------------------------------------------------------------------------- */

/* Step by step from the root, so that each folder that is looked at lies in the one before. */
static int check_way(char *path, uid_t uid, struct err *err)
{
	int at = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), next, rc = 0;
	struct stat st;

	for (char *word = path, *slash; at >= 0; word = slash) {
		*word = '\0';
		rc = fstat(at, &st) < 0 ? err_errno(err, "%s", path)
					: check_one(at, &st, path[0] ? path : "/", true, uid, err);
		*word = '/';
		slash = strchr(word + 1, '/');
		if (rc < 0 || !slash)
			break;
		*slash = '\0';
		next = openat(at, word + 1, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			rc = err_errno(err, "%s", path);
		*slash = '/';
		close(at);
		at = next;
	}
	if (at >= 0)
		close(at);
	return rc;
}

int guarded_check_alone(int fd, const char *path, uid_t uid, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_errno(err, "%s", path);
	return check_one(fd, &st, path, false, uid, err);
}

int guarded_check(int fd, const char *path, uid_t uid, struct err *err)
{
	char link[40], real[PATH_MAX];
	ssize_t len;

	if (guarded_check_alone(fd, path, uid, err) < 0)
		return -1;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, real, sizeof(real) - 1);
	if (len <= 0 || real[0] != '/')
		return len < 0 ? err_errno(err, "%s", path)
			       : err_set(err, ERR_REFUSED, "%s: lies in no folder", path);
	real[len] = '\0';
	return check_way(real, uid, err);
}

/* --- opening it ------------------------------------------------------------------------------- */

int guarded_open(const char *path, int flags, uid_t uid, struct err *err)
{
	int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0 && errno == ENOENT)
		return err_set(err, ERR_NOT_FOUND, "%s: no such file", path);
	if (fd < 0 && errno == ELOOP && (flags & O_NOFOLLOW))
		return err_set(err, ERR_REFUSED, "%s: must be a regular file, and no link", path);
	if (fd < 0)
		return err_errno(err, "%s", path);
	if (guarded_check(fd, path, uid, err) == 0)
		return fd;
	close(fd);
	return -1;
}

char *guarded_read(const char *path, size_t max_bytes, size_t *out_len, struct err *err)
{
	int fd = guarded_open(path, O_RDONLY, geteuid(), err);
	char *text = NULL;

	if (out_len)
		*out_len = 0;
	if (fd >= 0) {
		text = file_read_fd(fd, path, max_bytes, out_len, err);
		close(fd);
	}
	return text;
}
