/* SPDX-License-Identifier: MIT */
/* home_carry.c - carries the folder to another file system. */
#include "ctl/act/home_carry.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/shell_words.h"
#include "common/run/home.h"
#include "common/run/lease.h"
#include "common/run/run_state.h"
#include "ctl/base/program.h"

enum { RECORD_MAX_BYTES = 64 * 1024 * 1024 };

/* In the new folder until the old one is cleared away; holds the old one's path. */
#define MARKER ".carried"

/* The path in the marker of a folder, owned; NULL: there is none. */
static char *marked(const char *folder)
{
	char *file = path_join("%s/%s", folder, MARKER);
	char *text = file_read(file, PATH_MAX, NULL, NULL);

	free(file);
	return text;
}

/* Its last word, which lbd writes beside it; a job that nobody has heard of yet is not over. */
static bool is_over(const char *run_dir)
{
	char *path = path_join("%s/record.json", run_dir);
	json_t *record = js_load(path, RECORD_MAX_BYTES, NULL);
	bool is_final = run_state_is_final(run_state_from_name(js_str(record, "state", "")));

	json_decref(record);
	free(path);
	return is_final;
}

/* --- walking through a folder ----------------------------------------------------------------- */

struct carry {
	char *from, *to, *left; /* the old folder, the new one, where the old one goes; owned */
	char *part;             /* the new one as it grows; owned */
	int runs_left;
};

/* Calls `see` for each entry but "." and ".."; ends with the first that fails. A folder that is not
 * there is empty. */
static int each_entry(const char *folder, struct carry *c,
		      int (*see)(struct carry *c, const char *name, struct err *err),
		      struct err *err)
{
	DIR *dir = opendir(folder);
	const struct dirent *entry;
	int rc = dir || errno == ENOENT ? 0 : err_errno(err, "%s", folder);

	while (dir && rc == 0 && (entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			rc = see(c, entry->d_name, err);
	}
	if (dir)
		closedir(dir);
	return rc;
}

/* What is there already and no older stays as it is. */
static int copy(const char *from, const char *to, struct err *err)
{
	const char *const words[] = { "cp", "-a", "-u", "-T", "--", from, to, NULL };
	int status = program_run(words, -1, err);

	if (status > 0)
		err_set(err, ERR_IO, "%s could not be copied to %s", from, to);
	return status == 0 ? 0 : -1;
}

static int take_away(const char *path, struct err *err)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : err_errno(err, "%s", path);
	if (S_ISDIR(st.st_mode))
		return folder_remove(path, err);
	return unlink(path) < 0 ? err_errno(err, "%s", path) : 0;
}

/* --- copying ---------------------------------------------------------------------------------- */

/* Sockets are made anew. */
static int copy_entry(const char *from, const char *to, const char *name, struct err *err)
{
	char *source = path_join("%s/%s", from, name), *target = path_join("%s/%s", to, name);
	struct stat st;
	int rc = 0;

	if (strcmp(name, "runs") != 0 && strcmp(name, MARKER) != 0 && lstat(source, &st) == 0 &&
	    !S_ISSOCK(st.st_mode))
		rc = copy(source, target, err);
	free(source);
	free(target);
	return rc;
}

static int copy_first(struct carry *c, const char *name, struct err *err)
{
	return copy_entry(c->from, c->part, name, err);
}

/* What changed while the first copy was made: jobs note their end, people leave switches. */
static int copy_late(struct carry *c, const char *name, struct err *err)
{
	return copy_entry(c->left, c->to, name, err);
}

static int copy_run(struct carry *c, const char *name, struct err *err)
{
	char *source = path_join("%s/runs/%s", c->from, name);
	char *target = path_join("%s/runs/%s", c->part, name);
	char *stays = path_join("%s/runs/%s", c->left, name);
	int rc = 0;

	if (name[0] == '.')
		rc = 0; /* half removed */
	else if (is_over(source))
		rc = copy(source, target, err);
	else if (symlink(stays, target) < 0)
		rc = err_errno(err, "%s", target);
	free(source);
	free(target);
	free(stays);
	return rc;
}

/* An empty folder with the owner and mode of another. */
static int make_like(const char *path, const char *like, struct err *err)
{
	struct stat st;

	if (stat(like, &st) < 0)
		return err_errno(err, "%s", like);
	if (mkdir(path, 0700) < 0 || chown(path, st.st_uid, st.st_gid) < 0 ||
	    chmod(path, st.st_mode & 07777) < 0)
		return err_errno(err, "%s", path);
	return 0;
}

