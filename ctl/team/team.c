/* SPDX-License-Identifier: MIT */
/* team.c - the runs of the whole team, from the files that each lbd writes (common/team/team.h);
 * nobody else's daemon is asked. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/accounts.h"
#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/run/run_state.h"
#include "common/team/selector.h"
#include "ctl/base/command.h"
#include "ctl/base/print.h"
#include "ctl/team/team.h"

enum { TOLD_REFUSED = 10, FRESH_MS = 1000, RECORD_MAX_BYTES = 4 * 1024 * 1024 };

/* --- where and what --------------------------------------------------------------------------- */

struct refusals {
	const struct ctl *ctl;
	const char *folder;
	int count;
};

static void on_refused(const char *file, const char *why, void *arg)
{
	struct refusals *r = arg;
	char *text = xasprintf("%s/%s does not count: %s", r->folder, file, why);

	if (r->count++ < TOLD_REFUSED)
		complain(r->ctl, text);
	free(text);
}

int team_load(struct ctl *ctl, struct err *err)
{
	struct refusals refusals = { .ctl = ctl,
				     .count = ctl->team_read_ms ? TOLD_REFUSED + 1 : 0 };
	char *folder;
	int rc;

	if (ctl->has_team)
		return 0;
	folder = team_folder(ctl->client.home, err);
	if (!folder)
		return -1;
	refusals.folder = folder;
	rc = team_read(folder, clock_wall_ms(), &ctl->team, on_refused, &refusals, err);
	if (refusals.count > TOLD_REFUSED && !ctl->team_read_ms)
		complain(ctl, "... and more files that do not count");
	free(folder);
	ctl->has_team = rc == 0;
	ctl->team_read_ms = clock_mono_ms();
	return rc;
}

bool team_is_stale(const struct team_export *export)
{
	return clock_wall_ms() - export->written_ms > TEAM_STALE_MS;
}

void team_tell_stale(const struct ctl *ctl, const struct team_export *export)
{
	char age[CLOCK_TEXT_MAX], *text;

	if (!team_is_stale(export))
		return;
	duration_text(clock_wall_ms() - export->written_ms, age);
	text = xasprintf("%s's lbd has told nothing for %s: it may be dead, and what is said of "
			 "its runs is that old",
			 export->user, export->written_ms ? age : "a long time");
	complain(ctl, text);
	free(text);
}

void team_tell_left_out(const struct ctl *ctl, const struct team_export *export)
{
	char *text;

	if (export->left_out <= 0)
		return;
	text = xasprintf("%lld more runs of %s are not listed: there are too many for one file",
			 (long long)export->left_out, export->user);
	complain(ctl, text);
	free(text);
}

bool run_is_named(const struct ctl *ctl, const json_t *run, const char *user)
{
	for (size_t i = 0; i < ctl->operands.count; i++) {
		char of[TEAM_USER_BYTES + 1];
		struct selector selector;

		if (team_word(ctl->operands.words[i], of, &selector, NULL) == 0 &&
		    (!of[0] || !user || strcmp(of, user) == 0) &&
		    selector_matches(&selector, js_str(run, "name", ""), js_str(run, "group", NULL),
				     js_str(run, "owner", "")))
			return true;
	}
	return ctl->operands.count == 0;
}

bool run_is_listed(const struct ctl *ctl, const json_t *run, const char *user)
{
	return (!ctl->options.group || strcmp(js_str(run, "group", ""), ctl->options.group) == 0) &&
	       run_is_named(ctl, run, user);
}

static void print_names(const char *user, const json_t *runs)
{
	const json_t *run;
	size_t i;

	json_array_foreach(runs, i, run) {
		printf("%s/%s\n", user, js_str(run, "name", ""));
	}
}

void team_print_names(struct ctl *ctl)
{
	struct err err = { 0 };

	if (team_load(ctl, &err) < 0)
		return;
	for (size_t n = 0; n < ctl->team.count; n++)
		print_names(ctl->team.exports[n].user, ctl->team.exports[n].runs);
}

/* --- whose run -------------------------------------------------------------------------------- */

int team_word(const char *word, char user[TEAM_USER_BYTES + 1], struct selector *out,
	      struct err *err)
{
	const char *slash = strchr(word, '/');
	size_t len = slash ? (size_t)(slash - word) : 0;

	user[0] = '\0';
	if (slash && len <= TEAM_USER_BYTES) {
		memcpy(user, word, len);
		user[len] = '\0';
	}
	if (slash && !team_user_is_fine(user))
		return err_set(err, ERR_USAGE, "OWNER/RUN: that is no user's name");
	return selector_parse(slash ? slash + 1 : word, out, err);
}

static const struct team_export *export_of(struct ctl *ctl, const char *user, struct err *err)
{
	const struct team_export *export;

	if (team_load(ctl, err) < 0)
		return NULL;
	export = team_export_of(&ctl->team, user);
	if (!export)
		err_set(err, ERR_NOT_FOUND, "%s tells the team of no runs; see: lbctl ls --team",
			user);
	return export;
}

static json_t *run_of(const struct team_export *export, const char *name)
{
	json_t *run;
	size_t i;

	json_array_foreach(export->runs, i, run) {
		if (strcmp(js_str(run, "name", ""), name) == 0)
			return run;
	}
	return NULL;
}

bool run_is_over(const json_t *run)
{
	return run_state_is_final(run_state_from_name(js_str(run, "state", "")));
}

