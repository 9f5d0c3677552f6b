/* SPDX-License-Identifier: MIT */
/* submission_copy.c - submit --snapshot: the run trains from the copy of its code that the client
 * has made. Whatever of the spec names a place in the repository then names that of the copy. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/bytes.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/paths.h"
#include "common/base/text.h"
#include "common/run/verbs.h"
#include "daemon/runs/submission.h"

struct moved {
	const char *from, *to; /* the repository and its copy, both without a / at the end */
};

/* Where `path` lies in the copy, owned; NULL: it is not below the repository, or not in the
 * copy. */
static char *moved_path(const struct moved *m, const char *path)
{
	size_t len = strlen(m->from);
	char *there;

	if (strncmp(path, m->from, len) != 0 || (path[len] != '/' && path[len] != '\0'))
		return NULL;
	there = path_join("%s%s", m->to, path + len);
	if (file_exists(there))
		return there;
	free(there);
	return NULL;
}

/* A word that is such a path, or "--option=PATH"; a new reference; NULL: neither. */
static json_t *moved_word(const struct moved *m, const json_t *value)
{
	char *word = js_bytes_take(value), *equals = word ? strchr(word, '=') : NULL, *path, *all;
	char *begin = word && word[0] != '/' && equals ? equals + 1 : word;
	json_t *moved = NULL;

	path = word ? moved_path(m, begin) : NULL;
	if (path) {
		all = path_join("%.*s%s", (int)(begin - word), word, path);
		moved = js_bytes(all);
		free(all);
	}
	free(path);
	free(word);
	return moved;
}

static void move_words(const struct moved *m, json_t *words)
{
	json_t *word, *moved;
	size_t i;

	json_array_foreach(words, i, word) {
		moved = moved_word(m, word);
		if (moved)
			json_array_set_new(words, i, moved);
	}
}

/* The spec is read again of what it says then. */
static int move_spec(struct submission *s, const struct moved *m, struct err *err)
{
	json_t *run = json_object_get(s->toml.root, "run"), *own;
	char *workdir = moved_path(m, s->spec.workdir);

	if (!workdir)
		return err_set(err, ERR_USAGE,
			       "--snapshot: run.workdir %s is not in the repository %s",
			       s->spec.workdir, m->from);
	json_object_set_new(run, "workdir", js_bytes(workdir));
	free(workdir);
	/* what was submitted stays as it was: these are lists of our own */
	for (const char *const *key = (const char *const[]){ "command", "arguments", NULL }; *key;
	     key++) {
		if (!json_is_array(json_object_get(run, *key)))
			continue;
		own = json_deep_copy(json_object_get(run, *key));
		move_words(m, own);
		json_object_set_new(run, *key, own);
	}
	run_spec_clear(&s->spec);
	return run_spec_read(&s->toml, &s->spec, err);
}

/* Only what is ours, and lies beside the runs, may be moved. */
static int take(const struct submission *s, const char *name, const char *to, struct err *err)
{
	char *from = path_join("%s/%s", s->lbd->config.runs_folder, name);
	struct stat st;
	int rc = 0;

	if (!text_begins_with(name, SNAPSHOT_PREFIX) || strchr(name, '/') || lstat(from, &st) < 0 ||
	    !S_ISDIR(st.st_mode) || st.st_uid != geteuid())
		rc = err_set(err, ERR_USAGE,
			     "snapshot: names a folder " SNAPSHOT_PREFIX "… of lbd's user in %s",
			     s->lbd->config.runs_folder);
	else if (rename(from, to) < 0)
		rc = err_errno(err, "%s: cannot be moved to %s", from, to);
	free(from);
	return rc;
}

int submission_take_copy(struct submission *s, struct err *err)
{
	char *name = js_bytes_take(json_object_get(s->by.args, "snapshot"));
	char *root = js_bytes_take(json_object_get(json_object_get(s->by.args, "code"), "root"));
	char *copy = path_join("%s/code", s->dir);
	const struct moved moved = { root, copy };
	int rc = 0;

	if (name && (!root || root[0] != '/'))
		rc = err_set(err, ERR_USAGE, "snapshot: code.root must say of what");
	else if (name && (take(s, name, copy, err) < 0 || move_spec(s, &moved, err) < 0))
		rc = -1;
	free(copy);
	free(root);
	free(name);
	return rc;
}
