/* SPDX-License-Identifier: MIT */
/* What a file is and whose is read from the folder with fstatat; its text is only a comment, read
 * when that is certain to be harmless. A file that cannot be read is an order all the same. */
#include "common/switches.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/members.h"
#include "common/text.h"

/* --- levels ----------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	enum run_order order;
} levels[SWITCH_LEVEL_COUNT] = {
	[SWITCH_SAVE] = {"save", ORDER_RUN},
	[SWITCH_HOLD] = {"hold", ORDER_HOLD},
	[SWITCH_STOP] = {"stop", ORDER_STOP},
	[SWITCH_KILL] = {"kill", ORDER_KILL},
};

const char *switch_level_name(enum switch_level level)
{
	return levels[level].name;
}

enum switch_level switch_level_from_name(const char *name)
{
	int level = 0;

	while (level < SWITCH_LEVEL_COUNT && strcmp(levels[level].name, name) != 0)
		level++;
	return (enum switch_level)level;
}

enum run_order switch_order(enum switch_level level)
{
	return levels[level].order;
}

/* --- the folder ------------------------------------------------------------------------------- */

static int check_folder(const struct stat *st, const char *folder, const struct switch_rules *rules,
			struct err *err)
{
	const char *mode = rules->team ? "3770" : "700";
	const struct group *group = rules->team ? getgrnam(rules->team) : NULL;

	if (st->st_uid != rules->owner)
		return err_set(err, ERR_REFUSED, "%s belongs to somebody else (uid %u): switches in it "
			       "do not count; move it away and restart lbd", folder, st->st_uid);
	if (st->st_mode & S_IWOTH)
		return err_set(err, ERR_REFUSED, "%s: everybody can write to it, so switches in it do "
			       "not count; mend it with: chmod %s %s", folder, mode, folder);
	if (!(st->st_mode & S_IWGRP))
		return 0;
	if (!group || st->st_gid != group->gr_gid)
		return err_set(err, ERR_REFUSED, "%s: a group that is not the team can write to it, so "
			       "switches in it do not count; mend it with: %s%s%schmod %s %s", folder,
			       rules->team ? "chgrp " : "", rules->team ? rules->team : "",
			       rules->team ? " and " : "", mode, folder);
	if (!(st->st_mode & S_ISVTX))
		return err_set(err, ERR_REFUSED, "%s is not sticky: anybody of the team could rename or "
			       "remove what others left, so switches in it do not count; mend it with: "
			       "chmod %s %s", folder, mode, folder);
	return 0;
}

