/* SPDX-License-Identifier: MIT */
/* folders.c - lbd's folder, and that of the runs: made, opened to the team, and nobody else's. */
#include "daemon/folders.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/accounts.h"
#include "common/base/files.h"
#include "common/base/guarded.h"
#include "common/base/paths.h"
#include "common/run/home.h"
#include "daemon/job/network.h"

/* With a team its group may enter, and what is made inside belongs to the group. */
static int open_to_team(int fd, const char *folder, const char *team, struct err *err)
{
	gid_t group;

	if (team &&
	    (!group_id(team, &group) || fchown(fd, (uid_t)-1, group) < 0 || fchmod(fd, 02750) < 0))
		return err_errno(err, "%s: cannot give it to group %s", folder, team);
	return 0;
}

int check_home(const char *home, struct err *err)
{
	struct err why = { 0 };
	int fd = guarded_open(home, O_RDONLY | O_DIRECTORY, geteuid(), &why);

	if (fd >= 0)
		close(fd);
	return why.code == ERR_REFUSED ? err_set(err, why.code, "%s", why.text) : 0;
}

int link_lbrun(const struct config *config, struct err *err)
{
	char *fresh = path_join("%s/lbrun.new", config->home);
	int rc = 0;

	if (strcmp(config->interpreter, config->lbrun) != 0) {
		unlink(fresh);
		if (symlink(config->lbrun, fresh) < 0 || rename(fresh, config->interpreter) < 0)
			rc = err_errno(err, "%s", config->interpreter);
	}
	free(fresh);
	return rc;
}

int open_home(const struct config *config, struct err *err)
{
	int fd, rc;

	if (folder_make(config->home, 0700, err) < 0 || home_check(config->home, err) < 0)
		return -1;
	fd = guarded_open(config->home, O_RDONLY | O_DIRECTORY, geteuid(), err);
	if (fd < 0)
		return -1;
	rc = open_to_team(fd, config->home, config->team_group, err);
	close(fd);
	return rc < 0 ? rc : network_check(config, err);
}

int open_runs(const struct config *config, struct err *err)
{
	const char *folder = config->runs_folder;
	bool is_inside = path_below(folder, config->home);
	int fd, rc = 0;

	if (folder_make(folder, 0750, err) < 0)
		return -1;
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		rc = err_errno(err, "%s", folder);
	else if (is_inside)
		rc = open_to_team(fd, folder, config->team_group, err);
	else
		rc = guarded_check_alone(fd, folder, geteuid(), err);
	if (fd >= 0)
		close(fd);
	return rc;
}
