/* SPDX-License-Identifier: MIT */
/* manifest_publish.c - a finished folder becomes a checkpoint: digests, syncs, and one rename. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/failpoint.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/names.h"
#include "common/base/paths.h"
#include "common/manifest/manifest.h"
#include "common/manifest/manifest_files.h"

enum { FILE_MODE = 0644 };

static int sync_holder(int folder, const char *name, struct err *err)
{
	int fd, rc = 0;

	if (!strchr(name, '/'))
		return 0;
	fd = manifest_open_below(folder, name, true);
	if (fd < 0 || (fsync(fd) < 0 && errno != EINVAL))
		rc = err_errno(err, "%s: folder", name);
	if (fd >= 0)
		close(fd);
	return rc;
}

int manifest_seal_file(int folder, struct manifest_file *file, struct err *err)
{
	int fd, rc;

	if (!manifest_name_is_good(file->name))
		return err_set(err, ERR_USAGE, "\"%s\" cannot be the name of a checkpoint's file",
			       file->name);
	fd = manifest_open(folder, file->name, &file->bytes, err);
	if (fd < 0)
		return -1;
	rc = manifest_digest_fd(fd, file->name, file->digest, &file->bytes, err);
	if (rc == 0 && fsync(fd) < 0)
		rc = err_errno(err, "%s", file->name);
	close(fd);
	return rc < 0 ? rc : sync_holder(folder, file->name, err);
}

static int compare_size(int folder, const struct manifest_file *file, struct err *err)
{
	int64_t bytes = 0;
	int fd = manifest_open(folder, file->name, &bytes, err);

	if (fd < 0)
		return -1;
	close(fd);
	return bytes == file->bytes ? 0
				    : err_set(err, ERR_IO, "%s: %lld bytes, it had %lld",
					      file->name, (long long)bytes, (long long)file->bytes);
}

static int seal_files(const char *tmp_folder, struct manifest *m, struct err *err)
{
	int folder = open(tmp_folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = 0;

	if (folder < 0)
		return err_errno(err, "%s", tmp_folder);
	for (int i = 0; i < m->file_count && rc == 0; i++)
		rc = m->files[i].digest[0] ? compare_size(folder, &m->files[i], err)
					   : manifest_seal_file(folder, &m->files[i], err);
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
	int rc = -1;

	if (m->file_count < 0 || m->file_count > MANIFEST_MAX_FILES)
		err_set(err, ERR_USAGE, "%s: more than %d files", folder, MANIFEST_MAX_FILES);
	else if (seal_files(tmp_folder, m, err) == 0 && failpoint(FP_MANIFEST_BEFORE, err) == 0 &&
		 write_manifest(tmp_folder, m, err) == 0 &&
		 failpoint(FP_MANIFEST_WRITTEN, err) == 0 &&
		 put_in_place(tmp_folder, folder, err) == 0) {
		failpoint(FP_MANIFEST_RENAMED, NULL);
		rc = file_sync_name(folder, err);
	}
	return rc;
}
