/* SPDX-License-Identifier: MIT */
/* team/ - of runs: which are meant, here and a colleague's, and what is known of them.
 *
 * team.h - the runs of the whole team, from the files that each lbd writes (common/team/team.h). */
#ifndef CTL_TEAM_TEAM_H
#define CTL_TEAM_TEAM_H

#include <jansson.h>
#include <stdbool.h>

#include "common/team/selector.h"
#include "common/team/team.h"

struct ctl;
struct err;

/* Reads ctl->team once a call of lbctl; what is wrong with a file is told then. -1 with err. */
int team_load(struct ctl *ctl, struct err *err);

/* Is this run, of this lbd's user (NULL: of here), one that the command line names? */
bool run_is_named(const struct ctl *ctl, const json_t *run, const char *user);
/* The same, and of the group that --group says. */
bool run_is_listed(const struct ctl *ctl, const json_t *run, const char *user);
bool run_is_over(const json_t *run);

/* An export that nobody writes any more tells how things stood. */
bool team_is_stale(const struct team_export *export);
void team_tell_stale(const struct ctl *ctl, const struct team_export *export);

/* That runs are missing in it, as there was no room for them. */
void team_tell_left_out(const struct ctl *ctl, const struct team_export *export);

/* OWNER/RUN, one a line, of all that the team is told. */
void team_print_names(struct ctl *ctl);

/* "OWNER/SELECTOR"; without an owner *user is "". */
int team_word(const char *word, char user[TEAM_USER_BYTES + 1], struct selector *out,
	      struct err *err);
/* Adds the live runs that OWNER/SELECTOR means to `runs`: [{"run":"OWNER/NAME","state"}]. */
int team_expand(struct ctl *ctl, const char *word, json_t *runs, struct err *err);
/* "OWNER/NAME" of the one live run of this name, owned; NULL (without err) where nobody has one,
 * with err where several have. */
char *team_find(struct ctl *ctl, const char *name, struct err *err);
/* Does the command line ask for the team's runs, or name a colleague's? They are told by the team's
 * files only. */
bool team_is_meant(struct ctl *ctl);
/* Is OWNER/... of the lbd that this lbctl talks to? */
bool team_is_mine(struct ctl *ctl, const char *word);
/* The export and the run that OWNER/NAME means, both borrowed until the next call; read anew when
 * they were read more than a second ago. NULL with err. */
json_t *team_run(struct ctl *ctl, const char *word, const struct team_export **export,
		 struct err *err);

/* Adds what `make` has of each run of the team that the command line names to `list`; `dir` is its
 * folder. Runs are those that the team is told of, and those that lie beside them; what is not open
 * to us is said. */
int team_each(struct ctl *ctl,
	      json_t *(*make)(const json_t *run, const char *dir, const char *user), json_t *list,
	      struct err *err);

#endif
