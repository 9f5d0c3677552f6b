/* SPDX-License-Identifier: MIT */
/* manifest_files.c - files below a checkpoint's folder: opened one component at a time without
 * following links, and their digests. */
#include "common/manifest/manifest_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "common/base/mem.h"
#include "common/manifest/manifest.h"

enum { READ_BYTES = 1024 * 1024, NAME_BYTES = 1024 };

const char manifest_name[] = "manifest.json";

static bool is_bad_part(const char *part, size_t len)
{
	return len == 0 || (len == 1 && part[0] == '.') ||
	       (len == 2 && part[0] == '.' && part[1] == '.');
}

bool manifest_name_is_good(const char *name)
{
	size_t len = strlen(name);

	if (len == 0 || len > NAME_BYTES || strcmp(name, manifest_name) == 0)
		return false;
	for (const char *c = name; *c; c++) {
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			return false;
	}
	for (const char *part = name;;) {
		size_t part_len = strcspn(part, "/");

		if (is_bad_part(part, part_len))
			return false;
		if (part[part_len] == '\0')
			return true;
		part += part_len + 1;
	}
}

int manifest_open_below(int folder, const char *name, bool parent)
{
	char part[NAME_BYTES + 1];
	int at = folder;

	for (;;) {
		size_t len = strcspn(name, "/");
		bool last = name[len] == '\0';
		int flags = last ? O_NONBLOCK | O_NOCTTY : O_DIRECTORY;
		int next;

		if (last && parent)
			return at == folder ? fcntl(folder, F_DUPFD_CLOEXEC, 0) : at;
		memcpy(part, name, len);
		part[len] = '\0';
		next = openat(at, part, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | flags);
		if (at != folder) {
			int saved = errno;

			close(at);
			errno = saved;
		}
		if (next < 0 || last)
			return next;
		at = next;
		name += len + 1;
	}
}

int manifest_open(int folder, const char *name, int64_t *bytes, struct err *err)
{
	struct stat st;
	int fd = manifest_open_below(folder, name, false);

	if (fd < 0 && errno == ENOENT)
		return err_set(err, ERR_NOT_FOUND, "%s: file is missing", name);
	if (fd < 0 && errno == ELOOP)
		return err_set(err, ERR_IO, "%s: is a link, not a regular file", name);
	if (fd < 0)
		return err_errno(err, "%s", name);
	if (fstat(fd, &st) < 0) {
		err_errno(err, "%s", name);
	} else if (!S_ISREG(st.st_mode)) {
		err_set(err, ERR_IO, "%s: not a regular file", name);
	} else {
		*bytes = st.st_size;
		return fd;
	}
	close(fd);
	return -1;
}

static void hex_of(XXH128_hash_t hash, char out[33])
{
	XXH128_canonical_t bytes;

	XXH128_canonicalFromHash(&bytes, hash);
	for (size_t i = 0; i < sizeof(bytes.digest); i++)
		snprintf(out + 2 * i, 3, "%02x", bytes.digest[i]);
}

int manifest_digest_fd(int fd, const char *name, char digest[33], int64_t *bytes, struct err *err)
{
	void *buf = xmalloc(READ_BYTES);
	XXH3_state_t state;
	ssize_t n;

	*bytes = 0;
	XXH3_128bits_reset(&state);
	posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	do {
		n = read(fd, buf, READ_BYTES);
		if (n < 0 && errno == EINTR) {
			n = 1;
			continue;
		}
		if (n > 0)
			XXH3_128bits_update(&state, buf, (size_t)n);
		*bytes += n > 0 ? n : 0;
	} while (n > 0);
	free(buf);
	if (n < 0)
		return err_errno(err, "%s", name);
	hex_of(XXH3_128bits_digest(&state), digest);
	return 0;
}

int manifest_digest_file(const char *path, char digest[33], int64_t *out_bytes, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	int64_t bytes = 0;
	int rc;

	digest[0] = '\0';
	if (fd < 0)
		return err_errno(err, "%s", path);
	rc = manifest_digest_fd(fd, path, digest, &bytes, err);
	close(fd);
	if (out_bytes)
		*out_bytes = bytes;
	return rc;
}
