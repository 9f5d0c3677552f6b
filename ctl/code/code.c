/* SPDX-License-Identifier: MIT */
/* code.c - looks at a folder from which a run is submitted. Whatever fails is said and kept: no run
 * is refused because its code could not be looked at. */
#include "ctl/code/code.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/bytes.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/text.h"
#include "common/run/code_files.h"
#include "ctl/code/git.h"

enum {
	NAMES_MAX = 200,
	PACKAGES_MAX = 2000,
	SHORT_ID = 10,
	WATCHED_MAX_BYTES = 192 * 1024, /* of the list of files */
};

/* --- the repository --------------------------------------------------------------------------- */

static int add_patch(json_t *code, const struct git *g, const char *head, const char *tree,
		     struct err *err)
{
	char *patch = git_patch(g, head, tree, CODE_PATCH_MAX_BYTES, err);

	if (patch)
		json_object_set_new(code, "patch", js_bytes(patch));
	free(patch);
	return patch ? 0 : -1;
}

/* By these a later launch sees whether it gets the same files. A list that is too long is none. */
static void add_files(json_t *code, const struct git *g)
{
	static const char *const ask[] = { "-c", "core.quotePath=false", "ls-files", NULL };
	char *names = git_ask(g, ask, NULL), *rest = names, *name;
	bool is_whole = true;
	struct buf list;

	buf_init(&list, WATCHED_MAX_BYTES);
	while (is_whole && (name = strsep(&rest, "\n"))) {
		char *file = path_join("%s/%s", g->root, name);
		struct stat st;

		if (lstat(file, &st) == 0 && S_ISREG(st.st_mode) &&
		    buf_addf(&list, "%lld %lld.%09ld %s\n", (long long)st.st_size,
			     (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec, name) < 0)
			is_whole = false;
		free(file);
	}
	if (list.data && is_whole)
		json_object_set_new(code, "files", js_bytes(list.data));
	buf_fini(&list);
	free(names);
}

static int add_changes(json_t *code, const struct git *g, const char *head, struct err *err)
{
	char tree[GIT_ID_BYTES];
	size_t left_out;
	json_t *names;

	if (git_tree_of_files(g, CODE_UNTRACKED_MAX_BYTES, CODE_UNTRACKED_MAX_FILES, &left_out,
			      tree, err) < 0)
		return -1;
	js_set_str(code, "tree", tree);
	if (left_out > 0)
		js_set_int(code, "left_out", (int64_t)left_out);
	add_files(code, g);
	js_set_int(code, "changed_files", 0);
	if (strcmp(head, tree) == 0)
		return 0;
	names = git_changed(g, head, tree, err);
	if (!names)
		return -1;
	js_set_int(code, "changed_files", (int64_t)json_array_size(names));
	while (json_array_size(names) > NAMES_MAX)
		json_array_remove(names, NAMES_MAX);
	json_object_set_new(code, "changed", names);
	return add_patch(code, g, head, tree, err);
}

static int add_commit(json_t *code, const struct git *g, struct err *err)
{
	const struct git_head *head = &g->head;

	json_object_set_new(code, "root", js_bytes(g->root));
	if (head->commit[0])
		js_set_str(code, "commit", head->commit);
	if (head->branch)
		json_object_set_new(code, "branch", js_bytes(head->branch));
	return add_changes(code, g, head->tree, err);
}

/* --- what it runs on -------------------------------------------------------------------------- */

static int compare_names(const void *a, const void *b)
{
	return strcmp(json_string_value(*(json_t *const *)a),
		      json_string_value(*(json_t *const *)b));
}

/* Names of the folders below `path` that end so, without the end. */
static void add_names(json_t *list, const char *path, const char *begin, const char *end)
{
	DIR *dir = opendir(path);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)) && json_array_size(list) < PACKAGES_MAX) {
		size_t len = strlen(entry->d_name);

		if (!text_begins_with(entry->d_name, begin) || !text_ends_with(entry->d_name, end))
			continue;
		json_array_append_new(list, json_stringn(entry->d_name, len - strlen(end)));
	}
	if (dir)
		closedir(dir);
}

/* What pip has installed into the environment in use: each package has left a folder with its
 * version, which is read faster than pip starts. */
static json_t *packages_of(const char *environment)
{
	json_t *versions = json_array(), *list = json_array(), *name;
	char *lib = path_join("%s/lib", environment);
	size_t i;

	add_names(versions, lib, "python", "");
	json_array_foreach(versions, i, name) {
		char *site = path_join("%s/%s/site-packages", lib, json_string_value(name));

		add_names(list, site, "", ".dist-info");
		free(site);
	}
	free(lib);
	json_decref(versions);
	return js_sorted(list, compare_names);
}

static void add_ground(json_t *code)
{
	const char *virtual = getenv("VIRTUAL_ENV"), *conda = getenv("CONDA_PREFIX");
	const char *environment = virtual && virtual[0] ? virtual : conda;
	const char *modules = getenv("LOADEDMODULES");
	json_t *packages;

	if (modules && modules[0])
		json_object_set_new(code, "modules", js_bytes(modules));
	if (!environment || environment[0] != '/')
		return;
	json_object_set_new(code, "environment", js_bytes(environment));
	packages = packages_of(environment);
	if (json_array_size(packages) > 0)
		json_object_set(code, "packages", packages);
	json_decref(packages);
}

/* --- all of it -------------------------------------------------------------------------------- */

json_t *code_of(const char *folder)
{
	json_t *code = json_object();
	struct err err = { 0 };
	struct git g;

	if (git_open(&g, folder, &err) < 0 || add_commit(code, &g, &err) < 0)
		js_set_str(code, "why", err.text);
	git_close(&g);
	add_ground(code);
	return code;
}

char *code_text(const json_t *code)
{
	const char *commit = js_str(code, "commit", NULL);
	char *branch = js_bytes_take(json_object_get(code, "branch")), *text;
	long long changed = js_int(code, "changed_files", 0);

	if (!json_object_get(code, "root")) {
		free(branch);
		return xstrdup("in no git repository");
	}
	text = xasprintf("%.*s%s%s%s", commit ? SHORT_ID : 99, commit ? commit : "no commit yet",
			 branch ? " (" : "", branch ? branch : "", branch ? ")" : "");
	if (changed > 0) {
		char *all = xasprintf("%s, %lld file%s changed since", text, changed,
				      changed == 1 ? "" : "s");

		free(text);
		text = all;
	}
	free(branch);
	return text;
}

char *code_changed(const char *run_dir)
{
	char *path = path_join("%s/" CODE_CHANGED, run_dir);
	char *text = file_read(path, CODE_FILE_MAX_BYTES, NULL, NULL);

	free(path);
	return text;
}

json_t *code_load(const char *run_dir, struct err *err)
{
	char *path = path_join("%s/" CODE_JSON, run_dir),
	     *patch = path_join("%s/code.patch", run_dir);
	json_t *code = js_load(path, CODE_FILE_MAX_BYTES, err);
	char *text = code ? file_read(patch, CODE_PATCH_MAX_BYTES, NULL, NULL) : NULL;

	if (text)
		json_object_set_new(code, "patch", js_bytes(text));
	free(text);
	free(path);
	free(patch);
	return code;
}
