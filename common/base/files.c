/* SPDX-License-Identifier: MIT */
/* files.c - files that survive a power cut: write beside, fsync, rename or link, fsync the folder.
 * Folders are removed through descriptors, never through paths that somebody could swap for a
 * link. */
#include "common/base/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/mem.h"
#include "common/base/names.h"
#include "common/base/paths.h"

enum { OURS_ALONE = 0700 };

/* Non-blocking, so that a FIFO put in the place of a file cannot make us wait for ever. */
static int open_regular(const char *path, struct stat *st, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0 && errno == ENOENT)
		return err_set(err, ERR_NOT_FOUND, "%s: no such file", path);
	if (fd < 0)
		return err_errno(err, "%s", path);
	if (fstat(fd, st) < 0) {
		err_errno(err, "%s", path);
	} else if (!S_ISREG(st->st_mode)) {
		err_set(err, ERR_IO, "%s: not a regular file", path);
	} else {
		return fd;
	}
	close(fd);
	return -1;
}

/* The size from stat is only a hint: /proc says 0, and a file may grow while we read. */
static int read_all(int fd, struct buf *buf, const char *path, struct err *err)
{
	char chunk[16 * 1024];

	for (;;) {
		ssize_t n = read(fd, chunk, sizeof(chunk));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(err, "%s", path);
		if (buf_add(buf, chunk, (size_t)n) < 0)
			return err_set(err, ERR_IO, "%s: larger than %zu bytes", path, buf->max);
		if (n == 0)
			return 0;
	}
}

char *file_read_fd(int fd, const char *path, size_t max_bytes, size_t *out_len, struct err *err)
{
	struct stat st;
	struct buf buf;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		err_set(err, ERR_IO, "%s: not a regular file", path);
		return NULL;
	}
	buf_init(&buf, max_bytes);
	if (read_all(fd, &buf, path, err) < 0) {
		buf_fini(&buf);
		return NULL;
	}
	if (out_len)
		*out_len = buf.len;
	return buf_take(&buf);
}

char *file_read(const char *path, size_t max_bytes, size_t *out_len, struct err *err)
{
	struct stat st;
	int fd = open_regular(path, &st, err);
	char *text;

	if (out_len)
		*out_len = 0;
	if (fd < 0)
		return NULL;
	text = file_read_fd(fd, path, max_bytes, out_len, err);
	close(fd);
	return text;
}

/* Some kernels insist on the flag (vm.memfd_noexec=2), older ones do not know it. */
int file_in_memory(const char *name)
{
	enum { NOEXEC_SEAL = 8 };
	int fd = memfd_create(name, MFD_CLOEXEC | NOEXEC_SEAL);

	return fd < 0 && errno == EINVAL ? memfd_create(name, MFD_CLOEXEC) : fd;
}

void *file_map(const char *path, size_t *out_bytes, struct err *err)
{
	struct stat st = { 0 };
	int fd = open_regular(path, &st, err);

	*out_bytes = 0;
	if (fd < 0)
		return NULL;
	*out_bytes = (size_t)st.st_size;
	if (*out_bytes == 0) {
		close(fd);
		err_set(err, ERR_IO, "%s: is empty", path);
		return NULL;
	}
	void *map = mmap(NULL, *out_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		err_errno(err, "%s: mmap", path);
	close(fd);
	return map == MAP_FAILED ? NULL : map;
}

static char *parent_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return xstrdup(".");
	return slash == path ? xstrdup("/") : xstrndup(path, (size_t)(slash - path));
}

int file_sync_name(const char *path, struct err *err)
{
	char *parent = parent_of(path);
	int rc = folder_sync(parent, err);

	free(parent);
	return rc;
}