static int make_copy(struct carry *c, struct err *err)
{
	char *runs = path_join("%s/runs", c->part), *old_runs = path_join("%s/runs", c->from);
	char *marker = path_join("%s/%s", c->part, MARKER);
	int fd, rc = -1;

	if (take_away(c->part, err) == 0 && make_like(c->part, c->from, err) == 0 &&
	    each_entry(c->from, c, copy_first, err) == 0 &&
	    (!file_exists(old_runs) || make_like(runs, old_runs, err) == 0) &&
	    each_entry(old_runs, c, copy_run, err) == 0 &&
	    file_write_atomic(marker, c->from, strlen(c->from), 0600, err) == 0)
		rc = 0;
	fd = rc == 0 ? open(c->part, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (fd >= 0 && syncfs(fd) < 0)
		rc = err_errno(err, "%s", c->part);
	if (fd >= 0)
		close(fd);
	if (rc == 0 && rename(c->part, c->to) < 0)
		rc = err_errno(err, "%s", c->to);
	free(runs);
	free(old_runs);
	free(marker);
	return rc;
}

/* The link and the old folder change places. */
static int exchange(const char *folder, const char *link, struct err *err)
{
	if (renameat2(AT_FDCWD, folder, AT_FDCWD, link, RENAME_EXCHANGE) == 0)
		return 0;
	return err_errno(err, "%s cannot change places with %s", folder, link);
}

static int swap(struct carry *c, struct err *err)
{
	if (file_is_link(c->left))
		unlink(c->left); /* of a try before */
	if (symlink(c->to, c->left) < 0)
		return err_errno(err, "%s", c->left);
	return exchange(c->from, c->left, err);
}

/* --- afterwards ------------------------------------------------------------------------------- */

static int clear_entry(struct carry *c, const char *name, struct err *err)
{
	char *path = path_join("%s/%s", c->left, name);
	int rc = strcmp(name, "runs") == 0 ? 0 : take_away(path, err);

	free(path);
	return rc;
}

/* Copying may have taken hours, and others, an evaluation, may have written there meanwhile. */
static int take_copied_away(const char *path, const char *there, struct err *err)
{
	return !file_exists(there) || copy(path, there, err) == 0 ? take_away(path, err) : -1;
}

static int clear_run(struct carry *c, const char *name, struct err *err)
{
	char *path = path_join("%s/runs/%s", c->left, name);
	char *there = path_join("%s/runs/%s", c->to, name);
	int rc = file_is_link(there) ? 0 : take_copied_away(path, there, err);

	free(path);
	free(there);
	return rc;
}

/* The old folder, as far as nothing is left in it. */
static void drop_left(const char *left)
{
	char *runs = path_join("%s/runs", left);

	rmdir(runs);
	rmdir(left);
	free(runs);
}

static int settle(struct carry *c, struct err *err)
{
	char *runs = path_join("%s/runs", c->left), *marker = path_join("%s/%s", c->to, MARKER);
	int rc = -1;

	if (each_entry(c->left, c, copy_late, err) == 0 &&
	    each_entry(c->left, c, clear_entry, err) == 0 &&
	    each_entry(runs, c, clear_run, err) == 0)
		rc = take_away(marker, err);
	drop_left(c->left);
	free(runs);
	free(marker);
	return rc;
}

/* --- runs that have ended since --------------------------------------------------------------- */

static int fetch(const char *link, const char *copied, const char *target, struct err *err)
{
	char *runs = xstrndup(target, (size_t)(strrchr(target, '/') - target));
	char *left = xstrndup(runs, (size_t)(strrchr(runs, '/') - runs));
	int rc = -1;

	if (take_away(copied, err) == 0 && copy(target, copied, err) == 0 &&
	    exchange(copied, link, err) == 0 && take_away(copied, err) == 0)
		rc = take_copied_away(target, link, err);
	drop_left(left);
	free(left);
	free(runs);
	return rc;
}

static int fetch_run(struct carry *c, const char *name, struct err *err)
{
	char *link = path_join("%s/runs/%s", c->to, name);
	char *copied = path_join("%s/runs/.fetched-%s", c->to, name);
	char *target = file_is_link(link) ? realpath(link, NULL) : NULL;
	int rc = 0;

	if (target && is_over(target))
		rc = fetch(link, copied, target, err);
	else if (target)
		c->runs_left++;
	free(link);
	free(copied);
	free(target);
	return rc;
}

/* --- all of it -------------------------------------------------------------------------------- */

/* The lock of the folder, for as long as we and what we start live: no lbd begins meanwhile. */
static int keep_out(const char *home, struct err *err)
{
	char *path = path_join("%s/lbd.lock", home), *lease_file = lease_path(home, 0);
	int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0640); /* cp keeps it, too */
	struct lease lease;
	bool is_held = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;

	if (!is_held && lease_read(lease_file, &lease, NULL) == 0 && lease.ended_ms == 0)
		is_held = lease_is_here(&lease) ? lease_is_alive_here(&lease) : true;
	if (fd < 0)
		err_errno(err, "%s", path);
	else if (is_held)
		err_set(err, ERR_REFUSED,
			"%s: an lbd, or another move, is at work there: say lbctl daemon stop, "
			"then this, then lbctl daemon start; jobs run on meanwhile",
			home);
	if (fd >= 0 && is_held)
		close(fd);
	free(path);
	free(lease_file);
	return fd < 0 || is_held ? -1 : fd;
}

