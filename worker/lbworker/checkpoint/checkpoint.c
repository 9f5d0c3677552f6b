/* SPDX-License-Identifier: MIT */
/* checkpoint.c - the way of a checkpoint's folder into place. */
#include "worker/lbworker/checkpoint/checkpoint_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/failpoint.h"
#include "common/base/files.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/manifest/manifest.h"
#include "common/run/attempt.h"
#include "worker/lbworker/checkpoint/retention.h"
#include "worker/lbworker/base/scratch.h"

enum { MODE = 0755 };

/* Completes tmp under the name `sealed`: files on disk, manifest written. */
static int seal(const struct checkpoint_copy *c, const struct checkpoint_rules *rules,
		const char *tmp, const char *sealed, struct err *err)
{
	const char *names[CHECKPOINT_FILES_MAX];
	const size_t count = checkpoint_files(c, names);
	struct manifest_file files[CHECKPOINT_FILES_MAX];
	struct manifest m = { .step = c->state.step,
			      .tokens = c->state.tokens,
			      .world_size = 1,
			      .attempt = rules->attempt,
			      .files = files,
			      .file_count = count };

	memset(files, 0, sizeof(files));
	snprintf(m.config_hash, sizeof(m.config_hash), "%s", c->state.config_digest);
	for (size_t i = 0; i < count; i++)
		files[i].name = xstrdup(names[i]);
	int rc = manifest_publish(tmp, sealed, &m, err);
	for (size_t i = 0; i < count; i++)
		free(files[i].name);
	return rc;
}

/* A newer attempt may train from what lies here already: nothing may appear under its feet. */
static int check_fence(const struct checkpoint_rules *rules, struct err *err)
{
	if (!rules->run_dir || rules->attempt <= 0)
		return 0;
	int64_t newest = attempt_newest_claim(rules->run_dir);
	if (newest <= rules->attempt)
		return 0;
	return err_set(err, ERR_REFUSED,
		       "attempt %" PRId64 " was replaced by attempt %" PRId64 ": nothing published",
		       rules->attempt, newest);
}

/* -1 with errno, and the folder where it was. */
static int change_places(const char *sealed, const char *folder, const char *aside)
{
	if (renameat2(AT_FDCWD, sealed, AT_FDCWD, folder, RENAME_EXCHANGE) == 0)
		return 0;
	/* not every file system can: two moves then */
	if (rename(folder, aside) != 0)
		return -1;
	if (rename(sealed, folder) == 0)
		return 0;
	int saved = errno;
	(void)rename(aside, folder);
	errno = saved;
	return -1;
}

/* A folder of that name is there already (a torn one that was passed over, or the run went back to
 * an older one): the two change places in one move. */
static int replace(const char *sealed, const char *folder, struct err *err)
{
	char *aside = scratch_name(folder, "old");
	int rc = 0;

	if (change_places(sealed, folder, aside) != 0)
		rc = err_errno(err, "%s", folder);
	else if (folder_remove(aside, NULL))
		log_warn("%s: a replaced checkpoint could not be removed", folder);
	if (rc == 0)
		log_info("%s: replaced", folder);
	free(aside);
	return rc;
}

static int put_in_place(const char *sealed, const char *folder, const char *parent, struct err *err)
{
	int rc;

	if (file_exists(folder))
		rc = replace(sealed, folder, err);
	else
		rc = rename(sealed, folder) == 0 ? 0 : err_errno(err, "%s", folder);
	return rc == 0 ? folder_sync(parent, err) : -1;
}

static int publish(const struct checkpoint_copy *c, const struct checkpoint_rules *rules,
		   const char *parent, const char *folder, struct err *err)
{
	char *tmp = scratch_name(folder, "tmp"), *sealed = scratch_name(folder, "new");
	int rc = -1;

	if (check_fence(rules, err) == 0 && folder_remove(tmp, err) == 0 &&
	    folder_remove(sealed, err) == 0 && folder_make(tmp, MODE, err) == 0 &&
	    checkpoint_files_write(c, tmp, err) == 0 && seal(c, rules, tmp, sealed, err) == 0 &&
	    failpoint(FP_CHECKPOINT_SEALED, err) == 0 && check_fence(rules, err) == 0)
		rc = put_in_place(sealed, folder, parent, err);
	failpoint(FP_CHECKPOINT_PLACED, NULL);
	if (folder_remove(tmp, NULL) || folder_remove(sealed, NULL))
		log_warn("%s: what is left of it could not be removed", tmp);
	free(tmp);
	free(sealed);
	return rc;
}

int checkpoint_publish(struct checkpoint_copy *c, const struct checkpoint_rules *rules, char **path,
		       struct err *err)
{
	char parent[PATH_MAX];

	*path = NULL;
	if (checkpoint_copy_complete(c, err) || folder_make(rules->parent, MODE, err))
		return -1;
	if (!realpath(rules->parent, parent))
		return err_errno(err, "%s", rules->parent);
	char *folder = path_join("%s/step-%08" PRId64, parent, c->state.step);
	if (publish(c, rules, parent, folder, err)) {
		free(folder);
		return -1;
	}
	retention_apply(parent, c->state.step, rules->keep_latest_k, rules->keep_every);
	*path = folder;
	return 0;
}
