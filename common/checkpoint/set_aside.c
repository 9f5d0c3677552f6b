/* SPDX-License-Identifier: MIT */
/* set_aside.c - moves later checkpoints into a folder beside the others. */
#include "common/checkpoint/set_aside.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/files.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/text.h"
#include "common/checkpoint/checkpoint_parts.h"
#include "common/checkpoint/entry_names.h"

enum { POINTER_MODE = 0644, POINTER_MAX_BYTES = 4096, COPY_MAX_BYTES = 1024 * 1024 };

/* Below `aside` it has the path that it had below `parent`: two folders may hold the same name. */
static int move(const char *parent, const char *from, const char *aside, struct err *err)
{
	char *to = path_join("%s/%s", aside, from + strlen(parent) + 1);
	char *holder = xstrndup(to, (size_t)(strrchr(to, '/') - to));
	int rc = 0;

	if (folder_make(holder, 0750, err) < 0)
		rc = -1;
	else if (rename(from, to) < 0 && errno != ENOENT)
		rc = errno == EXDEV ? err_set(err, ERR_IO,
					      "%s: cannot be set aside: its file system renames no "
					      "such folder (overlayfs, of a lower layer); copy it "
					      "elsewhere, and remove it here",
					      from)
				    : err_errno(err, "%s to %s", from, to);
	free(holder);
	free(to);
	return rc;
}

/* The files that it consists of, or its folder. */
static int move_all(const char *parent, const struct checkpoint *c, const char *aside,
		    struct err *err)
{
	char *base;
	int rc = 0;

	if (!c->is_file)
		return move(parent, c->path, aside, err);
	base = checkpoint_base(c);
	for (size_t i = 0; i < c->part_count && rc == 0; i++) {
		char *from = path_join("%s/%s", base, c->parts[i].name);

		rc = move(parent, from, aside, err);
		free(from);
	}
	free(base);
	return rc;
}

/* The same path but for its numbers: "epoch_1_step_10" and "epoch_2_step_20". */
static bool is_called_alike(const char *path, const char *other)
{
	size_t beside = (size_t)(path_base(path) - path);

	if (strncmp(path, other, beside) != 0)
		return false;
	for (path += beside, other += beside;; path++, other++) {
		size_t digits = text_digits(path), others = text_digits(other);

		path += digits;
		other += others;
		if ((digits > 0) != (others > 0) || *path != *other)
			return false;
		if (*path == '\0')
			return true;
	}
}

/* The one to which what names `named` turns; NULL: there is none. */
static const struct checkpoint *stays_for(const struct checkpoint_list *list, const char *named,
					  int64_t step)
{
	for (size_t i = 0; step >= 0 && i < list->count; i++) {
		if (list->items[i].step == step && is_called_alike(named, list->items[i].path))
			return &list->items[i];
	}
	return NULL;
}

/* The file that names the newest names the one that stays from now on, or goes, too: a trainer that
 * asks it would die of a folder that is gone, and of the next ones a torn one count as finished. */
static int turn_pointer(const char *parent, const struct checkpoint_rules *rules,
			const struct checkpoint_list *list, size_t index, int64_t step,
			const char *aside, struct err *err)
{
	const struct checkpoint *stays = stays_for(list, list->items[index].path, step);
	char *pointer = checkpoint_named_by(rules, &list->items[index]), *text = NULL;
	int rc = 0;

	if (pointer && stays)
		text = checkpoint_pointer_text(pointer, stays);
	if (text)
		rc = file_write_named(pointer, text, strlen(text), POINTER_MODE, err);
	else if (pointer)
		rc = move(parent, pointer, aside, err);
	free(text);
	free(pointer);
	return rc;
}

/* As others name it: up to its step, as TensorFlow does, or as a whole. */
static size_t length_of_name(const struct checkpoint *c)
{
	const char *name = path_base(c->path);
	size_t len = strlen(name), digits;

	for (const char *at = name; *at; at += digits ? digits : 1) {
		digits = text_digits(at);
		if (digits > 0 && strtoll(at, NULL, 10) == c->step)
			len = (size_t)(at - name) + digits;
	}
	return len;
}

/* "ckpt-19" is not in "my_ckpt-19", nor in "ckpt-190". */
static bool is_apart(const char *text, const char *at, size_t len)
{
	static const char within[] = "_-.";

	return (at == text || !(isalnum((unsigned char)at[-1]) || strchr(within, at[-1]))) &&
	       !isalnum((unsigned char)at[len]) && at[len] != '_' && at[len] != '-';
}

