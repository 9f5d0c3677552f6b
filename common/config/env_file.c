/* SPDX-License-Identifier: MIT */
/* env_file.c - reads run.env_file, lines of KEY=VALUE.
 *
 * The one file of ours that holds secrets. Only its owner may be able to read it, no message ever
 * quotes it (a malformed line may be the secret), and its memory is wiped after use. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/guarded.h"
#include "common/base/mem.h"
#include "common/config/run_spec.h"
#include "common/base/strv.h"

enum { ENV_FILE_MAX_BYTES = 1024 * 1024 };

static int check_owner(const struct stat *st, const char *path, unsigned uid, struct err *err)
{
	if (!S_ISREG(st->st_mode))
		return err_set(err, ERR_REFUSED, "%s: not a regular file", path);
	if (st->st_uid != uid)
		return err_set(err, ERR_REFUSED, "%s: owned by uid %u, must be owned by uid %u",
			       path, st->st_uid, uid);
	if (st->st_mode & 077)
		return err_set(err, ERR_REFUSED,
			       "%s: mode %04o lets others at it; make it 0600 (chmod go= FILE)",
			       path, st->st_mode & 07777U);
	if (st->st_size > ENV_FILE_MAX_BYTES)
		return err_set(err, ERR_USAGE, "%s: larger than 1 MiB", path);
	return 0;
}

/* Not through file_read: a growing buffer would leave copies of secrets in freed memory. */
static char *read_text(int fd, size_t len, const char *path, struct err *err)
{
	char *text = xcalloc(len + 1, 1);
	size_t at = 0;

	while (at < len) {
		ssize_t n = read(fd, text + at, len - at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			err_errno(err, "%s", path);
		else if (n == 0)
			err_set(err, ERR_IO, "%s: changed while it was read", path);
		if (n <= 0) {
			explicit_bzero(text, len);
			free(text);
			return NULL;
		}
		at += (size_t)n;
	}
	return text;
}

static bool is_key_char(char c, bool first)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
	       (!first && c >= '0' && c <= '9');
}

static bool is_assignment(const char *line, size_t len)
{
	size_t i = 0;

	while (i < len && is_key_char(line[i], i == 0))
		i++;
	return i > 0 && i < len && line[i] == '=';
}

static char **split(const char *text, size_t len, const char *path, struct err *err)
{
	size_t count = 0, cap = 16;
	char **list = xcalloc(cap + 1, sizeof(list[0]));
	int number = 1;

	for (size_t at = 0; at < len; number++) {
		const char *line = text + at;
		const char *newline = memchr(line, '\n', len - at);
		size_t line_len = newline ? (size_t)(newline - line) : len - at;

		at += line_len + 1;
		if (line_len > 0 && line[line_len - 1] == '\r') /* an editor of Windows was here */
			line_len--;
		if (line_len == 0 || line[0] == '#')
			continue;
		if (!is_assignment(line, line_len) || memchr(line, '\0', line_len)) {
			err_set(err, ERR_USAGE, "%s:%d: must be KEY=VALUE, a # comment or empty",
				path, number);
			strv_free(list);
			return NULL;
		}
		if (count == cap) {
			cap *= 2;
			list = xrealloc(list, (cap + 1) * sizeof(list[0]));
		}
		list[count++] = xstrndup(line, line_len);
		list[count] = NULL;
	}
	return list;
}

char **env_file_read(const char *path, unsigned uid, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	char *text = NULL;
	char **list = NULL;

	if (fd < 0) {
		if (errno == ENOENT)
			err_set(err, ERR_NOT_FOUND, "%s: no such file", path);
		else if (errno == ELOOP)
			err_set(err, ERR_REFUSED, "%s: is a link, not a regular file", path);
		else
			err_errno(err, "%s", path);
		return NULL;
	}
	if (fstat(fd, &st) < 0)
		err_errno(err, "%s", path);
	else if (check_owner(&st, path, uid, err) == 0 && guarded_check(fd, path, uid, err) == 0)
		text = read_text(fd, (size_t)st.st_size, path, err);
	close(fd);
	if (!text)
		return NULL;
	list = split(text, (size_t)st.st_size, path, err);
	explicit_bzero(text, (size_t)st.st_size);
	free(text);
	return list;
}
