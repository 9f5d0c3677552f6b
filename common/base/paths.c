/* SPDX-License-Identifier: MIT */
/* paths.c - puts paths together, and finds $LB_HOME and the programs beside this one. */
#include "common/base/paths.h"

#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/accounts.h"
#include "common/base/files.h"
#include "common/base/mem.h"

/* Takes `path`; gives it back absolute and without slashes at the end. */
static char *made_absolute(char *path, struct err *err)
{
	size_t len = strlen(path);
	char *cwd, *whole;

	while (len > 1 && path[len - 1] == '/')
		path[--len] = '\0';
	if (path[0] == '/')
		return path;
	cwd = getcwd(NULL, 0);
	if (!cwd) {
		err_errno(err, "current folder");
		free(path);
		return NULL;
	}
	whole = path_join("%s/%s", cwd, path);
	free(cwd);
	free(path);
	return whole;
}

/* HOME may be missing in a job or a unit file; the user database still knows. Owned; NULL: nobody
 * knows. */
static char *home_folder(void)
{
	const char *home = getenv("HOME");
	struct account me;
	char *folder;

	if (home && home[0] == '/')
		return xstrdup(home);
	folder = account_of(geteuid(), &me) && me.home[0] == '/' ? xstrdup(me.home) : NULL;
	account_clear(&me);
	return folder;
}

int path_check_home(const char *home, struct err *err)
{
	size_t len = strlen(home);

	if (strpbrk(home, "\n\r"))
		return err_set(err, ERR_USAGE,
			       "LB_HOME: a line break in its path: choose another folder");
	if (len > PATH_HOME_MAX)
		return err_set(err, ERR_USAGE,
			       "LB_HOME: \"%.40s…\" has %zu characters, %d are allowed: choose "
			       "another folder, or a link to it",
			       home, len, PATH_HOME_MAX);
	return 0;
}

/* Takes `home`. */
static char *checked(char *home, struct err *err)
{
	if (home == NULL || path_check_home(home, err) == 0)
		return home;
	free(home);
	return NULL;
}

char *path_lb_home(struct err *err)
{
	const char *lb_home = getenv("LB_HOME");
	const char *state = getenv("XDG_STATE_HOME");
	char *home;

	if (lb_home && lb_home[0])
		return checked(made_absolute(xstrdup(lb_home), err), err);
	/* The XDG specification: a relative value is invalid and to be ignored. */
	if (state && state[0] == '/')
		return checked(made_absolute(path_join("%s/lb", state), err), err);
	home = home_folder();
	if (home) {
		char *folder = path_join("%s/.local/state/lb", home);

		free(home);
		return checked(made_absolute(folder, err), err);
	}
	err_set(err, ERR_USAGE, "cannot tell where to keep state: set LB_HOME or HOME");
	return NULL;
}

const char *path_tmp(void)
{
	const char *tmp = getenv("TMPDIR");

	return tmp && tmp[0] == '/' && access(tmp, W_OK | X_OK) == 0 ? tmp : "/tmp";
}

int path_own_program(char out[PATH_MAX], struct err *err)
{
	static const char gone[] = " (deleted)";
	ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - 1);
	size_t without;

	if (n < 0)
		return err_errno(err, "/proc/self/exe");
	out[n] = '\0';
	without = (size_t)n - (sizeof(gone) - 1);
	if ((size_t)n > sizeof(gone) && strcmp(out + without, gone) == 0 && access(out, F_OK) < 0)
		out[without] = '\0';
	return 0;
}

/* The folder of the running program. */
static int own_folder(char out[PATH_MAX], struct err *err)
{
	char *slash;

	if (path_own_program(out, err) < 0)
		return -1;
	slash = strrchr(out, '/');
	if (slash)
		*slash = '\0';
	return 0;
}

char *path_literal(const char *path)
{
	char *out = xcalloc(2, strlen(path) + 1), *to = out;

	for (; *path; path++) {
		if (strchr("*?[\\{", *path))
			*to++ = '\\';
		*to++ = *path;
	}
	return out;
}

struct strv path_slurm_helpers(void)
{
	static const char *const patterns[] = { "lbd-slurm", "../lib/lowbits/lbd-slurm-[0-9]*" };
	struct strv all = { 0 };
	char bin[PATH_MAX];

	for (int i = 0; i < 2 && own_folder(bin, NULL) == 0; i++) {
		char *folder = path_literal(bin),
		     *pattern = path_join("%s/%s", folder, patterns[i]);
		glob_t found;

		if (glob(pattern, 0, NULL, &found) == 0)
			strv_add_all(&all, found.gl_pathv);
		globfree(&found);
		free(pattern);
		free(folder);
	}
	return all;
}

const char *path_slurm_conf(const char **told)
{
	/* The second one is a site's whose controller hands out its configuration. */
	static const char *const places[] = { "/etc/slurm/slurm.conf",
					      "/run/slurm/conf/slurm.conf" };
	const char *conf = getenv("SLURM_CONF");

	*told = conf && conf[0] ? conf : NULL;
	if (*told)
		return access(conf, R_OK) == 0 ? conf : NULL;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (access(places[i], R_OK) == 0)
			return places[i];
	}
	return NULL;
}

char *path_sibling(const char *program, struct err *err)
{
	char folder[PATH_MAX];
	char *path;

	if (own_folder(folder, err) < 0)
		return NULL;
	path = path_join("%s/%s", folder, program);
	if (!file_exists(path)) {
		err_set(err, ERR_NOT_FOUND, "%s: no such program", path);
		free(path);
		return NULL;
	}
	return path;
}

const char *path_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

const char *path_below(const char *path, const char *folder)
{
	size_t len = strlen(folder);

	return strncmp(path, folder, len) == 0 && path[len] == '/' ? path + len + 1 : NULL;
}

bool path_has_program(const char *search, const char *program)
{
	while (search && *search) {
		size_t len = strcspn(search, ":");
		char *file = path_join("%.*s/%s", (int)len, search, program);
		bool is_there = access(file, X_OK) == 0;

		free(file);
		if (is_there)
			return true;
		search += len + (search[len] == ':');
	}
	return false;
}
