/* SPDX-License-Identifier: MIT */
/* home.c - finds the folder, moves it, and leaves a link behind. */
#include "common/run/home.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/files.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/shell_words.h"

/* The path in HOME/home, owned; NULL: there is none, or with err. What is no whole line is none: a
 * power cut may have left the file empty, or full of zeros. */
static char *known_path(const char *home, struct err *err)
{
	char *file = path_join("%s/home", home), *text = NULL, *end;

	if (file_exists(file))
		text = file_read(file, PATH_MAX, NULL, err);
	end = text && text[0] == '/' ? strchr(text, '\n') : NULL;
	if (end) {
		*end = '\0';
	} else {
		free(text);
		text = NULL;
	}
	free(file);
	return text;
}

static int write_path(const char *home, struct err *err)
{
	char *file = path_join("%s/home", home), *text = xasprintf("%s\n", home);
	int rc = file_write_atomic(file, text, strlen(text), 0640, err);

	free(file);
	free(text);
	return rc;
}

int home_check(const char *home, struct err *err)
{
	struct err why = { 0 };
	char *known = known_path(home, &why), word[SHELL_WORD_BYTES];
	const char *place = shell_word(home, word);
	struct stat st;
	int rc = 0;

	if (known == NULL && why.code != ERR_NONE)
		rc = err_set(err, why.code, "%s", why.text);
	else if (known == NULL)
		rc = write_path(home, err);
	else if (file_is_same(known, home))
		rc = 0;
	else if (lstat(known, &st) < 0)
		rc = err_set(
			err, ERR_REFUSED,
			"$LB_HOME was moved here from %s, which its runs and jobs still go by; "
			"nothing is lost: lbctl --home %s home move %s",
			known, place, place);
	else
		rc = err_set(
			err, ERR_REFUSED,
			"%s/home says that this folder belongs at %s, where another one "
			"is: work there; a copy that is to live by itself may do without that file",
			home, known);
	free(known);
	return rc;
}

/* --- moving ----------------------------------------------------------------------------------- */

static int refuse_place(const char *from, const char *to, struct err *err)
{
	char *parent = xstrndup(to, (size_t)(strrchr(to, '/') - to));
	struct stat there;
	int rc = 0;

	if (path_below(to, from))
		rc = err_set(err, ERR_USAGE, "%s lies inside %s", to, from);
	else if (stat(parent[0] ? parent : "/", &there) < 0 || !S_ISDIR(there.st_mode))
		rc = err_set(err, ERR_USAGE, "%s: there is no such folder; make it first", parent);
	free(parent);
	return rc;
}

/* A link to itself holds the new name; then folder and link change places in one step. */
static int exchange(const char *from, const char *to, struct err *err)
{
	if (symlink(to, to) < 0)
		return err_errno(err, "%s", to);
	if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_EXCHANGE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS) {
		err_errno(err, "%s: cannot be moved to %s", from, to);
		unlink(to);
		return -1;
	}
	/* NFS and others: two steps; a crash between them is mended by saying it again */
	if (unlink(to) < 0 || rename(from, to) < 0 || symlink(to, from) < 0)
		return err_errno(err, "%s: cannot be moved to %s", from, to);
	return 0;
}

/* The link that is missing where the folder was first, after somebody's mv or our crash. */
static int mend(const char *to, struct err *err)
{
	char *known = known_path(to, err);
	struct stat st;
	int rc = -1;

	if (known && file_is_same(known, to))
		rc = 0;
	else if (known && lstat(known, &st) == 0)
		err_set(err, ERR_REFUSED, "%s: something else is there", known);
	else if (known)
		rc = symlink(to, known) < 0 ? err_errno(err, "%s", known) : 0;
	else
		err_set(err, ERR_USAGE, "%s: this is no folder of lbd's", to);
	free(known);
	return rc;
}

static bool is_own_link(const char *to)
{
	char target[PATH_MAX];
	ssize_t len = readlink(to, target, sizeof(target) - 1);

	if (len < 0)
		return false;
	target[len] = '\0';
	return strcmp(target, to) == 0;
}

int home_move(const char *from, const char *to, struct err *err)
{
	char *real = realpath(from, NULL);
	struct stat st;
	int rc;

	if (is_own_link(to)) /* of a move that was killed before it began */
		unlink(to);
	if (lstat(to, &st) == 0 && S_ISDIR(st.st_mode)) {
		bool is_there = real == NULL || file_is_same(real, to);

		rc = is_there ? mend(to, err)
			      : err_set(err, ERR_REFUSED, "%s is there already", to);
	} else if (real == NULL) {
		rc = err_errno(err, "%s", from);
	} else if (lstat(to, &st) == 0) {
		rc = err_set(err, ERR_REFUSED, "%s is there already", to);
	} else {
		rc = home_check(real, err) < 0 || refuse_place(real, to, err) < 0
			     ? -1
			     : exchange(real, to, err);
	}
	free(real);
	return rc;
}
