/* SPDX-License-Identifier: MIT */
/* checkpoint_find.c - which checkpoints lie in a folder, by their names alone. */
#include "common/checkpoint/checkpoint_parts.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/files.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/regexp.h"
#include "common/checkpoint/siblings.h"
#include "common/checkpoint/whole.h"

enum {
	DEPTH_MAX = 5,             /* multirun/DATE/TIME/3/checkpoints/ */
	ENTRIES_MAX = 1000 * 1000, /* looked at in all */
};

struct walk {
	const struct checkpoint_rules *rules;
	struct checkpoint_list *out;
	const char *top;
	int place; /* number of that folder */
	int64_t entries;
};

/* Ours, while a checkpoint is on its way into the folder, or out of it; no pattern is asked. */
static const char our_prefix[] = ".lb-";

/* a folder that is being read */
struct place {
	const char *path;
	const char *relative; /* below the top; "" = the top itself */
	int depth;
	bool is_for_checkpoints; /* its name says so, or a folder's above it; or it is the top */
	bool is_below;           /* one that is called after them, and holds none itself */
	size_t first;            /* of the list's items that lie here */
};

static struct checkpoint *add(struct walk *w, const char *path, int64_t step, bool is_file)
{
	struct checkpoint_list *list = w->out;
	struct checkpoint *c;

	if (list->count == CHECKPOINTS_MAX)
		return NULL;
	if ((list->count & (list->count - 1)) == 0)
		list->items = xrealloc(list->items, (list->count ? 2 * list->count : 1) *
							    sizeof(list->items[0]));
	c = &list->items[list->count++];
	*c = (struct checkpoint){ .path = xstrdup(path),
				  .step = step,
				  .is_file = is_file,
				  .top_len = strlen(w->top),
				  .place = w->place };
	return c;
}

void checkpoint_add_part(struct checkpoint *c, const char *name)
{
	if ((c->part_count & (c->part_count - 1)) == 0)
		c->parts = xrealloc(c->parts,
				    (c->part_count ? 2 * c->part_count : 1) * sizeof(c->parts[0]));
	c->parts[c->part_count++] = (struct checkpoint_part){ .name = xstrdup(name) };
}

char *checkpoint_base(const struct checkpoint *c)
{
	const char *slash = c->is_file ? strrchr(c->path, '/') : NULL;

	if (!c->is_file)
		return xstrdup(c->path);
	return slash ? xstrndup(c->path, (size_t)(slash - c->path)) : xstrdup(".");
}

/* --- files ------------------------------------------------------------------------------------ */

/* Which of several files of one step is handed over: what is called like a checkpoint. */
static int rank_of(const char *name)
{
	static const char *const words[] = { "ckpt",  "checkpoint", "snapshot",
					     "model", "last",       "state" };
	int i = 0;

	while (i < (int)(sizeof(words) / sizeof(words[0])) && !strcasestr(name, words[i]))
		i++;
	return i;
}

/* A copy of one that was the best so far: of no use to others of its step. */
static bool is_best(const char *name)
{
	return strcasestr(name, "best") != NULL;
}

/* Files of one step in one folder are one checkpoint: model_20.pt and optim_20.pt. */
static struct checkpoint *same_step(struct walk *w, const struct place *at, int64_t step)
{
	for (size_t i = at->first; step >= 0 && i < w->out->count; i++) {
		struct checkpoint *c = &w->out->items[i];

		if (c->is_file && c->step == step && !c->is_alone &&
		    (size_t)(path_base(c->path) - c->path) == strlen(at->path) + 1)
			return c;
	}
	return NULL;
}

static void add_file(struct walk *w, const struct place *at, const char *name, int64_t step,
		     bool is_alone)
{
	struct checkpoint *c = is_alone ? NULL : same_step(w, at, step);
	char *path = path_join("%s/%s", at->path, name);
	const char *first;

	if (!c)
		c = add(w, path, step, true);
	else if (first = path_base(c->path),
		 rank_of(name) < rank_of(first) ||
			 (rank_of(name) == rank_of(first) && strcmp(name, first) < 0)) {
		free(c->path);
		c->path = xstrdup(path);
	}
	if (c) {
		c->is_alone = is_alone;
		checkpoint_add_part(c, name);
	}
	free(path);
}

