/* SPDX-License-Identifier: MIT */
/* checkpoint_layout.c - what a checkpoint is made of: its files, and the row of layouts.h that fits
 * them. */
#include <dirent.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/files.h"
#include "common/base/fnv.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/checkpoint/checkpoint_parts.h"

enum { DEPTH_MAX = 6, PARTS_MAX = 65536 };

/* --- its files -------------------------------------------------------------------------------- */

static void read_tree(struct checkpoint *c, const char *path, const char *below, int depth)
{
	DIR *dir = depth <= DEPTH_MAX ? opendir(path) : NULL;
	const struct dirent *entry;

	while (dir && c->part_count < PARTS_MAX && (entry = readdir(dir))) {
		bool is_gone, is_link;
		char *deeper, *name;
		struct stat st;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		deeper = path_join("%s/%s", path, entry->d_name);
		name = below[0] ? path_join("%s/%s", below, entry->d_name) : xstrdup(entry->d_name);
		is_gone = lstat(deeper, &st) < 0;
		is_link = !is_gone && S_ISLNK(st.st_mode);
		if (is_link)
			is_gone = stat(deeper, &st) < 0;
		if (!is_gone && !is_link && S_ISDIR(st.st_mode))
			read_tree(c, deeper, name, depth + 1);
		else if (is_gone || S_ISREG(st.st_mode)) /* what is gone, the look will tell */
			checkpoint_add_part(c, name);
		free(name);
		free(deeper);
	}
	if (dir)
		closedir(dir);
}

static int by_name(const void *a, const void *b)
{
	const struct checkpoint_part *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static void measure(struct checkpoint *c, const char *base)
{
	uint64_t h = FNV_START;

	c->bytes = c->time_ms = 0;
	if (c->part_count > 1)
		qsort(c->parts, c->part_count, sizeof(c->parts[0]), by_name);
	for (size_t i = 0; i < c->part_count; i++) {
		struct checkpoint_part *p = &c->parts[i];
		char *path = path_join("%s/%s", base, p->name);
		struct stat st = { 0 };

		if (stat(path, &st) == 0 && S_ISREG(st.st_mode)) {
			p->bytes = st.st_size;
			p->changed_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 +
					st.st_mtim.tv_nsec;
		}
		c->bytes += p->bytes;
		if (p->changed_ns / 1000000 > c->time_ms)
			c->time_ms = p->changed_ns / 1000000;
		h = fnv_add_text(h, p->name);
		h = fnv_add(fnv_add(h, (uint64_t)p->bytes), (uint64_t)p->changed_ns);
		free(path);
	}
	c->stamp = h;
}

void checkpoint_list_parts(struct checkpoint *c)
{
	char *base = checkpoint_base(c);

	if (!c->is_listed && !c->is_file)
		read_tree(c, c->path, "", 0);
	c->is_listed = true;
	measure(c, base);
	free(base);
}

/* The part that a pattern of the table names; NULL = none. */
static const struct checkpoint_part *find_part(const struct checkpoint *c, const char *pattern)
{
	for (size_t i = 0; i < c->part_count; i++) {
		if (layout_name_matches(pattern, c->parts[i].name, NULL))
			return &c->parts[i];
	}
	return NULL;
}

/* --- which row -------------------------------------------------------------------------------- */

static bool has_mark(const struct layout *row, const struct checkpoint *c)
{
	for (size_t i = 0; row->marks[i]; i++) {
		if (find_part(c, row->marks[i]))
			return true;
	}
	return !row->marks[0];
}

/* Is something of that name beside it, or in a folder that is called like it? */
static bool is_beside(const struct layout *row, const struct checkpoint *c, const char *name,
		      const char *folder, int *sisters)
{
	bool found = false;
	char *path;

	if (c->is_file)
		return layout_name_matches(row->last, name, NULL);
	if (!checkpoint_is_called_like(path_base(c->path), name))
		return false;
	path = path_join("%s/%s/%s", folder, name, row->last);
	found = file_exists(path);
	(*sisters)++;
	free(path);
	return found;
}

/* A row that only some folders use as it says is left out where nothing beside it does so: files
 * called model_20.bin are llm.c's when there is a DONE_ of any step; of several folders
 * checkpoint-20 with an optimizer.pt one has a trainer_state.json, if they are the Trainer's. */
static bool beside_is_used(const struct layout *row, const struct checkpoint *c)
{
	const char *name = path_base(c->path);
	const struct dirent *entry;
	bool found = false;
	int sisters = 0;
	char *folder;
	DIR *dir;

	if (!row->last || (row->kind == LAYOUT_FOLDER && (!row->marks[0] || row->verify)))
		return true;
	folder = name > c->path ? xstrndup(c->path, (size_t)(name - c->path)) : xstrdup(".");
	dir = opendir(folder);
	while (dir && !found && (entry = readdir(dir)))
		found = is_beside(row, c, entry->d_name, folder, &sisters);
	if (dir)
		closedir(dir);
	free(folder);
	return found || sisters == 1;
}

const struct layout *checkpoint_choose_row(const struct checkpoint_rules *rules,
					   const struct checkpoint *c)
{
	if (rules->row)
		return rules->row;
	for (size_t i = 0; i < layout_count; i++) {
		const struct layout *row = &layouts[i];

		if (row->kind == (c->is_file ? LAYOUT_FILE : LAYOUT_FOLDER) &&
		    layout_matches(row, path_base(c->path), NULL) && has_mark(row, c) &&
		    beside_is_used(row, c))
			return row;
	}
	return layout_find(c->is_file ? "file" : "folder");
}