/* The text with one's name instead of the other's; NULL = it does not name that one. Owned by the
 * caller. */
static char *text_that_names(const char *text, const struct checkpoint *was,
			     const struct checkpoint *stays)
{
	const char *name = path_base(was->path), *from = text;
	size_t len = length_of_name(was);
	bool is_named = false;
	struct buf out;

	buf_init(&out, 2 * POINTER_MAX_BYTES);
	for (const char *at = text; *at; at++) {
		if (strncmp(at, name, len) != 0 || !is_apart(text, at, len))
			continue;
		buf_add(&out, from, (size_t)(at - from));
		if (stays)
			buf_add(&out, path_base(stays->path), length_of_name(stays));
		at += len - 1;
		from = at + 1;
		is_named = true;
	}
	buf_add(&out, from, strlen(from) + 1);
	if (is_named)
		return buf_take(&out);
	buf_fini(&out);
	return NULL;
}

static int turn_text(const char *parent, const char *path, const struct checkpoint *was,
		     const struct checkpoint *stays, const char *aside, struct err *err)
{
	char *text = file_is_link(path) ? NULL : file_read(path, POINTER_MAX_BYTES, NULL, NULL);
	size_t digits = text ? text_digits(text) : 0;
	char *now;
	int rc = 0;

	if (digits > 0 && text[digits + strspn(text + digits, "\r\n")] == '\0' &&
	    strtoll(text, NULL, 10) == was->step)
		now = xasprintf("%0*lld", text[0] == '0' ? (int)digits : 0,
				(long long)(stays ? stays->step : -1));
	else
		now = text ? text_that_names(text, was, stays) : NULL;
	if (now)
		rc = stays ? file_write_named(path, now, strlen(now), POINTER_MODE, err)
			   : move(parent, path, aside, err);
	free(now);
	free(text);
	return rc;
}

/* What stands behind "latest_" or "last_"; NULL: it is not called so. */
static const char *copied_name(const char *name)
{
	return text_begins_with(name, "latest_") ? name + strlen("latest_")
	       : text_begins_with(name, "last_") ? name + strlen("last_")
						 : NULL;
}

/* The bytes of the file in that checkpoint's folder; NULL: it is not there, or too large to be a
 * mere pointer. Owned by the caller. */
static char *bytes_in(const struct checkpoint *c, const char *name, size_t *len)
{
	char *path = c && !c->is_file ? path_join("%s/%s", c->path, name) : NULL;
	char *bytes = path ? file_read(path, COPY_MAX_BYTES, len, NULL) : NULL;

	free(path);
	return bytes;
}

/* Megatron-Bridge's latest_train_state.pt is one of iter_0000500/train_state.pt. */
static int turn_copy(const char *parent, const char *path, const char *inside,
		     const struct checkpoint *was, const struct checkpoint *stays,
		     const char *aside, struct err *err)
{
	size_t len = 0, was_len = 0, then_len = 0;
	char *bytes = file_read(path, COPY_MAX_BYTES, &len, NULL), *then;
	char *is_of = bytes ? bytes_in(was, inside, &was_len) : NULL;
	bool is_copy = is_of && len == was_len && memcmp(bytes, is_of, len) == 0;
	int rc = 0;

	then = is_copy ? bytes_in(stays, inside, &then_len) : NULL;
	if (is_copy)
		rc = then ? file_write_named(path, then, then_len, POINTER_MODE, err)
			  : move(parent, path, aside, err);
	free(then);
	free(is_of);
	free(bytes);
	return rc;
}

/* The same of what trainers of other layouts have, and of copies. */
static int turn_texts(const char *parent, const struct checkpoint_list *list, size_t index,
		      int64_t step, const char *aside, struct err *err)
{
	const struct checkpoint *c = &list->items[index];
	const struct checkpoint *stays = stays_for(list, c->path, step);
	char *folder = xstrndup(c->path, (size_t)(path_base(c->path) - c->path));
	DIR *dir = opendir(folder);
	const struct dirent *entry;
	int rc = 0;

	while (rc == 0 && dir && (entry = readdir(dir)) != NULL) {
		const char *name = entry->d_name, *inside = copied_name(name);
		bool may_be = entry->d_type == DT_REG || entry->d_type == DT_UNKNOWN;
		char *path = path_join("%s%s", folder, name);

		if (may_be && name_is_pointer(name))
			rc = turn_text(parent, path, c, stays, aside, err);
		else if (may_be && inside && !file_is_link(path))
			rc = turn_copy(parent, path, inside, c, stays, aside, err);
		free(path);
	}
	if (dir)
		closedir(dir);
	free(folder);
	return rc;
}

