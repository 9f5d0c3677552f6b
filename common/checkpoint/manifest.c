/* SPDX-License-Identifier: MIT */
/* manifest.c - writes and checks the list of a checkpoint's files.
 *
 * A manifest is read as if an enemy wrote it: its names are opened below the folder one component
 * at a time without following links, everything is bounded, and nothing is believed that the disk
 * does not confirm. */
#include "common/base/failpoint.h"
#include "common/checkpoint/manifest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/names.h"
#include "common/base/paths.h"

enum {
	READ_BYTES = 1024 * 1024,
	NAME_BYTES = 1024,
	MANIFEST_BYTES = 16 * 1024 * 1024,
	FILE_MODE = 0644
};

static const char manifest_name[] = "manifest.json";

/* --- files below a folder -------------------------------------------------------------------- */

static bool is_bad_part(const char *part, size_t len)
{
	return len == 0 || (len == 1 && part[0] == '.') ||
	       (len == 2 && part[0] == '.' && part[1] == '.');
}

static bool is_good_name(const char *name)
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

/* Opens "a/b/c" below `folder`, following no link anywhere. -1 with errno. With `parent` set the
 * folder that holds the file is opened instead. */
static int open_below(int folder, const char *name, bool parent)
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

/* An open regular file and its size, or -1 with err. */
static int open_file(int folder, const char *name, int64_t *bytes, struct err *err)
{
	struct stat st;
	int fd = open_below(folder, name, false);

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

/* Reads to the end; *bytes is what was read, which is the truth even while a file grows. */
static int digest_fd(int fd, const char *name, char digest[33], int64_t *bytes, struct err *err)
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
	rc = digest_fd(fd, path, digest, &bytes, err);
	close(fd);
	if (out_bytes)
		*out_bytes = bytes;
	return rc;
}

/* --- publishing ------------------------------------------------------------------------------ */

static int sync_holder(int folder, const char *name, struct err *err)
{
	int fd, rc = 0;

	if (!strchr(name, '/'))
		return 0;
	fd = open_below(folder, name, true);
	if (fd < 0 || (fsync(fd) < 0 && errno != EINVAL))
		rc = err_errno(err, "%s: folder", name);
	if (fd >= 0)
		close(fd);
	return rc;
}

static int seal_file(int folder, struct manifest_file *file, struct err *err)
{
	int fd, rc;

	if (!is_good_name(file->name))
		return err_set(err, ERR_USAGE, "\"%s\" cannot be the name of a checkpoint's file",
			       file->name);
	fd = open_file(folder, file->name, &file->bytes, err);
	if (fd < 0)
		return -1;
	rc = digest_fd(fd, file->name, file->digest, &file->bytes, err);
	if (rc == 0 && fsync(fd) < 0)
		rc = err_errno(err, "%s", file->name);
	close(fd);
	return rc < 0 ? rc : sync_holder(folder, file->name, err);
}

