/* SPDX-License-Identifier: MIT */
/* checkpoint_check.c - is a checkpoint whole? Its layout's own marks first, then file by file, then
 * beside the one before. */
#include "common/checkpoint/checkpoint_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/checkpoint/siblings.h"
#include "common/manifest/manifest.h"

/* Do both lie in the same folder, below the folders that were looked in? */
static bool is_beside(const struct checkpoint *a, const struct checkpoint *b)
{
	const char *x = a->path + a->top_len, *y = b->path + b->top_len;
	size_t len = (size_t)(path_base(x) - x);

	return (size_t)(path_base(y) - y) == len && strncmp(x, y, len) == 0;
}

/* The next older one of the same place and layout, and called alike: beside model_30.pt lies a
 * best_model_20.pt, beside step-40 an epoch-1. NULL: it is the first. */
static struct checkpoint *before(const struct checkpoint_rules *rules, struct checkpoint_list *list,
				 size_t index)
{
	struct checkpoint *c = &list->items[index];

	for (size_t i = index + 1; i < list->count; i++) {
		struct checkpoint *older = &list->items[i];

		if (older->step < 0 || older->step == c->step || older->is_file != c->is_file ||
		    !is_beside(older, c))
			continue;
		if (!older->is_listed)
			checkpoint_list_parts(older);
		if (!older->row)
			older->row = checkpoint_choose_row(rules, older);
		if (older->part_count > 0 && older->bytes > 0 && checkpoint_is_sister(c, older))
			return older;
	}
	return NULL;
}

/* One that was begun later shows that the trainer lived past this one. */
static bool has_newer(const struct checkpoint_list *list, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (list->items[i].step > list->items[index].step)
			return true;
	return false;
}

static int check_by_row(const struct checkpoint_rules *rules, struct checkpoint_list *list,
			size_t index, struct look *look, struct err *err)
{
	struct checkpoint *c = &list->items[index];
	const struct layout *row = c->row;
	const struct checkpoint *older = NULL;

	if (row->last && checkpoint_check_mark(c, row->last, "#", err) < 0)
		return -1;
	if (row->verify)
		return row->verify(c->path, look->is_deep, err);
	if ((row->pointer && checkpoint_check_pointer(c, err) < 0) ||
	    (row->unfinished && checkpoint_check_unfinished(c, err) < 0))
		return -1;
	if (checkpoint_check_parts(c, false, look, err) < 0)
		return -1;
	older = before(rules, list, index);
	if (!older)
		return 0;
	return !row->last || row->may_have_more
		       ? checkpoint_compare(c, older, !has_newer(list, index), err)
		       : checkpoint_compare_commit(c, older, err);
}

static int check_by_rules(const struct checkpoint_rules *rules, struct checkpoint *c,
			  struct look *look, struct err *err)
{
	if (strcmp(rules->complete_when, "manifest") == 0)
		return manifest_verify(c->path, look->is_deep ? MANIFEST_DIGESTS : MANIFEST_SIZES,
				       NULL, err);
	return checkpoint_check_mark(c, rules->complete_when, "{step}", err) < 0
		       ? -1
		       : checkpoint_check_parts(c, true, look, err);
}

/* Of a single file the path names it already. */
static const char *behind_name(const struct checkpoint *c, const char *text)
{
	const char *name = path_base(c->path);
	size_t len = strlen(name);

	return c->is_file && strncmp(text, name, len) == 0 && text[len] == ' ' ? text + len + 1
									       : text;
}

