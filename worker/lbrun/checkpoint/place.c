/* SPDX-License-Identifier: MIT */
/* place.c - renames that can be done again. */
#include "worker/lbrun/checkpoint/place.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/bytes.h"
#include "common/base/failpoint.h"
#include "common/base/files.h"
#include "common/base/fnv.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/text.h"

enum { ORDER_MAX_BYTES = 64 * 1024 * 1024, FOLDER_MODE = 0750 };

char *place_folder(const char *parent, const char *relative)
{
	return path_join("%s/" DRAIN_PREFIX "%.80s-%016" PRIx64, parent, path_base(relative),
			 fnv_text(relative));
}

static bool is_there(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

/* What lies there by the same name, perhaps moved aside before a crash. Never half of it under its
 * own name. */
static int make_way(const char *path, const char *doomed, struct err *err)
{
	int rc = 0;

	if (is_there(path)) {
		rc = folder_remove(doomed, err);
		if (rc == 0 && rename(path, doomed) < 0)
			rc = err_errno(err, "%s: cannot be moved aside", path);
		failpoint(FP_STAGE_ASIDE, NULL);
	}
	return rc;
}

static int sync_holder(const char *path, struct err *err)
{
	char *holder = xstrndup(path, (size_t)(path_base(path) - path));
	int rc = folder_sync(holder, err);

	free(holder);
	return rc;
}

/* A file takes the place of another in one step, a folder cannot. */
static int place_one(const char *parent, const char *sealed, const char *relative, struct err *err)
{
	char *from = path_join("%s/%s", sealed, relative),
	     *to = path_join("%s/%s", parent, relative);
	char *holder = xstrndup(to, (size_t)(path_base(to) - to));
	char *doomed = path_join("%s.lb-removed-%s", holder, path_base(to));
	struct stat st;
	int rc = 0;

	if (lstat(from, &st) == 0) {
		rc = folder_make(holder, FOLDER_MODE, err);
		if (rc == 0 && S_ISDIR(st.st_mode))
			rc = make_way(to, doomed, err);
		if (rc == 0 && rename(from, to) < 0)
			rc = err_errno(err, "%s to %s", from, to);
		if (rc == 0)
			rc = sync_holder(to, err);
	}
	if (rc == 0)
		rc = folder_remove(doomed, err);
	free(doomed);
	free(holder);
	free(to);
	free(from);
	return rc;
}

int place_sealed(const char *parent, const char *sealed, struct err *err)
{
	char *path = path_join("%s/" PLACE_ORDER, sealed);
	json_t *order = js_load(path, ORDER_MAX_BYTES, err), *item;
	int rc = order ? 0 : -1;
	size_t i;

	json_array_foreach(order, i, item) {
		char *relative = js_bytes_take(item);

		if (rc == 0 && relative)
			rc = place_one(parent, sealed, relative, err);
		free(relative);
	}
	json_decref(order);
	free(path);
	failpoint(FP_STAGE_PLACED, NULL);
	/* A folder without its order is what an earlier removal left: all was in place by then. */
	if (rc < 0 && err->code == ERR_NOT_FOUND) {
		err_clear(err);
		rc = 0;
	}
	rc = rc < 0 ? rc : folder_remove(sealed, err);
	failpoint(FP_STAGE_CLEARED, NULL);
	return rc;
}

typedef int each_fn(const char *parent, const char *path, const char *name, void *arg,
		    struct err *err);

static int each(const char *parent, each_fn *fn, void *arg, struct err *err)
{
	DIR *dir = opendir(parent);
	const struct dirent *entry;
	int rc = 0;

	while (dir && rc == 0 && (entry = readdir(dir)) != NULL) {
		char *path;

		if (!text_begins_with(entry->d_name, DRAIN_PREFIX))
			continue;
		path = path_join("%s/%s", parent, entry->d_name);
		rc = fn(parent, path, entry->d_name, arg, err);
		free(path);
	}
	if (dir)
		closedir(dir);
	return rc;
}

static int place_if_sealed(const char *parent, const char *path, const char *name, void *arg,
			   struct err *err)
{
	(void)arg;
	return text_ends_with(name, DRAIN_PART) ? 0 : place_sealed(parent, path, err);
}

int place_all(const char *parent, struct err *err)
{
	return each(parent, place_if_sealed, NULL, err);
}

struct parts {
	char *end; /* of the names of this host's: ".HOST.part" */
	const char *keep;
};

static int clear_part(const char *parent, const char *path, const char *name, void *arg,
		      struct err *err)
{
	const struct parts *p = arg;

	(void)parent;
	(void)err;
	if (text_ends_with(name, p->end) && !(p->keep && strcmp(path, p->keep) == 0))
		folder_remove(path, NULL);
	return 0;
}

void place_clear_parts(const char *parent, const char *host, const char *keep)
{
	struct parts parts = { .end = path_join(".%s" DRAIN_PART, host), .keep = keep };

	each(parent, clear_part, &parts, NULL);
	free(parts.end);
}
