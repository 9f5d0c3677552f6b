/* SPDX-License-Identifier: MIT */
/* checkpoint_find.c - which checkpoints lie in a folder, by their names alone. */
#include "common/checkpoint/checkpoint_parts.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/files.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/regexp.h"
#include "common/base/strv.h"
#include "common/base/text.h"
#include "common/checkpoint/contents.h"
#include "common/checkpoint/entry_names.h"
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
	bool has_dropped; /* there were too many: they are in another order now */
};

/* Ours, while a checkpoint is on its way into the folder, or out of it; no pattern is asked. */
static const char our_prefix[] = ".lb-";

static int64_t changed_ns(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return 0;
	return (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
}

/* 1 of ".../rank_1/step_20.pt". */
static long rank_of_folder(const struct checkpoint *c)
{
	const char *at = strcasestr(c->path + c->top_len, "/rank");

	return at ? strtol(at + strlen("/rank") + strspn(at + strlen("/rank"), "_-"), NULL, 10) : 0;
}

/* By its name or by a folder's: beside "checkpoints/step_10" lies an export, "weights/step_10". */
static bool is_called_one(const struct checkpoint *c)
{
	return name_has_checkpoint(c->path + c->top_len);
}

static int newest_first(const void *a, const void *b)
{
	const struct checkpoint *x = a, *y = b;
	int64_t x_ns, y_ns;

	if (x->step != y->step)
		return x->step < y->step ? 1 : -1;
	if (x->is_copy != y->is_copy)
		return x->is_copy ? 1 : -1;
	if (x->place != y->place)
		return x->place > y->place ? 1 : -1;
	if (is_called_one(x) != is_called_one(y))
		return is_called_one(x) ? -1 : 1;
	if (rank_of_folder(x) != rank_of_folder(y))
		return rank_of_folder(x) < rank_of_folder(y) ? -1 : 1;
	x_ns = changed_ns(x->path);
	y_ns = changed_ns(y->path);
	if (x_ns != y_ns)
		return x_ns < y_ns ? 1 : -1;
	return strcmp(x->path, y->path);
}

static void clear(struct checkpoint *c)
{
	for (size_t i = 0; i < c->part_count; i++)
		free(c->parts[i].name);
	free(c->parts);
	free(c->path);
	free(c->why);
}

/* Of very many the newer half. */
static void drop_older(struct checkpoint_list *list)
{
	qsort(list->items, list->count, sizeof(list->items[0]), newest_first);
	while (list->count > CHECKPOINTS_MAX / 2)
		clear(&list->items[--list->count]);
}

/* Where those of the folder at hand begin. */
static size_t first_of(const struct walk *w, const struct checkpoint_place *at)
{
	return w->has_dropped ? 0 : at->first;
}

static struct checkpoint *add(struct walk *w, const char *path, int64_t step, bool is_file)
{
	struct checkpoint_list *list = w->out;
	struct checkpoint *c;

	if (list->count == CHECKPOINTS_MAX) {
		drop_older(list);
		w->has_dropped = true;
	}
	if ((list->count & (list->count - 1)) == 0)
		list->items = xrealloc(list->items, (list->count ? 2 * list->count : 1) *
							    sizeof(list->items[0]));
	c = &list->items[list->count++];
	*c = (struct checkpoint){ .path = xstrdup(path),
				  .step = step,
				  .is_file = is_file,
				  .is_best = checkpoint_is_best(path_base(path)),
				  .is_copy = checkpoint_is_copy(path_base(path)),
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

static bool is_of_optimizer(const char *name)
{
	return strcasestr(name, "optim") || strcasestr(name, "sched");
}

/* Which of several files of one step is handed over: what is called like a checkpoint, and not like
 * what belongs to one. */
static int rank_of(const char *name)
{
	static const char *const words[] = { "ckpt", "checkpoint", "snapshot", "model",
					     "last", "state",      "weights",  "params" };
	const int count = (int)(sizeof(words) / sizeof(words[0]));
	int i = 0;

	while (i < count && !strcasestr(name, words[i]))
		i++;
	return is_of_optimizer(name) ? i + count : i;
}

/* Files of one step in one folder are one checkpoint: model_20.pt and optim_20.pt. */
static struct checkpoint *same_step(struct walk *w, const struct checkpoint_place *at, int64_t step)
{
	size_t len = strlen(at->path);

	for (size_t i = first_of(w, at); step >= 0 && i < w->out->count; i++) {
		struct checkpoint *c = &w->out->items[i];

		if (c->is_file && c->step == step && !c->is_alone &&
		    (size_t)(path_base(c->path) - c->path) == len + 1 &&
		    strncmp(c->path, at->path, len) == 0)
			return c;
	}
	return NULL;
}

static void add_file(struct walk *w, const struct checkpoint_place *at, const char *name,
		     int64_t step, bool is_alone)
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
		c->is_best = checkpoint_is_best(name);
		c->is_copy = checkpoint_is_copy(name);
	}
	c->is_alone = is_alone;
	checkpoint_add_part(c, name);
	free(path);
}

static void look_at_file(struct walk *w, const struct checkpoint_place *at, const char *name)
{
	int64_t step;
	bool is_alone;

	if (checkpoint_is_file(w->rules, at, name, &step, &is_alone))
		add_file(w, at, name, step, is_alone);
}

/* --- the walk --------------------------------------------------------------------------------- */

static int read_folder(struct walk *w, struct checkpoint_place *at, struct err *err);

static void look_by_pattern(struct walk *w, const struct checkpoint_place *at, const char *name,
			    const char *relative, const char *path, bool is_folder)
{
	int64_t step = checkpoint_pattern_step(w->rules, relative);
	struct checkpoint *c;

	if (step >= 0) {
		c = add(w, path, step, !is_folder);
		if (!is_folder)
			checkpoint_add_part(c, name);
	} else if (is_folder && at->depth < w->rules->pattern_depth) {
		struct checkpoint_place deeper = { .path = path,
						   .relative = relative,
						   .depth = at->depth + 1 };

		read_folder(w, &deeper, NULL);
	}
}

/* Our own trainer's lie side by side. */
static bool may_hold_some(const struct walk *w, const struct checkpoint_place *at)
{
	return at->depth < DEPTH_MAX && !(w->rules->row && w->rules->row->verify);
}

/* prime-rl's weights/step_20, beside checkpoints/step_10: more often, and without the optimizer. */
static bool is_handed_on(const struct checkpoint_place *at, const char *name)
{
	char *path = strcmp(name, "weights") == 0 ? path_join("%s/checkpoints", at->path) : NULL;
	bool is = path && contents_have_step(path);

	free(path);
	return is;
}

static void look_at_folder(struct walk *w, const struct checkpoint_place *at, const char *name,
			   const char *relative, const char *path)
{
	struct checkpoint_place deeper = {
		.path = path,
		.relative = relative,
		.depth = at->depth + 1,
		.is_below = at->is_below,
		.is_beside = at->is_beside,
		.is_under = at->is_beside,
	};
	int64_t step;
	bool is_one;

	/* what an evaluation or a profiler keeps beside the checkpoints, by the same numbers, what
	 * is handed to those that sample, and what training began with */
	if (!w->rules->row &&
	    (name_is_for_other_work(name) || name_is_downloaded(name) || is_handed_on(at, name)))
		return;
	is_one = checkpoint_is_folder(w->rules, at, name, path, &step) &&
		 (w->rules->row || !contents_are_for_people(path));
	if (is_one)
		add(w, path, step, false);
	if (is_one || !may_hold_some(w, at) ||
	    file_is_link(path)) /* who knows where it would lead */
		return;
	deeper.is_below |= name_has_checkpoint(name) && contents_are_below(path);
	read_folder(w, &deeper, NULL);
}

/* Is what a link leads to of this folder? Then it is listed under its own name. */
static bool is_second_name(const struct checkpoint_place *at, const struct dirent *entry,
			   const char *path, struct strv *led_to)
{
	const char *inside;
	char *real, *top;
	bool is;

	if ((entry->d_type != DT_LNK && entry->d_type != DT_UNKNOWN) || !file_is_link(path))
		return false;
	real = realpath(path, NULL);
	top = realpath(at->path, NULL);
	inside = real && top ? path_below(real, top) : NULL;
	is = inside != NULL;
	if (is)
		strv_add(led_to, path_join("%s/%s", at->path, inside));
	free(real);
	free(top);
	return is;
}

/* The folder that it is, what lies in that, or one of its files. */
static bool consists_of(const struct checkpoint *c, const char *path)
{
	size_t beside = (size_t)(path_base(c->path) - c->path);
	bool is = strcmp(path, c->path) == 0 || path_below(path, c->path);

	for (size_t i = 0; c->is_file && i < c->part_count && !is; i++)
		is = strncmp(c->path, path, beside) == 0 &&
		     strcmp(path + beside, c->parts[i].name) == 0;
	return is;
}

static void mark_linked(const struct walk *w, const struct checkpoint_place *at,
			const struct strv *led_to)
{
	for (size_t i = first_of(w, at); i < w->out->count; i++)
		for (size_t k = 0; k < led_to->count; k++)
			w->out->items[i].is_linked |= consists_of(&w->out->items[i],
								  led_to->items[k]);
}

/* How many of its files are an optimizer's. */
static size_t optimizers_of(const struct checkpoint *c)
{
	size_t count = 0;

	for (size_t i = 0; c->is_file && i < c->part_count; i++)
		count += is_of_optimizer(c->parts[i].name);
	return count;
}

/* From an optimizer alone nobody begins. Where it lies beside models of its step a save was cut
 * off, which is told. */
static void drop_optimizers(const struct walk *w, const struct checkpoint_place *at)
{
	struct checkpoint_list *list = w->out;
	size_t first = first_of(w, at), alone = 0, kept = first;
	bool are_beside = false;

	for (size_t i = first; i < list->count; i++) {
		size_t count = optimizers_of(&list->items[i]);

		alone += count > 0 && count == list->items[i].part_count;
		are_beside |= count > 0 && count < list->items[i].part_count;
	}
	if (are_beside || alone == list->count - first)
		return;
	for (size_t i = first; i < list->count; i++) {
		struct checkpoint *c = &list->items[i];

		if (c->is_file && optimizers_of(c) == c->part_count)
			clear(c);
		else
			list->items[kept++] = *c;
	}
	list->count = kept;
}

static void look_at(struct walk *w, const struct checkpoint_place *at, const struct dirent *entry,
		    struct strv *led_to)
{
	const char *name = entry->d_name;
	char *path = path_join("%s/%s", at->path, name);
	char *relative = at->relative[0] ? path_join("%s/%s", at->relative, name) : xstrdup(name);
	struct stat st;

	if (!is_second_name(at, entry, path, led_to) && stat(path, &st) == 0 &&
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

/* `at`: which one; what is in it is found out here. */
static int read_folder(struct walk *w, struct checkpoint_place *at, struct err *err)
{
	DIR *dir = opendir(at->path);
	const struct dirent *entry;
	struct strv led_to = { 0 };
	int rc = 0;

	at->first = w->out->count;
	at->is_for_checkpoints = at->depth == 0 || at->is_below ||
				 name_is_for_checkpoints(path_base(at->path)) ||
				 contents_have_named_checkpoint(at->path) ||
				 (!at->is_beside && contents_have_state(at->path));
	at->is_beside = at->is_beside || contents_have_checkpoint(at->path);
	if (!dir)
		return errno == ENOENT ? 0 : err_errno(err, "%s", at->path);
	while (errno = 0, (entry = readdir(dir)) != NULL) {
		if (++w->entries > ENTRIES_MAX)
			break;
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (text_begins_with(entry->d_name, our_prefix))
			continue;
		if (w->rules->pattern || !name_is_temporary(entry->d_name))
			look_at(w, at, entry, &led_to);
	}
	/* A listing that broke off could hide the newest checkpoint. */
	if (!entry && errno != 0)
		rc = err_errno(err, "%s", at->path);
	closedir(dir);
	mark_linked(w, at, &led_to);
	if (!w->rules->row && !w->rules->pattern)
		drop_optimizers(w, at);
	strv_free(led_to.items);
	return rc;
}

/* --- the list --------------------------------------------------------------------------------- */

int checkpoints_find_in(const struct checkpoint_rules *rules, const char *const *folders,
			struct checkpoint_list *out, struct err *err)
{
	bool has_dropped = false;
	int rc = 0;

	*out = (struct checkpoint_list){ 0 };
	if (checkpoint_rules_is_own(rules))
		return 0;
	for (int i = 0; folders[i] && rc == 0; i++) {
		struct walk w = { .rules = rules, .out = out, .top = folders[i], .place = i };
		struct checkpoint_place top = { .path = folders[i], .relative = "" };

		rc = read_folder(&w, &top, err);
		has_dropped |= w.has_dropped;
	}
	if (rc < 0)
		checkpoint_list_clear(out);
	/* of those that were met behind a drop, some files of one may be gone with it */
	if (has_dropped && rc == 0)
		drop_older(out);
	else if (out->count > 1)
		qsort(out->items, out->count, sizeof(out->items[0]), newest_first);
	return rc;
}

int checkpoints_find(const struct checkpoint_rules *rules, const char *folder,
		     struct checkpoint_list *out, struct err *err)
{
	return checkpoints_find_in(rules, (const char *const[]){ folder, NULL }, out, err);
}

void checkpoint_list_clear(struct checkpoint_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		clear(&list->items[i]);
	free(list->items);
	*list = (struct checkpoint_list){ 0 };
}