static bool is_word_of_one(const char *word, size_t len)
{
	static const char *const words[] = { "ckpt",    "checkpoint", "model",    "last",
					     "latest",  "state",      "snapshot", "best",
					     "current", "final",      "training", "train",
					     "trainer" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strlen(words[i]) == len && strncasecmp(word, words[i], len) == 0)
			return true;
	}
	return false;
}

/* "ckpt.pt", "checkpoint_last.pt", "model_best.pth.tar": written over each time. */
static bool is_single_name(const char *name)
{
	for (;;) {
		size_t len = strcspn(name, "._-");

		if (!is_word_of_one(name, len))
			return false;
		if (name[len] == '\0' || name[len] == '.')
			return true;
		name += len + 1;
	}
}

/* "model-00001-of-00003.safetensors" is a part of something that has no step. */
static bool is_shard(const char *name)
{
	return layout_name_matches("*-#-of-#.*", name, NULL);
}

static bool has_number(const char *name)
{
	return step_in_name(name) >= 0;
}

static const struct layout *file_row(const struct checkpoint_rules *rules, const char *name,
				     int64_t *step)
{
	for (size_t i = 0; i < layout_count; i++) {
		const struct layout *row = &layouts[i];

		if (row->kind == LAYOUT_FILE && (!rules->row || rules->row == row) &&
		    layout_matches(row, name, step))
			return row;
	}
	return NULL;
}

/* Written for people, or by an evaluation or a profiler: "samples_step_30.png", "eval_step_30.json". */
static bool is_other_file(const char *name)
{
	return name_is_for_people(name) || strcasestr(name, "memory_snapshot") ||
	       (!name_is_data(name) && name_is_of_other_work(name));
}

/* llm.c's "model_00000010.bin" has its step where its row says; all others where names tell it. */
static void look_at_file(struct walk *w, const struct place *at, const char *name)
{
	int64_t step = -1;
	const struct layout *row = file_row(w->rules, name, &step);
	bool is_alone;
	char *path;

	if (!row || is_shard(name) || (!w->rules->row && is_other_file(name)))
		return;
	if (!w->rules->row && !at->is_for_checkpoints)
		return;
	if (name_is_data(name) ? !has_number(name) && !is_single_name(name) && !row->has_step_inside
			       : !name_has_word(name))
		return;
	if (step < 0)
		step = step_beside_siblings(at->path, name);
	is_alone = row->has_step_inside || step < 0 || is_best(name);
	if (step < 0 || (row->has_step_inside && !strstr(name, "step"))) {
		path = path_join("%s/%s", at->path, name);
		step = file_step_inside(path) >= 0 ? file_step_inside(path) : step;
		free(path);
	}
	add_file(w, at, name, step, is_alone);
}

/* --- folders ---------------------------------------------------------------------------------- */

static bool is_for_checkpoints(const char *name)
{
	static const char *const words[] = { "checkpoint", "ckpt",   "weights",
					     "snapshot",   "models", "save" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcasestr(name, words[i]))
			return true;
	}
	return false;
}

/* Or in one and the words of any script's folders, "-state" and "-unsharded". */
static bool ends_in_number(const char *name)
{
	const struct layout *row = layout_find("folder");

	for (size_t n = 0; row->names[n]; n++) {
		if (strncmp(row->names[n], "*#", 2) == 0 &&
		    layout_name_matches(row->names[n], name, NULL))
			return true;
	}
	return false;
}

/* Called as only checkpoints are. *step: -1 = the row does not say which number it is. */
static bool has_special_row(const struct checkpoint_rules *rules, const char *name, int64_t *step)
{
	for (size_t i = 0; i < layout_count; i++) {
		const struct layout *row = &layouts[i];

		if (row->kind != LAYOUT_FOLDER || (rules->row && rules->row != row))
			continue;
		for (size_t n = 0; row->names[n]; n++) {
			bool is_any = strncmp(row->names[n], "*#", 2) == 0;

			if ((is_any && !rules->row) || !strchr(row->names[n], '#') ||
			    strcmp(row->names[n], "*_#") == 0 ||
			    !layout_name_matches(row->names[n], name, step))
				continue;
			*step = is_any ? -1 : *step;
			return true;
		}
	}
	return false;
}

