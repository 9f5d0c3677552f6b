/* SPDX-License-Identifier: MIT */
/* switches.c - switches by their words: levels, which one means a run, and how one is left.
 * switch_reading.c reads the folder. */
#include "common/team/switches.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/mem.h"
#include "common/base/names.h"

/* --- levels ----------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	enum run_order order;
} levels[SWITCH_LEVEL_COUNT] = {
	[SWITCH_SAVE] = { "save", ORDER_RUN },
	[SWITCH_HOLD] = { "hold", ORDER_HOLD },
	[SWITCH_STOP] = { "stop", ORDER_STOP },
	[SWITCH_KILL] = { "kill", ORDER_KILL },
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

void switches_sort(struct switches *s)
{
	if (s->count > 0)
		qsort(s->items, s->count, sizeof(*s->items), compare);
	s->first_pattern = 0;
	while (s->first_pattern < s->count && selector_is_one(&s->items[s->first_pattern].selector))
		s->first_pattern++;
}

void switches_clear(struct switches *switches)
{
	free(switches->items);
	*switches = (struct switches){ 0 };
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
		if (*at < s->first_pattern) /* names are sorted: no further one */
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
	snprintf(out, size, "%s by %s with the switch %s%s%s", levels[s->level].name, s->by,
		 s->file, s->text[0] ? ": " : "", s->text);
}

/* --- leaving one ------------------------------------------------------------------------------ */

/* Into its place in one step, so that who sees it sees its text; hidden until then. */
static int put_in_place(int folder, const char *hidden, const char *file, const char *shown,
			struct err *err)
{
	int rc = renameat2(folder, hidden, folder, file, RENAME_NOREPLACE);

	if (rc < 0 && (errno == EINVAL || errno == ENOSYS)) { /* some network file systems */
		errno = EEXIST;
		rc = faccessat(folder, file, F_OK, AT_SYMLINK_NOFOLLOW) == 0
			     ? -1
			     : renameat(folder, hidden, folder, file);
	}
	if (rc == 0)
		return 0;
	rc = errno == EEXIST ? err_set(err, ERR_LOCKED, "%s/%s is there already", shown, file)
			     : err_errno(err, "%s/%s", shown, file);
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
		return err_set(err, ERR_REFUSED, "%s is a link or a file: no switch is left there",
			       folder);
	if (fd < 0)
		return err_errno(err, "%s", folder);
	if (!owner || (fstat(fd, &st) == 0 && st.st_uid == *owner))
		return fd;
	close(fd);
	return err_set(err, ERR_REFUSED,
		       "%s does not belong to who names it: no switch is left there", folder);
}

int switch_write(int folder, const char *shown, const char *selector, enum switch_level level,
		 const char *text, struct err *err)
{
	char *file = xasprintf("%s.%s", selector, levels[level].name);
	/* a name that nobody can have taken before */
	char *hidden = xasprintf(".%s.%016llx", levels[level].name,
				 (unsigned long long)random_u64());
	int fd, rc = 0;

	fd = openat(folder, hidden, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640);
	if (fd < 0 && (errno == EACCES || errno == EPERM))
		rc = err_set(err, ERR_REFUSED, "%s/%s: you may not leave switches there", shown,
			     file);
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
