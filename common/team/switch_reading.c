/* SPDX-License-Identifier: MIT */
/* switch_reading.c - the folder of switches, read piece by piece. What a file is and whose is read
 * from the folder with fstatat; its text is only a comment, read when that is certain to be
 * harmless. A file that cannot be read is an order all the same. */
#include "common/base/accounts.h"
#include "common/team/switches.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/base/shell_words.h"
#include "common/base/text.h"
#include "common/team/members.h"

/* --- the folder ------------------------------------------------------------------------------- */

static int check_folder(const struct stat *st, const char *folder, const struct switch_rules *rules,
			struct err *err)
{
	const char *mode = rules->team ? "3770" : "700";
	char word[SHELL_WORD_BYTES];
	const char *place = shell_word(folder, word);
	gid_t group;

	if (st->st_uid != rules->owner)
		return err_set(err, ERR_REFUSED,
			       "%s belongs to somebody else (uid %u): switches in it "
			       "do not count; move it away and restart lbd",
			       folder, st->st_uid);
	if (st->st_mode & S_IWOTH)
		return err_set(err, ERR_REFUSED,
			       "%s: everybody can write to it, so switches in it do "
			       "not count; mend it with: chmod %s %s",
			       folder, mode, place);
	if (!(st->st_mode & S_IWGRP))
		return 0;
	if (!group_id(rules->team, &group) || st->st_gid != group)
		return err_set(err, ERR_REFUSED,
			       "%s: a group that is not the team can write to it, so "
			       "switches in it do not count; mend it with: %s%s%s%s%schmod %s %s",
			       folder, rules->team ? "chgrp " : "", rules->team ? rules->team : "",
			       rules->team ? " " : "", rules->team ? place : "",
			       rules->team ? " && " : "", mode, place);
	if (!(st->st_mode & S_ISVTX))
		return err_set(
			err, ERR_REFUSED,
			"%s is not sticky: anybody of the team could rename or "
			"remove what others left, so switches in it do not count; mend it with: "
			"chmod %s %s",
			folder, mode, place);
	return 0;
}

int switches_open(const char *folder, const struct switch_rules *rules, struct err *err)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 && errno == ENOENT)
		return err_set(err, ERR_NOT_FOUND, "%s is missing", folder);
	if (fd < 0 && (errno == ENOTDIR || errno == ELOOP))
		return err_set(err, ERR_REFUSED,
			       "%s must be a folder, not a link or a file; move it "
			       "away and restart lbd",
			       folder);
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

/* Who left it: its owner, where nobody else can put files into the folder. Others of the team could
 * have moved it here from a folder where they may write. */
static void name_giver(struct switch_file *out, const struct stat *st,
		       const struct switch_rules *rules, bool is_shared)
{
	const char *name = member_of(st->st_uid, rules->team)->name;

	snprintf(out->by, sizeof(out->by), is_shared ? "%.56s's file" : "%s", name);
}

/* NULL when it counts, else what is wrong; *st is empty when there is no such file. */
static const char *read_file(int dir, const char *file, const struct switch_rules *rules,
			     bool is_shared, struct switch_file *out, struct stat *st)
{
	const char *why;

	*out = (struct switch_file){ 0 };
	if (fstatat(dir, file, st, AT_SYMLINK_NOFOLLOW) < 0) {
		*st = (struct stat){ 0 };
		return "it is not there";
	}
	why = what_is_wrong(st, rules);
	if (!why)
		why = parse_name(file, out);
	if (why)
		return why;
	out->inode = st->st_ino;
	out->changed_ns = (int64_t)st->st_ctim.tv_sec * 1000000000 + st->st_ctim.tv_nsec;
	name_giver(out, st, rules, is_shared);
	read_text(dir, st, out);
	return NULL;
}

static bool is_shared(int dir)
{
	struct stat st;

	return fstat(dir, &st) < 0 || (st.st_mode & S_IWGRP);
}

/* --- by name ---------------------------------------------------------------------------------- */

bool switches_lookup(int dir, const struct switch_rules *rules, const struct switch_run *run,
		     struct switch_file *out)
{
	const char *words[] = { run->name, run->group, run->owner, "ALL" };
	static const char *const ends[] = { "", "@group", "@user", "" };
	bool shared = is_shared(dir);
	struct stat st;

	for (int level = SWITCH_KILL; level > SWITCH_SAVE; level--) {
		for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
			char file[2 * SWITCH_FILE_BYTES];

			if (!words[i] || !words[i][0])
				continue;
			snprintf(file, sizeof(file), "%.100s%s.%s", words[i], ends[i],
				 switch_level_name((enum switch_level)level));
			if (!read_file(dir, file, rules, shared, out, &st))
				return true;
		}
	}
	return false;
}

/* --- all of it, in pieces --------------------------------------------------------------------- */

