/* SPDX-License-Identifier: MIT */
/* model_path.c - from a run's name, or a folder, to its newest valid checkpoint. */
#include "worker/lbworker/checkpoint/model_path.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/names.h"
#include "common/base/paths.h"
#include "common/manifest/manifest.h"
#include "common/run/attempt.h"
#include "common/run/attempt_params.h"
#include "common/team/team.h"
#include "worker/lbworker/checkpoint/retention.h"

/* "ada/first": the length of the owner's name; 0: it is called otherwise. */
static size_t owner_len(const char *name)
{
	const char *slash = strchr(name, '/');

	return slash && name_check(slash + 1, NULL) == 0 ? (size_t)(slash - name) : 0;
}

/* Of OWNER/RUN, by what the team is told; NULL with err. */
static char *colleague_folder(const char *name, const char *home, struct err *err)
{
	char *owner = xstrndup(name, owner_len(name)), *folder = NULL;
	char *team_at = team_folder(home, err);
	const struct team_export *export;
	struct team team;

	if (team_at && team_read(team_at, clock_wall_ms(), &team, NULL, NULL, err) == 0) {
		export = team_export_of(&team, owner);
		folder = export ? team_run_folder(export, name + strlen(owner) + 1) : NULL;
		if (!folder)
			err_set(err, ERR_NOT_FOUND,
				"%s tells the team of no runs; see: lbctl ls --team", owner);
		team_clear(&team);
	}
	free(team_at);
	free(owner);
	return folder;
}

/* Where the run of that name has its things; NULL where there is no such run, with err for
 * a colleague's. */
static char *run_folder(const char *name, struct err *err)
{
	bool is_mine = name_check(name, NULL) == 0;
	char *home = is_mine || owner_len(name) ? path_lb_home(NULL) : NULL, *folder = NULL;

	if (home && is_mine)
		folder = path_join("%s/runs/%s", home, name);
	else if (home)
		folder = colleague_folder(name, home, err);
	free(home);
	if (folder && file_exists(folder))
		return folder;
	if (folder && !is_mine)
		err_set(err, ERR_NOT_FOUND, "%s: no such run, or its folder is closed", folder);
	free(folder);
	return NULL;
}

/* What lbd told the newest attempt of a run; NULL of any other folder. */
static char *told_to_attempt(const char *folder)
{
	int64_t number = attempt_newest_claim(folder);
	char *attempt = path_join("%s/attempts/%" PRId64, folder, number), *path = NULL;
	struct attempt_params params;

	if (number > 0 && attempt_params_read(attempt, &params, NULL) == 0) {
		path = params.checkpoint_dir;
		params.checkpoint_dir = NULL;
		attempt_params_clear(&params);
	}
	free(attempt);
	return path;
}

static bool holds_checkpoints(const char *folder)
{
	size_t count;

	free(retention_steps(folder, &count));
	return count > 0;
}

/* The folder itself, or the one that its run, or its training, writes to; NULL: neither. */
static char *checkpoints_of(const char *folder)
{
	char *path;

	if (holds_checkpoints(folder))
		return xstrdup(folder);
	path = told_to_attempt(folder);
	if (!path)
		path = path_join("%s/checkpoints", folder);
	if (holds_checkpoints(path))
		return path;
	free(path);
	return NULL;
}

char *model_path_checkpoints(const char *named)
{
	char *path = checkpoints_of(named), *run = path ? NULL : run_folder(named, NULL);

	if (!path && run)
		path = checkpoints_of(run);
	if (!path)
		path = xstrdup(run && !file_exists(named) ? run : named);
	free(run);
	return path;
}

void model_path_passed_over(const char *path, const struct err *why, void *arg)
{
	(void)arg;
	log_warn("checkpoint %s is passed over: %s", path, why->text);
}

static int no_model(const char *named, const char *where, struct err *err)
{
	struct err why = { 0 };
	char *home = path_lb_home(&why);

	if (owner_len(named) && !file_exists(where)) {
		free(run_folder(named, &why));
		err_set(err, ERR_NOT_FOUND, "%s: no such folder, and no run of a colleague: %s",
			named, why.text);
	} else if (file_exists(where))
		err_set(err, ERR_NOT_FOUND,
			"%s: holds no model (config.json) and no checkpoint yet (step-00000100)",
			where);
	else if (home)
		err_set(err, ERR_NOT_FOUND, "%s: no such folder, and no run of that name in %s",
			named, home);
	else
		err_set(err, ERR_NOT_FOUND, "%s: no such folder, and no run: %s", named, why.text);
	free(home);
	return -1;
}

char *model_path(const char *named, struct err *err)
{
	struct checkpoint_found found;

	if (folder_holds(named, "config.json"))
		return xstrdup(named);
	char *where = model_path_checkpoints(named);
	int rc = checkpoint_newest_valid(where, &found, model_path_passed_over, NULL, err);
	if (rc == 0)
		rc = no_model(named, where, err);
	free(where);
	if (rc < 0)
		return NULL;
	fprintf(stderr, "reading %s\n", found.path);
	return xstrdup(found.path);
}
