/* SPDX-License-Identifier: MIT */
/* input_files.c - folders become the files below them, in an order that does not depend on the
 * disk: the same texts give the same tokens everywhere. */
#include "worker/lbworker/data/input_files.h"

#include <fts.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/mem.h"

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

static int add_below(struct strv *out, FTS *walk, struct err *err)
{
	FTSENT *entry;

	while ((entry = fts_read(walk)) != NULL) {
		if (entry->fts_level > FTS_ROOTLEVEL && entry->fts_name[0] == '.')
			fts_set(walk, entry, FTS_SKIP);
		else if (entry->fts_info == FTS_F)
			strv_add(out, xstrdup(entry->fts_path));
		else if (entry->fts_errno != 0 && entry->fts_info != FTS_SLNONE)
			return err_set(err, ERR_IO, "%s: %s", entry->fts_path,
				       strerror(entry->fts_errno));
	}
	return 0;
}

static int add_folder(struct strv *out, char *folder, struct err *err)
{
	char *const roots[] = { folder, NULL };
	size_t before = out->count;
	FTS *walk = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, by_name);
	int rc = walk ? add_below(out, walk, err) : err_errno(err, "%s", folder);

	if (walk)
		fts_close(walk);
	if (rc == 0 && out->count == before)
		rc = err_set(err, ERR_NOT_FOUND, "%s: holds no file", folder);
	return rc;
}

int input_files(struct strv *out, char *const *names, size_t count, struct err *err)
{
	for (size_t i = 0; i < count; i++) {
		struct stat st;
		if (stat(names[i], &st) != 0)
			return err_set(err, ERR_NOT_FOUND, "%s: no such file", names[i]);
		if (!S_ISDIR(st.st_mode))
			strv_add(out, xstrdup(names[i]));
		else if (add_folder(out, names[i], err))
			return -1;
	}
	return 0;
}