/* A folder without a number is one when it holds data itself, none of it with a number. */
static bool holds_unnumbered_data(const char *path)
{
	DIR *dir = opendir(path);
	const struct dirent *entry;
	bool has_data = false, has_numbered = false;

	while (dir && !has_numbered && (entry = readdir(dir))) {
		if (name_is_temporary(entry->d_name) && strcmp(entry->d_name, ".metadata") != 0)
			continue;
		has_data |= name_is_data(entry->d_name) || strcmp(entry->d_name, ".metadata") == 0;
		has_numbered = has_number(entry->d_name) && name_has_word(entry->d_name) &&
			       !is_shard(entry->d_name);
	}
	if (dir)
		closedir(dir);
	return has_data && !has_numbered;
}

/* "run1", "seed-42": a folder of checkpoints, unless it holds files itself, and none that tells a
 * step. */
static bool holds_checkpoints(const char *path)
{
	DIR *dir = opendir(path);
	const struct dirent *entry;
	bool has_files = false, has_checkpoints = false;

	while (dir && !has_checkpoints && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.' && strcmp(entry->d_name, ".metadata") != 0)
			continue;
		has_files |= entry->d_type != DT_DIR;
		has_checkpoints = name_tells_step(entry->d_name) ||
				  (entry->d_type == DT_DIR && is_for_checkpoints(entry->d_name));
	}
	if (dir)
		closedir(dir);
	return dir && (has_checkpoints || !has_files);
}

/* "step_30" with nothing but pictures in it. */
static bool is_for_people(const char *path)
{
	DIR *dir = opendir(path);
	const struct dirent *entry;
	bool has_some = false, has_others = false;

	while (dir && !has_others && (entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		has_some = true;
		has_others = entry->d_type == DT_DIR || !name_is_for_people(entry->d_name);
	}
	if (dir)
		closedir(dir);
	return has_some && !has_others;
}

static bool has_file(const char *folder, const char *name)
{
	char *path = path_join("%s/%s", folder, name);
	bool has = file_exists(path);

	free(path);
	return has;
}

static int64_t step_in_file(const char *folder, const char *name)
{
	char *path = path_join("%s/%s", folder, name);
	int64_t step = file_step_inside(path);

	free(path);
	return step;
}

/* Lightning's, in parts of the ranks: "last.ckpt/", "epoch=1-val_loss=0.3.ckpt/". A name without the
 * word does not tell the step, a file in it does. */
static bool is_in_parts(const struct checkpoint_rules *rules, const char *name, const char *path,
			int64_t *step)
{
	static const char *const signs[] = { "meta.pt", ".metadata", "__0_0.distcp", "checkpoint" };
	static const char *const tellers[] = {
		"meta.pt",
		"checkpoint/mp_rank_00_model_states.pt",
		"checkpoint/zero_pp_rank_0_mp_rank_00_model_states.pt",
	};
	bool is = false;

	if (!layout_name_matches("*.ckpt", name, NULL) ||
	    (rules->row && !layout_matches(rules->row, name, NULL)))
		return false;
	for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++)
		is |= has_file(path, signs[i]);
	*step = strstr(name, "step") ? step_in_name(name) : -1;
	for (size_t i = 0; is && *step < 0 && i < sizeof(tellers) / sizeof(tellers[0]); i++)
		*step = step_in_file(path, tellers[i]);
	*step = *step < 0 ? step_in_name(name) : *step;
	return is;
}

/* Hydra's "multirun/2026-11-27/10-15-00/3/checkpoints": a job of a sweep. */
static bool is_for_a_job(const char *name, const char *path)
{
	return strspn(name, "0123456789") == strlen(name) &&
	       (has_file(path, "checkpoints") || has_file(path, ".hydra"));
}

