/* SPDX-License-Identifier: MIT */
/* obstacle.c - follows a path, its links and a script's first line to where it breaks off. */
#include "worker/lbrun/trainer/obstacle.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/base/accounts.h"
#include "common/base/mem.h"
#include "common/base/paths.h"

enum { FIRST_LINE_BYTES = 256 }; /* what kernels read of it */

static char *user_name(uid_t uid)
{
	struct account account;
	char *name = account_of(uid, &account) ? xstrdup(account.name)
					       : xasprintf("user %u", (unsigned)uid);

	account_clear(&account);
	return name;
}

/* "is closed to ada (mode 0700, of bob)" */
static char *refusal(const char *what, const char *path, const char *verb)
{
	char *me = user_name(geteuid()), *owner, *text;
	struct stat st;

	if (stat(path, &st) < 0) {
		text = xasprintf("the %s %s %s %s", what, path, verb, me);
	} else {
		owner = user_name(st.st_uid);
		text = xasprintf("the %s %s %s %s (mode %04o, of %s)", what, path, verb, me,
				 (unsigned)st.st_mode & 07777, owner);
		free(owner);
	}
	free(me);
	return text;
}

/* Where realpath got no further, `reached` ends in what it could not look at (a promise of
 * glibc's). */
static char *broken_off(int error, char *reached)
{
	if (error == EACCES)
		return refusal("folder", dirname(reached), "is closed to");
	if (error == ENOENT)
		return xasprintf("there is no %s", reached);
	if (error == ENOTDIR)
		return xasprintf("%s is no folder", reached);
	return NULL;
}

/* Follows it to its end, *real, which is owned; or says what is in the way. */
static char *follow(const char *path, char **real)
{
	char reached[PATH_MAX] = "";

	*real = NULL;
	if (!realpath(path, reached))
		return broken_off(errno, reached);
	*real = xstrdup(reached);
	return NULL;
}

char *obstacle_to_folder(const char *path)
{
	char *real, *text = follow(path, &real);
	struct stat st;

	if (real && stat(real, &st) == 0 && !S_ISDIR(st.st_mode))
		text = xasprintf("%s is no folder", real);
	else if (real && access(real, X_OK) < 0)
		text = refusal("folder", real, "is closed to");
	free(real);
	return text;
}

/* The program that a script's first line names; owned, NULL: it is no script, or may not be
 * read. */
static char *interpreter_of(const char *path)
{
	char line[FIRST_LINE_BYTES] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd >= 0 ? read(fd, line, sizeof(line) - 1) : -1;
	char *at = line + 2;

	if (fd >= 0)
		close(fd);
	if (n < 3 || strncmp(line, "#!", 2) != 0)
		return NULL;
	at += strspn(at, " \t");
	return xasprintf("%.*s", (int)strcspn(at, " \t\n"), at);
}

static char *obstacle_to_interpreter(const char *script)
{
	char *name = interpreter_of(script), *real = NULL, *why, *text = NULL;

	if (!name)
		return NULL;
	why = follow(name, &real);
	if (why)
		text = xasprintf("the first line of %s names %s%s: %s", script, name,
				 strchr(name, '\r') ? " with a carriage return behind it (a file "
						      "from Windows: dos2unix)"
						    : "",
				 why);
	free(name);
	free(real);
	free(why);
	return text;
}

/* The mode says nothing of it. */
static bool is_on_noexec(const char *path)
{
	struct statvfs st;

	return statvfs(path, &st) == 0 && (st.f_flag & ST_NOEXEC);
}

static char *obstacle_to_file(const char *path)
{
	char *real, *text = follow(path, &real);
	struct stat st;

	if (real && stat(real, &st) == 0 && S_ISDIR(st.st_mode))
		text = xasprintf("%s is a folder", real);
	else if (real && is_on_noexec(real))
		text = xasprintf("the file system of %s is mounted noexec, so that nothing on it "
				 "may be run",
				 real);
	else if (real && access(real, X_OK) < 0)
		text = refusal("file", real, "may not be run by");
	else if (real)
		text = obstacle_to_interpreter(real);
	free(real);
	return text;
}

/* The first along the search path that is there, or hidden by a closed folder, is meant. */
static char *along(const char *name, const char *search)
{
	for (const char *at = search; at && *at;) {
		size_t len = strcspn(at, ":");
		char *path = path_join("%.*s/%s", (int)len, at, name), *text = NULL;
		bool is_meant = len > 0 && (access(path, F_OK) == 0 || errno == EACCES);

		if (is_meant)
			text = obstacle_to_file(path);
		free(path);
		if (is_meant)
			return text;
		at += len + (at[len] == ':');
	}
	return xasprintf("there is no such program in the job's PATH (%s)", search ? search : "");
}

char *obstacle_to_program(const char *name, const char *search)
{
	return strchr(name, '/') ? obstacle_to_file(name) : along(name, search);
}
