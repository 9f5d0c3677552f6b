/* SPDX-License-Identifier: MIT */
#include "common/foreign.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/files.h"
#include "common/mem.h"
#include "common/paths.h"
#include "common/regexp.h"

enum { PATTERN_MAX_BYTES = 4096, STEP_DIGITS_MAX = 18, NEWEST_LOOKED_AT = 64 };

static const char step_word[] = "{step}";

struct foreign {
	struct regexp *name;
	char *complete_when;	/* NULL = not given */
};

/* --- names ------------------------------------------------------------------------------------ */

/* A shell's pattern as a regular expression. */
static char *from_glob(const char *glob)
{
	struct buf out;

	buf_init(&out, PATTERN_MAX_BYTES);
	while (*glob) {
		if (strncmp(glob, step_word, strlen(step_word)) == 0) {
			buf_addf(&out, "(?<step>[0-9]+)");
			glob += strlen(step_word);
			continue;
		}
		if (*glob == '*')
			buf_addf(&out, ".*");
		else if (*glob == '?')
			buf_addf(&out, ".");
		else if (isalnum((unsigned char)*glob) || (unsigned char)*glob >= 0x80)
			buf_addf(&out, "%c", *glob);
		else
			buf_addf(&out, "\\%c", *glob);
		glob++;
	}
	return buf_take(&out);
}

struct foreign *foreign_create(const char *pattern, const char *complete_when, struct err *err)
{
	bool is_glob = strstr(pattern, step_word) != NULL;
	struct regexp *name = NULL;
	struct foreign *f;
	char *text;

	if (strlen(pattern) > PATTERN_MAX_BYTES / 16) {
		err_set(err, ERR_USAGE, "longer than %d bytes", PATTERN_MAX_BYTES / 16);
		return NULL;
	}
	text = is_glob ? from_glob(pattern) : xstrdup(pattern);
	name = regexp_create(text, true, err);
	free(text);
	if (name && !regexp_has_group(name, "step")) {
		err_set(err, ERR_USAGE, "must contain {step}, or a group (?<step>\\d+)");
		regexp_destroy(name);
		name = NULL;
	}
	if (!name)
		return NULL;
	f = xcalloc(1, sizeof(*f));
	f->name = name;
	f->complete_when = complete_when ? xstrdup(complete_when) : NULL;
	return f;
}

void foreign_destroy(struct foreign *f)
{
	if (!f)
		return;
	regexp_destroy(f->name);
	free(f->complete_when);
	free(f);
}

struct step_text {
	char digits[STEP_DIGITS_MAX + 1];
};

static void take_step(void *arg, const char *group, const char *value, size_t len)
{
	struct step_text *out = arg;

	if (strcmp(group, "step") == 0 && len <= STEP_DIGITS_MAX)
		snprintf(out->digits, sizeof(out->digits), "%.*s", (int)len, value);
}

/* The digits of the step as the name has them; "" = it is no checkpoint. */
static struct step_text step_of(struct foreign *f, const char *name)
{
	struct step_text step = {""};

	if (regexp_match(f->name, name, strlen(name)))
		regexp_each_group(f->name, name, take_step, &step);
	if (strspn(step.digits, "0123456789") != strlen(step.digits))
		step.digits[0] = '\0';
	return step;
}

int64_t foreign_step(struct foreign *f, const char *name)
{
	struct step_text step = step_of(f, name);

	return step.digits[0] ? strtoll(step.digits, NULL, 10) : -1;
}

/* --- completeness ----------------------------------------------------------------------------- */

static char *with_step(const char *text, const char *digits)
{
	const char *at = strstr(text, step_word);

	if (!at)
		return xstrdup(text);
	return xasprintf("%.*s%s%s", (int)(at - text), text, digits, at + strlen(step_word));
}

int foreign_verify(struct foreign *f, const char *parent, const char *name, bool deep,
		   struct err *err)
{
	struct step_text step = step_of(f, name);
	char *path = path_join("%s/%s", parent, name);
	struct stat st;
	int rc = 0;

	if (stat(path, &st) < 0) {
		rc = err_errno(err, "%s", path);
	} else if (f->complete_when && strcmp(f->complete_when, "manifest") == 0) {
		rc = manifest_verify(path, deep ? MANIFEST_DIGESTS : MANIFEST_SIZES, NULL, err);
	} else if (f->complete_when) {
		char *word = with_step(f->complete_when, step.digits);
		char *mark = path_join("%s/%s", S_ISDIR(st.st_mode) ? path : parent, word);

		if (!file_exists(mark))
			rc = err_set(err, ERR_NOT_FOUND, "%s is not complete: no %s", path, word);
		free(mark);
		free(word);
	}
	free(path);
	return rc;
}

/* --- the newest ------------------------------------------------------------------------------- */

struct candidate {
	int64_t step;
	char *name;
};

static int newest_first(const void *a, const void *b)
{
	const struct candidate *x = a;
	const struct candidate *y = b;

	return (x->step < y->step) - (x->step > y->step);
}

static size_t list_candidates(struct foreign *f, DIR *dir, struct candidate **out)
{
	const struct dirent *entry;
	size_t count = 0;

	*out = NULL;
	while ((entry = readdir(dir))) {
		int64_t step = foreign_step(f, entry->d_name);

		if (step < 0)
			continue;
		*out = xrealloc(*out, (count + 1) * sizeof(**out));
		(*out)[count++] = (struct candidate){step, xstrdup(entry->d_name)};
	}
	if (count > 0)
		qsort(*out, count, sizeof(**out), newest_first);
	return count;
}

/* Only a manifest can be wrong; what merely lacks its mark was never finished. */
static bool is_broken(const struct foreign *f, const struct err *why)
{
	return f->complete_when && strcmp(f->complete_when, "manifest") == 0 &&
	       why->code != ERR_NOT_FOUND;
}

int foreign_newest(struct foreign *f, const char *parent, bool deep, struct checkpoint_found *out,
		   void (*on_bad)(const char *path, const struct err *why, void *arg), void *arg,
		   struct err *err)
{
	DIR *dir = opendir(parent);
	struct candidate *list;
	size_t count;
	int found = 0;

	*out = (struct checkpoint_found){.step = -1};
	if (!dir)
		return errno == ENOENT ? 0 : err_errno(err, "%s", parent);
	count = list_candidates(f, dir, &list);
	closedir(dir);
	for (size_t i = 0; i < count && i < NEWEST_LOOKED_AT && found != 1; i++) {
		struct err why = {0};

		snprintf(out->path, sizeof(out->path), "%s/%s", parent, list[i].name);
		if (foreign_verify(f, parent, list[i].name, deep, &why) == 0) {
			out->step = list[i].step;
			found = 1;
			continue;
		}
		if (is_broken(f, &why))
			found = -1;
		if (on_bad)
			on_bad(out->path, &why, arg);
	}
	for (size_t i = 0; i < count; i++)
		free(list[i].name);
	free(list);
	if (found < 0)
		err_set(err, ERR_USAGE, "no valid checkpoint in %s", parent);
	if (found != 1)
		out->path[0] = '\0';
	return found;
}
