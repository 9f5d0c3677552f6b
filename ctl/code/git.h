/* SPDX-License-Identifier: MIT */
/* code/ - the code that a run is made of: what of a git repository is in use, and how two such
 * states differ.
 *
 * git.h - git's own commands on a person's repository, of which nothing changes: the index is a
 * copy and new objects go to a scratch folder, both gone after git_close. */
#ifndef CTL_CODE_GIT_H
#define CTL_CODE_GIT_H

#include <stddef.h>
#include <jansson.h>

#include "common/base/err.h"

enum { GIT_ID_BYTES = 65 }; /* SHA-256 in hex, and NUL */

struct git_head {
	char commit[GIT_ID_BYTES]; /* "": nothing was ever committed */
	char tree[GIT_ID_BYTES];   /* its files; then those of nothing */
	char *branch;              /* owned; NULL: detached */
};

struct git {
	char *root;    /* of the work tree, absolute; NULL: not open */
	char *scratch; /* index, objects, what commands write */
	struct git_head head;
};

/* The repository around `folder`. ERR_NOT_FOUND: there is none, or no git. To be closed in any
 * case. */
int git_open(struct git *g, const char *folder, struct err *err);
void git_close(struct git *g);

/* Runs `git ARGV…` in the root; argv ends with NULL. What it printed, owned; NULL with err when it
 * cannot be started, takes longer than 5 s, or fails (err has its last line). */
char *git_ask(const struct git *g, const char *const argv[], struct err *err);

/* A tree of the files as they are now: all that git knows of, and those that it neither knows nor
 * ignores, up to `max_bytes` each and `max_files` of them. *left_out: how many of these did not
 * fit. */
int git_tree_of_files(const struct git *g, size_t max_bytes, size_t max_files, size_t *left_out,
		      char id[GIT_ID_BYTES], struct err *err);
/* A tree of commit `base` with `patch` applied. */
int git_tree_of_patch(const struct git *g, const char *base, const char *patch,
		      char id[GIT_ID_BYTES], struct err *err);

/* Those of git_tree_of_files, called before, into the folder `to`. */
int git_write_files(const struct git *g, const char *to, struct err *err);

/* What leads from one commit or tree to another, as git apply takes it; owned. At most max_bytes:
 * ERR_USAGE otherwise. */
char *git_patch(const struct git *g, const char *from, const char *to, size_t max_bytes,
		struct err *err);
/* The names that differ, a JSON array, a new reference. */
json_t *git_changed(const struct git *g, const char *from, const char *to, struct err *err);

#endif
