/* SPDX-License-Identifier: MIT */
/* team_order.c - orders to a colleague's run: switch files in the colleague's folder. What may be
 * done is decided by the rights there, and by who looks at the file; nobody else's daemon is
 * asked. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/team/switches.h"
#include "ctl/act/team_order.h"
#include "ctl/base/command.h"
#include "ctl/team/team.h"

static int take_away(int folder, const struct team_export *export, const char *name,
		     const char *level, struct err *err)
{
	char *file = xasprintf("%s.%s", name, level);
	int rc = 0;

	if (unlinkat(folder, file, 0) == 0)
		printf("%s/%s: its switch %s is gone\n", export->user, name, file);
	else if (errno == ENOENT)
		rc = err_set(err, ERR_NOT_FOUND,
			     "%s/%s: there is no switch %s; who held the run by a command must "
			     "release it",
			     export->user, name, file);
	else
		rc = err_set(err, ERR_REFUSED, "%s/%s: you may not take the switch %s away",
			     export->user, name, file);
	free(file);
	return rc;
}

static int leave(const struct ctl *ctl, int folder, const struct team_export *export,
		 const char *name, enum switch_level level, struct err *err)
{
	char *shown = clean_copy(export->switches, &ctl->out);
	struct err why = { 0 };
	int rc = switch_write(folder, export->switches, name, level,
			      ctl->options.reason ? ctl->options.reason : "", &why);

	if (rc < 0 && why.code != ERR_LOCKED)
		err_set(err, why.code, "%s/%s: %s", export->user, name, why.text);
	else
		printf("%s/%s: the switch %s/%s.%s is there: its jobs and %s's lbd obey it%s\n",
		       export->user, name, shown, name, switch_level_name(level), export->user,
		       ctl->options.now ? " (not --now)" : "");
	free(shown);
	return rc < 0 && why.code != ERR_LOCKED ? -1 : 0;
}

static int act(const struct ctl *ctl, const struct team_export *export, const char *name,
	       enum switch_level level, bool release, struct err *err)
{
	int folder, rc;

	if (!export->switches)
		return err_set(err, ERR_NOT_FOUND, "%s/%s: %s's lbd does not say where orders go",
			       export->user, name, export->user);
	folder = switches_folder_open(export->switches, &export->uid, err);
	if (folder < 0)
		return err_wrap(err, "%s/%s: %s's lbctl doctor says what keeps the team out",
				export->user, name, export->user);
	rc = release ? take_away(folder, export, name, switch_level_name(level), err)
		     : leave(ctl, folder, export, name, level, err);
	close(folder);
	return rc;
}

int team_order(struct ctl *ctl, const char *word, enum switch_level level, bool release,
	       struct err *err)
{
	const struct team_export *export;
	const json_t *run = team_run(ctl, word, &export, err);

	if (!run)
		return -1;
	if (run_is_over(run) || ctl->options.dry_run) {
		printf("%s %s\n", word, js_str(run, "state", "?"));
		return 0;
	}
	return act(ctl, export, js_str(run, "name", ""), level, release, err);
}