int file_write_all(int fd, const void *bytes, size_t len)
{
	const char *data = bytes;

	while (len > 0) {
		ssize_t n = write(fd, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

ssize_t file_read_at(int fd, void *to, size_t size, int64_t offset)
{
	size_t len = 0;

	while (len < size) {
		ssize_t n = pread(fd, (char *)to + len, size - len, (off_t)offset + (off_t)len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	return (ssize_t)len;
}

int64_t file_line_start(int fd, int64_t end)
{
	char piece[16 * 1024];

	while (end > 0) {
		int64_t from = end > (int64_t)sizeof(piece) ? end - (int64_t)sizeof(piece) : 0;
		ssize_t n = file_read_at(fd, piece, (size_t)(end - from), from);
		const char *newline = n > 0 ? memrchr(piece, '\n', (size_t)n) : NULL;

		if (n < 0)
			return -1;
		if (newline)
			return from + (newline - piece) + 1;
		end = from;
	}
	return 0;
}

int64_t file_next_data(int fd, int64_t offset)
{
	off_t data = lseek(fd, (off_t)offset, SEEK_DATA);

	return data > offset ? data : offset;
}

int64_t file_cut_line(int fd, int64_t size)
{
	int64_t end = file_line_start(fd, size);

	return end >= 0 && end < size && ftruncate(fd, (off_t)end) < 0 ? -1 : end;
}

FILE *file_append_lines(const char *path)
{
	FILE *file = fopen(path, "a+e");
	struct stat st;

	if (file && fstat(fileno(file), &st) == 0 && S_ISREG(st.st_mode))
		(void)file_cut_line(fileno(file), st.st_size);
	return file;
}

/* A temporary file beside `path`, synced if asked for, or NULL. The mode is exact, whatever the
 * umask. A random suffix, not the pid: several hosts may write to one shared folder. */
static char *write_temp(const char *path, const void *data, size_t len, mode_t mode, bool synced,
			struct err *err)
{
	char *temp = xasprintf("%s.tmp-%016llx", path, (unsigned long long)random_u64());
	int fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
	bool ok;

	if (fd < 0) {
		err_errno(err, "%s", path);
		free(temp);
		return NULL;
	}
	ok = fchmod(fd, mode) == 0 && file_write_all(fd, data, len) == 0 &&
	     (!synced || fsync(fd) == 0);
	if (!ok)
		err_errno(err, "%s", path);
	if (close(fd) < 0 && ok) {
		err_errno(err, "%s", path);
		ok = false;
	}
	if (!ok) {
		unlink(temp);
		free(temp);
		return NULL;
	}
	return temp;
}

static int replace(const char *path, const void *data, size_t len, mode_t mode, bool synced,
		   struct err *err)
{
	char *temp = write_temp(path, data, len, mode, synced, err);
	int rc = 0;

	if (!temp)
		return -1;
	if (rename(temp, path) < 0) {
		rc = err_errno(err, "%s", path);
		unlink(temp);
	}
	free(temp);
	return rc;
}

int file_write_atomic(const char *path, const void *data, size_t len, mode_t mode, struct err *err)
{
	return replace(path, data, len, mode, true, err) < 0 ? -1 : file_sync_name(path, err);
}

int file_write_visible(const char *path, const void *data, size_t len, mode_t mode, struct err *err)
{
	return replace(path, data, len, mode, false, err);
}

static int write_into(const char *path, const void *data, size_t len, struct err *err)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	int rc = fd >= 0 && file_write_all(fd, data, len) == 0 ? 0 : err_errno(err, "%s", path);

	if (fd >= 0)
		close(fd);
	return rc;
}

int file_write_named(const char *path, const void *data, size_t len, mode_t mode, struct err *err)
{
	struct stat st;
	char *place;
	int rc;

	if (strcmp(path, "-") == 0)
		return file_write_all(STDOUT_FILENO, data, len) == 0 ? 0 : err_errno(err, "output");
	if (stat(path, &st) < 0)
		return file_write_atomic(path, data, len, mode, err);
	if (!S_ISREG(st.st_mode))
		return write_into(path, data, len, err);
	place = realpath(path, NULL);
	rc = place ? file_write_atomic(place, data, len, st.st_mode & 07777, err)
		   : err_errno(err, "%s", path);
	free(place);
	return rc;
}

void file_fill_stdio(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

mode_t file_umask(void)
{
	mode_t mask = umask(0);

	umask(mask);
	return mask;
}

/* link(2) over NFS may have worked although its answer says otherwise (the reply was lost and the
 * repeated call met its own work); the link count of our file tells the truth. */
static bool link_worked(const char *temp, const char *path)
{
	struct stat a, b;

	if (link(temp, path) == 0)
		return true;
	int saved = errno;
	bool same = stat(temp, &a) == 0 && a.st_nlink == 2 && stat(path, &b) == 0 &&
		    a.st_ino == b.st_ino && a.st_dev == b.st_dev;
	errno = saved;
	return same;
}

/* A folder is what every file system makes only once. It stays: who dies before the file is in its
 * place has it taken for ever. */
static bool take_by_folder(const char *temp, const char *path)
{
	char *taken = xasprintf("%s.taken", path);
	bool is_ours = mkdir(taken, 0700) == 0 && rename(temp, path) == 0;
	int saved = errno;

	free(taken);
	errno = saved;
	return is_ours;
}

/* Shares of Windows and disks of cameras have no hard links, some servers of FUSE no such rename
 * either. */
static bool put_once(const char *temp, const char *path)
{
	if (link_worked(temp, path))
		return true;
	if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS)
		return false;
	if (renameat2(AT_FDCWD, temp, AT_FDCWD, path, RENAME_NOREPLACE) == 0)
		return true;
	return (errno == EINVAL || errno == ENOSYS) && take_by_folder(temp, path);
}

int file_write_once(const char *path, const void *data, size_t len, mode_t mode, struct err *err)
{
	char *temp = write_temp(path, data, len, mode, true, err);
	int rc = 0;

	if (!temp)
		return -1;
	if (!put_once(temp, path)) {
		rc = errno == EEXIST ? err_set(err, ERR_LOCKED, "%s: exists already", path)
				     : err_errno(err, "%s", path);
	}
	unlink(temp);
	free(temp);
	return rc < 0 ? rc : file_sync_name(path, err);
}

/* Whatever the umask is; in a folder that hands its group on, so does this one. */
static int set_mode(const char *path, mode_t mode, struct err *err)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), rc = 0;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || fchmod(fd, mode | (st.st_mode & S_ISGID)) < 0)
		rc = err_errno(err, "%s", path);
	if (fd >= 0)
		close(fd);
	return rc;
}

static int make_one(const char *path, mode_t mode, struct err *err)
{
	struct stat st;

	/* with no more than that from its first moment on, and readable for set_mode */
	if (mkdir(path, (mode & 0700) | S_IRUSR) == 0)
		return set_mode(path, mode, err);
	if (errno != EEXIST)
		return err_errno(err, "%s", path);
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return 0;
	return err_set(err, ERR_IO, "%s: exists and is no folder", path);
}

int folder_make(const char *path, mode_t mode, struct err *err)
{
	char *part = xstrdup(path);
	struct stat st;
	int rc = 0;

	if (part[0] == '\0') {
		free(part);
		return err_set(err, ERR_USAGE, "a folder needs a name");
	}
	/* Existing parents are passed over without mkdir: on a read-only or automounted parent it
	 * may say EROFS or EACCES instead of EEXIST. */
	for (char *slash = part; rc == 0 && (slash = strchr(slash + 1, '/')) != NULL;) {
		*slash = '\0';
		if (stat(part, &st) < 0)
			rc = make_one(part, mode, err);
		*slash = '/';
	}
	if (rc == 0 && (stat(part, &st) < 0 || !S_ISDIR(st.st_mode)))
		rc = make_one(part, mode, err);
	free(part);
	return rc;
}

int folder_make_new(const char *path, mode_t mode, struct err *err)
{
	char *parent = parent_of(path);
	int rc = folder_make(parent, mode, err);

	free(parent);
	if (rc < 0)
		return -1;
	if (mkdir(path, (mode & 0700) | S_IRUSR) < 0)
		return errno == EEXIST ? err_set(err, ERR_LOCKED, "%s: exists already", path)
				       : err_errno(err, "%s", path);
	rc = set_mode(path, mode, err);
	if (rc < 0)
		rmdir(path);
	return rc;
}

static int sync_path(const char *path, int flags, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | flags), rc = 0;

	if (fd < 0)
		return err_errno(err, "%s", path);
	/* Some file systems cannot sync a folder and need not: EINVAL is their way to say so. */
	if (fsync(fd) < 0 && (errno != EINVAL || (flags & O_DIRECTORY) == 0))
		rc = err_errno(err, "%s", path);
	close(fd);
	return rc;
}