static int seal_files(const char *tmp_folder, struct manifest *m, struct err *err)
{
	int folder = open(tmp_folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = 0;

	if (folder < 0)
		return err_errno(err, "%s", tmp_folder);
	for (int i = 0; i < m->file_count && rc == 0; i++)
		rc = seal_file(folder, &m->files[i], err);
	close(folder);
	return rc < 0 ? err_wrap(err, "%s", tmp_folder) : 0;
}

static int write_manifest(const char *tmp_folder, const struct manifest *m, struct err *err)
{
	json_t *o = json_object();
	json_t *files = json_array();
	char *path = path_join("%s/%s", tmp_folder, manifest_name);
	char *text;
	int rc;

	for (int i = 0; i < m->file_count; i++) {
		json_t *file = json_object();

		js_set_str(file, "name", m->files[i].name);
		js_set_int(file, "bytes", m->files[i].bytes);
		js_set_str(file, "xxh3_128", m->files[i].digest);
		json_array_append_new(files, file);
	}
	js_set_int(o, "format", MANIFEST_FORMAT);
	js_set_int(o, "step", m->step);
	js_set_int(o, "tokens", m->tokens);
	js_set_int(o, "world_size", m->world_size);
	js_set_str(o, "config_hash", m->config_hash);
	js_set_int(o, "attempt", m->attempt);
	json_object_set_new(o, "files", files);
	text = json_dumps(o, JSON_INDENT(1));
	rc = file_write_atomic(path, text, strlen(text), FILE_MODE, err);
	free(text);
	free(path);
	json_decref(o);
	return rc;
}

/* After a resume from an older checkpoint the trainer comes by the steps of a broken newer one
 * again. The broken one is kept for people to look at, under a name that is no candidate. */
static int make_way(const char *folder, struct err *err)
{
	char *aside;
	int rc = 0;

	if (manifest_verify(folder, MANIFEST_DIGESTS, NULL, NULL) == 0)
		return err_set(err, ERR_LOCKED, "%s: a valid checkpoint is there already", folder);
	aside = xasprintf("%s.bad-%08llx", folder, (unsigned long long)random_u64() & 0xffffffff);
	if (rename(folder, aside) < 0)
		rc = err_errno(err, "%s: cannot move the broken checkpoint aside", folder);
	free(aside);
	return rc;
}

static int put_in_place(const char *tmp_folder, const char *folder, struct err *err)
{
	if (rename(tmp_folder, folder) == 0)
		return 0;
	if (errno != EEXIST && errno != ENOTEMPTY && errno != ENOTDIR)
		return err_errno(err, "%s", folder);
	if (make_way(folder, err) < 0)
		return -1;
	return rename(tmp_folder, folder) == 0 ? 0 : err_errno(err, "%s", folder);
}

int manifest_publish(const char *tmp_folder, const char *folder, struct manifest *m,
		     struct err *err)
{
	const char *slash = strrchr(folder, '/');
	char *parent = slash ? xstrndup(folder, (size_t)(slash - folder) + 1) : xstrdup(".");
	int rc = -1;

	if (m->file_count < 0 || m->file_count > MANIFEST_MAX_FILES)
		err_set(err, ERR_USAGE, "%s: more than %d files", folder, MANIFEST_MAX_FILES);
	else if (seal_files(tmp_folder, m, err) == 0 && failpoint(FP_MANIFEST_BEFORE, err) == 0 &&
		 write_manifest(tmp_folder, m, err) == 0 &&
		 failpoint(FP_MANIFEST_WRITTEN, err) == 0 &&
		 put_in_place(tmp_folder, folder, err) == 0) {
		failpoint(FP_MANIFEST_RENAMED, NULL);
		rc = folder_sync(parent, err);
	}
	free(parent);
	return rc;
}

/* --- verifying ------------------------------------------------------------------------------- */

static bool is_digest(const char *text)
{
	return strlen(text) == 32 && strspn(text, "0123456789abcdef") == 32;
}

static int parse_file(const json_t *o, struct manifest_file *file, struct err *err)
{
	const char *name = js_str(o, "name", "");
	const char *digest = js_str(o, "xxh3_128", "");

	if (!is_good_name(name))
		return err_set(err, ERR_USAGE, "\"%.200s\" cannot be the name of a file", name);
	file->bytes = js_int(o, "bytes", -1);
	if (file->bytes < 0)
		return err_set(err, ERR_USAGE, "%s: \"bytes\" must be a size", name);
	if (!is_digest(digest))
		return err_set(err, ERR_USAGE, "%s: \"xxh3_128\" must be 32 hex digits", name);
	memcpy(file->digest, digest, sizeof(file->digest));
	file->name = xstrdup(name);
	return 0;
}

static int compare_names(const void *a, const void *b)
{
	const char *const *x = a;
	const char *const *y = b;

	return strcmp(*x, *y);
}

static int check_duplicates(const struct manifest *m, struct err *err)
{
	size_t count = (size_t)m->file_count;
	const char **sorted = xcalloc(count, sizeof(sorted[0]));
	int rc = 0;

	for (size_t i = 0; i < count; i++)
		sorted[i] = m->files[i].name;
	qsort(sorted, count, sizeof(sorted[0]), compare_names);
	for (size_t i = 1; i < count && rc == 0; i++) {
		if (strcmp(sorted[i - 1], sorted[i]) == 0)
			rc = err_set(err, ERR_USAGE, "%s: listed twice", sorted[i]);
	}
	free(sorted);
	return rc;
}

static int parse_files(const json_t *list, struct manifest *m, struct err *err)
{
	const json_t *item;
	size_t i;

	if (!json_is_array(list) || json_array_size(list) > MANIFEST_MAX_FILES)
		return err_set(err, ERR_USAGE, "\"files\" must be a list of at most %d files",
			       MANIFEST_MAX_FILES);
	m->files = xcalloc(json_array_size(list), sizeof(m->files[0]));
	json_array_foreach(list, i, item) {
		if (parse_file(item, &m->files[m->file_count], err) < 0)
			return -1;
		m->file_count++;
	}
	return check_duplicates(m, err);
}

static int parse_manifest(const json_t *o, struct manifest *m, struct err *err)
{
	int64_t format = js_int(o, "format", 0);
	const char *hash = js_str(o, "config_hash", "");

	if (format < 1)
		return err_set(err, ERR_USAGE, "no manifest of a checkpoint (no \"format\")");
	if (format > MANIFEST_FORMAT)
		return err_set(err, ERR_USAGE, "format %lld is newer than this program",
			       (long long)format);
	m->step = js_int(o, "step", -1);
	m->tokens = js_int(o, "tokens", -1);
	m->world_size = js_int(o, "world_size", -1);
	m->attempt = js_int(o, "attempt", -1);
	if (m->step < 0 || m->tokens < 0 || m->world_size < 0 || m->attempt < 0)
		return err_set(err, ERR_USAGE,
			       "\"step\", \"tokens\", \"world_size\" and \"attempt\" must be "
			       "integers of at least 0");
	if (strlen(hash) >= sizeof(m->config_hash))
		return err_set(err, ERR_USAGE, "\"config_hash\" is too long");
	memcpy(m->config_hash, hash, strlen(hash) + 1);
	return parse_files(json_object_get(o, "files"), m, err);
}

static int verify_file(int folder, const struct manifest_file *file, enum manifest_depth depth,
		       struct err *err)
{
	char digest[33];
	int64_t bytes = 0;
	int fd = open_file(folder, file->name, &bytes, err);
	int rc = 0;

	if (fd < 0)
		return -1;
	/* A truncated file need not be read to be known as such. */
	if (bytes == file->bytes && depth == MANIFEST_DIGESTS)
		rc = digest_fd(fd, file->name, digest, &bytes, err);
	close(fd);
	if (rc < 0)
		return rc;
	if (bytes != file->bytes)
		return err_set(err, ERR_IO, "%s: %lld bytes, the manifest says %lld", file->name,
			       (long long)bytes, (long long)file->bytes);
	if (depth == MANIFEST_DIGESTS && strcmp(digest, file->digest) != 0)
		return err_set(err, ERR_IO, "%s: content differs from its digest", file->name);
	return 0;
}

static json_t *load_manifest(int folder, struct err *err)
{
	int64_t bytes = 0;
	int fd = open_file(folder, manifest_name, &bytes, err);
	char *path, *text;
	size_t len;
	json_t *o;

	if (fd < 0)
		return NULL;
	path = path_join("/proc/self/fd/%d", fd);
	text = file_read(path, MANIFEST_BYTES, &len, err);
	free(path);
	close(fd);
	o = text ? js_parse(text, len, err) : NULL;
	free(text);
	if (!o)
		err_wrap(err, "%s", manifest_name);
	return o;
}

static int verify_in(int folder, enum manifest_depth depth, struct manifest *m, struct err *err)
{
	json_t *o = load_manifest(folder, err);
	int rc = 0;

	if (!o)
		return -1;
	if (parse_manifest(o, m, err) < 0)
		rc = err_wrap(err, "%s", manifest_name);
	json_decref(o);
	for (int i = 0; i < m->file_count && rc == 0; i++)
		rc = verify_file(folder, &m->files[i], depth, err);
	return rc;
}

int manifest_verify(const char *folder, enum manifest_depth depth, struct manifest *out,
		    struct err *err)
{
	struct manifest m = { 0 };
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc;

	if (out)
		*out = m;
	if (fd < 0 && errno == ENOENT)
		return err_set(err, ERR_NOT_FOUND, "%s: no such checkpoint", folder);
	if (fd < 0)
		return err_errno(err, "%s", folder);
	rc = verify_in(fd, depth, &m, err);
	close(fd);
	if (rc < 0)
		err_wrap(err, "%s", folder);
	if (rc == 0 && out)
		*out = m;
	else
		manifest_clear(&m);
	return rc;
}

void manifest_clear(struct manifest *m)
{
	for (int i = 0; i < m->file_count; i++)
		free(m->files[i].name);
	free(m->files);
	*m = (struct manifest){ 0 };
}

/* --- finding --------------------------------------------------------------------------------- */

struct steps {
	int64_t *items;
	size_t count, cap;
};

/* Only the one spelling that writers use: what else lies there (.tmp-, .bad-, notes of people) is
 * no candidate. */
static int64_t step_of(const char *name)
{
	char canonical[40];
	int64_t step = 0;
	size_t len = strlen(name);

	if (strncmp(name, "step-", 5) != 0 || len < 13 || len > 23)
		return -1;
	for (const char *c = name + 5; *c; c++) {
		if (*c < '0' || *c > '9')
			return -1;
		step = step * 10 + (*c - '0');
	}
	snprintf(canonical, sizeof(canonical), "step-%08lld", (long long)step);
	return strcmp(canonical, name) == 0 ? step : -1;
}

static void add_step(struct steps *steps, int64_t step)
{
	if (steps->count == steps->cap) {
		steps->cap = steps->cap ? 2 * steps->cap : 16;
		steps->items = xrealloc(steps->items, steps->cap * sizeof(steps->items[0]));
	}
	steps->items[steps->count++] = step;
}

static int newest_first(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a;
	int64_t y = *(const int64_t *)b;

	return x < y ? 1 : x > y ? -1 : 0;
}

static int list_steps(const char *parent, struct steps *steps, struct err *err)
{
	DIR *dir = opendir(parent);
	const struct dirent *entry;
	int rc = 0;

	if (!dir)
		return errno == ENOENT ? 0 : err_errno(err, "%s", parent);
	errno = 0;
	while ((entry = readdir(dir)) != NULL) {
		int64_t step = step_of(entry->d_name);

		if (step >= 0)
			add_step(steps, step);
		errno = 0;
	}
	/* A listing that broke off could hide the newest checkpoint. */
	if (errno != 0)
		rc = err_errno(err, "%s", parent);
	closedir(dir);
	if (steps->count > 0)
		qsort(steps->items, steps->count, sizeof(steps->items[0]), newest_first);
	return rc;
}

static int check_candidate(const struct checkpoint_found *found, struct err *err)
{
	struct manifest m;
	int64_t step;

	if (manifest_verify(found->path, MANIFEST_DIGESTS, &m, err) < 0)
		return -1;
	step = m.step;
	manifest_clear(&m);
	if (step != found->step)
		return err_set(err, ERR_USAGE, "%s: its manifest is of step %lld", found->path,
			       (long long)step);
	return 0;
}

int checkpoint_newest_valid(const char *parent, struct checkpoint_found *out,
			    void (*on_bad)(const char *path, const struct err *why, void *arg),
			    void *arg, struct err *err)
{
	struct steps steps = { 0 };
	int rc = list_steps(parent, &steps, err);

	*out = (struct checkpoint_found){ .step = -1 };
	for (size_t i = 0; i < steps.count && rc == 0; i++) {
		struct err why = { 0 };
		int n;

		out->step = steps.items[i];
		n = snprintf(out->path, sizeof(out->path), "%s/step-%08lld", parent,
			     (long long)out->step);
		if (n < 0 || (size_t)n >= sizeof(out->path))
			rc = err_set(err, ERR_IO, "%.200s...: path too long", parent);
		else if (check_candidate(out, &why) == 0)
			rc = 1;
		else if (on_bad)
			on_bad(out->path, &why, arg);
	}
	if (rc == 0 && steps.count > 0)
		rc = err_set(err, ERR_IO, "%s: none of the %zu checkpoints is valid", parent,
			     steps.count);
	if (rc <= 0)
		*out = (struct checkpoint_found){ .step = -1 };
	free(steps.items);
	return rc;
}
