/* SPDX-License-Identifier: MIT */
/* stage_items.c - what lies in a stage, and which of it has a copy where it is shared. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/files.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/checkpoint/entry_names.h"
#include "worker/lbrun/checkpoint/pruning.h"
#include "worker/lbrun/checkpoint/stage.h"

bool stage_has_parts(const struct stage *s)
{
	return s->folder && s->nodes > 1;
}

bool stage_holds(const struct stage *s, const char *path)
{
	return s->folder && path_below(path, s->folder);
}

void stage_forget(struct stage *s)
{
	for (size_t i = 0; i < s->count; i++)
		free(s->files[i].path);
	free(s->files);
	free(s->items);
	s->files = NULL;
	s->items = NULL;
	s->count = 0;
}

/* A copy has the times of what it was made from, and so the same stamp. */
static bool has_copy(const struct stage *s, const struct checkpoint_list *list,
		     const struct checkpoint *c)
{
	const char *relative = c->path + c->top_len;

	for (size_t i = 0; i < list->count; i++) {
		const struct checkpoint *o = &list->items[i];

		if (!stage_holds(s, o->path) && strcmp(o->path + o->top_len, relative) == 0)
			return o->is_checked && o->is_valid && o->stamp == c->stamp;
	}
	return false;
}

static bool was_sealed(const struct stage *s, const struct checkpoint *c)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->files[i].stamp == c->stamp && strcmp(s->files[i].path, c->path) == 0)
			return s->items[i].is_sealed;
	return false;
}

static void add(struct stage *s, const struct checkpoint *c, bool is_sealed, bool is_needed)
{
	s->items = xrealloc(s->items, (s->count + 1) * sizeof(s->items[0]));
	s->files = xrealloc(s->files, (s->count + 1) * sizeof(s->files[0]));
	s->items[s->count] = (struct staged){
		.step = c->step, .bytes = c->bytes, .is_sealed = is_sealed, .is_needed = is_needed
	};
	s->files[s->count++] = (struct staged_file){ xstrdup(c->path), c->stamp };
}

static int find_all(const struct stage *s, struct checkpoint_list *list)
{
	const char *const folders[] = { s->folder, stage_has_parts(s) ? NULL : s->shared, NULL };

	return checkpoints_find_in(s->rules, folders, list, NULL);
}

/* Those in the stage, and their copies; others only as far as the rules compare with them. */
static void check_all(const struct stage *s, struct checkpoint_list *list)
{
	struct look look = { 0 };

	for (size_t i = list->count; i-- > 0;) {
		bool is_near = (i > 0 && list->items[i - 1].step == list->items[i].step) ||
			       stage_holds(s, list->items[i].path);

		if (is_near)
			checkpoint_check(s->rules, list, i, &look);
	}
}

void stage_look(struct stage *s, const char *needed)
{
	struct stage was = *s;
	struct checkpoint_list list;

	if (find_all(s, &list) < 0)
		return;
	check_all(s, &list);
	s->items = NULL;
	s->files = NULL;
	s->count = 0;
	for (size_t i = 0; i < list.count; i++) {
		const struct checkpoint *c = &list.items[i];

		if (stage_holds(s, c->path) && c->is_valid)
			add(s, c, was_sealed(&was, c) || has_copy(s, &list, c),
			    needed && strcmp(needed, c->path) == 0);
	}
	stage_forget(&was);
	checkpoint_list_clear(&list);
}

static void remove_temporary(const char *folder)
{
	DIR *dir = opendir(folder);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir)) != NULL) {
		char *path = path_join("%s/%s", folder, entry->d_name);

		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
		    strcmp(entry->d_name, STAGE_LOCK) != 0 && name_is_temporary(entry->d_name))
			folder_remove(path, NULL);
		free(path);
	}
	if (dir)
		closedir(dir);
}

void stage_tidy(struct stage *s)
{
	struct checkpoint_list list;

	remove_temporary(s->folder);
	if (find_all(s, &list) < 0)
		return;
	check_all(s, &list);
	for (size_t i = 0; i < list.count; i++)
		if (stage_holds(s, list.items[i].path) && !list.items[i].is_valid)
			pruning_remove(&list.items[i], NULL);
	checkpoint_list_clear(&list);
}