int folder_make_ours(const char *path, struct err *err)
{
	struct stat st;

	if (mkdir(path, OURS_ALONE) < 0 && errno != EEXIST)
		return err_errno(err, "%s", path);
	if (lstat(path, &st) < 0)
		return err_errno(err, "%s", path);
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077))
		return err_set(err, ERR_REFUSED, "%s: is not a folder of ours alone (mode 0700)",
			       path);
	return 0;
}

int folder_sync(const char *path, struct err *err)
{
	return sync_path(path, O_DIRECTORY, err);
}

void folder_look_anew(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0)
		close(fd);
}

bool folder_lacks(const char *path, const char *name)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool lacks = fd >= 0 && faccessat(fd, name, F_OK, 0) < 0 && errno == ENOENT;

	if (fd >= 0)
		close(fd);
	return lacks;
}

int folder_try_file(const char *path, const char *text)
{
	char *file = path_join("%s/.try.XXXXXX", path);
	int fd = mkostemp(file, O_CLOEXEC), problem = fd < 0 ? errno : 0;

	if (fd >= 0) {
		problem = write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : errno;
		problem = close(fd) < 0 ? errno : problem;
		unlink(file);
	}
	free(file);
	return problem;
}

int file_sync(const char *path, struct err *err)
{
	return sync_path(path, O_NOFOLLOW, err);
}