int team_expand(struct ctl *ctl, const char *word, json_t *runs, struct err *err)
{
	char user[TEAM_USER_BYTES + 1];
	const struct team_export *export;
	struct selector selector;
	const json_t *run;
	size_t i;

	if (team_word(word, user, &selector, err) < 0)
		return -1;
	export = export_of(ctl, user, err);
	if (!export)
		return -1;
	json_array_foreach(export->runs, i, run) {
		const char *name = js_str(run, "name", "");
		char *full;

		if (run_is_over(run) ||
		    !selector_matches(&selector, name, js_str(run, "group", NULL),
				      js_str(run, "owner", "")))
			continue;
		full = xasprintf("%s/%s", user, name);
		json_array_append_new(runs, json_pack("{s:s, s:s}", "run", full, "state",
						      js_str(run, "state", "")));
		free(full);
	}
	return 0;
}

char *team_find(struct ctl *ctl, const char *name, struct err *err)
{
	const struct team_export *found = NULL;
	struct err quiet = { 0 };

	if (team_load(ctl, &quiet) < 0)
		return NULL;
	for (size_t n = 0; n < ctl->team.count; n++) {
		const struct team_export *export = &ctl->team.exports[n];
		const json_t *run = run_of(export, name);

		if (!run || run_is_over(run))
			continue;
		if (found) {
			err_set(err, ERR_USAGE, "%s and %s both have a run %s: say which, as %s/%s",
				found->user, export->user, name, found->user, name);
			return NULL;
		}
		found = export;
	}
	return found ? xasprintf("%s/%s", found->user, name) : NULL;
}

/* What lbd keeps of a run beside its files; absent members where it cannot be read. */
static json_t *run_of_folder(const char *name, const char *dir)
{
	char *path = path_join("%s/record.json", dir);
	json_t *record = js_load(path, RECORD_MAX_BYTES, NULL), *run = json_object();
	const char *group = js_str(record, "group", "");

	js_set_str(run, "name", name);
	js_set_str(run, "state", js_str(record, "state", NULL));
	js_set_str(run, "owner", js_str(record, "owner", NULL));
	js_set_str(run, "group", group[0] ? group : NULL);
	js_set_time(run, "ended", js_int(record, "ended_ms", 0));
	json_decref(record);
	free(path);
	return run;
}

/* Adds the runs that lie in the folder and of which nothing is told, as they ended too long ago. */
static void add_untold(const struct ctl *ctl, const struct team_export *export, json_t *runs)
{
	char *folder = team_run_folder(export, ""), *text;
	DIR *dir = folder ? opendir(folder) : NULL;
	const struct dirent *entry;

	if (folder && !dir) {
		text = xasprintf("%s: %s; what %s ran longer ago than a week is not seen", folder,
				 strerror(errno), export->user);
		complain(ctl, text);
		free(text);
	}
	while (dir && (entry = readdir(dir))) {
		char *path = path_join("%s%s", folder, entry->d_name);

		if (entry->d_name[0] != '.' && !run_of(export, entry->d_name))
			json_array_append_new(runs, run_of_folder(entry->d_name, path));
		free(path);
	}
	if (dir)
		closedir(dir);
	free(folder);
}

int team_each(struct ctl *ctl,
	      json_t *(*make)(const json_t *run, const char *dir, const char *user), json_t *list,
	      struct err *err)
{
	const json_t *run;
	size_t i;

	if (team_load(ctl, err) < 0)
		return -1;
	for (size_t n = 0; n < ctl->team.count; n++) {
		const struct team_export *export = &ctl->team.exports[n];
		json_t *runs = json_copy(export->runs);

		team_tell_stale(ctl, export);
		add_untold(ctl, export, runs);
		json_array_foreach(runs, i, run) {
			char *dir = team_run_folder(export, js_str(run, "name", ""));

			if (dir && run_is_listed(ctl, run, export->user))
				json_array_append_new(list, make(run, dir, export->user));
			free(dir);
		}
		json_decref(runs);
	}
	return 0;
}

/* Who tells no team of their runs can mean only those here. */
static bool is_me(const char *user)
{
	struct account me;
	bool is = account_of(geteuid(), &me) && strcmp(me.name, user) == 0;

	account_clear(&me);
	return is;
}

bool team_is_mine(struct ctl *ctl, const char *word)
{
	char user[TEAM_USER_BYTES + 1], *mine = path_join("%s/switches", ctl->client.home);
	const struct team_export *export = NULL;
	struct selector selector;
	struct err quiet = { 0 };
	bool is_mine;

	if (team_word(word, user, &selector, &quiet) == 0)
		export = export_of(ctl, user, &quiet);
	is_mine = export ? export->uid == geteuid() && export->switches &&
				   strcmp(export->switches, mine) == 0
			 : is_me(user);
	free(mine);
	return is_mine;
}

bool team_is_meant(struct ctl *ctl)
{
	for (size_t i = 0; !ctl->options.team && i < ctl->operands.count; i++) {
		const char *word = ctl->operands.words[i];

		if (strchr(word, '/') && !team_is_mine(ctl, word))
			return true;
	}
	return ctl->options.team;
}

json_t *team_run(struct ctl *ctl, const char *word, const struct team_export **export,
		 struct err *err)
{
	char user[TEAM_USER_BYTES + 1];
	struct selector selector;
	json_t *run;

	if (team_word(word, user, &selector, err) < 0)
		return NULL;
	if (ctl->has_team && clock_mono_ms() - ctl->team_read_ms > FRESH_MS) {
		team_clear(&ctl->team);
		ctl->has_team = false;
	}
	*export = export_of(ctl, user, err);
	if (!*export)
		return NULL;
	run = run_of(*export, selector.word);
	if (!run)
		err_set(err, ERR_NOT_FOUND,
			"%s: %s tells the team of no such run; see: lbctl ls --team", word, user);
	else if (strcmp(ctl->told_stale, user) != 0)
		team_tell_stale(ctl, *export);
	memcpy(ctl->told_stale, user, sizeof(user));
	return run;
}