/* Lightning's version_0, dates and the like hold checkpoints, but are none. */
static bool is_folder_checkpoint(const struct walk *w, const struct place *at, const char *name,
				 const char *path, int64_t *step)
{
	static const char *const unnumbered[] = { "last",       "latest", "current", "final",
						  "checkpoint", "ckpt",   "state" };

	if (is_in_parts(w->rules, name, path, step))
		return true;
	if (!w->rules->row && is_for_a_job(name, path))
		return false;
	*step = -1;
	if (has_special_row(w->rules, name, step)) {
		*step = *step >= 0 ? *step : step_beside_siblings(at->path, name);
		return true;
	}
	if (w->rules->row &&
	    (w->rules->row->kind == LAYOUT_FILE || !layout_matches(w->rules->row, name, step)))
		return false;
	if (!w->rules->row && !at->is_for_checkpoints)
		return false;
	for (size_t i = 0; i < sizeof(unnumbered) / sizeof(unnumbered[0]); i++) {
		if (strcmp(name, unnumbered[i]) == 0)
			return holds_unnumbered_data(path);
	}
	if (!ends_in_number(name) || strncmp(name, "version_", 8) == 0)
		return false;
	*step = step_beside_siblings(at->path, name);
	return *step >= 0 && (name_has_word(name) || (at->depth == 0 && !holds_checkpoints(path)));
}

static bool is_called_after(const char *name)
{
	return strcasestr(name, "ckpt") || strcasestr(name, "checkpoint") ||
	       strcasestr(name, "snapshot");
}

/* timm's "train/20261123-101500-resnet50-224/checkpoint-9.pth.tar", "run1/ckpt_20.pt": whatever the
 * folder is called, in it are checkpoints. */
static bool holds_called_so(const char *path)
{
	DIR *dir = opendir(path);
	const struct dirent *entry;
	bool is_found = false;

	while (dir && !is_found && (entry = readdir(dir))) {
		const char *name = entry->d_name;

		is_found = is_called_after(name) && name_is_data(name) && !is_other_file(name) &&
			   (has_number(name) || is_single_name(name));
	}
	if (dir)
		closedir(dir);
	return is_found;
}

/* nanochat's "base_checkpoints/d20/": of other folders there, "best", "exports", nothing is known
 * where the checkpoints lie beside them. */
static bool holds_folders(const char *path)
{
	DIR *dir = opendir(path);
	const struct dirent *entry;
	bool has_others = false;

	while (dir && !has_others && (entry = readdir(dir)))
		has_others = name_is_data(entry->d_name) || name_tells_step(entry->d_name) ||
			     isdigit((unsigned char)entry->d_name[0]);
	if (dir)
		closedir(dir);
	return dir && !has_others;
}

/* --- the walk --------------------------------------------------------------------------------- */

static int read_folder(struct walk *w, const char *path, const char *relative, int depth,
		       bool is_below, struct err *err);

static void look_by_pattern(struct walk *w, const struct place *at, const char *name,
			    const char *relative, const char *path, bool is_folder)
{
	int64_t step = checkpoint_pattern_step(w->rules, relative);
	struct checkpoint *c;

	if (step >= 0) {
		c = add(w, path, step, !is_folder);
		if (c && !is_folder)
			checkpoint_add_part(c, name);
	} else if (is_folder && at->depth < w->rules->pattern_depth) {
		read_folder(w, path, relative, at->depth + 1, false, NULL);
	}
}

/* Our own trainer's lie side by side. */
static bool may_hold_some(const struct walk *w, const struct place *at)
{
	return at->depth < DEPTH_MAX && !(w->rules->row && w->rules->row->verify);
}

static void look_at_folder(struct walk *w, const struct place *at, const char *name,
			   const char *relative, const char *path)
{
	int64_t step;

	/* what an evaluation or a profiler keeps beside the checkpoints, by the same numbers */
	if (!w->rules->row && name_is_for_other_work(name))
		return;
	if (is_folder_checkpoint(w, at, name, path, &step) &&
	    (w->rules->row || !is_for_people(path)))
		add(w, path, step, false);
	else if (may_hold_some(w, at) && !file_is_link(path)) /* who knows where it would lead */
		read_folder(w, path, relative, at->depth + 1,
			    at->is_below || (is_called_after(name) && holds_folders(path)), NULL);
}

/* Is what a link leads to of this folder? Then it is listed under its own name. */
static bool is_second_name(const struct place *at, const struct dirent *entry, const char *path)
{
	char *real, *top;
	bool is_inside;

	if ((entry->d_type != DT_LNK && entry->d_type != DT_UNKNOWN) || !file_is_link(path))
		return false;
	real = realpath(path, NULL);
	top = realpath(at->path, NULL);
	is_inside = real && top && strncmp(real, top, strlen(top)) == 0 && real[strlen(top)] == '/';
	free(real);
	free(top);
	return is_inside;
}

