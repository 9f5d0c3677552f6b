/* SPDX-License-Identifier: MIT */
#include "common/set_aside.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/files.h"
#include "common/mem.h"
#include "common/paths.h"

/* "step-00000120" → 120; -1 for anything else, "step-00000120.tmp-7" included. */
static int64_t step_of(const char *name)
{
	int64_t step = 0;

	if (strncmp(name, "step-", 5) != 0 || name[5] == '\0' || strlen(name + 5) > 18)
		return -1;
	for (name += 5; *name; name++) {
		if (*name < '0' || *name > '9')
			return -1;
		step = step * 10 + (*name - '0');
	}
	return step;
}

int64_t checkpoint_step(struct foreign *foreign, const char *name)
{
	return foreign ? foreign_step(foreign, name) : step_of(name);
}

static int move(const char *parent, const char *name, const char *aside, struct err *err)
{
	char *from = path_join("%s/%s", parent, name), *to = path_join("%s/%s", aside, name);
	int rc = 0;

	if (folder_make(aside, 0750, err) < 0)
		rc = -1;
	else if (rename(from, to) < 0)
		rc = err_errno(err, "%s to %s", from, to);
	free(from);
	free(to);
	return rc;
}

int64_t checkpoints_set_aside(const char *parent, struct foreign *foreign, int64_t step,
			      const char *aside, struct err *err)
{
	DIR *dir = opendir(parent);
	const struct dirent *entry;
	int64_t moved = 0;

	if (!dir)
		return errno == ENOENT ? 0 : err_errno(err, "%s", parent);
	while (moved >= 0 && (entry = readdir(dir)) != NULL) {
		if (checkpoint_step(foreign, entry->d_name) <= step)
			continue;
		moved = move(parent, entry->d_name, aside, err) < 0 ? -1 : moved + 1;
	}
	closedir(dir);
	if (moved > 0 && (folder_sync(aside, err) < 0 || folder_sync(parent, err) < 0))
		return -1;
	return moved;
}
