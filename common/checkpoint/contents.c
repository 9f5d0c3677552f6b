/* SPDX-License-Identifier: MIT */
/* contents.c - what the names in a folder say of it. */
#include "common/checkpoint/contents.h"

#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/files.h"
#include "common/base/paths.h"
#include "common/checkpoint/entry_names.h"
#include "common/checkpoint/layouts.h"
#include "common/checkpoint/steps.h"

struct entry {
	const char *folder, *name;
	bool is_folder;
};

typedef bool is_such(const struct entry *e);

/* Is there such an entry? -1: the folder cannot be read. */
static int find(const char *folder, is_such *is)
{
	DIR *dir = opendir(folder);
	const struct dirent *next;
	int found = 0;

	if (!dir)
		return -1;
	while (!found && (next = readdir(dir))) {
		struct entry e = { folder, next->d_name,
				   folder_entry_type(dirfd(dir), next) == DT_DIR };

		found = strcmp(e.name, ".") != 0 && strcmp(e.name, "..") != 0 && is(&e);
	}
	closedir(dir);
	return found;
}

static bool has(const char *folder, is_such *is)
{
	return find(folder, is) > 0;
}

static bool has_no(const char *folder, is_such *is)
{
	return find(folder, is) == 0;
}

/* As torch.distributed.checkpoint leaves it, the only hidden file that counts. */
static bool is_metadata(const struct entry *e)
{
	return strcmp(e->name, ".metadata") == 0;
}

static bool is_weights(const struct entry *e)
{
	return is_metadata(e) || (name_is_data(e->name) && !name_is_temporary(e->name));
}

static bool is_numbered(const struct entry *e)
{
	const char *name = e->name;

	return name_has_number(name) && name_has_word(name) && !name_is_shard(name) &&
	       !name_is_temporary(name);
}

bool contents_are_unnumbered_data(const char *folder)
{
	return has(folder, is_weights) && has_no(folder, is_numbered);
}

/* "run1/model_20.pt": of both numbers the larger one is the step; "2026-11-27/model_20.pt". In
 * "llama-1000/model_0.pt" the folder is the checkpoint. */
static bool is_of_this_step(const struct entry *e)
{
	const char *base = path_base(e->folder);

	return name_tells_step(e->name) || !name_ends_in_number(base) || name_tells_time(base) ||
	       step_in_name(e->name) > step_in_name(base);
}

/* "exp1/last.pt" */
static bool is_newest(const struct entry *e)
{
	return name_is_data(e->name) && name_is_single(e->name) &&
	       (strcasestr(e->name, "last") || strcasestr(e->name, "latest"));
}

static bool is_state(const struct entry *e)
{
	return !name_is_temporary(e->name) &&
	       (is_newest(e) || (name_tells_state(e->name) && is_of_this_step(e)));
}

static bool is_checkpoint(const struct entry *e)
{
	return e->name[0] != '.' && (name_tells_step(e->name) || is_state(e) ||
				     (e->is_folder && name_is_for_checkpoints(e->name)));
}

static bool is_seen_file(const struct entry *e)
{
	return (e->name[0] != '.' || is_metadata(e)) && !e->is_folder;
}

static bool is_numbered_checkpoint(const struct entry *e)
{
	return e->is_folder && name_has_checkpoint(e->name) && name_has_number(e->name);
}

/* Ray's "TorchTrainer_2026-11-28_10-15-00/TorchTrainer_ab12_00000_0/checkpoint_000001" */
static bool is_run(const struct entry *e)
{
	char *path = e->is_folder ? path_join("%s/%s", e->folder, e->name) : NULL;
	bool is = path && has(path, is_numbered_checkpoint);

	free(path);
	return is;
}

bool contents_have_run(const char *folder)
{
	return has(folder, is_run);
}

bool contents_are_checkpoints(const char *folder)
{
	return has(folder, is_checkpoint) || has_no(folder, is_seen_file) ||
	       contents_have_run(folder);
}

static bool is_any(const struct entry *e)
{
	(void)e;
	return true;
}

static bool is_not_for_people(const struct entry *e)
{
	return e->is_folder || !name_is_for_people(e->name);
}

bool contents_are_for_people(const char *folder)
{
	return has(folder, is_any) && has_no(folder, is_not_for_people);
}

static bool is_not_of_settings(const struct entry *e)
{
	if (e->is_folder)
		return e->name[0] != '.' && strcmp(e->name, "wandb") != 0 &&
		       strcmp(e->name, "logs") != 0 && !name_is_of_other_work(e->name);
	return !name_is_for_people(e->name) && !name_is_of_settings(e->name);
}

bool contents_are_settings(const char *folder)
{
	return has_no(folder, is_not_of_settings);
}

/* "checkpoint_500", "model.ckpt-500.index" of TensorFlow. */
static bool is_unended_checkpoint(const struct entry *e)
{
	return !e->is_folder && name_has_word(e->name) &&
	       (!strchr(e->name, '.') || layout_name_matches("*-#.index", e->name, NULL));
}

static bool is_named_checkpoint(const struct entry *e)
{
	const char *name = e->name;

	return name_has_checkpoint(name) && !name_is_other_file(name) &&
	       (name_is_data(name) ? name_has_number(name) || name_is_single(name)
				   : is_unended_checkpoint(e));
}

bool contents_have_named_checkpoint(const char *folder)
{
	return has(folder, is_named_checkpoint);
}

bool contents_have_state(const char *folder)
{
	return has(folder, is_state);
}

bool contents_have_checkpoint(const char *folder)
{
	return has(folder, is_checkpoint);
}

static bool is_step(const struct entry *e)
{
	return e->is_folder && name_tells_step(e->name) && name_ends_in_number(e->name);
}

bool contents_have_step(const char *folder)
{
	return has(folder, is_step);
}

static bool is_of_one(const struct entry *e)
{
	return name_is_data(e->name) || name_tells_step(e->name) ||
	       isdigit((unsigned char)e->name[0]);
}

bool contents_are_below(const char *folder)
{
	return has_no(folder, is_of_one);
}
