/* SPDX-License-Identifier: MIT */
/* contents.c - what the names in a folder say of it. */
#include "common/checkpoint/contents.h"

#include <ctype.h>
#include <dirent.h>
#include <string.h>

#include "common/checkpoint/entry_names.h"
#include "common/checkpoint/steps.h"

typedef bool is_such(const struct dirent *entry);

/* Is there such an entry? -1: the folder cannot be read. */
static int find(const char *folder, is_such *is)
{
	DIR *dir = opendir(folder);
	const struct dirent *entry;
	int found = 0;

	if (!dir)
		return -1;
	while (!found && (entry = readdir(dir)))
		found = strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
			is(entry);
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
static bool is_metadata(const struct dirent *entry)
{
	return strcmp(entry->d_name, ".metadata") == 0;
}

static bool is_weights(const struct dirent *entry)
{
	return is_metadata(entry) ||
	       (name_is_data(entry->d_name) && !name_is_temporary(entry->d_name));
}

static bool is_numbered(const struct dirent *entry)
{
	const char *name = entry->d_name;

	return name_has_number(name) && name_has_word(name) && !name_is_shard(name) &&
	       !name_is_temporary(name);
}

bool contents_are_unnumbered_data(const char *folder)
{
	return has(folder, is_weights) && has_no(folder, is_numbered);
}

static bool is_checkpoint(const struct dirent *entry)
{
	const char *name = entry->d_name;

	return name[0] != '.' && (name_tells_step(name) ||
				  (entry->d_type == DT_DIR && name_is_for_checkpoints(name)));
}

static bool is_seen_file(const struct dirent *entry)
{
	return (entry->d_name[0] != '.' || is_metadata(entry)) && entry->d_type != DT_DIR;
}

bool contents_are_checkpoints(const char *folder)
{
	return has(folder, is_checkpoint) || has_no(folder, is_seen_file);
}

static bool is_any(const struct dirent *entry)
{
	(void)entry;
	return true;
}

static bool is_not_for_people(const struct dirent *entry)
{
	return entry->d_type == DT_DIR || !name_is_for_people(entry->d_name);
}

bool contents_are_for_people(const char *folder)
{
	return has(folder, is_any) && has_no(folder, is_not_for_people);
}

static bool is_named_checkpoint(const struct dirent *entry)
{
	const char *name = entry->d_name;

	return name_has_checkpoint(name) && name_is_data(name) && !name_is_other_file(name) &&
	       (name_has_number(name) || name_is_single(name));
}

bool contents_have_named_checkpoint(const char *folder)
{
	return has(folder, is_named_checkpoint);
}

static bool is_of_one(const struct dirent *entry)
{
	return name_is_data(entry->d_name) || name_tells_step(entry->d_name) ||
	       isdigit((unsigned char)entry->d_name[0]);
}

bool contents_are_below(const char *folder)
{
	return has_no(folder, is_of_one);
}
