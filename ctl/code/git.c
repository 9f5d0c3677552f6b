/* SPDX-License-Identifier: MIT */
/* git.c - asks git: no library knows its configuration, attributes and object formats as well. */
#include "ctl/code/git.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/bytes.h"
#include "common/base/files.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/strv.h"
#include "common/base/text.h"
#include "ctl/base/program.h"

enum {
	TIMEOUT_MS = 5 * 1000,
	WRITE_TIMEOUT_MS = 120 * 1000,
	LIST_MAX_BYTES = 1024 * 1024,
	INDEX_MAX_BYTES = 256 * 1024 * 1024,
};

/* --- asking ----------------------------------------------------------------------------------- */

static char *ask_within(int64_t timeout_ms, const char *folder, const char *scratch,
			const char *const argv[], struct err *err)
{
	struct strv words = { 0 };
	char *out = NULL;
	int status;

	strv_add(&words, xstrdup("LC_ALL=C"));
	strv_add(&words, xstrdup("GIT_OPTIONAL_LOCKS=0"));
	if (scratch) {
		strv_add(&words, path_join("GIT_INDEX_FILE=%s/index", scratch));
		strv_add(&words, path_join("GIT_OBJECT_DIRECTORY=%s/objects", scratch));
		strv_add(&words, path_join("GIT_ALTERNATE_OBJECT_DIRECTORIES=%s/theirs", scratch));
	}
	strv_add(&words, xstrdup("git"));
	strv_add(&words, xstrdup("--literal-pathspecs"));
	strv_add(&words, xstrdup("-C"));
	strv_add(&words, xstrdup(folder));
	for (; *argv; argv++)
		strv_add(&words, xstrdup(*argv));
	status = program_output((const char *const *)words.items, timeout_ms, &out, err);
	if (status < 0 && err && err->code == ERR_NOT_FOUND) {
		*err = (struct err){ 0 };
		err_set(err, ERR_NOT_FOUND, "there is no git");
	} else if (status > 0) {
		err_set(err, ERR_IO, "git: %.300s", text_last_line(out));
	}
	if (status != 0) {
		free(out);
		out = NULL;
	}
	strv_free(words.items);
	return out;
}

static char *ask_in(const char *folder, const char *scratch, const char *const argv[],
		    struct err *err)
{
	return ask_within(TIMEOUT_MS, folder, scratch, argv, err);
}

char *git_ask(const struct git *g, const char *const argv[], struct err *err)
{
	return ask_in(g->root, g->scratch, argv, err);
}

static int ask_id(const struct git *g, const char *const argv[], char id[GIT_ID_BYTES],
		  struct err *err)
{
	char *text = git_ask(g, argv, err);
	size_t len = text ? strlen(text) : 0;
	bool is_id = len >= 40 && len < GIT_ID_BYTES && strspn(text, "0123456789abcdef") == len;

	if (is_id)
		memcpy(id, text, len + 1);
	else if (text)
		err_set(err, ERR_IO, "git: %.100s: this is no object", text);
	free(text);
	return is_id ? 0 : -1;
}

/* --- opening ---------------------------------------------------------------------------------- */

/* Our objects lie in the scratch folder and theirs are looked up: by a link, as the list of
 * alternates is split at colons, which a path may have. */
static int link_objects(const struct git *g, const char *theirs, struct err *err)
{
	char *ours = path_join("%s/objects", g->scratch),
	     *link = path_join("%s/theirs", g->scratch);
	int rc = folder_make(ours, 0700, err);

	if (rc == 0 && symlink(theirs, link) < 0)
		rc = err_errno(err, "%s", link);
	free(ours);
	free(link);
	return rc;
}

/* With what the index knows of times and sizes git need not read every file again; but those that
 * are as young as the index itself it must, for they may have changed within the second: so the
 * copy is as old as theirs, asked before it is read (git: Documentation/technical/racy-git). */
static int copy_index(const struct git *g, const char *theirs, struct err *err)
{
	char *ours = path_join("%s/index", g->scratch);
	struct err why = { 0 };
	struct stat st = { 0 };
	int found = stat(theirs, &st);
	size_t len;
	char *text = file_read(theirs, INDEX_MAX_BYTES, &len, &why);
	int rc = 0;

	if (text)
		rc = file_write_visible(ours, text, len, 0600, err);
	if (rc == 0 && text && found == 0 &&
	    utimensat(AT_FDCWD, ours, (struct timespec[]){ st.st_mtim, st.st_mtim }, 0) < 0)
		rc = err_errno(err, "%s", ours);
	if (!text && why.code != ERR_NOT_FOUND) /* nothing was ever added */
		rc = err_set(err, why.code, "%s", why.text);
	free(ours);
	free(text);
	return rc;
}

static char *make_scratch(struct err *err)
{
	char *path = path_join("%s/lbctl-git.XXXXXX", path_tmp());

	if (mkdtemp(path))
		return path;
	err_errno(err, "%s", path);
	free(path);
	return NULL;
}

