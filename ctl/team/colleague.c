/* SPDX-License-Identifier: MIT */
/* colleague.c - what lbd would answer about a colleague's run, from files: the team's export says
 * how it stands, the spools below its folder what happened. Nobody asks a colleague's lbd. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/run/array_tasks.h"
#include "common/run/attempt.h"
#include "common/run/attempt_folders.h"
#include "common/run/attempt_logs.h"
#include "common/run/run_state.h"
#include "common/base/json.h"
#include "common/base/paths.h"
#include "ctl/base/command.h"
#include "ctl/base/print.h"
#include "ctl/team/colleague.h"
#include "ctl/team/story.h"
#include "ctl/team/team.h"
#include "ctl/team/team_goodput.h"

/* --- the folder ------------------------------------------------------------------------------ */

/* Beside the switches. Only what belongs to the owner of the export is theirs. Owned; NULL with
 * err. */
static char *folder_of(const struct team_export *export, const char *name, struct err *err)
{
	char *folder = team_run_folder(export, name);
	struct stat st;

	if (folder && access(folder, R_OK | X_OK) == 0 && lstat(folder, &st) == 0 &&
	    S_ISDIR(st.st_mode) && st.st_uid == export->uid)
		return folder;
	err_set(err, ERR_REFUSED,
		"%s/%s: its files%s%s are not open to you; %s's lbctl doctor says what "
		"keeps the team out",
		export->user, name, folder ? " in " : "", folder ? folder : "", export->user);
	free(folder);
	return NULL;
}

/* --- the answers ----------------------------------------------------------------------------- */

static json_t *run_object(json_t *run, const struct team_export *export, const char *folder)
{
	json_t *o = json_copy(run);

	js_set_str(o, "user", export->user);
	js_set_str(o, "dir", folder);
	return o;
}

/* What neither began nor ended in its spool is in the queue, or was never heard of again. */
static void set_states(json_t *attempts, const char *run_state)
{
	bool is_live = !run_state_is_final(run_state_from_name(run_state));
	json_t *attempt;
	size_t i;

	json_array_foreach(attempts, i, attempt) {
		bool is_newest = i + 1 == json_array_size(attempts);
		enum attempt_state state = time_ms(attempt, "end_time")     ? ATTEMPT_ENDED
					   : !is_newest || !is_live         ? ATTEMPT_ENDED
					   : time_ms(attempt, "start_time") ? ATTEMPT_RUNNING
									    : ATTEMPT_QUEUED;

		js_set_str(attempt, "state", attempt_state_name(state));
		if (state == ATTEMPT_ENDED && !time_ms(attempt, "end_time"))
			json_object_del(attempt, "start_time"); /* who knows for how long */
	}
}

/* The newest attempt's own words are why the run ended. */
static json_t *status(json_t *run, const struct team_export *export, const char *folder,
		      struct story *s)
{
	json_t *o = run_object(run, export, folder);
	const json_t *newest = json_array_get(s->attempts, json_array_size(s->attempts) - 1);

	js_set_str(o, "text", js_str(newest, "text", NULL));
	set_states(s->attempts, js_str(run, "state", NULL));
	json_object_set(o, "checkpoint", s->checkpoint ? s->checkpoint : json_null());
	json_object_set(o, "attempts", s->attempts);
	array_tasks_tell(o);
	return o;
}

static json_t *progress(json_t *run, const struct team_export *export, const char *folder,
			const struct story *s, int64_t after)
{
	int64_t cursor = s->step_place ? s->step_place : after < 0 ? story_place(s) - 1 : after;

	return json_pack("{s:o, s:O, s:I}", "run", run_object(run, export, folder), "steps",
			 s->steps, "cursor", (json_int_t)cursor);
}

static json_t *logs(const char *folder)
{
	json_t *list = json_array();
	size_t count;
	int64_t *numbers = attempt_folders(folder, &count);

	for (size_t i = 0; i < count; i++) {
		char *attempt = path_join("%s/attempts/%lld", folder, (long long)numbers[i]);

		attempt_logs(attempt, numbers[i], list);
		free(attempt);
	}
	free(numbers);
	return list;
}

static json_t *answer(enum verb verb, json_t *run, const struct team_export *export,
		      const char *folder, int64_t after, struct err *err)
{
	struct story story;
	json_t *data = NULL;

	if (verb == VERB_LOGS)
		return logs(folder);
	if (story_read(&story, folder, verb == VERB_STATUS ? 0 : after, verb == VERB_PROGRESS,
		       err) == 0)
		data = verb == VERB_EVENTS   ? json_incref(story.events)
		       : verb == VERB_STATUS ? status(run, export, folder, &story)
					     : progress(run, export, folder, &story, after);
	story_fini(&story);
	return data;
}

/* The export alone tells it, so the folder may be closed. */
static json_t *goodput(const json_t *run, const char *word, const json_t *args, struct err *err)
{
	json_t *data = js_int(args, "since", 0) == 0 ? team_goodput(run, NULL) : NULL;

	if (!data && js_int(args, "since", 0) > 0)
		err_set(err, ERR_USAGE,
			"%s: of colleagues' runs weeks are told: --by week, not --since", word);
	else if (!data)
		err_set(err, ERR_NOT_FOUND,
			"%s: where its hours went is not told: an lbd that is older than this "
			"lbctl does not tell it, and one that has just begun not at once",
			word);
	return data;
}

json_t *colleague_ask(struct ctl *ctl, enum verb verb, const char *word, const json_t *args,
		      struct err *err)
{
	const struct team_export *export;
	json_t *run = team_run(ctl, word, &export, err), *data;
	char *folder;

	if (run && verb == VERB_GOODPUT)
		return goodput(run, word, args, err);
	folder = run ? folder_of(export, js_str(run, "name", ""), err) : NULL;
	if (!folder)
		return NULL;
	data = answer(verb, run, export, folder, js_int(args, "after", 0), err);
	free(folder);
	return data;
}