enum { CLOCK_EVERY = 64 }; /* files between two looks at the clock */

struct given {
	uid_t uid;
	size_t count;
};

struct switch_reading {
	DIR *dir;
	struct switch_rules rules;
	struct switch_run only; /* no name: all runs */
	bool is_shared;
	struct switches found;
	size_t cap;
	struct given *givers; /* how many count, of each who left any */
	size_t giver_count;
	int64_t cpu_ns;
};

static int64_t cpu_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

struct switch_reading *switches_begin(int dir, const struct switch_rules *rules,
				      const struct switch_run *only, struct err *err)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *opened = fd < 0 ? NULL : fdopendir(fd);
	struct switch_reading *r;

	if (!opened) {
		err_errno(err, "the folder of switches");
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	r = xcalloc(1, sizeof(*r));
	r->dir = opened;
	r->rules = *rules;
	if (only)
		r->only = *only;
	r->is_shared = is_shared(fd);
	return r;
}

static struct given *giver_of(struct switch_reading *r, uid_t uid)
{
	for (size_t i = 0; i < r->giver_count; i++)
		if (r->givers[i].uid == uid)
			return &r->givers[i];
	r->givers = xrealloc(r->givers, (r->giver_count + 1) * sizeof(*r->givers));
	r->givers[r->giver_count] = (struct given){ .uid = uid };
	return &r->givers[r->giver_count++];
}

static bool is_one_too_many(struct switch_reading *r, uid_t uid)
{
	struct given *giver = giver_of(r, uid);
	bool is_owner = uid == r->rules.owner || uid == 0;

	return ++giver->count > (is_owner ? SWITCHES_MAX : SWITCHES_OF_MEMBER);
}

/* Whether it can mean the run that alone is of interest, as its name says: what cannot costs no
 * more. */
static bool is_of_interest(const struct switch_reading *r, const char *file)
{
	struct switch_file s;

	if (!r->only.name)
		return true;
	return !parse_name(file, &s) &&
	       selector_matches(&s.selector, r->only.name, r->only.group, r->only.owner);
}

static void refuse(const struct switch_reading *r, const char *file, const struct stat *st,
		   const char *why, switch_refused *refused, void *arg)
{
	char *shown;

	if (!refused)
		return;
	shown = file ? xstrndup(file, SWITCH_FILE_BYTES) : NULL;
	if (shown)
		text_clean(shown);
	refused(shown, st->st_uid, member_of(st->st_uid, r->rules.team)->name, why, arg);
	free(shown);
}

static void take_file(struct switch_reading *r, const char *file, switch_refused *refused,
		      void *arg)
{
	struct switch_file s;
	struct stat st;
	const char *why;

	/* hidden ones are those of editors and of network file systems */
	if (file[0] == '.' || strcmp(file, "README") == 0 || !is_of_interest(r, file))
		return;
	why = read_file(dirfd(r->dir), file, &r->rules, r->is_shared, &s, &st);
	if (st.st_nlink == 0)
		return; /* taken away meanwhile */
	if (why) {
		refuse(r, file, &st, why, refused, arg);
		return;
	}
	if (is_one_too_many(r, st.st_uid)) {
		refuse(r, NULL, &st, "there are more than one user may leave", refused, arg);
		return;
	}
	if (r->found.count == r->cap) {
		r->cap = r->cap ? 2 * r->cap : 16;
		r->found.items = xrealloc(r->found.items, r->cap * sizeof(*r->found.items));
	}
	r->found.items[r->found.count++] = s;
}

int switches_step(struct switch_reading *r, int64_t budget_ms, switch_refused *refused, void *arg,
		  struct err *err)
{
	int64_t until_ms = clock_mono_ms() + budget_ms, begin_ns = cpu_now_ns();
	int rc = 1;

	for (unsigned i = 1; rc > 0; i++) {
		const struct dirent *entry;

		errno = 0;
		entry = readdir(r->dir);
		if (entry)
			take_file(r, entry->d_name, refused, arg);
		else
			rc = errno ? err_errno(err, "the folder of switches") : 0;
		if (i % CLOCK_EVERY == 0 && clock_mono_ms() >= until_ms)
			break;
	}
	r->cpu_ns += cpu_now_ns() - begin_ns;
	if (rc == 0)
		switches_sort(&r->found);
	return rc;
}

const struct switches *switches_so_far(const struct switch_reading *r)
{
	return &r->found;
}

int64_t switches_pause_ms(const struct switch_reading *r, int part)
{
	return r->cpu_ns * part / 1000000;
}

void switches_end(struct switch_reading *r, struct switches *out)
{
	if (!r)
		return;
	if (out)
		*out = r->found;
	else
		switches_clear(&r->found);
	closedir(r->dir);
	free(r->givers);
	free(r);
}
