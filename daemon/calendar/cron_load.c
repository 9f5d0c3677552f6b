/* SPDX-License-Identifier: MIT */
/* cron_load.c - reads crontab, environment and the periods' folders, each line and file by itself:
 * one mistake spoils no other. */
#include "daemon/calendar/cron_load.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/files.h"
#include "common/base/guarded.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/strv.h"
#include "common/base/text.h"
#include "daemon/calendar/cron_check.h"
#include "slurm/batch/self_submission.h"

enum { MAX_BYTES = 1024 * 1024 };

static const char *const folder_names[CRON_PERIODS] = {
	[CRON_HOURLY] = "cron.hourly",
	[CRON_DAILY] = "cron.daily",
	[CRON_WEEKLY] = "cron.weekly",
	[CRON_MONTHLY] = "cron.monthly",
};

struct loader {
	const struct cron_config *config;
	struct cron_entries *out;
	void (*on_bad)(void *arg, const struct err *why);
	void *arg;
};

static void tell(const struct loader *l, const struct err *err)
{
	l->on_bad(l->arg, err);
}

/* --- who may write there --------------------------------------------------------------------- */

/* 1: there and nobody else's to change, 0: not there, -1 with err. Links are not followed. */
static int check_folder(const char *path, struct err *err)
{
	struct err why = { 0 };
	struct stat st;
	int fd;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : err_errno(err, "%s", path);
	if (!S_ISDIR(st.st_mode))
		return err_set(err, ERR_USAGE, "%s: must be a folder", path);
	fd = guarded_open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, geteuid(), &why);
	if (fd < 0)
		return err_set(err, why.code, "%s", why.text);
	close(fd);
	return 1;
}

char *cron_read(const char *path, size_t max_bytes, struct err *err)
{
	int fd = guarded_open(path, O_RDONLY | O_NOFOLLOW, geteuid(), err);
	char *text = NULL;
	struct stat st;

	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		text = file_read_fd(fd, path, max_bytes, NULL, err);
	else
		err_set(err, ERR_USAGE, "%s: must be a regular file, and no link", path);
	close(fd);
	return text;
}

/* --- scripts in folders ---------------------------------------------------------------------- */

/* The rest of the file may be anything. */
static int read_lb_line(struct cron_entry *entry, const char *line, size_t len, struct err *err)
{
	char *text = xstrndup(line, len), *key = text + strspn(text, " \t");
	char *equals = strchr(key, '=');
	int rc = -1;

	if (equals == NULL) {
		err_set(err, ERR_USAGE, "#LB: KEY=VALUE is wanted");
	} else {
		*equals = '\0';
		if (strcmp(key, "NAME") == 0) {
			snprintf(entry->name, sizeof(entry->name), "%s", equals + 1);
			rc = 0;
		} else if (strcmp(key, "SBATCH") == 0) {
			rc = cron_options(entry, equals + 1, err);
		} else {
			rc = cron_setting(&entry->settings, key, equals + 1, err);
		}
	}
	free(text);
	return rc;
}

/* `#LB KEY=VALUE` */
static int read_lb_lines(struct cron_entry *entry, const char *text, struct err *err)
{
	int number = 1;

	for (const char *line = text; *line != '\0'; number++) {
		size_t len = strcspn(line, "\n"), shown = strcspn(line, "\r\n");

		if (strncmp(line, "#LB ", 4) == 0 &&
		    read_lb_line(entry, line + 4, shown - 4, err) < 0)
			return err_wrap(err, "%s:%d", entry->source, number);
		line += len + (line[len] == '\n');
	}
	return 0;
}

/* The self-resubmitting scheduler that lbd replaces: it would run everything a second time. */
static bool is_scheduler(const char *path, const char *text)
{
	bool has_folders = strstr(text, "cron.hourly") || strstr(text, "cron.daily") ||
			   strstr(text, "cron.weekly");

	return strstr(text, "sbatch") && has_folders &&
	       (strstr(text, "--begin=now+") || submits_itself(path, text, NULL));
}

static int check_script(const char *path, const char *text, struct err *err)
{
	if (is_scheduler(path, text))
		return err_set(err, ERR_USAGE,
			       "%s: this script is itself a cron that submits itself again; "
			       "lbd does what it does: move it away, and scancel its jobs",
			       path);
	return 0;
}

static int add_script(const struct loader *l, const char *path, enum cron_period period,
		      struct err *err)
{
	struct cron_entry entry = { .settings = l->config->settings };
	char *text = cron_read(path, MAX_BYTES, err);
	int rc = -1;

	if (text == NULL)
		return -1;
	entry.source = xstrdup(path);
	entry.when = xstrdup(l->config->when[period]);
	entry.zone = xstrdup(l->config->time_zone ? l->config->time_zone : "");
	entry.argv = xcalloc(2, sizeof(*entry.argv));
	entry.argv[0] = xstrdup(path);
	cron_name_of(path, entry.name);
	if (check_script(path, text, err) == 0 && read_lb_lines(&entry, text, err) == 0 &&
	    cron_expr_parse(entry.when, &entry.expr, err) == 0 &&
	    (rc = name_check(entry.name, err)) < 0)
		err_wrap(err, "%s", path);
	free(text);
	if (rc < 0) {
		cron_entry_clear(&entry);
		return -1;
	}
	return cron_entries_add(l->out, &entry, err);
}