/* What git tells as relative is so to the folder in which it was asked. */
static char *absolute(const char *folder, const char *path)
{
	return path[0] == '/' ? xstrdup(path) : path_join("%s/%s", folder, path);
}

/* Looked for before git is started, which takes longer than all else of a submission. */
static bool is_in_repository(const char *folder)
{
	char *path = xstrdup(folder), *slash;
	bool is = getenv("GIT_DIR") != NULL;

	while (!is && (slash = strrchr(path, '/'))) {
		char *git = path_join("%s/.git", path);

		is = access(git, F_OK) == 0;
		free(git);
		*slash = '\0';
	}
	free(path);
	return is;
}

/* Each of git's commands takes some milliseconds, which are most of a submission: one for all. Six
 * lines, three where nothing was ever committed. */
static char *ask_places(const char *folder, struct err *err)
{
	static const char *const all[] = {
		"rev-parse", "--show-toplevel", "--git-path",  "objects",      "--git-path",
		"index",     "HEAD^{commit}",   "HEAD^{tree}", "--abbrev-ref", "HEAD",
		NULL
	};
	static const char *const places[] = { "rev-parse", "--show-toplevel", "--git-path",
					      "objects",   "--git-path",      "index",
					      NULL };
	struct err none = { 0 };
	char *told = ask_in(folder, NULL, all, &none);

	return told ? told : ask_in(folder, NULL, places, err);
}

/* Of nothing at all, where nothing was ever committed. */
static int empty_head(struct git *g, struct err *err)
{
	static const char *const empty[] = { "hash-object", "-w", "-t", "tree", "/dev/null", NULL };
	static const char *const branch[] = { "symbolic-ref", "--quiet", "--short", "HEAD", NULL };

	g->head.branch = git_ask(g, branch, NULL);
	return ask_id(g, empty, g->head.tree, err);
}

/* The last three lines of ask_places(). */
static void read_head(struct git_head *head, char *rest)
{
	const char *commit = strsep(&rest, "\n"), *tree = strsep(&rest, "\n"), *branch = rest;

	snprintf(head->commit, GIT_ID_BYTES, "%s", commit);
	snprintf(head->tree, GIT_ID_BYTES, "%s", tree);
	head->branch = !branch || strcmp(branch, "HEAD") == 0 ? NULL : xstrdup(branch);
}

static int open_at(struct git *g, const char *folder, const char *objects, const char *index,
		   struct err *err)
{
	char *their_objects = absolute(folder, objects), *their_index = absolute(folder, index);
	int rc = -1;

	g->scratch = make_scratch(err);
	if (g->scratch && link_objects(g, their_objects, err) == 0)
		rc = copy_index(g, their_index, err);
	free(their_objects);
	free(their_index);
	return rc;
}

int git_open(struct git *g, const char *folder, struct err *err)
{
	char *told = is_in_repository(folder) ? ask_places(folder, err) : NULL;
	char *rest = told;
	const char *root = strsep(&rest, "\n"), *objects = strsep(&rest, "\n"),
		   *index = strsep(&rest, "\n");
	int rc = -1;

	*g = (struct git){ 0 };
	if (told && index && root[0] == '/') {
		g->root = xstrdup(root);
		rc = open_at(g, folder, objects, index, err);
		if (rest)
			read_head(&g->head, rest);
		else if (rc == 0)
			rc = empty_head(g, err);
	} else {
		err_set(err, ERR_NOT_FOUND,
			told ? "%s: a repository without files" : "%s: in no git repository",
			folder);
	}
	free(told);
	return rc;
}

void git_close(struct git *g)
{
	if (g->scratch)
		folder_remove(g->scratch, NULL);
	free(g->scratch);
	free(g->root);
	free(g->head.branch);
	*g = (struct git){ 0 };
}

/* --- commits and trees ------------------------------------------------------------------------ */

/* What differs from the last commit, by `git status`; of submodules their commits alone are
 * ours. */
struct changes {
	bool has_known; /* of what git knows */
	/* names of what git neither knows nor ignores, as far as it fits: lines; owned */
	char *untracked;
	size_t count, left_out; /* of these */
};

/* One line, "? train.py"; a name in quotes has a line break or a quote in it. */
static void note_change(struct changes *c, const struct git *g, const char *line, size_t max_bytes,
			size_t max_files, struct buf *fit)
{
	const char *name = line + 2;
	struct stat st;
	char *file;

	if (line[0] == '\0' || line[0] == '#')
		return;
	if (strncmp(line, "? ", 2) != 0) {
		c->has_known = true;
		return;
	}
	file = path_join("%s/%s", g->root, name);
	if (name[0] != '"' && lstat(file, &st) == 0 && S_ISREG(st.st_mode) &&
	    (size_t)st.st_size <= max_bytes && c->count < max_files &&
	    buf_addf(fit, "%s\n", name) == 0)
		c->count++;
	else
		c->left_out++;
	free(file);
}