static int turn_link(const char *link, const char *to, struct err *err)
{
	char *next = path_join("%s.lb-new", link);
	int rc = 0;

	unlink(next);
	if (symlink(to, next) < 0 || rename(next, link) < 0)
		rc = err_errno(err, "%s", link);
	free(next);
	return rc;
}

/* From its last number on: of a rank's file that is the rank. */
static const char *last_number(const char *name)
{
	const char *found = name;

	for (size_t digits; *name; name += digits ? digits : 1) {
		digits = text_digits(name);
		found = digits ? name : found;
	}
	return found;
}

/* The name of what of `stays` takes that file's place, or folder's; NULL: nothing does. */
static const char *place_taker(const struct checkpoint *stays, const char *path)
{
	for (size_t i = 0; stays && stays->is_file && i < stays->part_count; i++) {
		const char *part = stays->parts[i].name;

		if (strcmp(last_number(part), last_number(path)) == 0 &&
		    is_called_alike(path_base(path), part))
			return part;
	}
	return stays && is_called_alike(path, stays->path) ? path_base(stays->path) : NULL;
}

/* To which file of it, or its folder, the link leads; NULL: to none. Owned by the caller. One of
 * its own name is what is set aside itself, and lies elsewhere. */
static char *led_to(const struct checkpoint *c, const char *link)
{
	size_t count = c->is_file ? c->part_count : 1;
	char *base = checkpoint_base(c), *found = NULL;

	for (size_t i = 0; i < count && !found; i++) {
		char *path = c->is_file ? path_join("%s/%s", base, c->parts[i].name)
					: xstrdup(c->path);

		if (strcmp(link, path) != 0 && file_is_same(link, path))
			found = path;
		else
			free(path);
	}
	free(base);
	return found;
}

/* Links beside it that lead to it: a trainer that finds nothing there begins anew. What is called
 * the best is that no more, and goes along. */
static int turn_links(const char *parent, const struct checkpoint_list *list, size_t index,
		      int64_t step, const char *aside, struct err *err)
{
	const struct checkpoint *c = &list->items[index];
	const struct checkpoint *stays = stays_for(list, c->path, step);
	char *folder = xstrndup(c->path, (size_t)(path_base(c->path) - c->path));
	DIR *dir = opendir(folder);
	const struct dirent *entry;
	int rc = 0;

	while (rc == 0 && dir && (entry = readdir(dir)) != NULL) {
		char *link, *path;
		const char *to;

		if (entry->d_type != DT_LNK && entry->d_type != DT_UNKNOWN)
			continue;
		link = path_join("%s%s", folder, entry->d_name);
		path = file_is_link(link) ? led_to(c, link) : NULL;
		to = path ? place_taker(stays, path) : NULL;
		if (path)
			rc = to && !checkpoint_is_copy(entry->d_name)
				     ? turn_link(link, to, err)
				     : move(parent, link, aside, err);
		free(path);
		free(link);
	}
	if (dir)
		closedir(dir);
	free(folder);
	return rc;
}

int64_t
checkpoints_set_aside(const char *parent, const struct checkpoint_rules *rules, int64_t step,
		      bool (*is_meant)(void *arg, struct checkpoint_list *list, size_t index),
		      void *arg, const char *aside, struct err *err)
{
	struct checkpoint_list list;
	int64_t moved = 0;

	if (checkpoints_find(rules, parent, &list, err) < 0)
		return -1;
	for (size_t i = 0; i < list.count && moved >= 0; i++) {
		if ((list.items[i].step <= step && step >= 0) ||
		    (is_meant && !is_meant(arg, &list, i)))
			continue;
		if (turn_pointer(parent, rules, &list, i, step, aside, err) < 0 ||
		    turn_texts(parent, &list, i, step, aside, err) < 0 ||
		    turn_links(parent, &list, i, step, aside, err) < 0 ||
		    move_all(parent, &list.items[i], aside, err) < 0)
			moved = -1;
		else
			moved++;
	}
	checkpoint_list_clear(&list);
	if (moved > 0 && (folder_sync(aside, err) < 0 || folder_sync(parent, err) < 0))
		return -1;
	return moved;
}