static const char *const endings[] = { ".slurm", ".sh", ".sbatch", ".toml" };
enum { ENDINGS = sizeof(endings) / sizeof(endings[0]) };

static bool is_script(const char *name)
{
	const char *dot = strrchr(name, '.');

	for (size_t i = 0; dot && i < ENDINGS; i++)
		if (strcmp(dot, endings[i]) == 0)
			return true;
	return false;
}

/* A script under a name that is none of ours, as they lie in /etc/cron.daily: its owner would wait
 * for ever. One called x.sh.off, x.sh~ and the like was taken away on purpose. */
static bool is_misnamed(const char *path, const char *name)
{
	char start[2] = "";
	int fd;

	for (size_t i = 0; i < ENDINGS; i++)
		if (strstr(name, endings[i]))
			return false;
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (read(fd, start, sizeof(start)) < (ssize_t)sizeof(start))
		start[0] = '\0';
	close(fd);
	return memcmp(start, "#!", sizeof(start)) == 0;
}

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static void load_folder(const struct loader *l, const char *path, enum cron_period period)
{
	struct dirent **names = NULL;
	struct err err = { 0 };
	int count = 0, there = check_folder(path, &err);

	if (there > 0 && (count = scandir(path, &names, is_visible, alphasort)) < 0)
		there = err_errno(&err, "%s", path);
	if (there < 0)
		tell(l, &err);
	for (int i = 0; i < count; i++) {
		char *file = path_join("%s/%s", path, names[i]->d_name);
		struct err why = { 0 };

		if (is_script(names[i]->d_name))
			add_script(l, file, period, &why);
		else if (is_misnamed(file, names[i]->d_name))
			err_set(&why, ERR_USAGE,
				"%s: only *.sh, *.slurm, *.sbatch and *.toml are started: "
				"rename it",
				file);
		if (why.code != ERR_NONE)
			tell(l, &why);
		free(file);
		free(names[i]);
	}
	free(names);
}

/* --- all of it ------------------------------------------------------------------------------- */

static void load_crontab(const struct loader *l, const char *path)
{
	struct err err = { 0 };
	char *text;

	if (!file_exists(path))
		return;
	text = cron_read(path, MAX_BYTES, &err);
	if (text == NULL)
		tell(l, &err);
	else
		crontab_read(text, path, l->config->time_zone, &l->config->settings, l->out,
			     l->on_bad, l->arg);
	free(text);
}

/* NAME=VALUE lines, for every job. */
static void load_environment(const struct loader *l, const char *path)
{
	struct strv env = { 0 };
	struct err err = { 0 };
	char *text, *rest, *line;
	int number = 0;

	if (!file_exists(path))
		return;
	rest = text = cron_read(path, MAX_BYTES, &err);
	if (text == NULL)
		tell(l, &err);
	while ((line = strsep(&rest, "\n"))) {
		char *whole;

		number++;
		if (text_ends_with(line, "\r"))
			line[strlen(line) - 1] = '\0';
		line += strspn(line, " \t");
		if (line[0] == '\0' || line[0] == '#')
			continue;
		whole = cron_assignment(line);
		if (whole) {
			strv_set(&env, whole);
			continue;
		}
		err_clear(&err);
		err_set(&err, ERR_USAGE, "%s:%d: NAME=VALUE is wanted", path, number);
		tell(l, &err);
	}
	l->out->env = env.items;
	free(text);
}

/* As the job's environment is put together (cron_ticks.c). */
static const char *path_of_job(const struct cron_entries *entries, const struct cron_entry *entry)
{
	const char *own = strv_get(entry->env, "PATH");
	const char *path = own ? own : strv_get(entries->env, "PATH");

	if (!path)
		path = getenv("PATH");
	return path ? path : "";
}

/* Told with the others; the entry stays, and says so where it is listed. */
static void find_problems(const struct loader *l, const char *folder)
{
	for (size_t i = 0; i < l->out->count; i++) {
		struct cron_entry *entry = &l->out->items[i];
		struct err err = { 0 };

		entry->problem = cron_entry_problem(folder, entry, path_of_job(l->out, entry));
		if (entry->problem == NULL)
			continue;
		err_set(&err, ERR_USAGE, "%s", entry->problem);
		tell(l, &err);
	}
}

void cron_load(const struct cron_config *config, const char *folder, struct cron_entries *out,
	       void (*on_bad)(void *arg, const struct err *why), void *arg)
{
	struct loader l = { config, out, on_bad, arg };
	struct err err = { 0 };
	int there = check_folder(folder, &err);
	char *path;

	if (there < 0)
		tell(&l, &err);
	if (there <= 0)
		return;
	path = path_join("%s/environment", folder);
	load_environment(&l, path);
	free(path);
	path = path_join("%s/crontab", folder);
	load_crontab(&l, path);
	free(path);
	for (int p = 0; p < CRON_PERIODS; p++) {
		path = path_join("%s/%s", folder, folder_names[p]);
		load_folder(&l, path, (enum cron_period)p);
		free(path);
	}
	find_problems(&l, folder);
}
