/* SPDX-License-Identifier: MIT */
/* team/ - what colleagues share: who they are, what their lbds tell, orders as files.
 *
 * team.h - what each lbd tells the team of its runs: one small file a user in a common folder.
 *
 *   FOLDER/USER.json   {"format":1,"user","switches","written","left_out","runs":[…]}
 *
 * lbctl reads them all (`ls --team`), and orders a colleague's run by leaving a switch in the
 * folder that its export names: nobody talks to anybody else's daemon. The folder belongs to the
 * team (mode 3770: setgid and sticky), so everybody of it may write there and nothing in it is
 * trusted. An export counts only if it is an ordinary file with one name, of bounded size, that
 * belongs to the user it is named after, who is in the team; of its text only known fields of
 * known types and lengths are taken. Looking never blocks, and never follows a link below the
 * folder. */
#ifndef COMMON_TEAM_TEAM_H
#define COMMON_TEAM_TEAM_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/err.h"
#include "common/base/names.h"

enum {
	TEAM_FORMAT = 1,
	TEAM_EXPORT_BYTES = 1024 * 1024, /* the largest export */
	TEAM_EXPORTS_MAX = 1024,         /* so many are read; more are told and left out */
	TEAM_RUNS_MAX = 4096,            /* of one export */
	TEAM_USER_BYTES = 64,
	TEAM_WEEKS = 8, /* goodput is told by so many, and what was before them */
	TEAM_RECENT_MS = 7 * 24 * 3600 * 1000,
	TEAM_REFRESH_MS = 60 * 1000,         /* an export is written at least so often … */
	TEAM_STALE_MS = 3 * TEAM_REFRESH_MS, /* … so one that is older has no lbd any more */
};

#define TEAM_EARLIER "earlier" /* the weeks before */

/* The folder, if it can be trusted: nobody else than its group can write to it, and if the group
 * can it is sticky. With `team` it must be that group's. A descriptor, or -1 with err that says
 * how to mend it: ERR_NOT_FOUND, ERR_REFUSED, ERR_IO. */
int team_open(const char *folder, const char *team, struct err *err);

/* Puts USER.json in place in one step, mode 0640, of the folder's group. `folder` is from
 * team_open, `shown` its name. ERR_REFUSED when somebody else's file is in the way. */
int team_write(int folder, const char *shown, const char *user, const char *text, size_t len,
	       struct err *err);

/* Can a user of this name have an export? Letters, digits and "._-@+", no '.' or '-' in front. */
bool team_user_is_fine(const char *user);
/* How the export of a user is called, and the user in it: by the account's name, or by its number
 * where that is none (NULL) or cannot be a file's, as a directory's "AD\ada". */
void team_user_of(const char *account, unsigned uid, char *out, size_t size);

struct team_export {
	char user[TEAM_USER_BYTES + 1]; /* whose lbd; the owner of the file */
	uid_t uid;
	int64_t written_ms; /* wall clock of its host; never later than now */
	int64_t left_out;   /* runs that the file had no room for */
	char *switches;     /* absolute and printable, else NULL; owned */
	json_t *runs;       /* as in docs/PROTOCOL.md, section 6; owned */
};

struct team {
	struct team_export *exports; /* by user */
	size_t count;
};

/* Everything that counts. What does not is told to `refused` (may be NULL): the name of the file,
 * cleaned, and what is wrong with it. -1 with err, and *out empty, as from team_open. Clear
 * *out. */
int team_read(const char *folder, int64_t now_ms, struct team *out,
	      void (*refused)(const char *file, const char *why, void *arg), void *arg,
	      struct err *err);
void team_clear(struct team *team);

/* Where the team is: $LB_TEAM, else where HOME/team leads, which lbd makes. Owned; NULL with
 * err. */
char *team_folder(const char *home, struct err *err);
/* NULL: this user tells of nothing. Borrowed. */
const struct team_export *team_export_of(const struct team *team, const char *user);
/* The folder of a run beside the switches that the export names; owned, NULL when it names none. */
char *team_run_folder(const struct team_export *export, const char *name);

#endif
