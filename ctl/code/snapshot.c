/* SPDX-License-Identifier: MIT */
/* snapshot.c - git writes the files that it would commit now; what it would not is linked. */
#include "ctl/code/snapshot.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/files.h"
#include "common/base/paths.h"
#include "ctl/code/code.h"
#include "ctl/code/git.h"

enum { MAX_DEPTH = 64 };

static bool is_folder(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* A copy has no history of its own, and its bytecode is not that of the files as they become. */
static bool is_left_out(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, ".git") == 0 ||
	       strcmp(name, "__pycache__") == 0;
}

static int link_missing(const char *from, const char *to, int depth, struct err *err);

static int link_entry(const char *from, const char *to, int depth, struct err *err)
{
	struct stat st;

	if (lstat(to, &st) < 0)
		return symlink(from, to) < 0 ? err_errno(err, "%s", to) : 0;
	return depth > 0 && is_folder(from) && is_folder(to)
		       ? link_missing(from, to, depth - 1, err)
		       : 0;
}

/* Only folders of which git wrote something are gone through. */
static int link_missing(const char *from, const char *to, int depth, struct err *err)
{
	DIR *dir = opendir(from);
	const struct dirent *entry;
	int rc = 0;

	if (!dir)
		return err_errno(err, "%s", from);
	while (rc == 0 && (entry = readdir(dir))) {
		char *there = path_join("%s/%s", from, entry->d_name);
		char *here = path_join("%s/%s", to, entry->d_name);

		if (!is_left_out(entry->d_name))
			rc = link_entry(there, here, depth, err);
		free(there);
		free(here);
	}
	closedir(dir);
	return rc;
}

int snapshot_make(const char *folder, const char *to, struct err *err)
{
	char tree[GIT_ID_BYTES];
	size_t left_out;
	struct git g;
	int rc = git_open(&g, folder, err);

	if (rc == 0)
		rc = git_tree_of_files(&g, CODE_UNTRACKED_MAX_BYTES, CODE_UNTRACKED_MAX_FILES,
				       &left_out, tree, err);
	if (rc == 0)
		rc = folder_make(to, 0750, err);
	if (rc == 0)
		rc = git_write_files(&g, to, err);
	if (rc == 0)
		rc = link_missing(g.root, to, MAX_DEPTH, err);
	git_close(&g);
	return rc;
}