static int remove_at(int parent, const char *name, const char *shown, struct err *err);

static int remove_entries(DIR *dir, const char *shown, struct err *err)
{
	struct dirent *entry;
	int rc = 0;

	while (rc == 0 && (entry = readdir(dir)) != NULL) {
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			rc = remove_at(dirfd(dir), entry->d_name, shown, err);
	}
	return rc;
}

static int remove_at(int parent, const char *name, const char *shown, struct err *err)
{
	DIR *dir;
	int fd, rc;

	if (unlinkat(parent, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR)
		return err_errno(err, "%s: cannot remove %s", shown, name);
	fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		rc = err_errno(err, "%s: cannot open %s", shown, name);
		if (fd >= 0)
			close(fd);
		return rc;
	}
	rc = remove_entries(dir, shown, err);
	closedir(dir);
	if (rc == 0 && unlinkat(parent, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		rc = err_errno(err, "%s: cannot remove %s", shown, name);
	return rc;
}

int folder_remove(const char *path, struct err *err)
{
	size_t len = strlen(path);
	char *bare;
	int rc;

	/* "link/" would be followed where "link" is not. */
	while (len > 1 && path[len - 1] == '/')
		len--;
	bare = xstrndup(path, len);
	rc = remove_at(AT_FDCWD, bare, path, err);
	free(bare);
	return rc;
}

bool file_exists(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0;
}

bool folder_holds(const char *folder, const char *name)
{
	char *path = path_join("%s/%s", folder, name);
	bool is_there = file_exists(path);

	free(path);
	return is_there;
}

int folder_entry_type(int fd, const struct dirent *entry)
{
	struct stat st;

	if (entry->d_type != DT_UNKNOWN)
		return entry->d_type;
	return fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? IFTODT(st.st_mode)
									 : DT_UNKNOWN;
}

bool file_is_link(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
}

bool file_is_same(const char *a, const char *b)
{
	struct stat x, y;

	return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}
