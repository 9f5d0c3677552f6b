/* SPDX-License-Identifier: MIT */
/* seals.c - writes a digest file for each checkpoint that is complete.
 *
 * Written twice: with sizes and times when the trainer speaks, with digests once they are known. */
#include "worker/lbrun/checkpoint/seals.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base/bytes.h"
#include "common/base/files.h"
#include "common/base/fnv.h"
#include "common/base/json.h"
#include "common/base/paths.h"
#include "common/checkpoint/whole.h"
#include "common/manifest/manifest.h"
#include "worker/lbrun/trainer/trainer.h"

enum { SEAL_MAX_BYTES = 64 * 1024 * 1024, IDLE = 3 << 13, OF_PROCESS = 1 };

static char *seal_path(const char *folder, const char *path)
{
	return path_join("%s/%.100s-%016" PRIx64 ".json", folder, path_base(path), fnv_text(path));
}

static int64_t changed_ns(const char *path, int64_t *bytes)
{
	struct stat st;

	*bytes = -1;
	if (stat(path, &st) < 0)
		return -1;
	*bytes = st.st_size;
	return (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
}

/* --- sealing ---------------------------------------------------------------------------------- */

static json_t *seal_of(const struct checkpoint *c, bool with_digests)
{
	char *base = checkpoint_base(c);
	json_t *o = json_object(), *files = json_array();

	for (size_t i = 0; i < c->part_count; i++) {
		const struct checkpoint_part *p = &c->parts[i];
		char *path = path_join("%s/%s", base, p->name), digest[33] = "";
		json_t *file = json_object();
		int64_t bytes;

		if (with_digests)
			manifest_digest_file(path, digest, NULL, NULL);
		/* written again meanwhile: what was read belongs to neither */
		if (changed_ns(path, &bytes) != p->changed_ns || bytes != p->bytes)
			digest[0] = '\0';
		json_object_set_new(file, "name", js_bytes(p->name));
		js_set_int(file, "bytes", p->bytes);
		js_set_int(file, "changed_ns", p->changed_ns);
		js_set_str(file, "xxh3_128", digest[0] ? digest : NULL);
		json_array_append_new(files, file);
		free(path);
	}
	js_set_int(o, "version", 1);
	json_object_set_new(o, "path", js_bytes(c->path));
	json_object_set_new(o, "files", files);
	free(base);
	return o;
}

static int write_seal(const char *folder, const struct checkpoint *c, bool with_digests,
		      struct err *err)
{
	char *path = seal_path(folder, c->path);
	int rc = js_save(path, seal_of(c, with_digests), err);

	free(path);
	return rc;
}

int seals_put(const char *folder, const struct checkpoint *c, pid_t *pid, struct err *err)
{
	pid_t parent = getpid();

	if (folder_make(folder, 0750, err) < 0 || write_seal(folder, c, false, err) < 0)
		return -1;
	if (*pid > 0) /* one at a time: sizes must do */
		return 0;
	*pid = fork();
	if (*pid == 0) {
		child_begin(parent);
		setpriority(PRIO_PROCESS, 0, 19);
		syscall(SYS_ioprio_set, OF_PROCESS, 0, IDLE);
		write_seal(folder, c, true, NULL);
		_exit(0);
	}
	if (*pid > 0)
		return 0;
	*pid = 0;
	return err_errno(err, "fork");
}

/* --- looking ---------------------------------------------------------------------------------- */

static int check_digest(const char *path, const char *name, const char *want, struct err *err)
{
	char digest[33];

	if (manifest_digest_file(path, digest, NULL, err) < 0)
		return -1;
	return strcmp(digest, want) == 0
		       ? 0
		       : err_set(err, ERR_IO,
				 "%s differs from what it was when the trainer called it complete",
				 name);
}

static int check_file(const char *base, const json_t *file, struct look *look, struct err *err)
{
	char *name = js_bytes_take(json_object_get(file, "name"));
	char *path = name ? path_join("%s/%s", base, name) : NULL;
	const char *digest = js_str(file, "xxh3_128", "");
	int64_t bytes, was = js_int(file, "bytes", -1);
	bool is_proven = false;
	int rc = 0;

	if (!path)
		return 0;
	if (changed_ns(path, &bytes) < 0)
		rc = err_set(err, ERR_NOT_FOUND, "%s is gone, which the trainer's complete one had",
			     name);
	else if (bytes == was)
		rc = digest[0] && look->is_deep && !look->is_cut_short
			     ? check_digest(path, name, digest, err)
			     : 0;
	else if (bytes < was && file_is_whole(path, &(struct look){ 0 }, &is_proven, NULL) == 0 &&
		 !is_proven)
		rc = err_set(err, ERR_IO,
			     "%s has %lld bytes; when the trainer called it complete it had %lld",
			     name, (long long)bytes, (long long)was);
	free(path);
	free(name);
	return rc;
}

int seals_check(const char *folder, const struct checkpoint *c, struct look *look, struct err *err)
{
	char *path = folder ? seal_path(folder, c->path) : NULL, *base = checkpoint_base(c);
	json_t *seal = path ? js_load(path, SEAL_MAX_BYTES, NULL) : NULL, *file;
	int rc = 0;
	size_t i;

	json_array_foreach(json_object_get(seal, "files"), i, file) {
		rc = check_file(base, file, look, err);
		if (rc < 0)
			break;
	}
	if (rc < 0)
		err_wrap(err, "%s", c->path);
	json_decref(seal);
	free(base);
	free(path);
	return rc;
}
