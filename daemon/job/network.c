/* SPDX-License-Identifier: MIT */
/* network.c - finds and reads a profile. */
#include "daemon/job/network.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/bytes.h"
#include "common/base/compare.h"
#include "common/base/files.h"
#include "common/base/guarded.h"
#include "common/base/mem.h"
#include "common/base/names.h"
#include "common/base/paths.h"
#include "common/base/strv.h"
#include "common/config/toml.h"

enum { FOLDERS = 3, NAMES_MAX = 64, LIST_MAX_BYTES = 2000 };

const char *network_of(const struct config *config, const struct run_spec *spec)
{
	return spec->network || spec->script ? spec->network : config->slurm_network;
}

/* The owner's, the installed ones, those of the source tree; some may be NULL. */
static void folders_make(const struct config *config, char *folders[FOLDERS])
{
	folders[0] = path_join("%s/network", config->home);
	folders[1] = path_sibling("../share/lowbits/network", NULL);
	folders[2] = path_sibling("../etc/network", NULL);
}

/* --- which there are -------------------------------------------------------------------------- */

struct names {
	char *items[NAMES_MAX];
	size_t count;
};

static void add_name(struct names *names, const char *file)
{
	const char *dot = strrchr(file, '.');
	char *name;

	if (!dot || strcmp(dot, ".toml") != 0 || names->count == NAMES_MAX)
		return;
	name = xstrndup(file, (size_t)(dot - file));
	for (size_t i = 0; i < names->count; i++) {
		if (strcmp(names->items[i], name) == 0) {
			free(name);
			return;
		}
	}
	names->items[names->count++] = name;
}

static int refuse_unknown(char *const folders[FOLDERS], const char *name, struct err *err)
{
	struct names names = { .count = 0 };
	struct buf list;

	for (int i = 0; i < FOLDERS; i++) {
		DIR *folder = folders[i] ? opendir(folders[i]) : NULL;
		const struct dirent *entry;

		while (folder && (entry = readdir(folder)))
			add_name(&names, entry->d_name);
		if (folder)
			closedir(folder);
	}
	qsort(names.items, names.count, sizeof(names.items[0]), compare_names);
	buf_init(&list, LIST_MAX_BYTES);
	for (size_t i = 0; i < names.count; i++) {
		buf_addf(&list, "%s%s", i ? ", " : "", names.items[i]);
		free(names.items[i]);
	}
	err_set(err, ERR_USAGE,
		"slurm.network: there is no profile \"%.60s\"; there are: %.300s; "
		"one of your own goes to %s/NAME.toml",
		name, names.count ? list.data : "none", folders[0]);
	buf_fini(&list);
	return -1;
}

static char *find(char *const folders[FOLDERS], const char *name)
{
	for (int i = 0; i < FOLDERS; i++) {
		char *path = folders[i] ? path_join("%s/%s.toml", folders[i], name) : NULL;

		if (path && file_exists(path))
			return path;
		free(path);
	}
	return NULL;
}

/* --- what is in one --------------------------------------------------------------------------- */

static bool is_set(const struct strv *env, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < env->count; i++) {
		if (strncmp(env->items[i], name, len) == 0 && env->items[i][len] == '=')
			return true;
	}
	return false;
}

static bool is_variable(const char *name)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "_0123456789";

	return name[0] && !strchr("0123456789", name[0]) && strspn(name, letters) == strlen(name);
}

static int refuse(const struct toml *toml, const char *section, const char *name, const char *why,
		  struct err *err)
{
	char *key = xasprintf("%s%s%s", section, *section ? "." : "", name);

	keys_refuse(toml, key, why, err);
	free(key);
	return -1;
}

static int add_variable(struct strv *env, const struct toml *toml, const char *name,
			const json_t *value, struct err *err)
{
	char *text = json_is_integer(value)
			     ? xasprintf("%lld", (long long)json_integer_value(value))
			     : js_bytes_take(value);

	if (!text)
		return refuse(toml, "env", name, "must be a string or a whole number", err);
	if (!is_variable(name)) {
		free(text);
		return refuse(toml, "env", name, "is no name for a variable", err);
	}
	if (!is_set(env, name))
		strv_set(env, xasprintf("%s=%s", name, text));
	free(text);
	return 0;
}

static int add_all(struct strv *env, const struct toml *toml, struct err *err)
{
	const json_t *value;
	const char *name;

	json_object_foreach(toml->root, name, value) {
		if (strcmp(name, "env") != 0 || !json_is_object(value))
			return refuse(toml, "", name, "a profile has one section, [env]", err);
	}
	json_object_foreach(json_object_get(toml->root, "env"), name, value) {
		if (add_variable(env, toml, name, value, err) < 0)
			return -1;
	}
	return 0;
}

/* The owner's own are the owner's word; those that were installed are trusted as the programs
 * are. */
static int load(struct toml *toml, const char *path, const char *own, struct err *err)
{
	if (path_below(path, own))
		return toml_load_guarded(toml, path, err);
	return toml_load(toml, path, err);
}

int network_check(const struct config *config, struct err *err)
{
	char *path = path_join("%s/network", config->home);
	DIR *folder = opendir(path);
	const struct dirent *entry;
	int rc = 0;

	while (folder && rc == 0 && (entry = readdir(folder))) {
		const char *dot = strrchr(entry->d_name, '.');
		int fd;

		if (!dot || strcmp(dot, ".toml") != 0)
			continue;
		char *file = path_join("%s/%s", path, entry->d_name);
		struct err why = { 0 };

		fd = guarded_open(file, O_RDONLY, geteuid(), &why);
		if (fd >= 0)
			close(fd);
		else if (why.code == ERR_REFUSED)
			rc = err_set(err, why.code, "%s", why.text);
		free(file);
	}
	if (folder)
		closedir(folder);
	free(path);
	return rc;
}

int network_add(struct strv *env, const struct config *config, const char *name, struct err *err)
{
	char *folders[FOLDERS], *path;
	struct toml toml = { 0 };
	int rc = -1;

	folders_make(config, folders);
	path = name_check(name, NULL) == 0 ? find(folders, name) : NULL;
	if (!path)
		refuse_unknown(folders, name, err);
	else if (load(&toml, path, folders[0], err) == 0)
		rc = add_all(env, &toml, err);
	toml_clear(&toml);
	free(path);
	for (int i = 0; i < FOLDERS; i++)
		free(folders[i]);
	return rc;
}