static bool has_run_elsewhere(const char *home)
{
	char *runs = path_join("%s/runs", home);
	DIR *dir = opendir(runs);
	const struct dirent *entry;
	bool found = false;

	while (dir && !found && (entry = readdir(dir)))
		found = folder_entry_type(dirfd(dir), entry) == DT_LNK;
	if (dir)
		closedir(dir);
	free(runs);
	return found;
}

bool home_is_to_be_carried(const char *home, const char *to)
{
	char *parent = xstrndup(to, (size_t)(strrchr(to, '/') - to)), *mark = marked(to);
	struct stat here, there;
	bool is_far = stat(home, &here) == 0 && stat(parent[0] ? parent : "/", &there) == 0 &&
		      here.st_dev != there.st_dev;
	bool is_there = file_is_same(home, to);
	bool is_case = mark || (is_there ? has_run_elsewhere(to) : is_far);

	free(mark);
	free(parent);
	return is_case;
}

static int refuse_place(const struct carry *c, struct err *err)
{
	char word[SHELL_WORD_BYTES];
	struct stat st;

	if (lstat(c->to, &st) == 0)
		return err_set(err, ERR_REFUSED, "%s is there already", c->to);
	if (lstat(c->left, &st) == 0 && !S_ISLNK(st.st_mode))
		return err_set(err, ERR_REFUSED, "%s is there already", c->left);
	if (has_run_elsewhere(c->from))
		return err_set(err, ERR_REFUSED,
			       "%s: runs of it are still where it was before: when they are over, "
			       "fetch them with lbctl home move %s",
			       c->from, shell_word(c->from, word));
	return home_check(c->from, err);
}

static int carry(struct carry *c, bool is_there, bool is_marked, struct err *err)
{
	char *runs = path_join("%s/runs", c->to);
	int rc = 0;

	if (is_marked && !is_there) /* died before the folders changed places */
		rc = take_away(c->to, err);
	if (rc == 0 && !is_there)
		rc = refuse_place(c, err) < 0 || make_copy(c, err) < 0 ? -1 : swap(c, err);
	if (rc == 0 && (!is_there || is_marked))
		rc = settle(c, err);
	if (rc == 0)
		rc = each_entry(runs, c, fetch_run, err);
	free(runs);
	return rc;
}

int home_carry(const char *home, const char *to, int *left, struct err *err)
{
	char *real = realpath(home, NULL), *mark = marked(to);
	bool is_there = real && file_is_same(real, to);
	const char *from = is_there && mark ? mark : real;
	struct carry c = { 0 };
	int lock, rc = -1;

	if (real == NULL)
		err_errno(err, "%s", home);
	lock = real ? keep_out(real, err) : -1;
	if (lock >= 0) {
		c = (struct carry){ .from = xstrdup(from),
				    .to = xstrdup(to),
				    .left = path_join("%s.left", from),
				    .part = path_join("%s.moving", to) };
		rc = carry(&c, is_there, mark != NULL, err);
		close(lock);
	}
	*left = c.runs_left;
	free(c.from);
	free(c.to);
	free(c.left);
	free(c.part);
	free(real);
	free(mark);
	return rc;
}
