/* SPDX-License-Identifier: MIT */
/* zst.c - compresses a file into the place of the old one, and reads one back piece by piece. */
#include "common/base/zst.h"

#include <errno.h>
#include <stdbool.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "common/base/files.h"
#include "common/base/mem.h"

/* WINDOW_LOG: `zstd --long=31`, the most that the format has. */
enum { LEVEL = 3, WINDOW_LOG = 31 };

/* --- writing ---------------------------------------------------------------------------------- */

/* One piece of input; the last one ends the frame. */
static int feed(ZSTD_CCtx *context, ZSTD_inBuffer *in, bool last, int to, char *out, size_t room)
{
	size_t left;

	do {
		ZSTD_outBuffer piece = { out, room, 0 };

		left = ZSTD_compressStream2(context, &piece, in,
					    last ? ZSTD_e_end : ZSTD_e_continue);
		if (ZSTD_isError(left)) {
			errno = EIO;
			return -1;
		}
		if (file_write_all(to, out, piece.pos) < 0)
			return -1;
	} while (last ? left != 0 : in->pos < in->size);
	return 0;
}

static int copy(int from, int to)
{
	size_t in_room = ZSTD_CStreamInSize(), out_room = ZSTD_CStreamOutSize();
	char *in = xmalloc(in_room), *out = xmalloc(out_room);
	ZSTD_CCtx *context = ZSTD_createCCtx();
	ssize_t n = -1;
	int rc = context ? 0 : -1;

	if (rc == 0) {
		ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, LEVEL);
		ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
	}
	while (rc == 0 && n != 0) {
		ZSTD_inBuffer piece;

		n = read(from, in, in_room);
		if (n < 0 && errno == EINTR)
			continue;
		piece = (ZSTD_inBuffer){ in, n > 0 ? (size_t)n : 0, 0 };
		rc = n < 0 ? -1 : feed(context, &piece, n == 0, to, out, out_room);
	}
	ZSTD_freeCCtx(context);
	free(in);
	free(out);
	return rc;
}

static int check_ours(int fd, const char *name, struct stat *st, struct err *err)
{
	if (fstat(fd, st) < 0)
		return err_errno(err, "%s", name);
	if (!S_ISREG(st->st_mode) || st->st_nlink != 1 || st->st_uid != geteuid())
		return err_set(err, ERR_REFUSED, "%s: no regular file of ours with this one name",
			       name);
	return 0;
}

/* With everything that the old file told but its name. */
static int finish(int fd, const struct stat *st)
{
	const struct timespec times[2] = { st->st_atim, st->st_mtim };

	if (fchown(fd, (uid_t)-1, st->st_gid) < 0 && errno != EPERM)
		return -1;
	return fchmod(fd, st->st_mode & 07777) < 0 || futimens(fd, times) < 0 || fsync(fd) < 0 ? -1
											       : 0;
}

static int compress_to(int dir, int from, const char *name, const struct stat *st, struct err *err)
{
	char *target = xasprintf("%s.zst", name), *part = xasprintf("%s.zst.part", name);
	int to, rc = -1;

	unlinkat(dir, part, 0);
	to = openat(dir, part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (to < 0)
		err_errno(err, "%s", part);
	else if (copy(from, to) < 0 || finish(to, st) < 0 || renameat(dir, part, dir, target) < 0 ||
		 fsync(dir) < 0)
		err_errno(err, "%s: cannot be compressed", name);
	else
		rc = 0;
	if (to >= 0)
		close(to);
	if (rc < 0)
		unlinkat(dir, part, 0);
	free(target);
	free(part);
	return rc;
}

int zst_compress(int dir, const char *name, struct err *err)
{
	int from = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	int rc = -1;

	if (from < 0)
		return err_errno(err, "%s", name);
	if (check_ours(from, name, &st, err) == 0 && compress_to(dir, from, name, &st, err) == 0)
		rc = unlinkat(dir, name, 0) < 0 ? err_errno(err, "%s", name) : 0;
	close(from);
	return rc;
}

/* --- reading ---------------------------------------------------------------------------------- */

static int read_pieces(int fd, ZSTD_DCtx *context, char *in, char *out,
		       int (*each)(const char *data, size_t len, void *arg), void *arg)
{
	size_t left = 0;
	ssize_t n;

	while ((n = read(fd, in, ZSTD_DStreamInSize())) > 0 || (n < 0 && errno == EINTR)) {
		ZSTD_inBuffer piece = { in, n > 0 ? (size_t)n : 0, 0 };

		while (piece.pos < piece.size) {
			ZSTD_outBuffer text = { out, ZSTD_DStreamOutSize(), 0 };

			left = ZSTD_decompressStream(context, &text, &piece);
			if (ZSTD_isError(left))
				return -1;
			if (each(out, text.pos, arg))
				return 0;
		}
	}
	return n < 0 || left != 0 ? -1 : 0;
}

int zst_read(const char *path, int (*each)(const char *data, size_t len, void *arg), void *arg,
	     struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), rc = 0;
	char *in, *out;
	ZSTD_DCtx *context;

	if (fd < 0)
		return err_errno(err, "%s", path);
	in = xmalloc(ZSTD_DStreamInSize());
	out = xmalloc(ZSTD_DStreamOutSize());
	context = ZSTD_createDCtx();
	if (context)
		ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, WINDOW_LOG);
	if (context == NULL || read_pieces(fd, context, in, out, each, arg) < 0)
		rc = err_set(err, ERR_IO, "%s: damaged, or it ends early", path);
	ZSTD_freeDCtx(context);
	free(in);
	free(out);
	close(fd);
	return rc;
}