static int open_folder(const char *folder, const struct switch_rules *rules, struct err *err)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 && errno == ENOENT)
		return err_set(err, ERR_NOT_FOUND, "%s is missing", folder);
	if (fd < 0 && (errno == ENOTDIR || errno == ELOOP))
		return err_set(err, ERR_REFUSED, "%s must be a folder, not a link or a file; move it "
			       "away and restart lbd", folder);
	if (fd < 0 || fstat(fd, &st) < 0)
		err_errno(err, "%s", folder);
	else if (check_folder(&st, folder, rules, err) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* --- one file --------------------------------------------------------------------------------- */

static const char *what_is_wrong(const struct stat *st, const struct switch_rules *rules)
{
	if (S_ISLNK(st->st_mode))
		return "a symbolic link is no switch";
	if (S_ISDIR(st->st_mode))
		return "a folder is no switch";
	if (!S_ISREG(st->st_mode))
		return "only an ordinary file is a switch";
	if (st->st_nlink != 1)
		return "a file with several names (hard links) is no switch";
	if (st->st_uid == rules->owner || st->st_uid == 0)
		return NULL;
	if (!member_of(st->st_uid, rules->team)->is_member)
		return "its owner is not in the team";
	return NULL;
}

/* "SELECTOR.LEVEL"; NULL when it is, else what is wrong. */
static const char *parse_name(const char *file, struct switch_file *out)
{
	const char *dot = strrchr(file, '.');
	char selector[SWITCH_FILE_BYTES];

	if (!dot || strlen(file) >= sizeof(out->file))
		return "its name is not SELECTOR.LEVEL, see README";
	out->level = switch_level_from_name(dot + 1);
	if (out->level == SWITCH_LEVEL_COUNT)
		return "its name ends in none of .save, .hold, .stop, .kill";
	snprintf(selector, sizeof(selector), "%.*s", (int)(dot - file), file);
	if (selector_parse(selector, &out->selector, NULL) < 0)
		return "its name does not begin with a run, a glob, GROUP@group, USER@user or ALL";
	snprintf(out->file, sizeof(out->file), "%s", file);
	return NULL;
}

/* The same file as was looked at, opened so that nothing can block or be followed. */
static void read_text(int dir, const struct stat *seen, struct switch_file *out)
{
	int fd = openat(dir, out->file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	ssize_t n = -1;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_ino == seen->st_ino &&
	    st.st_dev == seen->st_dev)
		n = read(fd, out->text, sizeof(out->text) - 1);
	if (fd >= 0)
		close(fd);
	out->text[n > 0 ? n : 0] = '\0';
	n = (ssize_t)strlen(out->text);
	while (n > 0 && strchr(" \t\r\n", out->text[n - 1]))
		out->text[--n] = '\0';
	for (char *c = out->text; *c; c++)
		if (strchr("\t\r\n", *c))
			*c = ' ';
	text_clean(out->text);
}

struct reading {
	int dir;
	const struct switch_rules *rules;
	struct switches *out;
	size_t cap, seen;
	void (*refused)(const char *file, const char *by, const char *why, void *arg);
	void *arg;
};

static void refuse(const struct reading *r, const char *file, const struct stat *st,
		   const char *why)
{
	char *shown;

	if (!r->refused)
		return;
	shown = xstrndup(file, SWITCH_FILE_BYTES);
	text_clean(shown);
	r->refused(shown, member_of(st->st_uid, r->rules->team)->name, why, r->arg);
	free(shown);
}

static void read_file(struct reading *r, const char *file)
{
	struct switch_file s = {0};
	struct stat st;
	const char *why;

	if (fstatat(r->dir, file, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;		/* taken away meanwhile */
	why = what_is_wrong(&st, r->rules);
	if (!why)
		why = parse_name(file, &s);
	if (why) {
		refuse(r, file, &st, why);
		return;
	}
	s.inode = st.st_ino;
	s.changed_ns = (int64_t)st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec;
	snprintf(s.by, sizeof(s.by), "%s", member_of(st.st_uid, r->rules->team)->name);
	read_text(r->dir, &st, &s);
	if (r->out->count == r->cap) {
		r->cap = r->cap ? 2 * r->cap : 16;
		r->out->items = xrealloc(r->out->items, r->cap * sizeof(*r->out->items));
	}
	r->out->items[r->out->count++] = s;
}

/* Single names first, by name and strongest first; then the others, the strongest first. */
static int compare(const void *a, const void *b)
{
	const struct switch_file *x = a, *y = b;
	int x_one = selector_is_one(&x->selector), y_one = selector_is_one(&y->selector);
	int order = x_one ? strcmp(x->selector.word, y->selector.word) : 0;

	if (x_one != y_one)
		return y_one - x_one;
	if (order == 0)
		order = (int)y->level - (int)x->level;
	return order ? order : strcmp(x->file, y->file);
}

static void sort(struct switches *s)
{
	if (s->count > 0)
		qsort(s->items, s->count, sizeof(*s->items), compare);
	s->first_pattern = 0;
	while (s->first_pattern < s->count &&
	       selector_is_one(&s->items[s->first_pattern].selector))
		s->first_pattern++;
}

int switches_read(const char *folder, const struct switch_rules *rules, struct switches *out,
		  void (*refused)(const char *file, const char *by, const char *why, void *arg),
		  void *arg, struct err *err)
{
	struct reading r = {.rules = rules, .out = out, .refused = refused, .arg = arg};
	const struct dirent *entry;
	int failure = 0;
	DIR *dir;

	*out = (struct switches){0};
	r.dir = open_folder(folder, rules, err);
	if (r.dir < 0)
		return -1;
	dir = fdopendir(r.dir);
	if (!dir) {
		close(r.dir);
		return err_errno(err, "%s", folder);
	}
	while (r.seen < SWITCHES_MAX) {
		errno = 0;
		entry = readdir(dir);
		failure = entry ? 0 : errno;
		if (!entry)
			break;
		/* hidden ones are those of editors and of network file systems */
		if (entry->d_name[0] == '.' || strcmp(entry->d_name, "README") == 0)
			continue;
		r.seen++;
		read_file(&r, entry->d_name);
	}
	closedir(dir);
	sort(out);
	if (failure == 0)
		return 0;
	switches_clear(out);	/* half a list could let go what is held */
	errno = failure;
	return err_errno(err, "%s", folder);
}

void switches_clear(struct switches *switches)
{
	free(switches->items);
	*switches = (struct switches){0};
}

/* --- finding ---------------------------------------------------------------------------------- */

/* The first one of this name, or where it would be. */
static size_t first_named(const struct switches *s, const char *name)
{
	size_t low = 0, high = s->first_pattern;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (strcmp(s->items[middle].selector.word, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The next one at or after *at that means this run; *at moves on behind it. */
static const struct switch_file *next(const struct switches *s, size_t *at, const char *name,
				      const char *group, const char *owner)
{
	while (*at < s->count) {
		const struct switch_file *f = &s->items[(*at)++];

		if (selector_matches(&f->selector, name, group, owner))
			return f;
		if (*at < s->first_pattern)	/* names are sorted: no further one */
			*at = s->first_pattern;
	}
	return NULL;
}

const struct switch_file *switches_find(const struct switches *s, const char *name,
					const char *group, const char *owner)
{
	const struct switch_file *best = NULL, *f;
	size_t at = first_named(s, name);

	while ((f = next(s, &at, name, group, owner)))
		if (f->level != SWITCH_SAVE && (!best || f->level > best->level))
			best = f;
	return best;
}

const struct switch_file *switches_find_save(const struct switches *s,
					     const struct switch_file *after, const char *name,
					     const char *group, const char *owner)
{
	size_t at = after ? (size_t)(after - s->items) + 1 : first_named(s, name);
	const struct switch_file *f;

	while ((f = next(s, &at, name, group, owner)))
		if (f->level == SWITCH_SAVE)
			return f;
	return NULL;
}

void switch_describe(const struct switch_file *s, char *out, size_t size)
{
	snprintf(out, size, "%s by %s with the switch %s%s%s", levels[s->level].name, s->by, s->file,
		 s->text[0] ? ": " : "", s->text);
}

/* --- leaving one ------------------------------------------------------------------------------ */

/* Into its place in one step, so that who sees it sees its text; hidden until then. */
static int put_in_place(int folder, const char *hidden, const char *file, const char *shown,
			struct err *err)
{
	int rc = renameat2(folder, hidden, folder, file, RENAME_NOREPLACE);

	if (rc < 0 && (errno == EINVAL || errno == ENOSYS)) {	/* some network file systems */
		errno = EEXIST;
		rc = faccessat(folder, file, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ?
			     -1 : renameat(folder, hidden, folder, file);
	}
	if (rc == 0)
		return 0;
	rc = errno == EEXIST ? err_set(err, ERR_LOCKED, "%s/%s is there already", shown, file) :
			       err_errno(err, "%s/%s", shown, file);
	unlinkat(folder, hidden, 0);
	return rc;
}

int switches_folder_open(const char *folder, const uid_t *owner, struct err *err)
{
	int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC | (owner ? O_NOFOLLOW : 0));
	struct stat st;

	if (fd < 0 && (errno == EACCES || errno == EPERM))
		return err_set(err, ERR_REFUSED, "%s: you may not leave switches there", folder);
	if (fd < 0 && (errno == ENOTDIR || errno == ELOOP))
		return err_set(err, ERR_REFUSED, "%s is a link or a file: no switch is left there", folder);
	if (fd < 0)
		return err_errno(err, "%s", folder);
	if (!owner || (fstat(fd, &st) == 0 && st.st_uid == *owner))
		return fd;
	close(fd);
	return err_set(err, ERR_REFUSED, "%s does not belong to who names it: no switch is left there",
		       folder);
}

int switch_write(int folder, const char *shown, const char *selector, enum switch_level level,
		 const char *text, struct err *err)
{
	char *file = xasprintf("%s.%s", selector, levels[level].name);
	char *hidden = xasprintf(".%s.%ld", levels[level].name, (long)getpid());
	int fd, rc = 0;

	unlinkat(folder, hidden, 0);
	fd = openat(folder, hidden, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640);
	if (fd < 0 && (errno == EACCES || errno == EPERM))
		rc = err_set(err, ERR_REFUSED, "%s/%s: you may not leave switches there", shown, file);
	else if (fd < 0)
		rc = err_errno(err, "%s/%s", shown, file);
	/* the order stands even where its text cannot be written: a full disk */
	if (fd >= 0 && text[0] && write(fd, text, strlen(text)) < 0)
		rc = 0;
	if (fd >= 0) {
		fchmod(fd, 0640);
		close(fd);
		rc = put_in_place(folder, hidden, file, shown, err);
	}
	free(hidden);
	free(file);
	return rc;
}