void checkpoint_check(const struct checkpoint_rules *rules, struct checkpoint_list *list,
		      size_t index, struct look *look)
{
	struct checkpoint *c = &list->items[index];
	struct err why = { 0 };
	bool was_cut = look->is_cut_short;
	int rc;

	look->is_cut_short = false;
	if (!c->is_listed)
		checkpoint_list_parts(c);
	if (!c->row)
		c->row = checkpoint_choose_row(rules, c);
	c->layout = rules->pattern ? "pattern" : c->row->name;
	c->is_unfinished = false;
	rc = rules->complete_when ? check_by_rules(rules, c, look, &why)
				  : check_by_row(rules, list, index, look, &why);
	free(c->why);
	c->why = rc < 0 ? xasprintf("%s: %s", c->path, behind_name(c, why.text)) : NULL;
	c->is_valid = rc == 0;
	c->is_unreadable = rc < 0 && why.sys != 0 && why.sys != ENOENT;
	c->is_checked = true;
	c->is_unread = look->is_cut_short;
	look->is_cut_short |= was_cut;
}

int checkpoints_list(const struct checkpoint_rules *rules, const char *folder, struct look *look,
		     struct checkpoint_list *out, struct err *err)
{
	if (checkpoints_find(rules, folder, out, err) < 0)
		return -1;
	for (size_t i = 0; i < out->count; i++)
		checkpoint_check(rules, out, i, look);
	return 0;
}

int64_t checkpoints_newest(const struct checkpoint_rules *rules, struct checkpoint_list *list,
			   struct look *look, bool (*is_out)(void *arg, const struct checkpoint *c),
			   void (*on_bad)(void *arg, const struct checkpoint *c), void *arg)
{
	for (size_t i = 0; i < list->count; i++) {
		struct checkpoint *c = &list->items[i];

		checkpoint_check(rules, list, i, look);
		if (c->is_valid && (!is_out || !is_out(arg, c)))
			return (int64_t)i;
		if (!c->is_valid && on_bad)
			on_bad(arg, c);
	}
	return -1;
}

/* A pattern may name folders above it, too: the shortest end of the path that fits. */
static int64_t step_by_pattern(const struct checkpoint_rules *rules, const char *path)
{
	int64_t step = -1;
	int depth = 0;

	for (const char *at = path + strlen(path); at >= path && step < 0; at--) {
		if (at > path && at[-1] != '/')
			continue;
		step = *at ? checkpoint_pattern_step(rules, at) : -1;
		if (++depth > rules->pattern_depth + 1)
			break;
	}
	return step;
}

static int64_t step_by_name(const char *path)
{
	const char *name = path_base(path);
	char *folder = name > path ? xstrndup(path, (size_t)(name - path)) : xstrdup(".");
	int64_t step = step_beside_siblings(folder, name, NULL);

	free(folder);
	return step;
}

int checkpoint_at(const struct checkpoint_rules *rules, const char *path, struct look *look,
		  struct checkpoint_list *out, struct err *err)
{
	struct checkpoint *c;
	struct stat st;

	*out = (struct checkpoint_list){ 0 };
	if (stat(path, &st) < 0)
		return errno == ENOENT ? err_set(err, ERR_NOT_FOUND, "%s: no such checkpoint", path)
				       : err_errno(err, "%s", path);
	out->items = xcalloc(1, sizeof(*out->items));
	out->count = 1;
	c = out->items;
	*c = (struct checkpoint){ .path = xstrdup(path), .is_file = !S_ISDIR(st.st_mode) };
	c->step = rules->pattern ? step_by_pattern(rules, path) : step_by_name(path);
	if (c->is_file)
		checkpoint_add_part(c, path_base(path));
	checkpoint_check(rules, out, 0, look);
	return 0;
}

int checkpoint_again(const struct checkpoint_rules *rules, const struct checkpoint *c,
		     struct look *look, struct checkpoint_list *out)
{
	struct checkpoint *again = xcalloc(1, sizeof(*again));

	*out = (struct checkpoint_list){ .items = again, .count = 1 };
	*again = (struct checkpoint){ .path = xstrdup(c->path),
				      .step = c->step,
				      .is_file = c->is_file };
	for (size_t i = 0; c->is_file && i < c->part_count; i++)
		checkpoint_add_part(again, c->parts[i].name);
	checkpoint_check(rules, out, 0, look);
	if (again->time_ms > 0)
		return 0;
	checkpoint_list_clear(out);
	return -1;
}