static void look_at(struct walk *w, const struct place *at, const struct dirent *entry)
{
	const char *name = entry->d_name;
	char *path = path_join("%s/%s", at->path, name);
	char *relative = at->relative[0] ? path_join("%s/%s", at->relative, name) : xstrdup(name);
	struct stat st;

	if (!is_second_name(at, entry, path) && stat(path, &st) == 0 &&
	    (S_ISDIR(st.st_mode) || S_ISREG(st.st_mode))) {
		if (w->rules->pattern)
			look_by_pattern(w, at, name, relative, path, S_ISDIR(st.st_mode));
		else if (S_ISDIR(st.st_mode))
			look_at_folder(w, at, name, relative, path);
		else
			look_at_file(w, at, name);
	}
	free(relative);
	free(path);
}

static int read_folder(struct walk *w, const char *path, const char *relative, int depth,
		       bool is_below, struct err *err)
{
	DIR *dir = opendir(path);
	struct place at = { .path = path,
			    .relative = relative,
			    .depth = depth,
			    .first = w->out->count,
			    .is_below = is_below,
			    .is_for_checkpoints = depth == 0 || is_below ||
						  is_for_checkpoints(path_base(path)) ||
						  holds_called_so(path) };
	const struct dirent *entry;
	int rc = 0;

	if (!dir)
		return errno == ENOENT ? 0 : err_errno(err, "%s", path);
	while (errno = 0, (entry = readdir(dir)) != NULL) {
		if (++w->entries > ENTRIES_MAX)
			break;
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (strncmp(entry->d_name, our_prefix, strlen(our_prefix)) == 0)
			continue;
		if (w->rules->pattern || !name_is_temporary(entry->d_name))
			look_at(w, &at, entry);
	}
	/* A listing that broke off could hide the newest checkpoint. */
	if (!entry && errno != 0)
		rc = err_errno(err, "%s", path);
	closedir(dir);
	return rc;
}

/* --- the list --------------------------------------------------------------------------------- */

static int64_t changed_ns(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return 0;
	return (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
}

static int newest_first(const void *a, const void *b)
{
	const struct checkpoint *x = a, *y = b;
	int64_t x_ns, y_ns;

	if (x->step != y->step)
		return x->step < y->step ? 1 : -1;
	if (is_best(path_base(x->path)) != is_best(path_base(y->path)))
		return is_best(path_base(x->path)) ? 1 : -1;
	if (x->place != y->place)
		return x->place > y->place ? 1 : -1;
	x_ns = changed_ns(x->path);
	y_ns = changed_ns(y->path);
	if (x_ns != y_ns)
		return x_ns < y_ns ? 1 : -1;
	return strcmp(x->path, y->path);
}

int checkpoints_find_in(const struct checkpoint_rules *rules, const char *const *folders,
			struct checkpoint_list *out, struct err *err)
{
	int rc = 0;

	*out = (struct checkpoint_list){ 0 };
	if (checkpoint_rules_is_own(rules))
		return 0;
	for (int i = 0; folders[i] && rc == 0; i++) {
		struct walk w = { .rules = rules, .out = out, .top = folders[i], .place = i };

		rc = read_folder(&w, folders[i], "", 0, false, err);
	}
	if (rc < 0)
		checkpoint_list_clear(out);
	if (out->count > 1)
		qsort(out->items, out->count, sizeof(out->items[0]), newest_first);
	return rc;
}

int checkpoints_find(const struct checkpoint_rules *rules, const char *folder,
		     struct checkpoint_list *out, struct err *err)
{
	return checkpoints_find_in(rules, (const char *const[]){ folder, NULL }, out, err);
}

static void clear(struct checkpoint *c)
{
	for (size_t i = 0; i < c->part_count; i++)
		free(c->parts[i].name);
	free(c->parts);
	free(c->path);
	free(c->why);
}

void checkpoint_list_clear(struct checkpoint_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		clear(&list->items[i]);
	free(list->items);
	*list = (struct checkpoint_list){ 0 };
}