static int find_changes(struct changes *c, const struct git *g, size_t max_bytes, size_t max_files,
			struct err *err)
{
	static const char *const ask[] = { "-c",
					   "core.quotePath=false",
					   "status",
					   "--porcelain=v2",
					   "--no-renames",
					   "--untracked-files=all",
					   "--ignore-submodules=dirty",
					   NULL };
	char *told = git_ask(g, ask, err), *rest = told;
	struct buf fit;

	*c = (struct changes){ 0 };
	if (!told)
		return -1;
	buf_init(&fit, LIST_MAX_BYTES);
	while (rest)
		note_change(c, g, strsep(&rest, "\n"), max_bytes, max_files, &fit);
	c->untracked = fit.data ? xstrndup(fit.data, fit.len) : xstrdup("");
	buf_fini(&fit);
	free(told);
	return 0;
}

static int run(const struct git *g, const char *const argv[], struct err *err)
{
	char *said = git_ask(g, argv, err);
	int rc = said ? 0 : -1;

	free(said);
	return rc;
}

/* Into our copy of the index. */
static int add_to_index(const struct git *g, const struct changes *c, struct err *err)
{
	static const char *const update[] = { "add", "--update", ".", NULL };
	char *list = path_join("%s/untracked", g->scratch);
	char *from = path_join("--pathspec-from-file=%s", list);
	const char *const add[] = { "add", from, NULL };
	int rc = c->has_known ? run(g, update, err) : 0;

	if (rc == 0 && c->count > 0)
		rc = file_write_visible(list, c->untracked, strlen(c->untracked), 0600, err);
	if (rc == 0 && c->count > 0)
		rc = run(g, add, err);
	free(list);
	free(from);
	return rc;
}

int git_tree_of_files(const struct git *g, size_t max_bytes, size_t max_files, size_t *left_out,
		      char id[GIT_ID_BYTES], struct err *err)
{
	static const char *const write[] = { "write-tree", NULL };
	struct changes changes;
	int rc = find_changes(&changes, g, max_bytes, max_files, err);

	*left_out = changes.left_out;
	if (rc == 0 && !changes.has_known && changes.count == 0)
		snprintf(id, GIT_ID_BYTES, "%s", g->head.tree);
	else if (rc == 0)
		rc = add_to_index(g, &changes, err) == 0 ? ask_id(g, write, id, err) : -1;
	free(changes.untracked);
	return rc;
}

int git_tree_of_patch(const struct git *g, const char *base, const char *patch,
		      char id[GIT_ID_BYTES], struct err *err)
{
	static const char *const write[] = { "write-tree", NULL };
	char *file = path_join("%s/patch", g->scratch);
	const char *const begin[] = { "read-tree", base, NULL };
	const char *const apply[] = { "apply", "--cached", "--whitespace=nowarn", file, NULL };
	int rc = file_write_visible(file, patch, strlen(patch), 0600, err);

	if (rc == 0)
		rc = run(g, begin, err);
	if (rc == 0 && patch[0])
		rc = run(g, apply, err);
	free(file);
	return rc == 0 ? ask_id(g, write, id, err) : -1;
}

int git_write_files(const struct git *g, const char *to, struct err *err)
{
	char *prefix = path_join("--prefix=%s/", to);
	const char *const write[] = { "checkout-index", "--all", prefix, NULL };
	char *said = ask_within(WRITE_TIMEOUT_MS, g->root, g->scratch, write, err);
	int rc = said ? 0 : -1;

	free(said);
	free(prefix);
	return rc;
}

/* --- what differs ----------------------------------------------------------------------------- */

char *git_patch(const struct git *g, const char *from, const char *to, size_t max_bytes,
		struct err *err)
{
	char *file = path_join("%s/patch", g->scratch), *output = path_join("--output=%s", file);
	const char *const ask[] = { "diff", "--binary", "--no-color", "--no-ext-diff",
				    output, from,       to,           NULL };
	char *said = git_ask(g, ask, err), *text = NULL;
	struct stat st;
	size_t len;

	if (said && stat(file, &st) == 0 && (size_t)st.st_size > max_bytes)
		err_set(err, ERR_USAGE,
			"the changes are %lld bytes, more than the %zu that are kept",
			(long long)st.st_size, max_bytes);
	else if (said)
		text = file_read(file, max_bytes, &len, err);
	free(said);
	free(file);
	free(output);
	return text;
}

json_t *git_changed(const struct git *g, const char *from, const char *to, struct err *err)
{
	const char *const ask[] = { "-c", "core.quotePath=false", "diff", "--name-only", from, to,
				    NULL };
	char *names = git_ask(g, ask, err), *rest = names, *name;
	json_t *list = names ? json_array() : NULL;

	while ((name = strsep(&rest, "\n")))
		if (name[0])
			json_array_append_new(list, js_bytes(name));
	free(names);
	return list;
}
