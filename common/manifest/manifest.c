/* SPDX-License-Identifier: MIT */
/* manifest.c - writes and checks the list of a checkpoint's files.
 *
 * A manifest is read as if an enemy wrote it: its names are opened below the folder one component
 * at a time without following links, everything is bounded, and nothing is believed that the disk
 * does not confirm. */
#include "common/manifest/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/compare.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/manifest/manifest_files.h"

enum { MANIFEST_BYTES = 16 * 1024 * 1024 };

static bool is_digest(const char *text)
{
	return strlen(text) == 32 && strspn(text, "0123456789abcdef") == 32;
}

static int parse_file(const json_t *o, struct manifest_file *file, struct err *err)
{
	const char *name = js_str(o, "name", "");
	const char *digest = js_str(o, "xxh3_128", "");

	if (!manifest_name_is_good(name))
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
	int fd = manifest_open(folder, file->name, &bytes, err);
	int rc = 0;

	if (fd < 0)
		return -1;
	/* A truncated file need not be read to be known as such. */
	if (bytes == file->bytes && depth == MANIFEST_DIGESTS)
		rc = manifest_digest_fd(fd, file->name, digest, &bytes, err);
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
	int fd = manifest_open(folder, manifest_name, &bytes, err);
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
